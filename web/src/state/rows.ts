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

/** The chosen rows that are drawn, in order. */
export function drawnRows(chosen: Uint8Array, states: Uint8Array): Uint32Array {
  const rows = new Uint32Array(states.length);
  let count = 0;
  for (let row = 0; row < states.length; row++) if (chosen[row] === 1 && states[row] !== HIDDEN) rows[count++] = row;
  return rows.slice(0, count);
}
