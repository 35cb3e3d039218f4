import { CanvasRenderer } from "./canvas";
import type { Renderer } from "./renderer";
import { webglRenderer } from "./webgl2";

/**
 * A renderer for a canvas: WebGL2 where the machine has a GPU, else Canvas 2D. GL in software takes about ten times as
 * long as the CPU renderer (benchmarks/explorer), so it is taken only where `prefer` asks for WebGL2.
 */
export function createRenderer(canvas: HTMLCanvasElement, prefer: "webgl2" | "canvas" | null = preferredRenderer()): Renderer {
  const renderer = prefer === "canvas" ? null : webglRenderer(canvas, prefer === "webgl2");
  if (renderer) return renderer;
  const context = canvas.getContext("2d", { willReadFrequently: true });
  if (!context) throw new Error("this browser draws on no canvas");
  return new CanvasRenderer(canvas, context);
}

/** What the page's address asks for by `#renderer=webgl2` or `#renderer=canvas`; null where it says nothing. */
export function preferredRenderer(): "webgl2" | "canvas" | null {
  const name = new URLSearchParams(location.hash.slice(1)).get("renderer");
  return name === "webgl2" || name === "canvas" ? name : null;
}
