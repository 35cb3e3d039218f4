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
      if (name === "loadings") return loadings(answer, params as LoadingsParams);
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

/** How the cells of a column move a row: numbers by a line along each component, words and empty cells each by its own. */
interface ColumnRule {
  name: string;
  slope?: number[];
  start?: number[];
  words: Record<string, number[]>;
}

interface LoadingsParams {
  map: number;
  row: number;
  axes: number[];
}

/** Columns that are named as moving a row. */
const MOST_PUSHES = 12;

/** The columns that move a row, largest first, from its cells and the rules that the file holds. */
async function loadings(answer: (key: string) => Promise<Answer>, { map, row, axes }: LoadingsParams): Promise<Answer> {
  const [rules, all] = await Promise.all([answer(keyOf("loadings", { map })), answer(ALL_ROWS)]);
  const columns = (rules.body.columns as ColumnRule[]).map(({ name, words, slope, start }) => {
    const value: string = all.body.cells[row][all.body.columns.indexOf(name)];
    const along = (axis: number) => (Object.hasOwn(words, value) ? words[value][axis] : start![axis] + slope![axis] * Number(value));
    return { name, value, push: axes.map(along) };
  });
  const size = ({ push }: { push: number[] }) => push.reduce((sum, each) => sum + Math.abs(each), 0);
  columns.sort((a, b) => size(b) - size(a));
  return { body: { columns: columns.slice(0, MOST_PUSHES) }, arrays: {} };
}

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
