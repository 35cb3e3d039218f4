import { afterEach, describe, expect, test, vi } from "vitest";
import { decodeFrame, encodeFrame, shaped } from "./frames";
import { httpTransport, readAnswer } from "./http";
import { staticTransport } from "./static";
import type { Progress } from "./transport";
import { widgetTransport, type WidgetModel } from "./widget";

const ARRAYS = {
  coordinates: shaped(Float32Array.from([1.5, -2, NaN, 4, 5, 6]), 3, 2),
  class: shaped(Uint16Array.from([0, 65535, 7]), 3),
  held_out: shaped(Uint8Array.from([1, 0, 1]), 3),
  number: shaped(Uint32Array.from([1, 2, 4294967295]), 3),
  sign: shaped(Int32Array.from([-1]), 1),
  none: shaped(new Float32Array(0), 0, 2),
};
const RESULT = encodeFrame("result", { name: "flowers é <script>" }, ARRAYS);
const PROGRESS = encodeFrame("progress", { stage: "fitting", done: 2, total: null });
const ERROR = encodeFrame("error", { type: "InvalidInputError", message: "C is -1" });

/** A stream of frames with their lengths before them, cut into pieces of some bytes. */
function streamOf(frames: Uint8Array[], piece: number): ReadableStream<Uint8Array> {
  const bytes = frames.flatMap((frame) => [...new Uint8Array(Uint32Array.of(frame.length).buffer), ...frame]);
  let at = 0;
  return new ReadableStream({
    pull(controller) {
      if (at >= bytes.length) controller.close();
      else controller.enqueue(Uint8Array.from(bytes.slice(at, (at += piece))));
    },
  });
}

describe("a frame", () => {
  test("of bytes written out by hand is read as the format says", () => {
    const header = '{"kind":"result","body":{"a":1},"arrays":[{"name":"v","dtype":"u2","shape":[2],"offset":8}]}';
    const padded = header + " ".repeat((8 - ((4 + header.length) % 8)) % 8);
    const bytes = Uint8Array.from([padded.length, 0, 0, 0, ...new TextEncoder().encode(padded), 9, 9, 9, 9, 9, 9, 9, 9, 1, 0, 0, 1]);
    const frame = decodeFrame(bytes);
    expect(frame).toEqual({ kind: "result", answer: { body: { a: 1 }, arrays: { v: shaped(Uint16Array.of(1, 256), 2) } } });
  });

  test.each([0, 1, 3, 8])("is the same at %i bytes from the begin of its buffer", (offset) => {
    const moved = new Uint8Array(RESULT.length + offset);
    moved.set(RESULT, offset);
    const frame = decodeFrame(moved.subarray(offset));
    expect(frame.kind === "result" && frame.answer).toEqual({ body: { name: "flowers é <script>" }, arrays: ARRAYS });
  });

  test.each([0, 3, 20, RESULT.length - 8])("that ends after %i bytes is refused", (length) => {
    expect(() => decodeFrame(RESULT.slice(0, length))).toThrow(/cannot be read/);
  });
});

describe("the stream of an answer", () => {
  test.each([1, 3, 7, 64, 100_000])("is put together from pieces of %i bytes", async (piece) => {
    const steps: Progress[] = [];
    const answer = await readAnswer(streamOf([PROGRESS, PROGRESS, RESULT], piece), { onProgress: (step) => steps.push(step) });
    expect(answer.arrays).toEqual(ARRAYS);
    expect(steps).toEqual(Array(2).fill({ stage: "fitting", done: 2, total: null }));
  });

  test("rejects with the error of its last frame", async () => {
    await expect(readAnswer(streamOf([PROGRESS, ERROR], 5))).rejects.toMatchObject({ type: "InvalidInputError", message: "C is -1" });
  });

  test("that ends too early says so", async () => {
    await expect(readAnswer(streamOf([PROGRESS], 5))).rejects.toMatchObject({ type: "Unexpected" });
  });
});

describe("over HTTP", () => {
  afterEach(() => vi.unstubAllGlobals());

  test("a call posts its parameters with the token and one name of the tab", async () => {
    const requests: Request[] = [];
    vi.stubGlobal("fetch", async (path: string, init: RequestInit) => {
      requests.push(new Request(`http://127.0.0.1${path}`, init));
      return new Response(streamOf([RESULT], 99));
    });
    const transport = httpTransport("secret");
    await transport.call("fit", { method: "LSVA" });
    await transport.upload!(new File(["a,b"], "x y&.csv"));
    expect(requests.map((each) => [each.method, each.url, each.headers.get("X-Marginfold-Token")])).toEqual([
      ["POST", "http://127.0.0.1/api/fit", "secret"],
      ["POST", "http://127.0.0.1/api/open?name=x%20y%26.csv", "secret"],
    ]);
    expect(await requests[0].json()).toEqual({ method: "LSVA" });
    const tabs = requests.map((each) => each.headers.get("X-Marginfold-Tab"));
    expect(tabs[0]).toMatch(/^[0-9a-f]{16}$/);
    expect(tabs[1]).toBe(tabs[0]);
  });

  test("an aborted call aborts its request and rejects as cancelled", async () => {
    let seen: AbortSignal | null | undefined;
    vi.stubGlobal("fetch", (_: string, init: RequestInit) => {
      seen = init.signal;
      return new Promise((_, reject) => init.signal!.addEventListener("abort", () => reject(init.signal!.reason)));
    });
    const controller = new AbortController();
    const answer = httpTransport("").call("fit", {}, { signal: controller.signal });
    controller.abort();
    await expect(answer).rejects.toMatchObject({ type: "Cancelled" });
    expect(seen!.aborted).toBe(true);
  });

  test("a refusal and a server that is gone are errors in words", async () => {
    vi.stubGlobal("fetch", async () => new Response("wrong token", { status: 403 }));
    await expect(httpTransport("").call("fit")).rejects.toMatchObject({ message: "wrong token" });
    vi.stubGlobal("fetch", async () => {
      throw new TypeError("Failed to fetch");
    });
    await expect(httpTransport("").call("fit")).rejects.toThrow(/does not answer.*still running/);
  });
});

describe("over a widget's messages", () => {
  function model() {
    const listeners = new Set<Parameters<WidgetModel["on"]>[1]>();
    const sent: any[] = [];
    return {
      sent,
      listeners,
      answer: (id: number, frame: Uint8Array) => listeners.forEach((each) => each({ id }, [new DataView(frame.buffer)])),
      send: (content: unknown) => void sent.push(content),
      on: (_: string, listener: any) => void listeners.add(listener),
      off: (_: string, listener: any) => void listeners.delete(listener),
    };
  }

  test("answers find their calls in any order", async () => {
    const fake = model();
    const transport = widgetTransport(fake);
    const steps: Progress[] = [];
    const first = transport.call("fit", { C: 1 }, { onProgress: (step) => steps.push(step) });
    const second = transport.call("rows", { ids: [1] });
    expect(fake.sent.map(({ call, params }) => [call, params])).toEqual([
      ["fit", { C: 1 }],
      ["rows", { ids: [1] }],
    ]);
    fake.answer(fake.sent[1].id, ERROR);
    fake.answer(fake.sent[0].id, PROGRESS);
    fake.answer(fake.sent[0].id, RESULT);
    await expect(second).rejects.toMatchObject({ type: "InvalidInputError" });
    expect((await first).arrays).toEqual(ARRAYS);
    expect(steps.length).toBe(1);
  });

  test("an abort sends a cancel, and a closed transport listens no more", async () => {
    const fake = model();
    const transport = widgetTransport(fake);
    const controller = new AbortController();
    const call = transport.call("fit", {}, { signal: controller.signal });
    controller.abort();
    await expect(call).rejects.toMatchObject({ type: "Cancelled" });
    expect(fake.sent[1]).toEqual({ id: fake.sent[0].id, cancel: true });
    const open = transport.call("fit");
    transport.close();
    await expect(open).rejects.toMatchObject({ type: "Cancelled" });
    expect(fake.listeners.size).toBe(0);
  });
});

describe("in an exported file", () => {
  const packed = async (bytes: Uint8Array<ArrayBuffer>) => {
    const stream = new Blob([bytes]).stream().pipeThrough(new CompressionStream("gzip"));
    return btoa(String.fromCharCode(...new Uint8Array(await new Response(stream).arrayBuffer())));
  };
  const pageOf = (frame: string) => ({ answers: [{ call: "fit", params: { method: "LSVA", params: { C: 1, graph_weight: 2 } }, frame }] });

  test("a kept call is answered whatever the order of its parameters", async () => {
    const page = pageOf(await packed(RESULT));
    const answer = await staticTransport(page).call("fit", { params: { graph_weight: 2, C: 1 }, method: "LSVA" });
    expect(answer.arrays).toEqual(ARRAYS);
  });

  test("loadings are computed from the cells of a row, largest first", async () => {
    const kept = async (call: string, params: object, body: object) => ({ call, params, frame: await packed(encodeFrame("result", body)) });
    const columns: object[] = [
      { name: "size", slope: [2, 0, 1], start: [-1, 0, 0], words: { "": [0.5, 0.5, 0.5] } },
      { name: "kind", words: { __proto__x: [0, 0, 9], constructor: [0, 0, -9] } },
    ];
    const cells = [
      ["a", "3", "constructor"],
      ["b", "", "__proto__x"],
    ];
    const page = {
      answers: [await kept("loadings", { map: 4 }, { columns }), await kept("rows", {}, { columns: ["label", "size", "kind"], cells })],
    };
    const found = async (row: number) => (await staticTransport(page).call("loadings", { map: 4, row, axes: [0, 2] })).body.columns;
    expect(await found(0)).toEqual([
      { name: "kind", value: "constructor", push: [0, -9] },
      { name: "size", value: "3", push: [5, 3] },
    ]);
    expect((await found(1))[1]).toEqual({ name: "size", value: "", push: [0.5, 0.5] });
  });

  test("every other call says that there is no server", async () => {
    await expect(staticTransport(pageOf("")).call("fit", { method: "PCA" })).rejects.toThrow("this page has no server behind it");
  });
});
