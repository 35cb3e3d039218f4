import { channels, CLASSES, type Palette } from "../render/palette";
import { devicePixels } from "../render/projection";
import type { Size, View } from "../render/renderer";
import { project } from "./view";

/** Decision regions: the class at each place of a grid, its top line first, over [x0, x1, y0, y1]. */
export interface Regions {
  grid: Uint16Array;
  width: number;
  height: number;
  extent: [number, number, number, number];
}

/** The regions as a small picture of one pixel a place, in the faded colours. */
export function regionPicture({ grid, width, height }: Regions, palette: Palette): HTMLCanvasElement {
  const picture = document.createElement("canvas");
  picture.width = width;
  picture.height = height;
  const image = new ImageData(width, height);
  const colours = palette.faded.map(channels);
  grid.forEach((kind, at) => image.data.set([...colours[kind % CLASSES], 255], 4 * at));
  picture.getContext("2d")!.putImageData(image, 0, 0);
  return picture;
}

/** Lay the small picture under a map. */
export function drawRegions(canvas: HTMLCanvasElement, picture: HTMLCanvasElement | null, extent: Regions["extent"], view: View, size: Size): void {
  const { width, height } = devicePixels(size);
  canvas.width = width;
  canvas.height = height;
  const context = canvas.getContext("2d");
  if (!context || !picture) return;
  const from = project(view, size, extent[0], extent[3]);
  const to = project(view, size, extent[1], extent[2]);
  context.imageSmoothingEnabled = false;
  context.scale(size.ratio, size.ratio);
  context.drawImage(picture, from.left, from.top, to.left - from.left, to.top - from.top);
}
