/** The answers of the session's calls, as the page reads them. */

export type ColumnKind = "number" | "category" | "target" | "left out";

export interface Column {
  name: string;
  kind: ColumnKind;
  why: string | null;
}

export interface ClassInfo {
  name: string;
  count: number;
}

export type ParamValue = number | string | boolean | null;
export type Params = Record<string, ParamValue>;

export interface Control {
  name: string;
  title: string;
  kind: "number" | "log" | "choice" | "integer";
  low: number | null;
  high: number | null;
  value: ParamValue;
  choices: ParamValue[] | null;
  help: string | null;
  /** Whether null leaves the value to the method. */
  automatic?: boolean;
}

export interface Method {
  name: string;
  title: string;
  group: "linear" | "kernel" | "map" | "classifier";
  path: boolean;
  graph: boolean;
  controls: Control[];
  plan: string;
  why_not: string | null;
}

export interface Description {
  name: string;
  rows: number;
  shown: number;
  sampled: string | null;
  target: string | null;
  targets: string[];
  columns: Column[];
  classes: ClassInfo[];
  split: { seed: number; share: number; training: number; held_out: number };
  edits: number;
  edited: string | null;
  notes: string[];
  version: string;
  methods: Method[];
  /** The bundled sets. */
  sets?: string[];
  /** The maps that a static file holds. */
  maps?: { method: string; params: Params }[];
}

/** An error rate with its interval, and the sentence that says both. */
export interface ErrorRate {
  value: number;
  low: number;
  high: number;
  n: number;
  text: string;
}

/** The errors of neighbors on two axes, or on all components. */
export interface ErrorsBody {
  held_out: ErrorRate;
  training: ErrorRate;
}

export interface FitBody {
  map: string | number;
  method: string;
  params: Params;
  axes: string[];
  gain: number[] | null;
  new_gain: number[] | null;
  /** Null in a file that holds the places of rows alone. */
  errors: (ErrorsBody & { all: ErrorsBody; neighbors: number }) | null;
  seconds: number;
  gap: number | null;
  notes: string[];
  has: { loadings: boolean; preimage: boolean; path: boolean; control: boolean; suspects: boolean };
  anchors: { class: number; at: [number, number] }[] | null;
}

export interface PathBody {
  path: string | number;
  weights: number[];
  errors: ErrorRate[];
  chosen: number;
  axes: string[];
}

export interface PlanBody {
  seconds: [number, number];
  memory: number;
  text: string;
}

export interface ControlBody {
  sentence: string;
  p_value: number;
  observed: number;
  permuted: number[];
}

export interface RowsBody {
  columns: string[];
  cells: string[][];
}

export interface LoadingsBody {
  columns: { name: string; value: string; push: [number, number] }[];
}

/** `original` holds the cells of the row that is nearest to the place, whose number among the rows is `nearest`. */
export interface PreimageBody {
  nearest?: number;
  columns: { name: string; value: string; original: string | null }[];
}

export interface Suspect {
  id: number;
  label: number;
  suggested: number;
  margin: number;
}

export interface SuspectsBody {
  rows: Suspect[];
  sentence: string;
}

export interface EditsBody {
  edits: number;
  edited: string | null;
}

export interface RegionsBody {
  extent: [number, number, number, number];
  error: ErrorRate;
}

export const REGION_CLASSIFIERS = ["GESVC", "GEPSVC", "TwinSVC", "SVC"] as const;
export type RegionClassifier = (typeof REGION_CLASSIFIERS)[number];

export const EXPORT_KINDS = ["csv", "png", "svg", "skops", "html"] as const;
export type ExportKind = (typeof EXPORT_KINDS)[number];

export interface ExportBody {
  file_name: string;
  media_type: string;
}
