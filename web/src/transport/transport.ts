/** An array of a frame, with the shape that it has in Python. */
export type FrameArray = (Float32Array | Uint8Array | Uint16Array | Uint32Array | Int32Array) & { shape: number[] };

/** What a call answers with: a JSON body and arrays by name. */
export interface Answer<Body = any> {
  body: Body;
  arrays: Record<string, FrameArray>;
}

/** How far a running call is; `total` is null where it is not known. */
export interface Progress {
  stage: string;
  done: number;
  total: number | null;
}

/** What may come with a call: a listener to its progress, a signal that cancels it. */
export interface CallOptions {
  onProgress?: (progress: Progress) => void;
  signal?: AbortSignal;
}

/** The only way to the data: HTTP, a widget's messages or a file that holds all answers. */
export interface Transport {
  readonly kind: "http" | "widget" | "static";
  call<Body = any>(name: string, params?: object, options?: CallOptions): Promise<Answer<Body>>;
  /** Read a table the person chose or dropped; only over HTTP. */
  upload?<Body = any>(file: File, options?: CallOptions): Promise<Answer<Body>>;
  close(): void;
}

/** A call that failed: `type` is the error's name in Python, "Cancelled" or "Unexpected". */
export class CallError extends Error {
  constructor(
    readonly type: string,
    message: string,
  ) {
    super(message);
    this.name = "CallError";
  }
}

/** The error of a call that its caller has aborted. */
export function cancelled(name: string): CallError {
  return new CallError("Cancelled", `${name} was cancelled`);
}
