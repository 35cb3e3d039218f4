import type { Size, View } from "../render/renderer";
import { project } from "./view";

/** A place of the map with a name: the middle of a class. */
export interface Anchor {
  class: number;
  name: string;
  at: [number, number];
}

/** A name where it is written. */
export interface Label extends Anchor {
  left: number;
  top: number;
}

/** Size of a written name in pixels: the average width of a letter, and the height of a line. */
const LETTER = 7.2;
const LINE = 18;

/** Letters of a name that are written before it is cut. */
const LONGEST = 24;

/** Names that lie in the map and over no earlier name. */
export function placeLabels(anchors: readonly Anchor[], view: View, size: Size): Label[] {
  const placed: (Label & { half: number })[] = [];
  for (const anchor of anchors) {
    const name = anchor.name.length > LONGEST ? `${anchor.name.slice(0, LONGEST - 1)}…` : anchor.name;
    const half = (name.length * LETTER) / 2;
    const { left, top } = project(view, size, ...anchor.at);
    if (left < 0 || left > size.width || top < 0 || top > size.height) continue;
    const free = placed.every((other) => Math.abs(other.top - top) >= LINE || Math.abs(other.left - left) >= half + other.half);
    if (free) placed.push({ ...anchor, name, left, top, half });
  }
  return placed;
}
