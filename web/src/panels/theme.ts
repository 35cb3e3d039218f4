/** Whether the page is dark, as the reader's system says. */

import { signal } from "@preact/signals";

const query = typeof matchMedia === "function" ? matchMedia("(prefers-color-scheme: dark)") : null;

export const dark = signal(query?.matches ?? false);

query?.addEventListener("change", (event) => {
  dark.value = event.matches;
});
