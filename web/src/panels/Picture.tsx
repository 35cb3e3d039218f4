/** The map of a panel and, beside it, the one of a shuffled graph: linked, with names at the middle of each class. */

import { useMemo, useState } from "preact/hooks";
import type { Anchor } from "../map/labels";
import { Map } from "../map/Map";
import { pathExtent } from "../render/path";
import type { Points, View } from "../render/renderer";
import type { Explorer } from "../state/explorer";
import type { MapPanel, Regions } from "../state/panel";
import { pictureOf, type Picture } from "../state/picture";
import { useExplorer } from "./context";
import { dark } from "./theme";

/** Classes whose names are written on the map at most. */
const NAMED = 24;

export function PanelPicture({ map, number }: { map: MapPanel; number: number }) {
  const explorer = useExplorer();
  const picture = map.picture.value;
  const [path, step, regions] = [map.path.value, map.step.value, map.regions.value];
  const onPath = path !== null && step !== null && map.axes.value[0] === 0 && map.axes.value[1] === 1;
  const extent = useMemo(() => (onPath ? pathExtent(path.arrays) : null), [onPath, path?.arrays]);
  const drawnRegions = useMemo(() => regions && regionsOf(regions), [regions]);
  if (!picture) return <div class="blank" />;
  return (
    <>
      <Linked
        map={map}
        picture={picture}
        view={map.view.value}
        onView={(view) => (map.view.value = view)}
        extent={extent}
        regions={drawnRegions}
        description={`Map ${number}, ${map.method.value}, of ${shownRows(explorer)}.`}
      />
      <div class="maptools" role="group" aria-label={`Tools of map ${number}`}>
        <button
          type="button"
          aria-pressed={explorer.tool.value === "lasso"}
          title="Drag around rows to select them (also with Shift)"
          onClick={() => (explorer.tool.value = explorer.tool.value === "lasso" ? "pan" : "lasso")}
        >
          Lasso
        </button>
        {map.view.value !== null && (
          <button type="button" onClick={() => (map.view.value = null)}>
            Show all
          </button>
        )}
      </div>
    </>
  );
}

/** What the same method makes of a shuffled graph. */
export function GhostPicture({ map }: { map: MapPanel }) {
  const control = map.control.value!;
  const axes = map.axes.value;
  const [view, setView] = useState<View | null>(null);
  const picture = useMemo(() => pictureOf(control.fit.coordinates, control.fit.k, axes), [control, axes]);
  return (
    <figure class="ghost">
      <div class="plot">
        <Linked map={map} picture={picture} view={view} onView={setView} description={`${map.method.value} on a shuffled graph.`} />
      </div>
      <figcaption class="quiet">The same method on a shuffled graph</figcaption>
    </figure>
  );
}

interface LinkedProps {
  map: MapPanel;
  picture: Picture;
  view: View | null;
  onView(view: View | null): void;
  description: string;
  extent?: [number, number, number, number] | null;
  regions?: ReturnType<typeof regionsOf> | null;
}

/** A map whose pointed, pinned and selected rows are those of all maps. */
function Linked({ map, picture, view, onView, description, extent, regions }: LinkedProps) {
  const explorer = useExplorer();
  const [classes, states, axes, fit] = [explorer.classes.value, explorer.states.value, map.axes.value, map.result.value];
  const points = useMemo(() => ({ x: picture.x, y: picture.y, colour: classes, state: states }), [picture, classes, states]);
  const anchors = useMemo(() => anchorsOf(explorer, points), [points]);
  const names = fit?.body.axes ?? [];
  return (
    <Map
      points={points}
      view={view}
      extent={extent ?? null}
      tool={explorer.tool.value}
      hovered={explorer.hovered.value?.row ?? null}
      pinned={explorer.pinned.value?.row ?? null}
      regions={regions ?? null}
      anchors={anchors}
      labels={[names[axes[0]] ?? "", picture.spread ? "spread only, no second axis" : (names[axes[1]] ?? "")]}
      description={description}
      dark={dark.value}
      onView={onView}
      onHover={(row, place) => explorer.hover(row, map, picture.spread ? null : place)}
      onPick={(row) => explorer.pin(row, map)}
      onLasso={(rows, how) => explorer.select(rows, how)}
    />
  );
}

function shownRows(explorer: Explorer): string {
  const { split } = explorer.description.value!;
  return explorer.showTraining.value ? `${split.held_out} held-out and ${split.training} training rows` : `${split.held_out} held-out rows`;
}

function regionsOf({ body, grid }: Regions) {
  return { grid: grid as unknown as Uint16Array, height: grid.shape[0], width: grid.shape[1], extent: body.extent };
}

/** The name of each class at the mean of its drawn rows; a map's own anchors lie far outside of its rows. */
function anchorsOf(explorer: Explorer, { x, y, colour, state }: Points): Anchor[] {
  const classes = explorer.description.value?.classes ?? [];
  if (classes.length > NAMED) return [];
  const sums = classes.map(() => [0, 0, 0]);
  for (let row = 0; row < x.length; row++) {
    if (state[row] === 0) continue;
    const sum = sums[colour[row]];
    sum[0] += x[row];
    sum[1] += y[row];
    sum[2] += 1;
  }
  return sums.flatMap(([across, up, count], index) =>
    count === 0 ? [] : [{ class: index, name: classes[index].name, at: [across / count, up / count] as [number, number] }],
  );
}
