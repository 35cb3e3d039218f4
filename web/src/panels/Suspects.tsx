/** Rows whose margin, from fits that have not seen them, speaks against their label. */

import type { Suspect } from "../state/calls";
import type { MapPanel } from "../state/panel";
import { useExplorer } from "./context";
import { readable } from "./Settings";
import { Busy, Problem } from "./Status";

/** Suspects that are listed at most, the strongest first. */
const LISTED = 50;

export function Suspects({ map }: { map: MapPanel }) {
  const suspects = map.suspects.value;
  return (
    <div class="stack">
      {suspects ? (
        <Found map={map} rows={suspects.rows} sentence={suspects.sentence} />
      ) : (
        <>
          <p>Look for rows whose label may be wrong: fits that have not seen the row put it clearly into another class.</p>
          <button type="button" class="main" disabled={map.suspecting.busy.value !== null} onClick={() => void map.askSuspects()}>
            Look for suspects
          </button>
        </>
      )}
      <Busy of={map.suspecting} />
      <Problem of={map.suspecting} />
    </div>
  );
}

function Found({ map, rows, sentence }: { map: MapPanel; rows: Suspect[]; sentence: string }) {
  const explorer = useExplorer();
  const classes = explorer.description.value?.classes ?? [];
  /** Suspects are training rows: they are drawn before they are pointed out. */
  const drawn = (act: () => void) => {
    if (rows.some((row) => explorer.heldOut.value[row.id] === 0)) explorer.setShowTraining(true);
    act();
  };
  return (
    <>
      <p>{sentence}</p>
      {rows.length > 0 && (
        <>
          <div class="row">
            <button type="button" onClick={() => drawn(() => explorer.select(rows.map((row) => row.id)))}>
              Select all {rows.length}
            </button>
          </div>
          <div class="scroll tall">
            <table>
              <thead>
                <tr>
                  <th scope="col">Row</th>
                  <th scope="col">Label</th>
                  <th scope="col">Looks like</th>
                  <th scope="col">Margin</th>
                </tr>
              </thead>
              <tbody>
                {rows.slice(0, LISTED).map((row) => (
                  <tr key={row.id}>
                    <td>
                      <button type="button" class="link" onClick={() => drawn(() => explorer.pin(row.id, map))}>
                        {explorer.numbers.value[row.id]}
                      </button>
                    </td>
                    <td>{classes[row.label]?.name}</td>
                    <td>{classes[row.suggested]?.name}</td>
                    <td>{readable(row.margin)}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
          {rows.length > LISTED && <p class="quiet">The {LISTED} strongest are listed.</p>}
        </>
      )}
    </>
  );
}
