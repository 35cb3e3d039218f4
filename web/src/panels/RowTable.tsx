/** The selected rows as a table, and a way to give them another label. */

import { useEffect, useState } from "preact/hooks";
import { PAGE_ROWS } from "../state/reader";
import { useExplorer } from "./context";
import { Mark } from "./Legend";
import { Busy, Problem } from "./Status";

export function RowTable() {
  const explorer = useExplorer();
  const selection = explorer.selection.value;
  if (selection.length === 0) return null;
  return (
    <section class="rowtable" aria-label="Selected rows">
      <div class="row">
        <h2>
          {selection.length.toLocaleString("en")} {selection.length === 1 ? "row" : "rows"} selected
        </h2>
        <button type="button" onClick={() => explorer.select([])}>
          Clear
        </button>
      </div>
      <Counts />
      {explorer.hasServer && <Relabel />}
      <Pages />
    </section>
  );
}

/** How many selected rows each class has. */
function Counts() {
  const explorer = useExplorer();
  const counts = new Map<number, number>();
  for (const id of explorer.selection.value) {
    const label = explorer.classes.value[id];
    counts.set(label, (counts.get(label) ?? 0) + 1);
  }
  const largest = [...counts].sort((a, b) => b[1] - a[1]);
  return (
    <ul class="counts">
      {largest.map(([label, count]) => (
        <li key={label}>
          <Mark index={label} /> {explorer.description.value?.classes[label]?.name}: {count.toLocaleString("en")}
        </li>
      ))}
    </ul>
  );
}

function Relabel() {
  const explorer = useExplorer();
  const [label, setLabel] = useState(0);
  const selection = explorer.selection.value;
  const editable = explorer.editable(selection);
  const locked = selection.length - editable.length;
  return (
    <details class="relabel">
      <summary>Change labels</summary>
      {editable.length === 0 ? (
        <p>
          All selected rows are held out, and their labels are locked so that the error stays honest. Show the training rows to select some
          of them.
        </p>
      ) : (
        <div class="row">
          <label class="field">
            <span>
              New label of {editable.length.toLocaleString("en")} training {editable.length === 1 ? "row" : "rows"}
            </span>
            <select value={String(label)} onChange={(event) => setLabel(Number(event.currentTarget.value))}>
              {explorer.description.value?.classes.map(({ name }, index) => (
                <option key={index} value={String(index)}>
                  {name}
                </option>
              ))}
            </select>
          </label>
          <button type="button" class="main" onClick={() => void explorer.relabel(editable, label)}>
            Relabel and fit again
          </button>
          {locked > 0 && <span class="quiet">{locked.toLocaleString("en")} held-out rows stay as they are.</span>}
        </div>
      )}
      <Busy of={explorer.editing} />
      <Problem of={explorer.editing} />
    </details>
  );
}

function Pages() {
  const explorer = useExplorer();
  const { reader } = explorer;
  const selection = explorer.selection.value;
  const [first, setFirst] = useState(0);
  useEffect(() => setFirst(0), [selection]);
  const start = first < selection.length ? first : 0;
  const classes = explorer.classes.value;
  useEffect(() => void reader.showPage([...selection.slice(start, start + PAGE_ROWS)]), [selection, start, classes]);
  const table = reader.table.value;
  const target = explorer.description.value?.target;
  const edited = explorer.edits.value.edits > 0;
  const shown = table?.columns.map((_, index) => index).filter((index) => edited || table.columns[index] !== target) ?? [];
  if (!table) return explorer.hasServer ? <Problem of={reader.paging} /> : null;
  return (
    <>
      <div class="scroll tall" tabIndex={0} role="region" aria-label="Cells of the selected rows">
        <table>
          <thead>
            <tr>
              <th scope="col">Row</th>
              <th scope="col">{target}</th>
              {shown.map((index) => (
                <th scope="col" key={index}>
                  {table.columns[index]}
                  {table.columns[index] === target && " in the table"}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {table.rows.map(({ id, cells }) => (
              <tr key={id} aria-selected={explorer.pinned.value?.row === id}>
                <td>
                  <button type="button" class="link" onClick={() => explorer.pin(id, explorer.maps.value[0])}>
                    {explorer.numbers.value[id]}
                  </button>
                </td>
                <td class="nowrap">
                  <Mark index={classes[id]} /> {explorer.description.value?.classes[classes[id]]?.name}
                </td>
                {shown.map((index) => (
                  <td key={index}>{cells[index]}</td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {selection.length > PAGE_ROWS && (
        <div class="row">
          <button type="button" disabled={start === 0} onClick={() => setFirst(start - PAGE_ROWS)}>
            Previous
          </button>
          <span>
            {start + 1} to {Math.min(start + PAGE_ROWS, selection.length)} of {selection.length.toLocaleString("en")}
          </span>
          <button type="button" disabled={start + PAGE_ROWS >= selection.length} onClick={() => setFirst(start + PAGE_ROWS)}>
            Next
          </button>
        </div>
      )}
      <Problem of={reader.paging} />
    </>
  );
}
