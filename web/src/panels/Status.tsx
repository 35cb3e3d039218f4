/** How a call is going: its progress with a way to stop it, or the sentence of its failure. */

import type { Latest } from "../state/request";

/** Progress and a button that stops the call; nothing while no call runs. */
export function Busy({ of }: { of: Latest }) {
  const progress = of.busy.value;
  if (!progress) return null;
  const known = progress.total !== null && progress.total > 0;
  return (
    <div class="busy">
      <span>{progress.stage}</span>
      {known ? (
        <progress aria-label={progress.stage} value={progress.done} max={progress.total!} />
      ) : (
        <progress aria-label={progress.stage} />
      )}
      <button type="button" onClick={() => of.cancel()}>
        Cancel
      </button>
    </div>
  );
}

/** The sentence of the failure, read out when it appears. */
export function Problem({ of }: { of: Latest }) {
  const message = of.error.value;
  return (
    <div role="alert" class={message === null ? "nothing" : "problem"}>
      {message}
    </div>
  );
}
