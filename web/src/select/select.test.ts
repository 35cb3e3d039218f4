import { describe, expect, test } from "vitest";
import { HIDDEN, NORMAL } from "../render/renderer";
import { makeGrid } from "./grid";
import { lasso } from "./lasso";
import { nearest } from "./nearest";
import { generator } from "./random";

function cloud(rows: number, seed: number, spread = 1) {
  const random = generator(seed);
  const x = Float32Array.from({ length: rows }, () => spread * (random() - 0.5));
  const y = Float32Array.from({ length: rows }, () => random() - 0.5);
  const state = Uint8Array.from({ length: rows }, () => (random() < 0.2 ? HIDDEN : NORMAL));
  return { x, y, state, random };
}

describe("nearest", () => {
  function bruteForce(x: Float32Array, y: Float32Array, state: Uint8Array, px: number, py: number, radius: number, stretch: number): number {
    let found = -1;
    let least = Infinity;
    for (let row = 0; row < x.length; row++) {
      const distance = (x[row] - px) ** 2 + ((y[row] - py) * stretch) ** 2;
      if (state[row] !== HIDDEN && distance <= radius * radius && distance < least) [found, least] = [row, distance];
    }
    return found;
  }

  test.each([
    [1, 1],
    [50, 1],
    [50, 0.02],
    [3000, 1],
    [3000, 40],
  ])("finds what a search of all %i rows finds, with a stretch of %d", (rows, stretch) => {
    const { x, y, state, random } = cloud(rows, rows, stretch);
    const grid = makeGrid(x, y);
    for (let repeat = 0; repeat < 300; repeat++) {
      const [px, py] = [1.4 * stretch * (random() - 0.5), 1.4 * (random() - 0.5)];
      const radius = stretch * random() ** 3;
      expect(nearest(grid, px, py, radius, state, stretch)).toBe(bruteForce(x, y, state, px, py, radius, stretch));
    }
  });

  test("takes the first of rows at the same place, and the next when it is hidden", () => {
    const x = new Float32Array(9).fill(2);
    const grid = makeGrid(x, x);
    expect(nearest(grid, 2, 2, 0.5)).toBe(0);
    expect(nearest(grid, 2, 2, 0.5, Uint8Array.from([0, 0, 1, 1, 1, 1, 1, 1, 1]))).toBe(2);
  });

  test("leaves out rows without a number and knows an empty map", () => {
    expect(nearest(makeGrid(Float32Array.from([NaN, 1]), Float32Array.from([1, 1])), 1, 1, 9)).toBe(1);
    expect(nearest(makeGrid(new Float32Array(0), new Float32Array(0)), 0, 0, 9)).toBe(-1);
  });
});

describe("lasso", () => {
  /** Even-odd by a ray that goes upwards, where the lasso's goes to the right. */
  function bruteForce(x: Float32Array, y: Float32Array, polygon: number[], state: Uint8Array): number[] {
    const corners = polygon.length / 2;
    return Array.from(x.keys()).filter((row) => {
      let crossings = 0;
      for (let edge = 0; edge < corners; edge++) {
        const [ax, ay] = [polygon[2 * edge], polygon[2 * edge + 1]];
        const [bx, by] = [polygon[(2 * edge + 2) % (2 * corners)], polygon[(2 * edge + 3) % (2 * corners)]];
        if (Math.min(ax, bx) <= x[row] && x[row] < Math.max(ax, bx) && y[row] < ay + ((x[row] - ax) * (by - ay)) / (bx - ax)) crossings++;
      }
      return state[row] !== HIDDEN && crossings % 2 === 1;
    });
  }

  test.each([3, 4, 17, 64, 500])("selects what an even-odd count selects, with %i corners that may cross", (corners) => {
    const { x, y, state, random } = cloud(2000, corners);
    for (let repeat = 0; repeat < 20; repeat++) {
      const polygon = Array.from({ length: 2 * corners }, () => 1.2 * (random() - 0.5));
      expect(Array.from(lasso(x, y, polygon, state))).toEqual(bruteForce(x, y, polygon, state));
    }
  });

  test("selects the rows of a disc by their distance from its middle", () => {
    const { x, y } = cloud(20_000, 7);
    const corners = 4096;
    const circle = Array.from({ length: 2 * corners }, (_, at) => {
      const angle = (2 * Math.PI * (at >> 1)) / corners;
      return 0.3 * (at % 2 ? Math.sin(angle) : Math.cos(angle));
    });
    const selected = new Set(lasso(x, y, circle));
    x.forEach((_, row) => {
      const distance = Math.hypot(x[row], y[row]);
      if (Math.abs(distance - 0.3) > 1e-6) expect(selected.has(row)).toBe(distance < 0.3);
    });
  });

  test("a line or a flat polygon selects nothing", () => {
    const { x, y } = cloud(50, 1);
    expect(lasso(x, y, [0, 0, 1, 1]).length).toBe(0);
    expect(lasso(x, y, [-1, 0, 1, 0, 0, 0]).length).toBe(0);
  });

  test("rows without a number are never selected", () => {
    expect(Array.from(lasso(Float32Array.from([NaN, 0]), Float32Array.from([0, 0]), [-1, -1, 1, -1, 1, 1, -1, 1]))).toEqual([1]);
  });
});
