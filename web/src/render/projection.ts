import type { Projection } from "./raster";
import type { Size, View } from "./renderer";

/** Device pixels of a canvas of this size. */
export function devicePixels({ width, height, ratio }: Size): { width: number; height: number } {
  return { width: Math.max(1, Math.round(width * ratio)), height: Math.max(1, Math.round(height * ratio)) };
}

/** From data to device pixels. Rounded to single precision, because GL computes in it and both shall agree. */
export function projectionOf(view: View, size: Size): Projection {
  const { width, height } = devicePixels(size);
  const scale = view.scale * size.ratio;
  return {
    originX: Math.fround(view.x),
    originY: Math.fround(view.y),
    scaleX: Math.fround(scale),
    scaleY: Math.fround(scale * (view.stretch ?? 1)),
    middleX: Math.fround(width / 2),
    middleY: Math.fround(height / 2),
  };
}
