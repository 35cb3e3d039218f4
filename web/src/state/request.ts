/** One place for one running call: a newer call replaces an older one, and an answer that comes too late is dropped. */

import { signal } from "@preact/signals";
import type { Answer, CallOptions, Progress, Transport } from "../transport/transport";


/** What the server says of a call that failed, as a sentence for the reader. */
export function sentence(error: unknown): string {
  return error instanceof Error && error.message !== "" ? error.message : String(error);
}

/** Whether a call ended because somebody stopped it, which is no error to show. */
export function wasCancelled(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  return error.name === "AbortError" || (error as { type?: string }).type === "Cancelled";
}

/** The newest call of one kind. `ask` resolves to null when the call failed, was cancelled or was overtaken. */
export class Latest {
  /** The progress of the running call; null when none runs. */
  readonly busy = signal<Progress | null>(null);
  /** The sentence of the last failure; null after a success. */
  readonly error = signal<string | null>(null);
  #controller: AbortController | null = null;

  constructor(private readonly transport: Transport) {}

  ask(name: string, params: Record<string, unknown>, stage = "Working"): Promise<Answer | null> {
    return this.#run(stage, (options) => this.transport.call(name, params, options));
  }

  /** Send a file of the person's. */
  upload(file: File, stage: string): Promise<Answer | null> {
    const upload = this.transport.upload?.bind(this.transport);
    return this.#run(stage, (options) => {
      if (!upload) throw new Error("this page cannot read files");
      return upload(file, options);
    });
  }

  /** Stop the running call, if there is one; what was there before stays. */
  cancel(): void {
    const controller = this.#controller;
    this.#controller = null;
    this.busy.value = null;
    controller?.abort();
  }

  async #run(stage: string, send: (options: CallOptions) => Promise<Answer>): Promise<Answer | null> {
    this.#controller?.abort();
    const controller = new AbortController();
    this.#controller = controller;
    const current = () => this.#controller === controller;
    this.error.value = null;
    this.busy.value = { stage, done: 0, total: null };
    const onProgress = (progress: Progress) => {
      if (current()) this.busy.value = progress;
    };
    try {
      const answer = await send({ signal: controller.signal, onProgress });
      return current() ? answer : null;
    } catch (error) {
      if (current() && !wasCancelled(error)) this.error.value = sentence(error);
      return null;
    } finally {
      if (current()) {
        this.#controller = null;
        this.busy.value = null;
      }
    }
  }
}
