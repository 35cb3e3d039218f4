/** From the coordinates of a fit to the points of a picture: two axes, one common scale, the unit square. */

import type { PathBody } from "./calls";

/** Data coordinates are (picture * half + centre). Both axes share `half`, so distances keep their meaning. */
export interface Frame {
  centre: [number, number];
  half: number;
}

export interface Picture {
  x: Float32Array;
  y: Float32Array;
  frame: Frame;
  /** Whether the height only spreads the points because the fit has a single axis. */
  spread: boolean;
}

export interface Path {
  body: PathBody;
  steps: Uint16Array;
  low: Float32Array;
  high: Float32Array;
}

/** The height of the band over which the points of a map with one axis are spread, in units of its half width. */
const SPREAD = 0.35;

/** The fractional part of the golden ratio: multiples of it fill an interval evenly. */
const GOLDEN = 0.6180339887498949;

/** The picture of two columns of the (n, k) coordinates. */
export function pictureOf(coordinates: ArrayLike<number>, k: number, axes: readonly [number, number]): Picture {
  const n = k === 0 ? 0 : coordinates.length / k;
  const x = column(coordinates, n, k, Math.min(axes[0], k - 1));
  if (k < 2) return spreadOut(x);
  return fitted(x, column(coordinates, n, k, Math.min(axes[1], k - 1)));
}

/** The picture at one step of a path. */
export function pictureOfStep(path: Path, index: number): Picture {
  const n = path.steps.length / path.body.weights.length / 2;
  const from = index * n * 2;
  const [low0, low1] = [path.low[2 * index] ?? 0, path.low[2 * index + 1] ?? 0];
  const unit0 = ((path.high[2 * index] ?? 0) - low0) / 65535;
  const unit1 = ((path.high[2 * index + 1] ?? 0) - low1) / 65535;
  const frame = frameOf([low0, low0 + unit0 * 65535], [low1, low1 + unit1 * 65535]);
  const x = new Float32Array(n);
  const y = new Float32Array(n);
  const steps = path.steps;
  for (let row = 0; row < n; row += 1) {
    x[row] = (low0 + unit0 * steps[from + 2 * row]! - frame.centre[0]) / frame.half;
    y[row] = (low1 + unit1 * steps[from + 2 * row + 1]! - frame.centre[1]) / frame.half;
  }
  return { x, y, frame, spread: false };
}

/** A place of the data in the picture. */
export function toPicture(frame: Frame, at: readonly [number, number]): [number, number] {
  return [(at[0] - frame.centre[0]) / frame.half, (at[1] - frame.centre[1]) / frame.half];
}

/** A place of the picture in the data. */
export function toData(frame: Frame, at: readonly [number, number]): [number, number] {
  return [at[0] * frame.half + frame.centre[0], at[1] * frame.half + frame.centre[1]];
}

function column(coordinates: ArrayLike<number>, n: number, k: number, axis: number): Float32Array {
  const values = new Float32Array(n);
  for (let row = 0; row < n; row += 1) values[row] = coordinates[row * k + axis]!;
  return values;
}

function fitted(x: Float32Array, y: Float32Array): Picture {
  const frame = frameOf(extent(x), extent(y));
  for (let row = 0; row < x.length; row += 1) {
    x[row] = (x[row]! - frame.centre[0]) / frame.half;
    y[row] = (y[row]! - frame.centre[1]) / frame.half;
  }
  return { x, y, frame, spread: false };
}

function spreadOut(x: Float32Array): Picture {
  const frame = frameOf(extent(x), [0, 0]);
  const y = new Float32Array(x.length);
  for (let row = 0; row < x.length; row += 1) {
    x[row] = (x[row]! - frame.centre[0]) / frame.half;
    y[row] = SPREAD * (2 * ((row * GOLDEN) % 1) - 1);
  }
  return { x, y, frame, spread: true };
}

function extent(values: Float32Array): [number, number] {
  let low = Infinity;
  let high = -Infinity;
  for (const value of values) {
    if (value < low) low = value;
    if (value > high) high = value;
  }
  return low <= high ? [low, high] : [0, 0];
}

function frameOf(x: [number, number], y: [number, number]): Frame {
  const half = Math.max(x[1] - x[0], y[1] - y[0]) / 2;
  return { centre: [(x[0] + x[1]) / 2, (y[0] + y[1]) / 2], half: half > 0 ? half : 1 };
}
