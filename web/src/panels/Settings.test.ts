import { expect, test } from "vitest";
import { readable, scaleOf } from "./Settings";

test("a slider over logarithms reaches both ends and finds its values again", () => {
  const scale = scaleOf({ kind: "log", low: 0.001, high: 10000 });
  expect(scale.value(0)).toBe(0.001);
  expect(scale.value(scale.steps)).toBe(10000);
  for (let step = 0; step <= scale.steps; step++) expect(scale.step(scale.value(step))).toBe(step);
});

test("no step leaves the range that the server allows", () => {
  const scale = scaleOf({ kind: "log", low: 0.25, high: 63.97 });
  for (let step = 0; step <= scale.steps; step++) {
    expect(scale.value(step)).toBeGreaterThanOrEqual(0.25);
    expect(scale.value(step)).toBeLessThanOrEqual(63.97);
  }
});

test("a slider over whole numbers has one step for each", () => {
  const scale = scaleOf({ kind: "integer", low: 1, high: 10 });
  expect(Array.from({ length: scale.steps + 1 }, (_, step) => scale.value(step))).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
});

test("numbers are written in few digits", () => {
  expect([0, 1, 0.12345, 13.894954, 1e-8, 123456, -0.5].map(readable)).toEqual(["0", "1", "0.123", "13.9", "1.0e-8", "1.2e5", "-0.5"]);
});
