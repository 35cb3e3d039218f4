import { pixelColours, palette as paletteOf, type Palette } from "./palette";
import { drawOrder } from "./order";
import { devicePixels, projectionOf } from "./projection";
import { drawRows, makeStamps, type Raster } from "./raster";
import type { Points, Renderer, Size, View } from "./renderer";
import { makeSheet, markerSize } from "./sprites";

/** Draws on the CPU: markers are stamped into pixels, and the pixels are put on the canvas in one call. */
export class CanvasRenderer implements Renderer {
  readonly kind = "canvas";
  onLost: (() => void) | null = null;
  onRestored: (() => void) | null = null;
  private points: Points | null = null;
  private order: Uint32Array = new Uint32Array(0);
  private view: View = { x: 0, y: 0, scale: 1 };
  private size: Size = { width: 1, height: 1, ratio: 1 };
  private colours = pixelColours(paletteOf(false));
  private image: ImageData | null = null;
  private raster: Raster = { pixels: new Uint32Array(0), width: 0, height: 0, margin: 0 };
  private stamps: ReturnType<typeof makeStamps> = [];
  private marker = 0;

  constructor(
    private canvas: HTMLCanvasElement,
    private context: CanvasRenderingContext2D,
  ) {}

  setPoints(points: Points): void {
    if (points.state !== this.points?.state) this.order = drawOrder(points.state);
    this.points = points;
  }

  setView(view: View): void {
    this.view = view;
  }

  setSize(size: Size): void {
    this.size = size;
  }

  setPalette(palette: Palette): void {
    this.colours = pixelColours(palette);
  }

  draw(): void {
    this.prepare();
    const { raster, points } = this;
    raster.pixels.fill(0);
    if (points) drawRows(raster, points, this.order, projectionOf(this.view, this.size), this.stamps, this.colours);
    this.context.putImageData(this.image!, -raster.margin, -raster.margin);
  }

  dispose(): void {
    this.points = this.image = null;
    this.canvas.width = this.canvas.height = 0;
  }

  /** Pixels and stamps that fit the canvas; made anew only where its size or the markers' size has changed. */
  private prepare(): void {
    const { width, height } = devicePixels(this.size);
    const marker = markerSize(this.order.length, this.size);
    if (this.image && this.raster.width === width && this.raster.height === height && this.marker === marker) return;
    const sheet = makeSheet(marker);
    const margin = (sheet.selectedSize - 1) / 2;
    this.image = new ImageData(width + 2 * margin, height + 2 * margin);
    this.raster = { pixels: new Uint32Array(this.image.data.buffer), width, height, margin };
    this.stamps = makeStamps(sheet, width + 2 * margin);
    this.marker = marker;
    if (this.canvas.width !== width) this.canvas.width = width;
    if (this.canvas.height !== height) this.canvas.height = height;
  }
}
