/** What a key does on a map. */
export interface KeyActions {
  pan(right: number, down: number): void;
  zoom(factor: number): void;
  fit(): void;
  pin(): void;
  selectShown(): void;
  clear(): void;
}

/** The keys in words, for the description that a screen reader says. */
export const KEYS_IN_WORDS =
  "Arrow keys move the map, plus and minus zoom, 0 shows everything, Enter pins the row in the middle, S selects the rows in view, Escape clears the selection.";

/** Pixels of one step, and how much larger one step of the zoom is. */
const STEP = 48;
const ZOOM = 1.3;

/** Do what a key asks for; false where it means nothing to a map. */
export function handleKey(key: string, actions: KeyActions): boolean {
  const known: Record<string, () => void> = {
    ArrowLeft: () => actions.pan(STEP, 0),
    ArrowRight: () => actions.pan(-STEP, 0),
    ArrowUp: () => actions.pan(0, STEP),
    ArrowDown: () => actions.pan(0, -STEP),
    "+": () => actions.zoom(ZOOM),
    "=": () => actions.zoom(ZOOM),
    "-": () => actions.zoom(1 / ZOOM),
    "0": actions.fit,
    Home: actions.fit,
    Enter: actions.pin,
    s: actions.selectShown,
    Escape: actions.clear,
  };
  if (!Object.hasOwn(known, key)) return false;
  known[key]();
  return true;
}
