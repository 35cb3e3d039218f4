import { decodeFrame, type Frame } from "./frames";
import { CallError, cancelled, type Answer, type CallOptions, type Transport } from "./transport";

/** Calls as `POST /api/<name>`, answered by a stream of frames; an aborted fetch cancels the job. */
export function httpTransport(token: string, base = "/api/", tab = randomTab()): Transport {
  const send = async (path: string, name: string, body: BodyInit, options: CallOptions): Promise<Answer> => {
    const headers = { "X-Marginfold-Token": token, "X-Marginfold-Tab": tab };
    try {
      const response = await fetch(base + path, { method: "POST", body, headers, signal: options.signal ?? null });
      if (!response.ok || !response.body) throw await refused(response);
      return await readAnswer(response.body, options);
    } catch (error) {
      if (error instanceof CallError) throw error;
      if (options.signal?.aborted) throw cancelled(name);
      throw new CallError("Unexpected", `the server does not answer (${(error as Error).message}); is it still running?`);
    }
  };
  return {
    kind: "http",
    call: (name, params = {}, options = {}) => send(name, name, JSON.stringify(params), options),
    upload: (file, options = {}) => send(`open?name=${encodeURIComponent(file.name)}`, "open", file, options),
    close() {},
  };
}

/** Frames with their lengths before them, whatever the pieces they come in; the last one is the answer. The stream is read to its end: a connection that is cut is not used again. */
export async function readAnswer(stream: ReadableStream<Uint8Array>, options: CallOptions = {}): Promise<Answer> {
  let last: Frame | null = null;
  for await (const bytes of framesOf(stream)) {
    last = decodeFrame(bytes);
    if (last.kind === "progress") options.onProgress?.(last.progress);
  }
  if (last?.kind === "error") throw last.error;
  if (last?.kind === "result") return last.answer;
  throw new CallError("Unexpected", "the server closed the connection before it answered; is it still running?");
}

/** Cut a stream of bytes into frames; each frame is filled in place, so that no byte is copied twice. */
async function* framesOf(stream: ReadableStream<Uint8Array>): AsyncGenerator<Uint8Array> {
  const reader = stream.getReader();
  const prefix = new Uint8Array(4);
  let target = prefix;
  let filled = 0;
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      let at = 0;
      while (at < value.length || filled === target.length) {
        const size = Math.min(value.length - at, target.length - filled);
        target.set(value.subarray(at, at + size), filled);
        at += size;
        filled += size;
        if (filled < target.length) break;
        filled = 0;
        if (target === prefix) target = new Uint8Array(new DataView(prefix.buffer).getUint32(0, true));
        else {
          yield target;
          target = prefix;
        }
      }
    }
  } finally {
    reader.cancel().catch(() => undefined);
  }
}

async function refused(response: Response): Promise<CallError> {
  const text = await response.text().catch(() => "");
  return new CallError("Unexpected", text || `the server refused the call (${response.status} ${response.statusText})`);
}

/** 16 random hexadecimal digits: the name of this tab at the server. */
export function randomTab(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(8)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}
