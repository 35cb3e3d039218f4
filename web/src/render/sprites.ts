import { SHAPES, type Shape } from "./palette";
import type { Size } from "./renderer";

/** Coverage (0 to 255) of one marker, row by row, `size` x `size` device pixels. */
export interface Sprite {
  size: number;
  coverage: Uint8Array;
}

/** All markers of one point size. Both renderers draw these very masks. */
export interface SpriteSheet {
  /** Markers of ordinary rows at `shape * 2 + open`, then those of selected rows in the same order. */
  sprites: Sprite[];
  size: number;
  selectedSize: number;
}

/** Share of the map that all markers together would cover if none lay over another: a cloud, not a carpet. */
const COVERED = 0.8;

/** CSS pixels of the smallest and the largest marker. */
const [SMALLEST, LARGEST] = [3, 9];

/** Coverage from which a pixel counts as covered: pixels that need no mixing are drawn in a third of the time. */
const FULL = 0.7;

/** Width of an open marker's line relative to its radius; never so wide that its middle is filled. */
const LINE = 0.45;

/** An odd number of device pixels for each marker, so that it has a middle pixel. */
export function markerSize(rows: number, { width, height, ratio }: Size): number {
  const diameter = Math.sqrt((COVERED * width * height) / Math.max(rows, 1));
  return 2 * Math.floor((Math.min(Math.max(diameter, SMALLEST), LARGEST) * ratio) / 2) + 1;
}

/** Draw the markers of one size once. */
export function makeSheet(size: number): SpriteSheet {
  const selectedSize = size + 2;
  const sprites: Sprite[] = [];
  for (const each of [size, selectedSize])
    for (const shape of SHAPES) for (const open of [false, true]) sprites.push(makeSprite(shape, each, open));
  return { sprites, size, selectedSize };
}

function makeSprite(shape: Shape, size: number, open: boolean): Sprite {
  const radius = size / 2;
  const line = Math.min(Math.max(1, LINE * radius), depth(shape, 0, 0, radius) - 0.5);
  const coverage = new Uint8Array(size * size);
  for (let row = 0; row < size; row++)
    for (let column = 0; column < size; column++) {
      const inside = depth(shape, column + 0.5 - radius, row + 0.5 - radius, radius);
      const hole = open ? clamp(inside - line + 0.5) : 0;
      const share = clamp(inside + 0.5) - hole;
      coverage[row * size + column] = share >= FULL ? 255 : Math.round(255 * share);
    }
  return { size, coverage };
}

/** How deep a place lies inside a shape, in pixels; negative outside. */
function depth(shape: Shape, x: number, y: number, radius: number): number {
  const reach = radius - 0.5;
  switch (shape) {
    case "disc":
      return reach + 0.25 - Math.hypot(x, y);
    case "square":
      return 0.85 * reach + 0.25 - Math.max(Math.abs(x), Math.abs(y));
    case "diamond":
      return (reach + 0.25 - Math.abs(x) - Math.abs(y)) * Math.SQRT1_2 + 0.2;
    case "triangle":
      return Math.min(0.75 * reach - y, (y + reach + 0.5) * 0.447 - Math.abs(x) * 0.894) + 0.25;
  }
}

function clamp(value: number): number {
  return Math.min(1, Math.max(0, value));
}
