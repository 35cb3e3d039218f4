import { decodeFrame } from "./frames";
import { CallError, type Transport } from "./transport";

/** One kept answer of an exported file: the call as it was made and its frame in base64. */
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
  return {
    kind: "static",
    async call(name, params = {}) {
      const text = kept.get(keyOf(name, params));
      if (text === undefined) throw new CallError("Static", "this page has no server behind it");
      const frame = decodeFrame(fromBase64(text));
      if (frame.kind === "error") throw frame.error;
      if (frame.kind === "progress") throw new CallError("Unexpected", `the kept answer of ${name} is no result`);
      return frame.answer;
    },
    close() {},
  };
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

function fromBase64(text: string): Uint8Array {
  const characters = atob(text);
  const bytes = new Uint8Array(characters.length);
  for (let at = 0; at < bytes.length; at++) bytes[at] = characters.charCodeAt(at);
  return bytes;
}
