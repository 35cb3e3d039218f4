/** A transport for tests: three clouds of points, answers that the test lets through when it likes. */

import { CallError, cancelled, type Answer, type CallOptions, type FrameArray, type Transport } from "../transport/transport";
import type { Description, FitBody, Method, Params } from "./calls";

export const ROWS = 60;
const WEIGHTS = [0, 0.25, 0.5, 0.75, 1];

type Handler = (params: any) => Answer;

/** A call that waits for the test. */
export interface Held {
  name: string;
  params: any;
  options: CallOptions;
  /** Let the call be answered. */
  release(): Promise<void>;
  fail(message: string): Promise<void>;
}

export class FakeTransport implements Transport {
  readonly kind = "http";
  /** The names of the calls whose answers wait for the test. */
  readonly hold = new Set<string>();
  readonly held: Held[] = [];
  readonly calls: { name: string; params: any }[] = [];
  readonly classes = Uint16Array.from({ length: ROWS }, (_, row) => row % 3);
  /** What every plan says. */
  seconds: [number, number] = [0.1, 0.4];
  readonly #undo: Uint16Array[] = [];

  call<Body = any>(name: string, params: object = {}, options: CallOptions = {}): Promise<Answer<Body>> {
    this.calls.push({ name, params });
    const handler = this.#handlers[name];
    return new Promise((resolve, reject) => {
      const answer = () => {
        try {
          if (!handler) throw new CallError("InvalidInputError", `no call is named ${name}`);
          resolve(handler(params));
        } catch (error) {
          reject(error);
        }
      };
      options.signal?.addEventListener("abort", () => reject(cancelled(name)));
      if (!this.hold.has(name)) return queueMicrotask(answer);
      this.held.push({
        name,
        params,
        options,
        release: () => (answer(), settled()),
        fail: (message) => (reject(new CallError("InvalidInputError", message)), settled()),
      });
    });
  }

  close(): void {}

  readonly #handlers: Record<string, Handler> = {
    describe: () => this.#describe(),
    choose: () => this.#describe(),
    plan: () => ({ body: { seconds: this.seconds, memory: 1000, text: "some seconds" }, arrays: {} }),
    fit: ({ method, params }) => fit(method, params, 1),
    path: () => path(),
    path_map: ({ index }) => fit("LSVA", { C: 1, graph_weight: WEIGHTS[index] }, WEIGHTS[index] + 1),
    control: () => ({ ...fit("LSVA", {}, 3), body: { sentence: "The graph helps (p = 0.01).", p_value: 0.01, observed: 0.04, permuted: [0.2] } }),
    errors: ({ axes }) => ({ body: { held_out: rate(axes.join(" and ")), training: rate("seen") }, arrays: {} }),
    rows: ({ ids }) => ({
      body: { columns: ["width", "height"], cells: ids.map((id: number) => [String(id), String(id * 2)]) },
      arrays: {},
    }),
    loadings: () => ({ body: { columns: [{ name: "width", value: "1.5", push: [0.4, -0.2] }] }, arrays: {} }),
    relabel: ({ ids, label }) => {
      this.#undo.push(this.classes.slice());
      for (const id of ids) {
        if (id % 2 === 0) throw new CallError("InvalidInputError", `row ${id} is held out: its label is locked`);
        this.classes[id] = label;
      }
      return this.#edits();
    },
    undo: () => {
      this.classes.set(this.#undo.pop() ?? this.classes);
      return this.#edits();
    },
    code: ({ maps }) => ({ body: { python: `# ${maps.length} maps` }, arrays: {} }),
  };

  #edits(): Answer {
    const edits = this.#undo.length;
    const edited = edits > 0 ? `${edits} labels edited after looking` : null;
    return { body: { edits, edited }, arrays: { class: shaped(this.classes.slice(), [ROWS]) } };
  }

  #describe(): Answer<Description> {
    return {
      body: {
        name: "clouds.csv",
        rows: ROWS,
        shown: ROWS,
        sampled: null,
        target: "kind",
        targets: ["kind", "place"],
        columns: [
          { name: "width", kind: "number", why: null },
          { name: "kind", kind: "target", why: null },
          { name: "id", kind: "left out", why: "a different value in every row" },
        ],
        classes: ["a", "b", "c"].map((name) => ({ name, count: ROWS / 3 })),
        split: { seed: 0, share: 0.5, training: ROWS / 2, held_out: ROWS / 2 },
        edits: 0,
        edited: null,
        notes: [],
        version: "0",
        methods: ["WSVDA", "PCA", "LSVA"].map(method),
      },
      arrays: {
        class: shaped(this.classes.slice(), [ROWS]),
        held_out: shaped(Uint8Array.from({ length: ROWS }, (_, row) => 1 - (row % 2)), [ROWS]),
        number: shaped(Uint32Array.from({ length: ROWS }, (_, row) => row + 1), [ROWS]),
      },
    };
  }
}

function rate(text: string) {
  return { value: 0.5, low: 0.4, high: 0.6, n: 30, text };
}

/** Let everything that was resolved run. */
export async function settled(): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, 0));
}

function method(name: string): Method {
  const controls = name === "PCA" ? [] : [{ name: "C", title: "Cost C", kind: "log" as const, low: 0.01, high: 100, value: 1, choices: null, help: null }];
  return { name, title: name, group: "linear", path: name === "LSVA", graph: name === "LSVA", controls, plan: "0.1 s", why_not: null };
}

function fit(name: string, params: Params, scale: number): Answer<FitBody> {
  const error = { value: 0.05 * scale, low: 0.02, high: 0.1, n: 30, text: `${5 * scale} % (2 to 10) of 30 rows` };
  return {
    body: {
      map: `${name} ${JSON.stringify(params)}`,
      method: name,
      params,
      axes: ["axis 1", "axis 2", "axis 3"],
      gain: [0.6, 0.3, 0.1],
      new_gain: null,
      errors: { held_out: error, training: error, all: { held_out: error, training: error }, neighbors: 5 },
      seconds: 0.01,
      gap: null,
      notes: [],
      has: { loadings: true, preimage: false, path: name === "LSVA", control: name === "LSVA", suspects: true },
      anchors: null,
    },
    arrays: { coordinates: shaped(Float32Array.from({ length: 3 * ROWS }, (_, at) => Math.sin(at * 1.7) * scale), [ROWS, 3]) },
  };
}

function path(): Answer {
  const errors = WEIGHTS.map((weight) => ({ value: weight, low: 0, high: 1, n: 30, text: `${100 * weight} %` }));
  const steps = Uint16Array.from({ length: WEIGHTS.length * ROWS * 2 }, (_, at) => (at * 7919) % 65536);
  return {
    body: { path: "p", weights: WEIGHTS, errors, chosen: 2, axes: ["axis 1", "axis 2"] },
    arrays: {
      steps: shaped(steps, [WEIGHTS.length, ROWS, 2]),
      low: shaped(new Float32Array(WEIGHTS.length * 2).fill(-2), [WEIGHTS.length, 2]),
      high: shaped(new Float32Array(WEIGHTS.length * 2).fill(2), [WEIGHTS.length, 2]),
    },
  };
}

function shaped<T extends Float32Array | Uint8Array | Uint16Array | Uint32Array>(values: T, shape: number[]): FrameArray {
  return Object.assign(values, { shape }) as unknown as FrameArray;
}
