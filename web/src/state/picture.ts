/** From the coordinates of a fit, or a step of a path, to the points of a picture. */

import { decodeStep, type PathArrays } from "../render/path";
import type { FrameArray } from "../transport/transport";
import type { PathBody } from "./calls";

export interface Picture {
  x: Float32Array;
  y: Float32Array;
  /** Whether the height only spreads the points because the fit has a single axis. */
  spread: boolean;
}

export interface Path {
  body: PathBody;
  arrays: PathArrays;
}

/** The height over which the points of a map with one axis are spread, as a share of its width. */
const SPREAD = 0.35;

/** The fractional part of the golden ratio: multiples of it fill an interval evenly. */
const GOLDEN = 0.6180339887498949;

/** The picture of two columns of the (n, k) coordinates. */
export function pictureOf(coordinates: ArrayLike<number>, k: number, axes: readonly [number, number]): Picture {
  const x = column(coordinates, k, Math.min(axes[0], k - 1));
  return k < 2 ? { x, y: spreadOver(x), spread: true } : { x, y: column(coordinates, k, Math.min(axes[1], k - 1)), spread: false };
}

/** The picture at one step of a path. */
export function pictureOfStep({ arrays }: Path, index: number): Picture {
  const { x, y } = decodeStep(arrays, index);
  return arrays.high.every((high, at) => at % 2 === 0 || high === arrays.low[at]) ? { x, y: spreadOver(x), spread: true } : { x, y, spread: false };
}

/** The path, mirrored along an axis where the fit at that step looks the other way. */
export function alignedPath(path: Path, step: number, coordinates: ArrayLike<number>, k: number): Path {
  const { x, y } = decodeStep(path.arrays, step);
  const mirrored = [x, y].map((values, axis) => axis < k && agreement(values, coordinates, k, axis) < 0);
  if (!mirrored.includes(true)) return path;
  const turn = (bounds: FrameArray) => {
    const turned = bounds.map((value, at) => (mirrored[at % 2] ? -value : value));
    return Object.assign(turned, { shape: bounds.shape }) as unknown as FrameArray;
  };
  return { body: path.body, arrays: { steps: path.arrays.steps, low: turn(path.arrays.low), high: turn(path.arrays.high) } };
}

/** The sum of products of both deviations from their means. */
function agreement(values: Float32Array, coordinates: ArrayLike<number>, k: number, axis: number): number {
  let [sum, both, other] = [0, 0, 0];
  for (let row = 0; row < values.length; row++) {
    const coordinate = coordinates[row * k + axis];
    sum += values[row];
    other += coordinate;
    both += values[row] * coordinate;
  }
  return both - (sum * other) / Math.max(1, values.length);
}

function column(coordinates: ArrayLike<number>, k: number, axis: number): Float32Array {
  const values = new Float32Array(coordinates.length / k);
  for (let row = 0; row < values.length; row++) values[row] = coordinates[row * k + axis];
  return values;
}

function spreadOver(x: Float32Array): Float32Array {
  let [low, high] = [Infinity, -Infinity];
  for (const value of x) {
    if (value < low) low = value;
    if (value > high) high = value;
  }
  const height = SPREAD * (high > low ? high - low : 1);
  return Float32Array.from(x, (_, row) => height * (((row * GOLDEN) % 1) - 0.5));
}
