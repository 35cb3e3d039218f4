/** What render.py measures in the page: two maps, drawn by one renderer, with synthetic rows. */
import { pixelsOf } from "../../web/harness/pixels";
import { createRenderer } from "../../web/src/render/create";
import { decodeStep, type PathArrays } from "../../web/src/render/path";
import { FADED, NORMAL, SELECTED, type Points, type Renderer, type Size, type View } from "../../web/src/render/renderer";
import { makeGrid } from "../../web/src/select/grid";
import { lasso } from "../../web/src/select/lasso";
import { nearest } from "../../web/src/select/nearest";
import { generator } from "../../web/src/select/random";
import { shaped } from "../../web/src/transport/frames";

const WEIGHTS = 30;
const CLASSES = 5;
const LASSO_CORNERS = 64;
const VIEW: View = { x: 0, y: 0, scale: 90 };

type Kind = "webgl2" | "canvas" | null;

interface Times {
  [name: string]: number[];
}

/** All measurements for one renderer and one number of rows, in milliseconds. */
async function measure(kind: Kind, rows: number, size: Size, repeats: number): Promise<{ kind: string; times: Times }> {
  const times: Times = {};
  const note = (name: string, value: number) => (times[name] ??= []).push(value);
  const data = makeRows(rows);
  const paths = [makePath(data.x, data.y, rows), makePath(data.y, data.x, rows)];
  const begin = performance.now();
  const maps = [0, 1].map(() => makeMap(kind, size));
  maps.forEach(({ renderer }) => show(renderer, data));
  maps.forEach(settle);
  note("two maps interactive", performance.now() - begin);

  for (let repeat = 0; repeat < repeats; repeat++) {
    await frame();
    const start = performance.now();
    const swapped = { ...data, x: data.y.slice(), y: data.x.slice() };
    maps.forEach(({ renderer }) => show(renderer, repeat % 2 ? data : swapped));
    maps.forEach(settle);
    note("method switch", performance.now() - start);
  }
  const step = (index: number) => maps.forEach(({ renderer }, which) => show(renderer, { ...data, ...decodeStep(paths[which], index % WEIGHTS) }));
  for (let repeat = 0; repeat < repeats; repeat++) {
    await frame();
    const start = performance.now();
    step(repeat);
    maps.forEach(settle);
    note("slider step", performance.now() - start);
  }
  let last = await frame();
  for (let repeat = 0; repeat < 3 * repeats; repeat++) {
    step(repeat);
    const now = await frame();
    if (repeat > 2) note("slider step, from frame to frame", now - last);
    last = now;
  }
  for (let repeat = 0; repeat < repeats; repeat++) {
    await frame();
    const start = performance.now();
    const ids = lasso(data.x, data.y, circle(repeat / repeats), data.state);
    const state = new Uint8Array(rows).fill(FADED);
    for (const id of ids) state[id] = SELECTED;
    maps.forEach(({ renderer }) => show(renderer, { ...data, state }));
    maps.forEach(settle);
    note("linked lasso", performance.now() - start);
  }
  for (let repeat = 0; repeat < repeats; repeat++) {
    const start = performance.now();
    const grid = makeGrid(data.x, data.y);
    note("grid index", performance.now() - start);
    const hover = performance.now();
    for (let each = 0; each < 100; each++) nearest(grid, Math.sin(each), Math.cos(each), 0.1, data.state);
    note("hover", (performance.now() - hover) / 100);
  }
  const used = maps[0].renderer.kind;
  maps.forEach(({ renderer, canvas }) => {
    renderer.dispose();
    canvas.remove();
  });
  return { kind: used, times };
}

/** Steps of the slider one after the other, for the thread's processor time. */
function steps(kind: Kind, rows: number, size: Size, count: number): void {
  const data = makeRows(rows);
  const path = makePath(data.x, data.y, rows);
  const maps = [0, 1].map(() => makeMap(kind, size));
  for (let step = 0; step < count; step++) {
    maps.forEach(({ renderer }) => show(renderer, { ...data, ...decodeStep(path, step % WEIGHTS) }));
    maps.forEach(settle);
  }
  maps.forEach(({ renderer, canvas }) => {
    renderer.dispose();
    canvas.remove();
  });
}

/** The pixels of one picture, to compare renderers: about as many markers of each kind as there are. */
function picture(kind: Kind, rows: number, size: Size): { kind: string; pixels: string } {
  const data = makeRows(rows);
  const state = Uint8Array.from(data.state, (_, row) => [1, 2, 3, 5, 6, 7, 0][row % 7]);
  const { renderer, canvas } = makeMap(kind, size);
  show(renderer, { ...data, colour: Uint16Array.from(data.colour, (_, row) => row % 50), state });
  const pixels = pixelsOf(canvas);
  const used = renderer.kind;
  renderer.dispose();
  canvas.remove();
  return { kind: used, pixels };
}

function makeMap(kind: Kind, size: Size): { renderer: Renderer; canvas: HTMLCanvasElement } {
  const canvas = document.createElement("canvas");
  canvas.style.width = `${size.width}px`;
  canvas.style.height = `${size.height}px`;
  document.body.append(canvas);
  const renderer = createRenderer(canvas, kind);
  renderer.setSize(size);
  renderer.setView(VIEW);
  return { renderer, canvas };
}

function show(renderer: Renderer, points: Points): void {
  renderer.setPoints(points);
  renderer.draw();
}

/** Wait until a canvas has its pixels, by reading one. */
function settle({ canvas }: { canvas: HTMLCanvasElement }): void {
  canvas.getContext("2d")!.getImageData(canvas.width >> 1, canvas.height >> 1, 1, 1);
}

function frame(): Promise<number> {
  return new Promise((resolve) => requestAnimationFrame(resolve));
}

function makeRows(rows: number): Points {
  const random = generator(1);
  const normal = () => Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
  const colour = Uint16Array.from({ length: rows }, (_, row) => row % CLASSES);
  const x = Float32Array.from(colour, (each) => 1.5 * Math.cos(each) + 0.6 * normal());
  const y = Float32Array.from(colour, (each) => 1.5 * Math.sin(each) + 0.6 * normal());
  return { x, y, colour, state: new Uint8Array(rows).fill(NORMAL) };
}

function makePath(x: Float32Array, y: Float32Array, rows: number): PathArrays {
  const steps = new Uint16Array(WEIGHTS * rows * 2);
  for (let weight = 0, at = 0; weight < WEIGHTS; weight++)
    for (let row = 0; row < rows; row++) {
      const turn = weight / WEIGHTS;
      steps[at++] = clamp(x[row] * Math.cos(turn) - y[row] * Math.sin(turn));
      steps[at++] = clamp(x[row] * Math.sin(turn) + y[row] * Math.cos(turn));
    }
  return {
    steps: shaped(steps, WEIGHTS, rows, 2),
    low: shaped(new Float32Array(2 * WEIGHTS).fill(-5), WEIGHTS, 2),
    high: shaped(new Float32Array(2 * WEIGHTS).fill(5), WEIGHTS, 2),
  };
}

function clamp(value: number): number {
  return Math.min(65535, Math.max(0, Math.round(((value + 5) / 10) * 65535)));
}

function circle(phase: number): Float64Array {
  return Float64Array.from({ length: 2 * LASSO_CORNERS }, (_, at) => {
    const angle = (2 * Math.PI * (at >> 1)) / LASSO_CORNERS;
    return at % 2 ? 1.5 * Math.sin(angle) : 1.5 * Math.cos(angle) + phase;
  });
}


Object.assign(globalThis, { measure, picture, steps });
