import { gpuColours, palette as paletteOf, type Palette } from "./palette";
import { CanvasRenderer } from "./canvas";
import { sharedGL, type Program, type SharedGL } from "./gl";
import { drawOrder } from "./order";
import { devicePixels, projectionOf } from "./projection";
import type { Points, Renderer, Size, View } from "./renderer";
import { markerSize } from "./sprites";

/**
 * Draws with the page's one GL context and copies the picture to the map's own canvas. While the context is lost the
 * same picture is drawn on the CPU.
 */
export class WebGLRenderer implements Renderer {
  onLost: (() => void) | null = null;
  onRestored: (() => void) | null = null;
  private points: Points | null = null;
  private order: Uint32Array = new Uint32Array(0);
  private stale = { positions: true, classes: true, states: true };
  private view: View = { x: 0, y: 0, scale: 1 };
  private size: Size = { width: 1, height: 1, ratio: 1 };
  private colours = gpuColours(paletteOf(false));
  private buffers: Buffers | null = null;
  private fallback: CanvasRenderer;
  private leave: () => void;

  constructor(
    private canvas: HTMLCanvasElement,
    private context: CanvasRenderingContext2D,
    private shared: SharedGL,
  ) {
    this.fallback = new CanvasRenderer(canvas, context);
    this.leave = shared.listen({
      lost: () => {
        this.buffers = null;
        this.onLost?.();
      },
      restored: () => {
        this.stale = { positions: true, classes: true, states: true };
        this.onRestored?.();
      },
    });
  }

  get kind(): "webgl2" | "canvas" {
    return this.shared.program() ? "webgl2" : "canvas";
  }

  setPoints(points: Points): void {
    const before = this.points;
    if (points.state !== before?.state) {
      this.order = drawOrder(points.state);
      this.stale.states = true;
    }
    if (points.colour !== before?.colour) this.stale.classes = true;
    if (points.x !== before?.x || points.y !== before?.y) this.stale.positions = true;
    this.points = points;
    this.fallback.setPoints(points);
  }

  setView(view: View): void {
    this.view = view;
    this.fallback.setView(view);
  }

  setSize(size: Size): void {
    this.size = size;
    this.fallback.setSize(size);
  }

  setPalette(palette: Palette): void {
    this.colours = gpuColours(palette);
    this.fallback.setPalette(palette);
  }

  draw(): void {
    const program = this.shared.program();
    if (!program) return this.fallback.draw();
    const { width, height } = devicePixels(this.size);
    if (this.canvas.width !== width) this.canvas.width = width;
    if (this.canvas.height !== height) this.canvas.height = height;
    this.shared.begin(width, height);
    if (this.points && this.order.length) {
      this.upload(program);
      program.draw({
        vertices: this.buffers!.vertices,
        count: this.order.length,
        width,
        height,
        projection: projectionOf(this.view, this.size),
        colours: this.colours,
        marker: markerSize(this.order.length, this.size),
      });
    }
    this.shared.copyTo(this.context, width, height);
  }

  dispose(): void {
    this.leave();
    this.buffers?.free();
    this.buffers = this.points = null;
    this.fallback.dispose();
  }

  /** Send what has changed since the last picture. */
  private upload(program: Program): void {
    this.buffers ??= makeBuffers(program.gl);
    const { stale, points, buffers } = this;
    if (stale.positions) buffers.positions(points!.x, points!.y);
    if (stale.classes) buffers.classes(points!.colour);
    if (stale.states) buffers.states(points!.state, this.order);
    this.stale = { positions: false, classes: false, states: false };
  }
}

interface Buffers {
  vertices: WebGLVertexArrayObject;
  positions(x: Float32Array, y: Float32Array): void;
  classes(colour: Uint16Array): void;
  states(state: Uint8Array, order: Uint32Array): void;
  free(): void;
}

/** Four attributes of each row (x, y, class, state) and the order in which rows are drawn. */
function makeBuffers(gl: WebGL2RenderingContext): Buffers {
  const vertices = gl.createVertexArray();
  const [x, y, colour, state, order] = Array.from({ length: 5 }, () => gl.createBuffer());
  const fill = (target: number, buffer: WebGLBuffer, data: Float32Array | Uint16Array | Uint8Array | Uint32Array) => {
    gl.bindBuffer(target, buffer);
    gl.bufferData(target, data as AllowSharedBufferSource, gl.DYNAMIC_DRAW);
  };
  gl.bindVertexArray(vertices);
  [x, y].forEach((buffer, location) => {
    gl.bindBuffer(gl.ARRAY_BUFFER, buffer);
    gl.enableVertexAttribArray(location);
    gl.vertexAttribPointer(location, 1, gl.FLOAT, false, 0, 0);
  });
  [colour, state].forEach((buffer, index) => {
    gl.bindBuffer(gl.ARRAY_BUFFER, buffer);
    gl.enableVertexAttribArray(2 + index);
    gl.vertexAttribIPointer(2 + index, 1, index === 0 ? gl.UNSIGNED_SHORT : gl.UNSIGNED_BYTE, 0, 0);
  });
  gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, order);
  return {
    vertices,
    positions(newX, newY) {
      fill(gl.ARRAY_BUFFER, x, newX);
      fill(gl.ARRAY_BUFFER, y, newY);
    },
    classes: (newColour) => fill(gl.ARRAY_BUFFER, colour, newColour),
    states(newState, newOrder) {
      fill(gl.ARRAY_BUFFER, state, newState);
      gl.bindVertexArray(vertices);
      fill(gl.ELEMENT_ARRAY_BUFFER, order, newOrder);
    },
    free() {
      for (const each of [x, y, colour, state, order]) gl.deleteBuffer(each);
      gl.deleteVertexArray(vertices);
    },
  };
}

/** A WebGL2 renderer, or null where the browser has no WebGL2 (or, unless `software` is allowed, only one in software). */
export function webglRenderer(canvas: HTMLCanvasElement, software: boolean): Renderer | null {
  const shared = sharedGL(software);
  const context = shared && canvas.getContext("2d");
  return shared && context ? new WebGLRenderer(canvas, context, shared) : null;
}
