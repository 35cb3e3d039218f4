import { decodeFrame } from "./frames";
import { CallError, cancelled, type Answer, type CallOptions, type Transport } from "./transport";

type Listener = (message: { id?: number }, buffers?: (DataView | ArrayBuffer | Uint8Array)[]) => void;

/** The part of anywidget's model that the transport needs. */
export interface WidgetModel {
  send(content: unknown): void;
  on(event: "msg:custom", listener: Listener): void;
  off(event: "msg:custom", listener: Listener): void;
}

interface Pending {
  options: CallOptions;
  resolve(answer: Answer): void;
  reject(error: CallError): void;
}

let lastId = 0;

/** Calls as messages {id, call, params}, answered by messages {id} with one frame as their buffer. */
export function widgetTransport(model: WidgetModel): Transport {
  const pending = new Map<number, Pending>();
  const listen: Listener = (message, buffers) => {
    const call = message?.id === undefined ? undefined : pending.get(message.id);
    if (call && buffers?.length) receive(call, bytesOf(buffers[0]), () => pending.delete(message.id!));
  };
  model.on("msg:custom", listen);
  return {
    kind: "widget",
    call: (name, params = {}, options = {}) =>
      new Promise((resolve, reject) => {
        if (options.signal?.aborted) return reject(cancelled(name));
        const id = ++lastId;
        pending.set(id, { options, resolve, reject });
        options.signal?.addEventListener("abort", () => {
          if (!pending.delete(id)) return;
          model.send({ id, cancel: true });
          reject(cancelled(name));
        });
        model.send({ id, call: name, params });
      }),
    close() {
      model.off("msg:custom", listen);
      for (const [id, call] of pending) {
        model.send({ id, cancel: true });
        call.reject(cancelled("the call"));
      }
      pending.clear();
    },
  };
}

function receive(call: Pending, bytes: Uint8Array, forget: () => void): void {
  try {
    const frame = decodeFrame(bytes);
    if (frame.kind === "progress") return call.options.onProgress?.(frame.progress);
    forget();
    if (frame.kind === "error") call.reject(frame.error);
    else call.resolve(frame.answer);
  } catch (error) {
    forget();
    call.reject(error as CallError);
  }
}

function bytesOf(buffer: DataView | ArrayBuffer | Uint8Array): Uint8Array {
  if (buffer instanceof ArrayBuffer) return new Uint8Array(buffer);
  return new Uint8Array(buffer.buffer as ArrayBuffer, buffer.byteOffset, buffer.byteLength);
}
