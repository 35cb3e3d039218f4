/** Layers from below to above: faded, ordinary, selected, in each the rows that the fit has seen first. */
const LAYER = [-1, 3, 1, 5, -1, 2, 0, 4];

/**
 * The rows to draw in their order. Inside a layer rows follow each other in a fixed scattered order: in a table that is
 * sorted by class the last class would otherwise hide the others.
 */
export function drawOrder(state: Uint8Array): Uint32Array {
  const ends = new Uint32Array(7);
  for (let row = 0; row < state.length; row++) ends[LAYER[state[row] & 7] + 1]++;
  ends[0] = 0;
  for (let layer = 1; layer < 7; layer++) ends[layer] += ends[layer - 1];
  const order = new Uint32Array(ends[6]);
  const step = scatterStep(state.length);
  for (let count = 0, row = 0; count < state.length; count++) {
    const layer = LAYER[state[row] & 7];
    if (layer >= 0) order[ends[layer]++] = row;
    row += step;
    if (row >= state.length) row -= state.length;
  }
  return order;
}

/** A step near the golden section of `size` and prime to it: it visits every row once. */
function scatterStep(size: number): number {
  let step = Math.max(1, Math.round(size * 0.618034));
  while (divisor(step, size) > 1) step++;
  return size > 1 ? step % size || 1 : 1;
}

function divisor(a: number, b: number): number {
  return b === 0 ? a : divisor(b, a % b);
}
