/** Everything the page knows and does: the table, its maps, the rows that are selected, and the calls behind them. */

import { batch, computed, signal, type ReadonlySignal } from "@preact/signals";
import type { Answer, Transport } from "../transport/transport";
import type { Description, EditsBody, ExportBody, ExportKind, Method, Params } from "./calls";
import type { How } from "../map/gestures";
import { MapPanel } from "./panel";
import { Latest } from "./request";
import { RowReader } from "./reader";
import { drawnRows, statesOf } from "./rows";

/** Where the front end runs: its own page, an output of a notebook, or a file without a server. */
export type Mode = "page" | "widget" | "static";

/** The methods that stand first in the chooser. */
export const FIRST_METHODS = ["PCA", "LDA", "LSVA", "WSVDA", "MarginMap"];

/** The methods of the two maps that a table opens with. */
const OPENING_METHODS = ["PCA", "LSVA"];

/** The most maps that stand side by side. */
export const MOST_MAPS = 4;

/** The key of the newest map; keys are told apart across all explorers of a document, where ids must be. */
let lastKey = 0;

export interface Choice {
  target: string;
  ignored: string[];
  seed: number;
  held_out: number;
}

export class Explorer {
  readonly description = signal<Description | null>(null);
  readonly classes = signal<Uint16Array>(new Uint16Array());
  readonly heldOut = signal<Uint8Array>(new Uint8Array());
  /** The rows' numbers in the file. */
  readonly numbers = signal<Uint32Array>(new Uint32Array());
  readonly maps = signal<readonly MapPanel[]>([]);
  readonly selection = signal<Uint32Array>(new Uint32Array());
  readonly hidden = signal<ReadonlySet<number>>(new Set());
  readonly showTraining = signal(false);
  /** What a drag on a map does. */
  readonly tool = signal<"pan" | "lasso">("pan");
  /** The row under the pointer and the map it is pointed at in. */
  readonly hovered = signal<{ row: number; map: MapPanel } | null>(null);
  /** The place under the pointer where no row is, in the numbers of the two axes of its map. */
  readonly pointed = signal<{ place: [number, number]; map: MapPanel } | null>(null);
  readonly pinned = signal<{ row: number; map: MapPanel } | null>(null);
  /** The columns that the person left out. */
  readonly ignored = signal<readonly string[]>([]);
  readonly edits = signal<EditsBody>({ edits: 0, edited: null });
  /** The last event in words, for screen readers. */
  readonly spoken = signal("");

  /** The methods that can be fitted, the well-known ones first. */
  readonly methods: ReadonlySignal<Method[]> = computed(() => {
    const place = (method: Method) => (FIRST_METHODS.includes(method.name) ? FIRST_METHODS.indexOf(method.name) : FIRST_METHODS.length);
    return [...(this.description.value?.methods ?? [])].sort((a, b) => place(a) - place(b));
  });

  /** How each row is drawn, the same in all maps. */
  readonly states: ReadonlySignal<Uint8Array> = computed(() =>
    statesOf({
      classes: this.classes.value,
      heldOut: this.heldOut.value,
      hidden: this.hidden.value,
      showTraining: this.showTraining.value,
      selection: this.selection.value,
    }),
  );

  readonly opening: Latest;
  readonly editing: Latest;
  readonly coding: Latest;
  readonly exporting: Latest;
  readonly reader: RowReader;

  constructor(
    readonly transport: Transport,
    readonly mode: Mode,
  ) {
    this.opening = new Latest(transport);
    this.editing = new Latest(transport);
    this.coding = new Latest(transport);
    this.exporting = new Latest(transport);
    this.reader = new RowReader(transport);
  }

  /** Whether anything can be computed; a static file only shows what it holds. */
  get hasServer(): boolean {
    return this.mode !== "static";
  }

  /** Ask for the open table and fit its first maps. */
  async describe(): Promise<void> {
    await this.#open("describe", {}, "Reading the table");
  }

  /** Open a bundled set. */
  async openSet(name: string): Promise<void> {
    if (await this.#open("open_set", { name }, `Reading ${name}`)) this.ignored.value = [];
  }

  /** Change the target, the columns or the split; every map is fitted again. */
  async chooseTable(choice: Choice): Promise<void> {
    if (await this.#open("choose", { ...choice }, "Preparing the table")) this.ignored.value = choice.ignored;
  }

  /** Read a table from the person's own files. */
  async openFile(file: File): Promise<void> {
    const answer = await this.opening.upload(file, `Reading ${file.name}`);
    if (!answer) return;
    this.ignored.value = [];
    this.#show(answer);
  }

  /** Go back to the opening screen. The server keeps the table until another one is opened. */
  closeTable(): void {
    this.#clear();
    this.showTraining.value = false;
    const description = this.description.value;
    if (description) this.description.value = { ...description, target: null, shown: 0 };
  }

  /** Put another map beside the others, with the first method that is not yet there. */
  addMap(): void {
    if (this.maps.value.length >= MOST_MAPS) return;
    const shown = new Set(this.maps.value.map((map) => map.method.value));
    const usable = this.methods.value.filter((method) => method.why_not === null);
    const method = usable.find((each) => !shown.has(each.name)) ?? usable[0];
    if (method) void this.#add(method).refit();
  }

  removeMap(map: MapPanel): void {
    map.cancel();
    batch(() => {
      this.maps.value = this.maps.value.filter((each) => each !== map);
      if (this.hovered.value?.map === map) this.hovered.value = null;
      if (this.pointed.value?.map === map) this.pointed.value = null;
      if (this.pinned.value?.map === map) this.pinned.value = null;
    });
  }

  /** Change the selection of all maps and of the row table; rows that are not drawn stay out. */
  select(ids: Iterable<number>, how: How = "replace"): void {
    const chosen = new Uint8Array(this.states.value.length);
    if (how !== "replace") for (const id of this.selection.value) chosen[id] = 1;
    for (const id of ids) chosen[id] = how === "remove" ? 0 : 1;
    this.selection.value = drawnRows(chosen, this.states.value);
    const count = this.selection.value.length;
    this.say(count === 0 ? "Nothing selected" : `${count} ${count === 1 ? "row" : "rows"} selected`);
  }

  /** Show or hide a class in all maps. */
  toggleClass(index: number): void {
    const hidden = new Set(this.hidden.value);
    if (!hidden.delete(index)) hidden.add(index);
    batch(() => {
      this.hidden.value = hidden;
      this.#keepDrawn();
    });
  }

  setShowTraining(show: boolean): void {
    batch(() => {
      this.showTraining.value = show;
      this.#keepDrawn();
    });
  }

  /** Point at a row, at a place beside all rows, or at nothing in a map. */
  hover(row: number | null, map: MapPanel, place: [number, number] | null = null): void {
    this.pointed.value = row === null && place ? { place, map } : null;
    const hovered = this.hovered.value;
    if (hovered?.row === row && hovered?.map === map) return;
    this.hovered.value = row === null ? null : { row, map };
  }

  /** Keep a row on the screen; the same row again, or null, lets it go. */
  pin(row: number | null, map: MapPanel): void {
    const again = this.pinned.value?.row === row && this.pinned.value?.map === map;
    this.pinned.value = row === null || again ? null : { row, map };
    if (this.pinned.value) this.say(`Row ${this.numbers.value[this.pinned.value.row]} pinned`);
  }

  /** How many of the rows a relabelling may change: held-out rows are locked. */
  editable(ids: Iterable<number>): number[] {
    return [...ids].filter((id) => this.heldOut.value[id] === 0);
  }

  /** Give rows another label and fit every map again. */
  async relabel(ids: Iterable<number>, label: number): Promise<void> {
    const answer = await this.editing.ask("relabel", { ids: [...ids], label }, "Changing labels");
    if (answer) this.#edited(answer);
  }

  /** Take the last relabelling back and fit every map again. */
  async undo(): Promise<void> {
    const answer = await this.editing.ask("undo", {}, "Taking back");
    if (answer) this.#edited(answer);
  }

  /** A script that reproduces what is on the screen. */
  async code(): Promise<string | null> {
    const maps = this.maps.value.map((map) => shownFit(map));
    const answer = await this.coding.ask("code", { maps }, "Writing the script");
    return answer && answer.body.python;
  }

  /** A file to keep; null when it could not be made. */
  async export(map: MapPanel, kind: ExportKind): Promise<{ name: string; content: Blob } | null> {
    await map.settle();
    const fit = map.result.value;
    if (!fit) return null;
    const maps = kind === "html" ? this.maps.value.flatMap((each) => each.result.value?.body.map ?? []) : [];
    const answer = await this.exporting.ask("export", { map: fit.body.map, kind, axes: map.axes.value, maps }, "Writing the file");
    if (!answer) return null;
    const body = answer.body as ExportBody;
    const content = answer.arrays.content as unknown as Uint8Array<ArrayBuffer>;
    return { name: body.file_name, content: new Blob([content], { type: body.media_type }) };
  }

  /** Say something to screen readers. */
  say(words: string): void {
    this.spoken.value = words;
  }

  /** Stop every call. */
  close(): void {
    this.#clear();
    for (const each of [this.opening, this.editing, this.coding, this.exporting]) each.cancel();
    this.reader.close();
  }

  async #open(call: string, params: Record<string, unknown>, stage: string): Promise<boolean> {
    const answer = await this.opening.ask(call, params, stage);
    if (answer) this.#show(answer);
    return answer !== null;
  }

  #show(answer: Answer<Description>): void {
    const before = this.maps.value.map((map) => ({ method: map.method.value, params: map.params.value }));
    const description = answer.body;
    batch(() => {
      this.#clear();
      this.description.value = description;
      this.classes.value = (answer.arrays.class ?? new Uint16Array()) as unknown as Uint16Array;
      this.heldOut.value = (answer.arrays.held_out ?? new Uint8Array()) as unknown as Uint8Array;
      this.numbers.value = (answer.arrays.number ?? new Uint32Array()) as unknown as Uint32Array;
      this.edits.value = { edits: description.edits, edited: description.edited };
      if (description.target !== null) this.#placeMaps(before);
    });
    this.say(description.target === null ? "No table is open" : `${description.name}: ${description.shown} rows`);
    this.#refitAll();
  }

  #placeMaps(before: { method: string; params: Params }[]): void {
    const usable = this.methods.value.filter((method) => method.why_not === null);
    const kept = this.description.value?.maps ?? before;
    for (const { method, params } of kept) {
      const known = usable.find((each) => each.name === method);
      if (known) this.#add(known).params.value = params;
    }
    if (this.maps.value.length > 0) return;
    const opening = usable.filter((method) => OPENING_METHODS.includes(method.name));
    for (const method of opening.length > 0 ? opening : usable.slice(0, 2)) this.#add(method);
  }

  #add(method: Method): MapPanel {
    const map = new MapPanel(this, ++lastKey, method);
    this.maps.value = [...this.maps.value, map];
    return map;
  }

  #edited(answer: Answer<EditsBody>): void {
    batch(() => {
      this.edits.value = answer.body;
      this.classes.value = answer.arrays.class as unknown as Uint16Array;
    });
    this.reader.forget();
    this.say(answer.body.edited ?? "No label is edited");
    this.#refitAll();
  }

  #refitAll(): void {
    for (const map of this.maps.value) void map.refit();
  }

  /** After rows were hidden: the selection and the pointed row hold drawn rows only. */
  #keepDrawn(): void {
    const chosen = new Uint8Array(this.states.value.length);
    for (const id of this.selection.value) chosen[id] = 1;
    const kept = drawnRows(chosen, this.states.value);
    if (kept.length !== this.selection.value.length) this.selection.value = kept;
    const pointed = this.hovered.value;
    if (pointed && this.states.value[pointed.row] === 0) this.hovered.value = null;
  }

  #clear(): void {
    for (const map of this.maps.value) map.cancel();
    this.reader.forget();
    batch(() => {
      this.maps.value = [];
      this.selection.value = new Uint32Array();
      this.hidden.value = new Set();
      this.hovered.value = null;
      this.pointed.value = null;
      this.pinned.value = null;
    });
  }
}

/** The method and settings of what a map shows: the fit's own, or the ones that wait for their first fit. */
function shownFit(map: MapPanel): { method: string; params: Params } {
  const fit = map.result.value;
  return fit ? { method: fit.body.method, params: fit.body.params } : { method: map.method.value, params: map.params.value };
}
