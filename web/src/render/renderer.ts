import type { Palette } from "./palette";

/** State of a row that is neither drawn nor picked. */
export const HIDDEN = 0;
/** State of an ordinary row. */
export const NORMAL = 1;
/** State of a row that something else is selected beside. */
export const FADED = 2;
/** State of a selected row: drawn last and larger. */
export const SELECTED = 3;
/** Bit of a row that the fit has seen: an open marker. */
export const TRAINING = 4;

/**
 * The rows of a map. `colour` is the class; `state` is one of the states above, plus TRAINING. An array is not written
 * to after it was handed over: what changes comes as another array.
 */
export interface Points {
  x: Float32Array;
  y: Float32Array;
  colour: Uint16Array;
  state: Uint8Array;
}

/**
 * What a map shows: the data point at its centre, the CSS pixels of one unit along the first axis, and how many times
 * as many one unit of the second axis has (1 when absent: both axes alike).
 */
export interface View {
  x: number;
  y: number;
  scale: number;
  stretch?: number;
}

/** The size of a map in CSS pixels, and the device's pixels for each of them. */
export interface Size {
  width: number;
  height: number;
  ratio: number;
}

/** Draws points on one canvas. Nothing is visible before `draw`. */
export interface Renderer {
  /** What draws at this moment; a GL renderer whose context is lost draws on the CPU until it is back. */
  readonly kind: "webgl2" | "canvas";
  setPoints(points: Points): void;
  setView(view: View): void;
  setSize(size: Size): void;
  setPalette(palette: Palette): void;
  draw(): void;
  dispose(): void;
  /** Called when the GL context is lost and when it is back; the map then draws anew. */
  onLost: (() => void) | null;
  onRestored: (() => void) | null;
}
