import type { Size, View } from "../render/renderer";

/** A point of the map in CSS pixels from its upper left corner. */
export interface Place {
  left: number;
  top: number;
}

/** Share of the map that stays free at each side when everything is shown. */
const MARGIN = 0.06;

/** Extents that differ by more than this many times are stretched to fill the map; closer ones keep equal axes. */
const EQUAL_UP_TO = 5;

/** Where a data point lies on the map. */
export function project(view: View, size: Size, x: number, y: number): Place {
  return {
    left: size.width / 2 + (x - view.x) * view.scale,
    top: size.height / 2 - (y - view.y) * view.scale * (view.stretch ?? 1),
  };
}

/** The data point at a place of the map. */
export function unproject(view: View, size: Size, { left, top }: Place): [number, number] {
  return [
    view.x + (left - size.width / 2) / view.scale,
    view.y - (top - size.height / 2) / (view.scale * (view.stretch ?? 1)),
  ];
}

/** The view that moves everything by some CSS pixels. */
export function pan(view: View, right: number, down: number): View {
  return { ...view, x: view.x - right / view.scale, y: view.y + down / (view.scale * (view.stretch ?? 1)) };
}

/** The view that is larger by a factor while the data point at `at` stays where it is. */
export function zoom(view: View, size: Size, factor: number, at: Place): View {
  const [x, y] = unproject(view, size, at);
  const next = { ...view, scale: view.scale * factor };
  const [nextX, nextY] = unproject(next, size, at);
  return { ...next, x: view.x + x - nextX, y: view.y + y - nextY };
}

/** The smallest and largest finite coordinates as [x0, x1, y0, y1]; only rows with a state other than hidden. */
export function extentOf(x: ArrayLike<number>, y: ArrayLike<number>, state?: Uint8Array): [number, number, number, number] {
  let [x0, x1, y0, y1] = [Infinity, -Infinity, Infinity, -Infinity];
  for (let row = 0; row < x.length; row++) {
    if (state && (state[row] & 3) === 0) continue;
    if (!Number.isFinite(x[row]) || !Number.isFinite(y[row])) continue;
    if (x[row] < x0) x0 = x[row];
    if (x[row] > x1) x1 = x[row];
    if (y[row] < y0) y0 = y[row];
    if (y[row] > y1) y1 = y[row];
  }
  return x0 <= x1 ? [x0, x1, y0, y1] : [-1, 1, -1, 1];
}

/** The view that shows a whole extent, with equal axes unless one of them would shrink to a line. */
export function fitView([x0, x1, y0, y1]: [number, number, number, number], size: Size): View {
  const width = Math.max(x1 - x0, Number.MIN_VALUE);
  const height = Math.max(y1 - y0, Number.MIN_VALUE);
  const free = 1 - 2 * MARGIN;
  const flat = x1 === x0 || y1 === y0;
  const across = (free * Math.max(size.width, 1)) / width;
  const down = (free * Math.max(size.height, 1)) / height;
  const equal = flat || Math.max(width / height, height / width) <= EQUAL_UP_TO;
  const scale = equal ? Math.min(across, down) : across;
  const finite = Number.isFinite(scale) ? scale : 1;
  return { x: (x0 + x1) / 2, y: (y0 + y1) / 2, scale: finite, stretch: equal ? 1 : down / across };
}
