import { beforeEach, describe, expect, test } from "vitest";
import { FADED, HIDDEN, NORMAL, SELECTED, TRAINING } from "../render/renderer";
import { Explorer } from "./explorer";
import { FakeTransport, ROWS, settled } from "./fake";
import { alignedPath, pictureOf, pictureOfStep } from "./picture";

let transport: FakeTransport;
let explorer: Explorer;

beforeEach(async () => {
  transport = new FakeTransport();
  explorer = new Explorer(transport, "page");
  await explorer.describe();
  await settled();
});

const [pca, lsva] = [0, 1];
const names = () => transport.calls.map((call) => call.name);

describe("opening a table", () => {
  test("fits two maps, known methods first, and prepares the slider of the one that has a path", () => {
    expect(explorer.methods.value.map((method) => method.name)).toEqual(["PCA", "LSVA", "WSVDA"]);
    expect(explorer.maps.value.map((map) => map.result.value?.body.method)).toEqual(["PCA", "LSVA"]);
    expect(explorer.maps.value[pca].path.value).toBeNull();
    expect(explorer.maps.value[lsva].path.value?.body.weights).toHaveLength(5);
  });

  test("draws held-out rows only until training rows are asked for", () => {
    expect(explorer.states.value[0]).toBe(NORMAL);
    expect(explorer.states.value[1]).toBe(HIDDEN);
    explorer.setShowTraining(true);
    expect(explorer.states.value[1]).toBe(NORMAL + TRAINING);
  });

  test("another choice of columns keeps the maps and fits them again", async () => {
    await explorer.maps.value[pca].choose("WSVDA");
    await explorer.chooseTable({ target: "kind", ignored: ["width"], seed: 1, held_out: 0.5 });
    await settled();
    expect(explorer.ignored.value).toEqual(["width"]);
    expect(explorer.maps.value.map((map) => map.result.value?.body.method)).toEqual(["WSVDA", "LSVA"]);
  });
});

describe("selection", () => {
  test("is one for all maps, of drawn rows only, in order and once each", () => {
    explorer.select([4, 2, 3, 2]);
    expect([...explorer.selection.value]).toEqual([2, 4]);
    expect([...explorer.states.value.slice(2, 5)]).toEqual([SELECTED, HIDDEN, SELECTED]);
    expect(explorer.states.value[0]).toBe(FADED);
    expect(explorer.spoken.value).toBe("2 rows selected");
  });

  test("grows and shrinks by further lassos", () => {
    explorer.select([2, 4]);
    explorer.select([4, 6], "add");
    expect([...explorer.selection.value]).toEqual([2, 4, 6]);
    explorer.select([2], "remove");
    expect([...explorer.selection.value]).toEqual([4, 6]);
  });

  test("loses the rows of a class that is hidden and of training rows that are hidden again", () => {
    explorer.setShowTraining(true);
    explorer.select([0, 1, 2, 3]);
    explorer.toggleClass(0);
    expect([...explorer.selection.value]).toEqual([1, 2]);
    explorer.setShowTraining(false);
    expect([...explorer.selection.value]).toEqual([2]);
    explorer.toggleClass(0);
    expect(explorer.states.value[0]).toBe(FADED);
  });

  test("a pinned row is let go by a second click", () => {
    const map = explorer.maps.value[pca];
    explorer.pin(2, map);
    expect(explorer.pinned.value?.row).toBe(2);
    explorer.pin(2, map);
    expect(explorer.pinned.value).toBeNull();
  });
});

describe("fitting", () => {
  test("a cancelled fit leaves the old map and says that the settings differ", async () => {
    const map = explorer.maps.value[lsva];
    const before = map.result.value;
    transport.hold.add("fit");
    void map.set("C", 10);
    await settled();
    expect(map.fitting.busy.value?.stage).toBe("Fitting");
    map.fitting.cancel();
    await settled();
    expect(map.result.value).toBe(before);
    expect(map.fitting.error.value).toBeNull();
    expect(map.stale.value).toBe(true);
    expect(transport.held[0].options.signal?.aborted).toBe(true);
  });

  test("a long fit waits until it is started", async () => {
    const map = explorer.maps.value[lsva];
    transport.seconds = [10, 400];
    await map.set("C", 10);
    expect(map.waiting.value).toBe(true);
    expect(map.result.value?.body.params.C).toBe(1);
    await map.start();
    expect(map.result.value?.body.params.C).toBe(10);
    expect(map.waiting.value).toBe(false);
  });

  test("a late answer of an older fit is dropped", async () => {
    const map = explorer.maps.value[lsva];
    transport.hold.add("fit");
    void map.set("C", 10);
    await settled();
    void map.set("C", 20);
    await settled();
    const [older, newer] = transport.held;
    await newer.release();
    await older.release();
    expect(map.result.value?.body.params.C).toBe(20);
    expect(map.stale.value).toBe(false);
  });

  test("a fit that fails shows the server's sentence beside its map and keeps the map", async () => {
    const map = explorer.maps.value[lsva];
    const before = map.result.value;
    transport.hold.add("fit");
    void map.set("C", 10);
    await settled();
    await transport.held[0].fail("C must be positive");
    expect(map.fitting.error.value).toBe("C must be positive");
    expect(map.result.value).toBe(before);
    expect(explorer.maps.value[pca].fitting.error.value).toBeNull();
  });

  test("progress of an overtaken fit is not shown", async () => {
    const map = explorer.maps.value[lsva];
    transport.hold.add("fit");
    void map.set("C", 10);
    await settled();
    void map.set("C", 20);
    await settled();
    const [older, newer] = transport.held;
    newer.options.onProgress?.({ stage: "solving", done: 1, total: 4 });
    older.options.onProgress?.({ stage: "solving", done: 3, total: 4 });
    expect(map.fitting.busy.value?.done).toBe(1);
  });

  test("removing a map stops its fit", async () => {
    const map = explorer.maps.value[lsva];
    transport.hold.add("fit");
    void map.set("C", 10);
    await settled();
    explorer.removeMap(map);
    expect(transport.held[0].options.signal?.aborted).toBe(true);
    expect(explorer.maps.value).toHaveLength(1);
  });

  test("at most four maps stand side by side", async () => {
    for (let extra = 0; extra < 5; extra += 1) explorer.addMap();
    expect(explorer.maps.value).toHaveLength(4);
    expect(explorer.maps.value[2].method.value).toBe("WSVDA");
  });
});

describe("the errors beside a map", () => {
  test("are those of the axes that are drawn, in either order", async () => {
    const map = explorer.maps.value[pca];
    const first = map.errors.value?.heldOut?.text;
    map.setAxes([2, 1]);
    expect(map.errors.value).toEqual({ heldOut: null, training: null });
    await settled();
    expect(map.errors.value?.heldOut?.text).toBe("1 and 2");
    map.setAxes([1, 0]);
    expect(map.errors.value?.heldOut?.text).toBe(first);
  });
});

describe("the slider over the graph weight", () => {
  test("draws a step without a call and takes its held-out error from the path", () => {
    const map = explorer.maps.value[lsva];
    map.setAxes([1, 2]);
    const calls = transport.calls.length;
    map.slide(3);
    expect(transport.calls).toHaveLength(calls);
    expect(map.axes.value).toEqual([0, 1]);
    expect(map.errors.value).toEqual({ heldOut: map.path.value?.body.errors[3], training: null });
    const picture = map.picture.value!;
    const { steps, low, high } = map.path.value!.arrays;
    const value = low[6] + ((high[6] - low[6]) * steps[(3 * ROWS + 7) * 2]) / 65535;
    expect(picture.x[7]).toBeCloseTo(value, 5);
  });

  test("settling asks for the exact fit at that weight, and a slide meanwhile drops its answer", async () => {
    const map = explorer.maps.value[lsva];
    map.slide(3);
    await map.settle();
    expect(map.result.value?.body.params.graph_weight).toBe(0.75);
    expect(map.errors.value?.training).not.toBeNull();
    transport.hold.add("path_map");
    map.slide(4);
    void map.settle();
    map.slide(1);
    await transport.held[0].release();
    expect(map.result.value?.body.params.graph_weight).toBe(0.75);
    expect(map.errors.value?.training).toBeNull();
  });

  test("other axes chosen meanwhile are those of the fit at that weight", async () => {
    const map = explorer.maps.value[lsva];
    map.slide(3);
    map.setAxes([1, 2]);
    await settled();
    expect(map.result.value?.body.params.graph_weight).toBe(0.75);
    expect(map.picture.value?.x[4]).toBe(map.result.value?.coordinates[4 * 3 + 1]);
  });

  test("is turned to look as the fit does, along each axis alone", () => {
    const path = explorer.maps.value[lsva].path.value!;
    const { x, y } = pictureOfStep(path, 1);
    const mirrored = Float32Array.from({ length: 3 * ROWS }, (_, at) => [-2 * x[Math.floor(at / 3)] + 5, y[Math.floor(at / 3)], 0][at % 3]);
    const turned = pictureOfStep(alignedPath(path, 1, mirrored, 3), 1);
    expect(turned.x[5]).toBeCloseTo(-x[5], 5);
    expect(turned.y[5]).toBeCloseTo(y[5], 5);
  });

  test("a map with one axis is spread in height", () => {
    const { x, y, spread } = pictureOf([3, 1, 2], 1, [0, 0]);
    expect([...x]).toEqual([3, 1, 2]);
    expect(spread).toBe(true);
    expect(new Set(y).size).toBe(3);
  });
});

describe("editing labels", () => {
  test("relabels, counts, fits again and takes back", async () => {
    const fits = names().filter((name) => name === "fit").length;
    await explorer.relabel([1, 3], 2);
    await settled();
    expect([explorer.classes.value[1], explorer.classes.value[3]]).toEqual([2, 2]);
    expect(explorer.edits.value.edited).toContain("edited after looking");
    expect(names().filter((name) => name === "fit")).toHaveLength(fits + 2);
    await explorer.undo();
    expect([explorer.classes.value[1], explorer.classes.value[3]]).toEqual([1, 0]);
    expect(explorer.edits.value.edits).toBe(0);
  });

  test("held-out rows are locked, and the server's sentence says so", async () => {
    expect(explorer.editable([0, 1, 2, 3])).toEqual([1, 3]);
    await explorer.relabel([0], 2);
    expect(explorer.editing.error.value).toContain("locked");
    expect(explorer.classes.value[0]).toBe(0);
  });
});

describe("answers about a map", () => {
  test("a control that arrives after a new fit is dropped", async () => {
    const map = explorer.maps.value[lsva];
    transport.hold.add("control");
    void map.askControl();
    await settled();
    await map.set("C", 5);
    await transport.held[0].release();
    expect(map.control.value).toBeNull();
  });

  test("cells are read once", async () => {
    const map = explorer.maps.value[pca];
    await explorer.reader.focus(5, map);
    await explorer.reader.showPage([4, 5, 6]);
    expect(explorer.reader.row.value).toEqual({ columns: ["width", "height"], cells: ["5", "10"] });
    expect(explorer.reader.table.value?.rows.map((row) => row.cells[0])).toEqual(["4", "5", "6"]);
    expect(transport.calls.filter((call) => call.name === "rows").map((call) => call.params.ids)).toEqual([[5], [4, 6]]);
  });
});
