import { CLASSES, SHAPES } from "./palette";
import { FADED, SELECTED, TRAINING, type Points } from "./renderer";
import type { SpriteSheet } from "./sprites";

/** Pixels as ImageData has them (R, G, B, A in memory), with a margin on each side that a marker may reach into. */
export interface Raster {
  pixels: Uint32Array;
  width: number;
  height: number;
  margin: number;
}

/** Device pixels of a data point: column = (x - originX) * scaleX + middleX, and downwards for y. */
export interface Projection {
  originX: number;
  originY: number;
  scaleX: number;
  scaleY: number;
  middleX: number;
  middleY: number;
}

/** Colours of one palette as pixels: ordinary ones, then faded ones. */
export type PixelColours = Uint32Array;

interface Stamp {
  full: Int32Array;
  edge: Int32Array;
  coverage: Uint8Array;
}

/** A marker as distances in the raster, apart for covered pixels, which are written, and edges, which are mixed. */
export function makeStamps(sheet: SpriteSheet, stride: number): Stamp[] {
  return sheet.sprites.map(({ size, coverage }) => {
    const full: number[] = [];
    const edge: number[] = [];
    const shares: number[] = [];
    const half = (size - 1) / 2;
    coverage.forEach((share, at) => {
      const distance = (Math.floor(at / size) - half) * stride + (at % size) - half;
      if (share === 255) full.push(distance);
      else if (share > 0) {
        edge.push(distance);
        shares.push(share);
      }
    });
    return { full: Int32Array.from(full), edge: Int32Array.from(edge), coverage: Uint8Array.from(shares) };
  });
}

/** Draw rows, in the given order, as markers. A row whose middle lies outside is left out, as GL does. */
export function drawRows(raster: Raster, points: Points, order: Uint32Array, at: Projection, stamps: Stamp[], colours: PixelColours): void {
  const { pixels, width, height, margin } = raster;
  const stride = width + 2 * margin;
  const corner = margin * stride + margin;
  const { x, y, colour, state } = points;
  const { originX, originY, scaleX, scaleY, middleX, middleY } = at;
  const kinds = 2 * SHAPES.length;
  for (let index = 0; index < order.length; index++) {
    const row = order[index];
    const left = (x[row] - originX) * scaleX + middleX;
    const top = (originY - y[row]) * scaleY + middleY;
    if (!(left >= 0 && left < width && top >= 0 && top < height)) continue;
    const kind = colour[row];
    const flags = state[row];
    const layer = flags & 3;
    const pixel = colours[(kind % CLASSES) + (layer === FADED ? CLASSES : 0)];
    const shape = ((kind / CLASSES) | 0) % SHAPES.length;
    const stamp = stamps[(layer === SELECTED ? kinds : 0) + 2 * shape + (flags & TRAINING ? 1 : 0)];
    const middle = corner + (top | 0) * stride + (left | 0);
    const { full, edge, coverage } = stamp;
    for (let each = 0; each < full.length; each++) pixels[middle + full[each]] = pixel;
    for (let each = 0; each < edge.length; each++) {
      const place = middle + edge[each];
      pixels[place] = mix(pixels[place], pixel, coverage[each]);
    }
  }
}

/** `pixel` laid over `below` with a coverage of 0 to 255; neither is premultiplied. */
function mix(below: number, pixel: number, coverage: number): number {
  const alpha = below >>> 24;
  if (alpha === 0) return ((coverage << 24) | (pixel & 0xffffff)) >>> 0;
  const sum = coverage + ((alpha * (255 - coverage) + 127) / 255 | 0);
  const share = ((coverage << 8) / sum) | 0;
  const redBlue = below & 0xff00ff;
  const green = below & 0x00ff00;
  return (
    ((sum << 24) |
      ((redBlue + ((((pixel & 0xff00ff) - redBlue) * share) >> 8)) & 0xff00ff) |
      ((green + ((((pixel & 0x00ff00) - green) * share) >> 8)) & 0x00ff00)) >>>
    0
  );
}
