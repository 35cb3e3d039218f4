import { decodeFrame } from "./frames";
import { CallError, type Answer, type Transport } from "./transport";

/** One kept answer of an exported file: the call as it was made and its compressed frame in base64. */
export interface KeptAnswer {
  call: string;
  params: object;
  frame: string;
}

/** The content of the script element that an exported file carries. */
export interface KeptPage {
  answers: KeptAnswer[];
}

/** Answers from the file itself; what it does not hold says that there is no server. */
export function staticTransport(page: KeptPage): Transport {
  const kept = new Map(page.answers.map((each) => [keyOf(each.call, each.params), each.frame]));
  const unpacked = new Map<string, Promise<Answer>>();
  const answer = (key: string): Promise<Answer> => {
    const text = kept.get(key);
    if (text === undefined) return Promise.reject(new CallError("Static", "this page has no server behind it"));
    if (!unpacked.has(key)) unpacked.set(key, unpack(text));
    return unpacked.get(key)!;
  };
  return {
    kind: "static",
    async call(name, params = {}) {
      if (name !== "rows") return answer(keyOf(name, params));
      const all = await answer(ALL_ROWS);
      const { ids } = params as { ids: number[] };
      return { ...all, body: { ...all.body, cells: ids.map((id) => all.body.cells[id] ?? []) } };
    },
    close() {},
  };
}

/** The kept answer with the cells of every row. */
const ALL_ROWS = "rows {}";

async function unpack(text: string): Promise<Answer> {
  const frame = decodeFrame(await decompressed(fromBase64(text)));
  if (frame.kind === "result") return frame.answer;
  throw frame.kind === "error" ? frame.error : new CallError("Unexpected", "a kept answer is no result");
}

async function decompressed(content: Uint8Array<ArrayBuffer>): Promise<Uint8Array> {
  const stream = new Blob([content]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/** A call's name and parameters as one string, the same for every order of the keys. */
export function keyOf(name: string, params: object): string {
  return `${name} ${JSON.stringify(sorted(params))}`;
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)).map(([key, each]) => [key, sorted(each)]));
}

function fromBase64(text: string): Uint8Array<ArrayBuffer> {
  const characters = atob(text);
  const bytes = new Uint8Array(characters.length);
  for (let at = 0; at < bytes.length; at++) bytes[at] = characters.charCodeAt(at);
  return bytes;
}
