// @vitest-environment happy-dom
import { expect, test } from "vitest";
import { dark } from "./theme";

async function marked(name: string, value: string): Promise<boolean> {
  document.body.setAttribute(name, value);
  await new Promise((resolve) => setTimeout(resolve, 10));
  return dark.value;
}

test("the notebook around decides, JupyterLab before VS Code, and each change is followed", async () => {
  expect(await marked("data-vscode-theme-kind", "vscode-dark")).toBe(true);
  expect(await marked("data-vscode-theme-kind", "vscode-high-contrast-light")).toBe(false);
  expect(await marked("data-jp-theme-light", "false")).toBe(true);
  expect(await marked("data-jp-theme-light", "true")).toBe(false);
});
