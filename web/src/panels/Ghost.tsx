/** Does the graph matter? The same method on a graph whose nodes are shuffled, and the sentence of the test. */

import type { MapPanel } from "../state/panel";
import { Busy, Problem } from "./Status";

export function Ghost({ map }: { map: MapPanel }) {
  const control = map.control.value;
  return (
    <div class="stack">
      <p>
        {control
          ? control.body.sentence
          : "Draw what the same method makes of a graph whose nodes are shuffled. If both maps look alike, the graph tells nothing."}
      </p>
      {control ? (
        <button type="button" onClick={() => (map.control.value = null)}>
          Take the shuffled map away
        </button>
      ) : (
        <button type="button" class="main" disabled={map.controlling.busy.value !== null} onClick={() => void map.askControl()}>
          Draw it with a shuffled graph
        </button>
      )}
      <Busy of={map.controlling} />
      <Problem of={map.controlling} />
    </div>
  );
}
