/** The table in one line: its name, the target, the columns, the split, and what can be done with all maps at once. */

import { useState } from "preact/hooks";
import type { Column, Description } from "../state/calls";
import { MOST_MAPS, type Choice } from "../state/explorer";
import { CodeDialog } from "./CodeDialog";
import { useExplorer } from "./context";
import { Fold } from "./Fold";
import { Busy, Problem } from "./Status";

export function Header({ description }: { description: Description }) {
  const explorer = useExplorer();
  const count = explorer.maps.value.length;
  return (
    <header class="header">
      <div class="title">
        <h1>{description.name}</h1>
        <span class="quiet">
          {counted(description.rows, "row")}, {counted(used(description.columns).length, "column")}
        </span>
      </div>
      <div class="choices">
        <TargetChooser description={description} />
        <Columns key={`columns ${description.target}`} description={description} />
        <Split key={`split ${description.split.seed} ${description.split.share}`} description={description} />
        <label class="switch">
          <input
            type="checkbox"
            role="switch"
            checked={explorer.showTraining.value}
            onChange={(event) => explorer.setShowTraining(event.currentTarget.checked)}
          />
          Training rows <span class="quiet">(seen by the fit)</span>
        </label>
      </div>
      <div class="actions">
        {explorer.hasServer && (
          <button type="button" disabled={count >= MOST_MAPS} onClick={() => explorer.addMap()}>
            Add a map
          </button>
        )}
        {explorer.hasServer && <CodeDialog />}
        {explorer.mode === "page" && (
          <button type="button" aria-label="Open another table" onClick={() => explorer.closeTable()}>
            Open …
          </button>
        )}
      </div>
      <Notices description={description} />
    </header>
  );
}

function counted(count: number, thing: string): string {
  return `${count.toLocaleString("en")} ${thing}${count === 1 ? "" : "s"}`;
}

/** The choice of the screen, to be changed in one place. */
function choiceOf(description: Description, ignored: readonly string[]): Choice {
  const { seed, share } = description.split;
  return { target: description.target ?? "", ignored: [...ignored], seed, held_out: share };
}

function TargetChooser({ description }: { description: Description }) {
  const explorer = useExplorer();
  if (!explorer.hasServer || description.targets.length < 2) {
    return <span class="fact">Target: {description.target}</span>;
  }
  return (
    <label class="field">
      Target
      <select
        value={description.target ?? ""}
        disabled={explorer.opening.busy.value !== null}
        onChange={(event) => void explorer.chooseTable({ ...choiceOf(description, []), target: event.currentTarget.value })}
      >
        {description.targets.map((name) => (
          <option key={name} value={name}>
            {name}
          </option>
        ))}
      </select>
    </label>
  );
}

function used(columns: Column[]): Column[] {
  return columns.filter((column) => column.kind === "number" || column.kind === "category");
}

/** Columns that a sheet lists at most; a search narrows a longer list. */
const LISTED = 200;

function Columns({ description }: { description: Description }) {
  const explorer = useExplorer();
  const [ignored, setIgnored] = useState<ReadonlySet<string>>(new Set(explorer.ignored.value));
  const [search, setSearch] = useState("");
  const leftOut = description.columns.filter((column) => column.kind === "left out" && !explorer.ignored.value.includes(column.name));
  const features = description.columns.filter((column) => column.kind !== "target" && !leftOut.includes(column));
  const found = features.filter((column) => column.name.toLowerCase().includes(search.toLowerCase()));
  const count = leftOut.length + explorer.ignored.value.length;
  const toggle = (name: string, use: boolean) => {
    const next = new Set(ignored);
    if (use) next.delete(name);
    else next.add(name);
    setIgnored(next);
  };
  return (
    <Fold title={count === 0 ? "Columns" : `Columns (${count} left out)`}>
      {leftOut.length > 0 && (
        <>
          <h2>Left out</h2>
          <ul class="reasons">
            {leftOut.slice(0, LISTED).map((column) => (
              <li key={column.name}>
                <strong>{column.name}</strong>: {column.why}
              </li>
            ))}
          </ul>
        </>
      )}
      <h2>Used</h2>
      {features.length > 12 && (
        <label class="field">
          Search
          <input type="search" value={search} onInput={(event) => setSearch(event.currentTarget.value)} />
        </label>
      )}
      <ul class="checks">
        {found.slice(0, LISTED).map((column) => (
          <li key={column.name}>
            <label>
              <input
                type="checkbox"
                checked={!ignored.has(column.name)}
                disabled={!explorer.hasServer}
                onChange={(event) => toggle(column.name, event.currentTarget.checked)}
              />
              {column.name} {column.kind === "category" && <span class="quiet">categories</span>}
            </label>
          </li>
        ))}
      </ul>
      {found.length > LISTED && <p class="quiet">and {found.length - LISTED} more: search for them</p>}
      {explorer.hasServer && (
        <button type="button" class="main" onClick={() => void explorer.chooseTable(choiceOf(description, [...ignored]))}>
          Use these columns
        </button>
      )}
    </Fold>
  );
}

function Split({ description }: { description: Description }) {
  const explorer = useExplorer();
  const choice = choiceOf(description, explorer.ignored.value);
  const [seed, setSeed] = useState(String(choice.seed));
  const [share, setShare] = useState(String(Math.round(choice.held_out * 100)));
  const { training, held_out } = description.split;
  return (
    <Fold title={`Held out: ${Math.round(choice.held_out * 100)} %`}>
      <p>
        {held_out.toLocaleString("en")} rows are held out and {training.toLocaleString("en")} train the fits. Only held-out rows tell how a
        map does on rows it has not seen.
      </p>
      {explorer.hasServer && (
        <form
          class="stack"
          onSubmit={(event) => {
            event.preventDefault();
            void explorer.chooseTable({ ...choice, seed: Number(seed), held_out: Number(share) / 100 });
          }}
        >
          <label class="field">
            Share held out, in per cent
            <input type="number" min="5" max="90" required value={share} onInput={(event) => setShare(event.currentTarget.value)} />
          </label>
          <label class="field">
            Seed of the split
            <input type="number" min="0" max="4294967295" step="1" required value={seed} onInput={(event) => setSeed(event.currentTarget.value)} />
          </label>
          <button class="main">Split again</button>
        </form>
      )}
    </Fold>
  );
}

function Notices({ description }: { description: Description }) {
  const explorer = useExplorer();
  const { edits, edited } = explorer.edits.value;
  return (
    <div class="notices">
      {description.sampled && <p class="notice">{description.sampled}</p>}
      {edits > 0 && (
        <p class="notice edited">
          <span>{edited ?? "Every label is again as in the table"}</span>
          <button type="button" onClick={() => void explorer.undo()}>
            Undo
          </button>
        </p>
      )}
      {description.notes.length > 0 && (
        <details class="notes">
          <summary>
            {description.notes.length === 1 ? "A note" : `${description.notes.length} notes`} on this table
          </summary>
          <ul>
            {description.notes.map((note) => (
              <li key={note}>{note}</li>
            ))}
          </ul>
        </details>
      )}
      <Problem of={explorer.opening} />
      <Busy of={explorer.opening} />
    </div>
  );
}
