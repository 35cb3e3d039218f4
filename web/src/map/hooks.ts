import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { RefObject } from "preact";
import { createRenderer } from "../render/create";
import type { Palette } from "../render/palette";
import type { Points, Renderer, Size, View } from "../render/renderer";

/** The size of an element in CSS pixels and the screen's pixel ratio, followed as both change. */
export function useSize(element: RefObject<HTMLElement | null>): Size | null {
  const [size, setSize] = useState<Size | null>(null);
  useLayoutEffect(() => {
    const target = element.current!;
    const read = () => {
      const next = { width: target.clientWidth, height: target.clientHeight, ratio: globalThis.devicePixelRatio || 1 };
      setSize((now) => (now && now.width === next.width && now.height === next.height && now.ratio === next.ratio ? now : next));
    };
    read();
    const observer = new ResizeObserver(read);
    observer.observe(target);
    addEventListener("resize", read);
    return () => {
      observer.disconnect();
      removeEventListener("resize", read);
    };
  }, []);
  return size;
}

/** Draw points on a canvas, once a frame at most; `prefer` counts when the canvas appears. */
export function usePoints(
  canvas: RefObject<HTMLCanvasElement | null>,
  points: Points | null,
  view: View | null,
  size: Size | null,
  palette: Palette,
  prefer?: "webgl2" | "canvas",
): void {
  const picture = useRef<{ renderer: Renderer; draw(): void } | null>(null);
  useLayoutEffect(() => {
    const element = canvas.current!;
    const renderer = createRenderer(element, prefer);
    let waiting = 0;
    const draw = () => {
      waiting ||= requestAnimationFrame(() => {
        waiting = 0;
        renderer.draw();
        element.dataset.renderer = renderer.kind;
      });
    };
    renderer.onLost = renderer.onRestored = draw;
    picture.current = { renderer, draw };
    return () => {
      cancelAnimationFrame(waiting);
      renderer.dispose();
    };
  }, []);
  useLayoutEffect(() => {
    if (!picture.current || !points || !view || !size) return;
    const { renderer, draw } = picture.current;
    renderer.setPoints(points);
    renderer.setView(view);
    renderer.setSize(size);
    renderer.setPalette(palette);
    draw();
  }, [points, view, size, palette]);
}

/** The newest value, for listeners that are added once. */
export function useLatest<T>(value: T): { current: T } {
  const latest = useRef(value);
  latest.current = value;
  return latest;
}

/** Call `listen` once with an element, and what it returns at the end. */
export function useListeners(element: RefObject<HTMLElement | null>, listen: (element: HTMLElement) => () => void): void {
  useEffect(() => listen(element.current!), []);
}
