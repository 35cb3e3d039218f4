/** The screen as a Python script, to copy. */

import { useRef, useState } from "preact/hooks";
import { useExplorer } from "./context";
import { Problem } from "./Status";

export function CodeDialog() {
  const explorer = useExplorer();
  const dialog = useRef<HTMLDialogElement>(null);
  const [code, setCode] = useState("");
  const [copied, setCopied] = useState(false);
  const open = async () => {
    setCopied(false);
    setCode((await explorer.code()) ?? "");
    dialog.current?.showModal();
  };
  const copy = async () => {
    await navigator.clipboard.writeText(code).then(
      () => setCopied(true),
      () => setCopied(false),
    );
  };
  return (
    <>
      <button type="button" onClick={() => void open()}>
        Copy as Python
      </button>
      <dialog ref={dialog} aria-label="The maps as a Python script" class="code">
        <h2>The maps on this screen as a script</h2>
        <Problem of={explorer.coding} />
        <pre tabIndex={0}>{code}</pre>
        <div class="row">
          <button type="button" class="main" disabled={code === ""} onClick={() => void copy()}>
            {copied ? "Copied" : "Copy"}
          </button>
          <button type="button" onClick={() => dialog.current?.close()}>
            Close
          </button>
        </div>
      </dialog>
    </>
  );
}
