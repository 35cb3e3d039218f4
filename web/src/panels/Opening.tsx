/** The first screen: drop a table, choose one, or take a bundled set. */

import { useState } from "preact/hooks";
import { useExplorer } from "./context";
import { Busy, Problem } from "./Status";

export function Opening() {
  const explorer = useExplorer();
  const sets = explorer.description.value?.sets ?? [];
  return (
    <main class="opening">
      <h1>Look at your data through every method</h1>
      <p class="lead">
        Open a table with one row per case and one column that names the class. Part of the rows is kept away from every fit, and those
        rows are what the maps show.
      </p>
      {explorer.transport.upload && <DropPlace />}
      <Problem of={explorer.opening} />
      <Busy of={explorer.opening} />
      {explorer.description.value?.name && (
        <button type="button" onClick={() => void explorer.describe()}>
          Back to {explorer.description.value.name}
        </button>
      )}
      {sets.length > 0 && (
        <section aria-label="Bundled sets">
          <h2>Or begin with a bundled set</h2>
          <ul class="sets">
            {sets.map((name) => (
              <li key={name}>
                <button type="button" onClick={() => void explorer.openSet(name)}>
                  {name}
                </button>
              </li>
            ))}
          </ul>
        </section>
      )}
      <p class="quiet">Nothing leaves this computer.</p>
    </main>
  );
}

function DropPlace() {
  const explorer = useExplorer();
  const [over, setOver] = useState(false);
  const open = (files: FileList | null | undefined) => {
    const file = files?.[0];
    if (file) void explorer.openFile(file);
  };
  return (
    <label
      class={over ? "drop over" : "drop"}
      onDragOver={(event) => {
        event.preventDefault();
        setOver(true);
      }}
      onDragLeave={() => setOver(false)}
      onDrop={(event) => {
        event.preventDefault();
        setOver(false);
        open(event.dataTransfer?.files);
      }}
    >
      <strong>Drop a table here</strong>
      <span>or choose a file: CSV (also gzipped) or Parquet</span>
      <input type="file" onChange={(event) => open(event.currentTarget.files)} />
    </label>
  );
}
