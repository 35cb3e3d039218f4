/** How every row is drawn, the same in all maps: hidden, plain, faded or selected, and whether the fit has seen it. */

import { FADED, HIDDEN, NORMAL, SELECTED, TRAINING } from "../render/renderer";

export interface Looks {
  classes: Uint16Array;
  heldOut: Uint8Array;
  hidden: ReadonlySet<number>;
  showTraining: boolean;
  selection: Uint32Array;
}

/** The state of every row. */
export function statesOf({ classes, heldOut, hidden, showTraining, selection }: Looks): Uint8Array {
  const states = new Uint8Array(classes.length).fill(selection.length > 0 ? FADED : NORMAL);
  for (const id of selection) if (id < states.length) states[id] = SELECTED;
  for (let row = 0; row < states.length; row += 1) {
    const seen = heldOut[row] === 0;
    if (hidden.has(classes[row]!) || (seen && !showTraining)) states[row] = HIDDEN;
    else if (seen) states[row]! |= TRAINING;
  }
  return states;
}

/** The rows among `ids` that are drawn, in order and once each. */
export function drawnRows(ids: Iterable<number>, states: Uint8Array): Uint32Array {
  const taken = new Uint8Array(states.length);
  let count = 0;
  for (const id of ids) {
    if (id >= states.length || states[id] === HIDDEN || taken[id] === 1) continue;
    taken[id] = 1;
    count += 1;
  }
  const rows = new Uint32Array(count);
  for (let id = 0, at = 0; at < count; id++) if (taken[id] === 1) rows[at++] = id;
  return rows;
}
