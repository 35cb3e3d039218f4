import { render } from "preact";
import type { Transport } from "./transport/transport";

/** Show the explorer in `root`; the function that is returned takes it away again. */
export function mount(root: HTMLElement, transport: Transport): () => void {
  render(<p>{transport.kind}</p>, root);
  return () => render(null, root);
}
