/** What is known of single rows: their cells, the columns that move them, and what a place on a map stands for. */

import { signal } from "@preact/signals";
import type { Transport } from "../transport/transport";
import type { LoadingsBody, PreimageBody, RowsBody } from "./calls";
import type { MapPanel } from "./panel";
import { Latest } from "./request";

export interface RowCells {
  columns: string[];
  cells: string[];
}

export interface Table {
  columns: string[];
  rows: { id: number; cells: string[] }[];
}

/** How many rows the row table shows at once. */
export const PAGE_ROWS = 25;

/** How many rows' cells are kept. */
const KEPT_ROWS = 5000;

/** Milliseconds for which the pointer rests before it is asked what stands at its place. */
const REST = 60;

export class RowReader {
  /** The cells of the row that is pointed at or pinned. */
  readonly row = signal<RowCells | null>(null);
  readonly loadings = signal<LoadingsBody | null>(null);
  readonly preimage = signal<PreimageBody | null>(null);
  /** One page of the selected rows. */
  readonly table = signal<Table | null>(null);

  readonly reading: Latest;
  readonly loading: Latest;
  readonly imaging: Latest;
  readonly paging: Latest;
  #rest: ReturnType<typeof setTimeout> | undefined;
  readonly #kept = new Map<number, string[]>();
  #columns: string[] = [];

  constructor(transport: Transport) {
    this.reading = new Latest(transport);
    this.loading = new Latest(transport);
    this.imaging = new Latest(transport);
    this.paging = new Latest(transport);
  }

  /** Read the cells of the row in focus and the columns that move it. */
  async focus(row: number | null, map: MapPanel | null): Promise<void> {
    this.imaging.cancel();
    this.preimage.value = null;
    await Promise.all([this.#readRow(row), this.#readLoadings(row, map)]);
  }

  /** What a row at this place of the map would look like: a place of all components, or of some. */
  async askPreimage(map: MapPanel, at: number[], axes: number[] = []): Promise<void> {
    const fit = map.result.value;
    const answer = fit && (await this.imaging.ask("preimage", { map: fit.body.map, at, axes }, "Looking for a row there"));
    if (answer) this.preimage.value = answer.body;
  }

  /** Ask what a row at the pointer would look like when it rests; null when it points at none. */
  point(map: MapPanel | null, place: [number, number] | null): void {
    clearTimeout(this.#rest);
    if (map && place) this.#rest = setTimeout(() => void this.askPreimage(map, place, [...map.axes.value]), REST);
  }

  /** Read one page of rows for the row table. */
  async showPage(ids: number[]): Promise<void> {
    if (!(await this.#fetch(this.paging, ids))) return;
    this.table.value = { columns: this.#columns, rows: ids.map((id) => ({ id, cells: this.#kept.get(id) ?? [] })) };
  }

  /** Drop what was read: the table or its labels have changed. */
  forget(): void {
    this.close();
    this.#kept.clear();
    this.row.value = null;
    this.loadings.value = null;
    this.preimage.value = null;
    this.table.value = null;
  }

  close(): void {
    clearTimeout(this.#rest);
    for (const each of [this.reading, this.loading, this.imaging, this.paging]) each.cancel();
  }

  async #readRow(row: number | null): Promise<void> {
    if (row === null) {
      this.reading.cancel();
      this.row.value = null;
    } else if (await this.#fetch(this.reading, [row])) {
      this.row.value = { columns: this.#columns, cells: this.#kept.get(row) ?? [] };
    }
  }

  async #readLoadings(row: number | null, map: MapPanel | null): Promise<void> {
    const fit = map?.result.value;
    if (row === null || !map || !fit?.body.has.loadings || !map.whole.value) {
      this.loading.cancel();
      this.loadings.value = null;
      return;
    }
    const answer = await this.loading.ask("loadings", { map: fit.body.map, row, axes: map.axes.value });
    this.loadings.value = answer && answer.body;
  }

  /** Read the rows that are not kept yet; false when the answer failed or came too late. */
  async #fetch(place: Latest, ids: number[]): Promise<boolean> {
    const missing = ids.filter((id) => !this.#kept.has(id));
    if (missing.length === 0) {
      place.cancel();
      return true;
    }
    const answer = await place.ask("rows", { ids: missing });
    if (!answer) return false;
    const body = answer.body as RowsBody;
    if (this.#kept.size > KEPT_ROWS) this.#kept.clear();
    this.#columns = body.columns;
    missing.forEach((id, at) => this.#kept.set(id, body.cells[at]));
    return ids.every((id) => this.#kept.has(id)) || this.#fetch(place, ids);
  }
}
