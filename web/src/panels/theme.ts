/** Whether the page is dark: as the notebook around it says, else as the reader's system does. */

import { signal } from "@preact/signals";

const query = typeof matchMedia === "function" ? matchMedia("(prefers-color-scheme: dark)") : null;

export const dark = signal(isDark());

query?.addEventListener("change", look);
if (typeof MutationObserver === "function") {
  new MutationObserver(look).observe(document.body, { attributeFilter: ["data-jp-theme-light", "data-vscode-theme-kind"] });
}

function look(): void {
  dark.value = isDark();
}

/** JupyterLab and VS Code mark the body of their pages. */
function isDark(): boolean {
  const { jpThemeLight, vscodeThemeKind } = document.body.dataset;
  if (jpThemeLight !== undefined) return jpThemeLight === "false";
  if (vscodeThemeKind !== undefined) return !vscodeThemeKind.endsWith("light");
  return query?.matches ?? false;
}
