import { describe, expect, test } from "vitest";
import { shaped } from "../transport/frames";
import { generator } from "../select/random";
import { drawOrder } from "./order";
import { channels, CLASSES, legendMark, palette, pixelColours, SHAPES } from "./palette";
import { decodeStep, pathExtent } from "./path";
import { projectionOf } from "./projection";
import { drawRows, makeStamps } from "./raster";
import { FADED, SELECTED, TRAINING, type Points } from "./renderer";
import { makeSheet, markerSize } from "./sprites";

describe("the order of drawing", () => {
  test.each([0, 1, 2, 3, 10, 997, 5000])("holds every visible row of %i once, layer above layer", (rows) => {
    const random = generator(rows + 1);
    const state = Uint8Array.from({ length: rows }, () => Math.floor(8 * random()));
    const order = Array.from(drawOrder(state));
    const visible = Array.from(state.keys()).filter((row) => state[row] & 3);
    expect([...order].sort((a, b) => a - b)).toEqual(visible);
    const height = (row: number) => [FADED, 1, SELECTED].indexOf(state[row] & 3) * 2 + (state[row] & TRAINING ? 0 : 1);
    for (let at = 1; at < order.length; at++) expect(height(order[at])).toBeGreaterThanOrEqual(height(order[at - 1]));
  });

  test("mixes the classes of a table that is sorted by class", () => {
    const order = drawOrder(new Uint8Array(1000).fill(1));
    const last = Array.from(order.slice(-100), (row) => Math.floor(row / 250));
    for (const kind of [0, 1, 2, 3]) expect(last.filter((each) => each === kind).length).toBeGreaterThan(15);
  });
});

describe("the CPU renderer", () => {
  const size = { width: 61, height: 47, ratio: 1 };
  const view = { x: 0.25, y: -0.5, scale: 9, stretch: 1.5 };

  function scene(rows: number): Points {
    const random = generator(3);
    return {
      x: Float32Array.from({ length: rows }, () => 9 * (random() - 0.5)),
      y: Float32Array.from({ length: rows }, () => 6 * (random() - 0.5)),
      colour: Uint16Array.from({ length: rows }, () => Math.floor(60 * random())),
      state: Uint8Array.from({ length: rows }, () => Math.floor(8 * random())),
    };
  }

  /** The same picture, pixel by pixel, in premultiplied floating point. */
  function literal(points: Points, marker: number): Float64Array {
    const { sprites } = makeSheet(marker);
    const { classes, faded } = palette(false);
    const picture = new Float64Array(size.width * size.height * 4);
    for (const row of drawOrder(points.state)) {
      const left = Math.floor((points.x[row] - view.x) * view.scale + size.width / 2);
      const top = Math.floor((view.y - points.y[row]) * view.scale * view.stretch + size.height / 2);
      if (left < 0 || left >= size.width || top < 0 || top >= size.height) continue;
      const kind = points.colour[row];
      const layer = points.state[row] & 3;
      const mark = 2 * (Math.floor(kind / CLASSES) % SHAPES.length) + (points.state[row] & TRAINING ? 1 : 0);
      const sprite = sprites[mark + (layer === SELECTED ? 8 : 0)];
      const colour = channels((layer === FADED ? faded : classes)[kind % CLASSES]);
      sprite.coverage.forEach((coverage, at) => {
        const column = left + (at % sprite.size) - (sprite.size - 1) / 2;
        const line = top + Math.floor(at / sprite.size) - (sprite.size - 1) / 2;
        if (column < 0 || column >= size.width || line < 0 || line >= size.height) return;
        const place = 4 * (line * size.width + column);
        const share = coverage / 255;
        [...colour, 255].forEach((channel, index) => (picture[place + index] = channel * share + picture[place + index] * (1 - share)));
      });
    }
    return picture;
  }

  test.each([3, 5, 9])("draws what blending pixel by pixel draws, with markers of %i pixels", (marker) => {
    const points = scene(300);
    const sheet = makeSheet(marker);
    const margin = (sheet.selectedSize - 1) / 2;
    const stride = size.width + 2 * margin;
    const raster = { pixels: new Uint32Array(stride * (size.height + 2 * margin)), ...size, margin };
    drawRows(raster, points, drawOrder(points.state), projectionOf(view, size), makeStamps(sheet, stride), pixelColours(palette(false)));
    const expected = literal(points, marker);
    let worst = 0;
    for (let line = 0; line < size.height; line++)
      for (let column = 0; column < size.width; column++) {
        const pixel = raster.pixels[(line + margin) * stride + column + margin];
        const alpha = pixel >>> 24;
        const got = [pixel & 255, (pixel >> 8) & 255, (pixel >> 16) & 255, 255].map((channel) => (channel * alpha) / 255);
        got.forEach((channel, index) => (worst = Math.max(worst, Math.abs(channel - expected[4 * (line * size.width + column) + index]))));
      }
    expect(worst).toBeLessThan(6);
  });
});

describe("markers", () => {
  test("have an odd number of pixels, fewer for more rows or a smaller map, and more on a finer screen", () => {
    const screen = { width: 760, height: 620, ratio: 1 };
    expect([0, 100, 7_000, 15_000, 200_000].map((rows) => markerSize(rows, screen))).toEqual([9, 9, 7, 5, 3]);
    expect(markerSize(7_000, { ...screen, width: 200 })).toBe(3);
    for (const ratio of [1, 1.25, 1.5, 2, 3]) {
      const size = markerSize(5_000, { ...screen, ratio });
      expect(size % 2).toBe(1);
      expect(Math.abs(size - 8.6 * ratio)).toBeLessThan(2);
    }
  });

  test.each([3, 5, 7, 9, 15])("of %i pixels are open in the middle for training rows, and all shapes differ", (size) => {
    const { sprites } = makeSheet(size);
    const middle = (size * size - 1) / 2;
    const pictures = new Set(sprites.slice(0, 8).map(({ coverage }) => coverage.join()));
    expect(pictures.size).toBe(8);
    SHAPES.forEach((_, shape) => {
      expect(sprites[2 * shape].coverage[middle]).toBe(255);
      expect(sprites[2 * shape + 1].coverage[middle]).toBe(0);
    });
  });
});

describe("a path", () => {
  test("is decoded by low + (high - low) * step / 65535", () => {
    const arrays = {
      steps: shaped(Uint16Array.from([0, 65535, 13107, 0, 65535, 0, 0, 32768]), 2, 2, 2),
      low: shaped(Float32Array.from([-1, 0, 2, -4]), 2, 2),
      high: shaped(Float32Array.from([4, 10, 3, 4]), 2, 2),
    };
    expect(decodeStep(arrays, 0)).toEqual({ x: Float32Array.from([-1, 0]), y: Float32Array.from([10, 0]) });
    expect(decodeStep(arrays, 1)).toEqual({ x: Float32Array.from([3, 2]), y: Float32Array.from([-4, -4 + (8 * 32768) / 65535]) });
    expect(pathExtent(arrays)).toEqual([-1, 4, -4, 10]);
  });
});

describe("the palettes", () => {
  /** Machado, Oliveira and Fernandes (2009), severity 1, for linear RGB. */
  const SIGHTS: Record<string, number[][]> = {
    normal: [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
    protanopia: [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    deuteranopia: [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]],
    tritanopia: [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.3039]],
  };
  const times = (matrix: number[][], vector: number[]) => matrix.map((row) => row.reduce((sum, each, index) => sum + each * vector[index], 0));
  const linear = (colour: string) => channels(colour).map((each) => (each <= 10 ? each / 255 / 12.92 : ((each / 255 + 0.055) / 1.055) ** 2.4));
  const oklab = (rgb: number[]) => {
    const cones = times([[0.4122214708, 0.5363325363, 0.0514459929], [0.2119034982, 0.6806995451, 0.1073969566], [0.0883024619, 0.2817188376, 0.6299787005]], rgb.map((each) => Math.min(1, Math.max(0, each))));
    return times([[0.2104542553, 0.793617785, -0.0040720468], [1.9779984951, -2.428592205, 0.4505937099], [0.0259040371, 0.7827717662, -0.808675766]], cones.map(Math.cbrt));
  };
  const luminance = (colour: string) => times([[0.2126, 0.7152, 0.0722]], linear(colour))[0];

  test.each([false, true])("keep twelve colours apart for every sight (dark: %s)", (dark) => {
    for (const matrix of Object.values(SIGHTS)) {
      const places = palette(dark).classes.map((colour) => oklab(times(matrix, linear(colour))));
      places.forEach((a, first) => places.slice(0, first).forEach((b) => expect(Math.hypot(...a.map((each, at) => each - b[at]))).toBeGreaterThan(0.11)));
    }
  });

  test.each([false, true])("have a contrast of three with the ground (dark: %s)", (dark) => {
    const { classes, ground } = palette(dark);
    for (const colour of classes) {
      const [low, high] = [luminance(colour), luminance(ground)].sort((a, b) => a - b);
      expect((high + 0.05) / (low + 0.05)).toBeGreaterThanOrEqual(3);
    }
  });

  test("give 48 classes marks of their own, and say from which on they repeat", () => {
    const marks = Array.from({ length: 49 }, (_, index) => legendMark(palette(false), index));
    expect(new Set(marks.map(({ colour, shape }) => colour + shape)).size).toBe(48);
    expect(marks.map(({ repeats }) => repeats).indexOf(true)).toBe(48);
  });
});
