import { FADED, HIDDEN, NORMAL, SELECTED, TRAINING } from "../render/renderer";

/** What decides over a row's state. */
export interface Shown {
  /** Class of each row. */
  classes: Uint16Array;
  /** 1 for each row that the fit has not seen. */
  heldOut: Uint8Array;
  /** Classes that are hidden. */
  hidden: ReadonlySet<number>;
  showTraining: boolean;
  /** Ids of the selected rows; nothing is faded where none is selected. */
  selection: { readonly size: number; [Symbol.iterator](): Iterator<number> };
}

/** The state of every row, the same for all maps: training rows and hidden classes are neither drawn nor picked. */
export function rowStates({ classes, heldOut, hidden, showTraining, selection }: Shown): Uint8Array {
  const states = new Uint8Array(classes.length);
  const ordinary = selection.size > 0 ? FADED : NORMAL;
  for (let row = 0; row < states.length; row++) {
    const shown = (heldOut[row] || showTraining) && !(hidden.size && hidden.has(classes[row]));
    states[row] = shown ? (heldOut[row] ? ordinary : ordinary + TRAINING) : HIDDEN;
  }
  for (const row of selection) if (states[row] !== HIDDEN) states[row] = SELECTED + (states[row] & TRAINING);
  return states;
}
