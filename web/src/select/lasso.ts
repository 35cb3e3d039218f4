/** Bands of y into which the polygon's edges are sorted; a row is compared with the edges of its band only. */
const BANDS = 128;

interface Bands {
  starts: Uint32Array;
  edges: Uint32Array;
  low: number;
  perUnit: number;
}

/**
 * The visible rows inside a polygon [x0, y0, x1, y1, ...] that closes itself, in ascending order. What the line encloses
 * twice is outside (even-odd rule).
 */
export function lasso(x: Float32Array, y: Float32Array, polygon: ArrayLike<number>, state?: Uint8Array): Uint32Array {
  const corners = polygon.length >> 1;
  if (corners < 3) return new Uint32Array(0);
  const [left, right, bottom, top] = boxOf(polygon);
  const bands = sortEdges(polygon, corners, bottom, top);
  const found = new Uint32Array(x.length);
  let count = 0;
  for (let row = 0; row < x.length; row++) {
    const px = x[row];
    const py = y[row];
    if (!(px >= left && px <= right && py >= bottom && py <= top)) continue;
    if (state && (state[row] & 3) === 0) continue;
    const band = bandOf(bands, py);
    let inside = false;
    for (let at = bands.starts[band]; at < bands.starts[band + 1]; at++)
      if (crosses(polygon, corners, bands.edges[at], px, py)) inside = !inside;
    if (inside) found[count++] = row;
  }
  return found.slice(0, count);
}

/** Whether the ray from a place to the right crosses an edge; an edge holds its lower end, not its upper one. */
function crosses(polygon: ArrayLike<number>, corners: number, edge: number, px: number, py: number): boolean {
  const next = edge + 1 === corners ? 0 : edge + 1;
  const ay = polygon[2 * edge + 1];
  const by = polygon[2 * next + 1];
  if (ay > py === by > py) return false;
  const ax = polygon[2 * edge];
  return px < ax + ((py - ay) / (by - ay)) * (polygon[2 * next] - ax);
}

function sortEdges(polygon: ArrayLike<number>, corners: number, low: number, high: number): Bands {
  const bands = { starts: new Uint32Array(BANDS + 1), edges: new Uint32Array(0), low, perUnit: BANDS / (high - low || 1) };
  const each = (visit: (band: number, edge: number) => void) => {
    for (let edge = 0; edge < corners; edge++) {
      const next = edge + 1 === corners ? 0 : edge + 1;
      const first = bandOf(bands, Math.min(polygon[2 * edge + 1], polygon[2 * next + 1]));
      const last = bandOf(bands, Math.max(polygon[2 * edge + 1], polygon[2 * next + 1]));
      for (let band = first; band <= last; band++) visit(band, edge);
    }
  };
  each((band) => bands.starts[band + 1]++);
  for (let band = 0; band < BANDS; band++) bands.starts[band + 1] += bands.starts[band];
  bands.edges = new Uint32Array(bands.starts[BANDS]);
  const next = bands.starts.slice();
  each((band, edge) => (bands.edges[next[band]++] = edge));
  return bands;
}

function bandOf({ low, perUnit }: Bands, y: number): number {
  return Math.min(BANDS - 1, Math.max(0, Math.floor((y - low) * perUnit)));
}

function boxOf(polygon: ArrayLike<number>): [number, number, number, number] {
  let [left, right, bottom, top] = [Infinity, -Infinity, Infinity, -Infinity];
  for (let at = 0; at + 1 < polygon.length; at += 2) {
    left = Math.min(left, polygon[at]);
    right = Math.max(right, polygon[at]);
    bottom = Math.min(bottom, polygon[at + 1]);
    top = Math.max(top, polygon[at + 1]);
  }
  return [left, right, bottom, top];
}
