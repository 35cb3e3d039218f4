import { columnOf, lineOf, type GridIndex } from "./grid";

/**
 * The visible row nearest to a place, or -1 if none lies within the radius. Distances are measured as on the map: one
 * unit of y counts `stretch` times. Of rows equally near the one with the smallest id is taken.
 */
export function nearest(grid: GridIndex, x: number, y: number, radius: number, state?: Uint8Array, stretch = 1): number {
  const firstColumn = columnOf(grid, x - radius);
  const lastColumn = columnOf(grid, x + radius);
  const firstLine = lineOf(grid, y - radius / stretch);
  const lastLine = lineOf(grid, y + radius / stretch);
  let found = -1;
  let least = radius * radius;
  for (let line = firstLine; line <= lastLine; line++) {
    const begin = grid.starts[line * grid.columns + firstColumn];
    const end = grid.starts[line * grid.columns + lastColumn + 1];
    for (let at = begin; at < end; at++) {
      const row = grid.rows[at];
      if (state && (state[row] & 3) === 0) continue;
      const across = grid.x[row] - x;
      const along = (grid.y[row] - y) * stretch;
      const distance = across * across + along * along;
      if (distance < least || (distance === least && (found < 0 || row < found))) {
        found = row;
        least = distance;
      }
    }
  }
  return found;
}
