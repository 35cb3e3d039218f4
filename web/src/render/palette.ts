/** Number of different colours; further classes repeat them with another shape. */
export const CLASSES = 12;

/** Shapes in the order in which classes beyond the twelfth, the 24th and the 36th take them. */
export const SHAPES = ["disc", "square", "diamond", "triangle"] as const;

/** The form of a marker. */
export type Shape = (typeof SHAPES)[number];

/** Colours of the maps on a light or on a dark ground, as "#rrggbb". */
export interface Palette {
  dark: boolean;
  ground: string;
  ink: string;
  classes: readonly string[];
  /** The same colours near the ground: rows beside a selection, decision regions. */
  faded: readonly string[];
}

/** What a legend says of a class; `repeats` is true from class 48 on, where colour and shape come a second time. */
export interface LegendMark {
  colour: string;
  shape: Shape;
  repeats: boolean;
}

/**
 * Found by annealing: any two of twelve colours are at least 0.11 apart in OKLab for normal sight, protanopia,
 * deuteranopia and tritanopia alike (palette.test.ts), and each has a contrast of 3 or more with the ground.
 */
const LIGHT = ["#1372b4", "#df7b13", "#c211ff", "#571405", "#c54105", "#132d4d", "#69218e", "#05a0d1", "#7d656c", "#0804d2", "#9c9184", "#8e2920"];
const DARK = ["#6bceff", "#ef7908", "#895eb0", "#f5f1a0", "#ca3f00", "#bacaa1", "#a9978c", "#aefbff", "#ca00fd", "#ffb31c", "#669cdb", "#1f7f63"];

/** Share of the class's colour that is left in a faded marker. */
const FADED_SHARE = 0.22;

const PALETTES = [makePalette(false, "#ffffff", "#1b1f24", LIGHT), makePalette(true, "#16191e", "#e8eaed", DARK)];

/** The colours for a light or a dark page. */
export function palette(dark: boolean): Palette {
  return PALETTES[dark ? 1 : 0];
}

/** Colour and shape of a class. */
export function legendMark({ classes }: Palette, index: number): LegendMark {
  return {
    colour: classes[index % CLASSES],
    shape: SHAPES[Math.floor(index / CLASSES) % SHAPES.length],
    repeats: index >= CLASSES * SHAPES.length,
  };
}

/** Ordinary and faded colours as pixels of ImageData. */
export function pixelColours({ classes, faded }: Palette): Uint32Array {
  return Uint32Array.from([...classes, ...faded], (colour) => {
    const [red, green, blue] = channels(colour);
    return (0xff000000 | (blue << 16) | (green << 8) | red) >>> 0;
  });
}

/** Ordinary and faded colours as numbers from 0 to 1, three each. */
export function gpuColours({ classes, faded }: Palette): Float32Array {
  return Float32Array.from([...classes, ...faded].flatMap(channels), (channel) => channel / 255);
}

/** Red, green and blue of "#rrggbb", 0 to 255. */
export function channels(colour: string): [number, number, number] {
  const number = parseInt(colour.slice(1), 16);
  return [number >> 16, (number >> 8) & 255, number & 255];
}

function makePalette(dark: boolean, ground: string, ink: string, classes: string[]): Palette {
  return { dark, ground, ink, classes, faded: classes.map((each) => between(ground, each, FADED_SHARE)) };
}

function between(from: string, to: string, share: number): string {
  const end = channels(to);
  const mixed = channels(from).map((channel, index) => Math.round(channel + (end[index] - channel) * share));
  return "#" + mixed.map((channel) => channel.toString(16).padStart(2, "0")).join("");
}
