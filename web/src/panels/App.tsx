/** The whole explorer: the opening screen, or the table with its maps. */

import type { Explorer } from "../state/explorer";
import { ExplorerContext } from "./context";
import { Header } from "./Header";
import { Legend } from "./Legend";
import { MapCard } from "./MapCard";
import { Opening } from "./Opening";
import { RowCard } from "./RowCard";
import { RowTable } from "./RowTable";
import { Busy, Problem } from "./Status";

export function App({ explorer }: { explorer: Explorer }) {
  return (
    <ExplorerContext.Provider value={explorer}>
      <div class="frame">
        <Screen explorer={explorer} />
      </div>
      <div class="hearable" role="status" aria-live="polite">
        {explorer.spoken.value}
      </div>
    </ExplorerContext.Provider>
  );
}

function Screen({ explorer }: { explorer: Explorer }) {
  const description = explorer.description.value;
  if (!description) return <Start explorer={explorer} />;
  if (description.target === null) return <Opening />;
  return (
    <>
      <Header description={description} />
      <div class="desk">
        <main class={`maps count-${explorer.maps.value.length}`}>
          {explorer.maps.value.map((map, index) => (
            <MapCard key={map.key} map={map} number={index + 1} />
          ))}
        </main>
        <aside class="side">
          <Legend />
          <RowCard />
        </aside>
        <RowTable />
      </div>
      {!explorer.hasServer && (
        <p class="quiet foot">
          This file holds its maps and works without a server. To fit other methods, open the table with <code>marginfold explore</code>.
        </p>
      )}
    </>
  );
}

function Start({ explorer }: { explorer: Explorer }) {
  return (
    <main class="opening">
      <h1>marginfold explorer</h1>
      <Busy of={explorer.opening} />
      <Problem of={explorer.opening} />
      {explorer.opening.error.value !== null && (
        <button type="button" class="main" onClick={() => void explorer.describe()}>
          Try again
        </button>
      )}
    </main>
  );
}
