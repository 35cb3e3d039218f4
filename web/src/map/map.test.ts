import { describe, expect, test } from "vitest";
import { handleKey } from "./keys";
import { placeLabels } from "./labels";
import { extentOf, fitView, pan, project, unproject, zoom } from "./view";

const SIZE = { width: 400, height: 300, ratio: 2 };
const VIEW = { x: 3, y: -2, scale: 25, stretch: 4 };

describe("the view", () => {
  test("project and unproject undo each other", () => {
    const [x, y] = unproject(VIEW, SIZE, { left: 31, top: 222 });
    expect(project(VIEW, SIZE, x, y)).toEqual({ left: expect.closeTo(31), top: expect.closeTo(222) });
  });

  test("the middle of the map is the view's place, and y grows upwards", () => {
    expect(project(VIEW, SIZE, 3, -2)).toEqual({ left: 200, top: 150 });
    expect(project(VIEW, SIZE, 3, -1).top).toBeLessThan(150);
  });

  test("a pan moves every row by so many pixels", () => {
    expect(project(pan(VIEW, 17, -9), SIZE, 3, -2)).toEqual({ left: expect.closeTo(217), top: expect.closeTo(141) });
  });

  test("a zoom holds the place under the pointer and spreads the others", () => {
    const at = { left: 90, top: 40 };
    const next = zoom(VIEW, SIZE, 3, at);
    expect(project(next, SIZE, ...unproject(VIEW, SIZE, at))).toEqual({ left: expect.closeTo(90), top: expect.closeTo(40) });
    expect(next.scale).toBe(75);
  });

  test.each([
    [[-1, 1, -1, 1], 1],
    [[0, 100, -0.01, 0.02], null],
    [[5, 5, 0, 1], 1],
    [[2, 2, 2, 2], 1],
  ] as const)("the view of everything holds the corners of %j", (extent, stretch) => {
    const view = fitView([...extent], SIZE);
    const corners = [project(view, SIZE, extent[0], extent[2]), project(view, SIZE, extent[1], extent[3])];
    for (const { left, top } of corners) {
      expect(left).toBeGreaterThan(0);
      expect(left).toBeLessThan(SIZE.width);
      expect(top).toBeGreaterThan(0);
      expect(top).toBeLessThan(SIZE.height);
    }
    if (stretch) expect(view.stretch).toBe(stretch);
  });

  test("the extent leaves out hidden rows and what is no number", () => {
    const x = [1, 2, NaN, 99];
    expect(extentOf(x, [5, 6, 7, 8], Uint8Array.from([1, 6, 1, 4]))).toEqual([1, 2, 5, 6]);
    expect(extentOf([], [])).toEqual([-1, 1, -1, 1]);
  });
});

describe("names on the map", () => {
  test("are left out over an earlier name and outside of the map, and long ones are cut", () => {
    const anchor = (name: string, x: number, y: number) => ({ class: 0, name, at: [x, y] as [number, number] });
    const anchors = [anchor("setosa", 3, -2), anchor("hidden", 3.2, -2), anchor("x".repeat(99), 3, -3), anchor("far", 300, 0)];
    const names = placeLabels(anchors, VIEW, SIZE).map(({ name }) => name);
    expect(names).toEqual(["setosa", `${"x".repeat(23)}…`]);
  });
});

describe("keys", () => {
  test("each known key does one thing and others are left to the page", () => {
    const done: string[] = [];
    const note = (name: string) => (...given: number[]) => void done.push([name, ...given.map(Math.sign)].join(" "));
    const actions = { pan: note("pan"), zoom: note("zoom"), fit: note("fit"), pin: note("pin"), selectShown: note("select"), clear: note("clear") };
    const keys = ["ArrowLeft", "ArrowUp", "+", "-", "0", "Enter", "s", "Escape"];
    expect(keys.map((key) => handleKey(key, actions))).toEqual(keys.map(() => true));
    expect(done).toEqual(["pan 1 0", "pan 0 1", "zoom 1", "zoom 1", "fit", "pin", "select", "clear"]);
    expect(["Tab", "a", "constructor"].map((key) => handleKey(key, actions))).toEqual([false, false, false]);
  });
});
