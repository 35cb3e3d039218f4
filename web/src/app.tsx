import { effect } from "@preact/signals";
import { render } from "preact";
import { App } from "./panels/App";
import { dark } from "./panels/theme";
import { Explorer, type Mode } from "./state/explorer";
import type { Transport } from "./transport/transport";

/** The mode that belongs to each way to the data. */
const MODES: Record<Transport["kind"], Mode> = { http: "page", widget: "widget", static: "static" };

interface MountOptions {
  mode?: Mode;
  /** Made by a caller that listens to its signals. */
  explorer?: Explorer;
}

/** Show the explorer in `root`; the function that is returned takes it away again. */
export function mount(root: HTMLElement, transport: Transport, options: MountOptions = {}): () => void {
  const explorer = options.explorer ?? new Explorer(transport, options.mode ?? MODES[transport.kind]);
  root.classList.add("marginfold", explorer.mode);
  const unlight = effect(() => {
    root.style.colorScheme = dark.value ? "dark" : "light";
  });
  render(<App explorer={explorer} />, root);
  void explorer.describe();
  return () => {
    unlight();
    explorer.close();
    render(null, root);
  };
}
