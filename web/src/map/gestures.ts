import type { Place } from "./view";

/** How a lasso changes the selection. */
export type How = "replace" | "add" | "remove";

/** What a person does with a map, in CSS pixels of the map. */
export interface Gestures {
  /** Whether a drag without Shift draws a lasso. */
  lassoTool(): boolean;
  pan(right: number, down: number): void;
  zoom(factor: number, at: Place): void;
  hover(at: Place | null): void;
  click(at: Place): void;
  fit(): void;
  /** The line while it is drawn; null when it is given up. */
  drawing(line: Place[] | null): void;
  lasso(line: Place[], how: How): void;
}

/** A pointer that moves less than this many pixels between press and release has clicked. */
const CLICK = 4;

/** Distance of two corners of a lasso. */
const CORNER = 3;

/** Zoom of one pixel of the wheel, as an exponent. */
const WHEEL = 0.0016;

/** Pixels of one line where a wheel counts in lines. */
const LINE = 18;

/** Listen to mouse, pen, touch (one finger moves, two zoom) and wheel; the function that is returned ends it. */
export function listen(element: HTMLElement, gestures: Gestures): () => void {
  const pressed = new Map<number, Place>();
  let origin: Place | null = null;
  let line: Place[] | null = null;
  let moved = false;

  const down = (event: PointerEvent) => {
    if (event.button !== 0) return;
    element.setPointerCapture(event.pointerId);
    const at = placeOf(element, event);
    pressed.set(event.pointerId, at);
    origin = at;
    moved = pressed.size > 1;
    line = pressed.size === 1 && (event.shiftKey || gestures.lassoTool()) ? [at] : null;
    if (pressed.size > 1) gestures.drawing(null);
  };

  const move = (event: PointerEvent) => {
    const at = placeOf(element, event);
    const before = pressed.get(event.pointerId);
    if (!before) {
      if (pressed.size === 0) gestures.hover(at);
      return;
    }
    if (!moved && distance(origin!, at) < CLICK) return;
    moved = true;
    if (line) {
      if (distance(line[line.length - 1], at) < CORNER) return;
      line.push(at);
      gestures.drawing(line.slice());
    } else if (pressed.size === 1) gestures.pan(at.left - before.left, at.top - before.top);
    else pinch(event.pointerId, before, at);
    pressed.set(event.pointerId, at);
  };

  /** Two fingers: what lies between them moves with them and grows as they part. */
  const pinch = (pointer: number, before: Place, at: Place) => {
    const other = [...pressed].find(([id]) => id !== pointer)![1];
    const middle = { left: (at.left + other.left) / 2, top: (at.top + other.top) / 2 };
    gestures.pan((at.left - before.left) / 2, (at.top - before.top) / 2);
    gestures.zoom(Math.max(distance(at, other), 1) / Math.max(distance(before, other), 1), middle);
  };

  const up = (event: PointerEvent) => {
    if (!pressed.delete(event.pointerId)) return;
    const drawn = line;
    line = null;
    if (event.type === "pointercancel") return gestures.drawing(null);
    if (!moved) gestures.click(placeOf(element, event));
    else if (drawn) {
      gestures.drawing(null);
      gestures.lasso(drawn, event.altKey ? "remove" : event.ctrlKey || event.metaKey ? "add" : "replace");
    }
  };

  const leave = () => {
    if (pressed.size === 0) gestures.hover(null);
  };

  const wheel = (event: WheelEvent) => {
    event.preventDefault();
    const pixels = event.deltaY * (event.deltaMode === 1 ? LINE : 1);
    gestures.zoom(Math.exp(-WHEEL * Math.max(-400, Math.min(400, pixels)) * (event.ctrlKey ? 4 : 1)), placeOf(element, event));
  };

  const fit = () => gestures.fit();
  const listeners: [string, (event: any) => void][] = [
    ["pointerdown", down],
    ["pointermove", move],
    ["pointerup", up],
    ["pointercancel", up],
    ["pointerleave", leave],
    ["wheel", wheel],
    ["dblclick", fit],
  ];
  for (const [name, listener] of listeners) element.addEventListener(name, listener, { passive: false });
  return () => listeners.forEach(([name, listener]) => element.removeEventListener(name, listener));
}

function placeOf(element: HTMLElement, event: MouseEvent): Place {
  const box = element.getBoundingClientRect();
  return { left: event.clientX - box.left, top: event.clientY - box.top };
}

function distance(from: Place, to: Place): number {
  return Math.hypot(from.left - to.left, from.top - to.top);
}
