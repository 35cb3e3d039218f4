/** The row under the pointer or pinned: its cells, the columns that move it on the map, and what its place stands for. */

import { useSignalEffect } from "@preact/signals";
import type { PreimageBody } from "../state/calls";
import type { Explorer } from "../state/explorer";
import type { MapPanel } from "../state/panel";
import { useExplorer } from "./context";
import { Mark } from "./Legend";
import { Problem } from "./Status";

/** Cells that are shown without unfolding. */
const FIRST_CELLS = 6;

export function RowCard() {
  const explorer = useExplorer();
  useSignalEffect(() => {
    const focus = explorer.pinned.value ?? explorer.hovered.value;
    focus?.map.result.value;
    focus?.map.axes.value;
    focus?.map.step.value;
    void explorer.reader.focus(focus?.row ?? null, focus?.map ?? null);
  });
  useSignalEffect(() => {
    const place = placeOf(explorer);
    explorer.reader.point(place?.map ?? null, place?.place ?? null);
  });
  const focus = explorer.pinned.value ?? explorer.hovered.value;
  return (
    <section class={`rowcard ${explorer.pinned.value ? "pinned" : focus ? "" : "empty"}`} aria-label="One row">
      {focus ? (
        <Row row={focus.row} map={focus.map} pinned={explorer.pinned.value !== null} />
      ) : placeOf(explorer) && explorer.reader.preimage.value ? (
        <>
          <h2>A place without a row</h2>
          <Image image={explorer.reader.preimage.value} />
        </>
      ) : (
        <p class="quiet">Point at a mark to see its row; click to pin it. Drag with Shift, or use the lasso, to select rows in all maps.</p>
      )}
    </section>
  );
}

/** The place under the pointer, where no row is in focus and the map has a way back to the columns. */
function placeOf(explorer: Explorer) {
  const place = explorer.pinned.value || explorer.hovered.value ? null : explorer.pointed.value;
  const fit = place?.map.result.value;
  return fit?.body.has.preimage && fit.k > 1 && place?.map.whole.value ? place : null;
}

function Row({ row, map, pinned }: { row: number; map: MapPanel; pinned: boolean }) {
  const explorer = useExplorer();
  const label = explorer.classes.value[row];
  const seen = explorer.heldOut.value[row] === 0;
  return (
    <>
      <h2>
        Row {explorer.numbers.value[row]}
        {pinned && (
          <button type="button" class="bare" aria-label="Let the pinned row go" onClick={() => explorer.pin(null, map)}>
            ×
          </button>
        )}
      </h2>
      <p class="row">
        <Mark index={label} /> {explorer.description.value?.classes[label]?.name}
        <span class="quiet">{seen ? "seen by the fit" : "held out"}</span>
        {pinned && (
          <button type="button" class="link" onClick={() => explorer.select([row], "add")}>
            select it
          </button>
        )}
      </p>
      <Cells />
      <Loadings map={map} />
      {pinned && explorer.hasServer && map.result.value?.body.has.preimage && <Preimage row={row} map={map} />}
    </>
  );
}

function Cells() {
  const { reader, hasServer } = useExplorer();
  const row = reader.row.value;
  if (!row) return hasServer ? <Problem of={reader.reading} /> : null;
  const cells = row.columns.map((column, index) => (
    <tr key={index}>
      <th scope="row">{column}</th>
      <td>{row.cells[index]}</td>
    </tr>
  ));
  return (
    <>
      <table class="cells">
        <tbody>{cells.slice(0, FIRST_CELLS)}</tbody>
      </table>
      {cells.length > FIRST_CELLS && (
        <details>
          <summary>{cells.length - FIRST_CELLS} more columns</summary>
          <table class="cells">
            <tbody>{cells.slice(FIRST_CELLS)}</tbody>
          </table>
        </details>
      )}
    </>
  );
}

/** The columns that move the row away from the mean along both axes, as bars to the left and right. */
function Loadings({ map }: { map: MapPanel }) {
  const { reader, hasServer } = useExplorer();
  const columns = reader.loadings.value?.columns;
  if (!columns) return hasServer && reader.loading.error.value ? <Problem of={reader.loading} /> : null;
  const top = Math.max(...columns.flatMap(({ push }) => push.map(Math.abs)), Number.MIN_VALUE);
  const axes = map.axes.value[0] === map.axes.value[1] ? [0] : [0, 1];
  const names = axes.map((place) => map.result.value?.body.axes[map.axes.value[place]] ?? `axis ${place + 1}`);
  return (
    <table class="loadings">
      <caption>What moves it from the mean in {map.method.value}</caption>
      <thead>
        <tr>
          <th scope="col">Column</th>
          {names.map((name) => (
            <th scope="col" key={name}>
              {name}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {columns.map(({ name, value, push }) => (
          <tr key={name}>
            <th scope="row" title={`${name}: ${value}`}>
              {name}
            </th>
            {axes.map((place) => (
              <td key={place}>
                <Push size={push[place] / top} words={push[place].toPrecision(2)} />
              </td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Push({ size, words }: { size: number; words: string }) {
  return (
    <svg class={size < 0 ? "push less" : "push more"} viewBox="-50 0 100 10" preserveAspectRatio="none" role="img" aria-label={words}>
      <rect x={Math.min(0, 50 * size)} y={1} width={Math.abs(50 * size)} height={8} />
      <line x1={0} x2={0} y1={0} y2={10} />
    </svg>
  );
}

/** What a row at the pinned row's place would look like. */
function Preimage({ row, map }: { row: number; map: MapPanel }) {
  const { reader } = useExplorer();
  const fit = map.result.value!;
  const image = reader.preimage.value;
  const at = () => Array.from(fit.coordinates.subarray(row * fit.k, (row + 1) * fit.k));
  if (!image) {
    return (
      <div class="stack">
        <button type="button" onClick={() => void reader.askPreimage(map, at())}>
          What does this place of the map stand for?
        </button>
        <Problem of={reader.imaging} />
      </div>
    );
  }
  return <Image image={image} />;
}

/** The row that stands at a place of the map, beside the nearest of the table. */
function Image({ image }: { image: PreimageBody }) {
  const { numbers } = useExplorer();
  return (
    <table class="cells image">
      <caption>A row that the map would put here, and the nearest row of the table</caption>
      <thead>
        <tr>
          <th scope="col">Column</th>
          <th scope="col">Here</th>
          <th scope="col">{image.nearest === undefined ? "This row" : `Row ${numbers.value[image.nearest]}`}</th>
        </tr>
      </thead>
      <tbody>
        {image.columns.map(({ name, value, original }) => (
          <tr key={name}>
            <th scope="row">{name}</th>
            <td>{value}</td>
            <td>{original}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
