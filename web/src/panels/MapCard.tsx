/** One map with everything that belongs to it. */

import { useState } from "preact/hooks";
import type { MapPanel } from "../state/panel";
import { Axes } from "./Axes";
import { useExplorer } from "./context";
import { ExportMenu } from "./ExportMenu";
import { Ghost } from "./Ghost";
import { MethodChooser } from "./MethodChooser";
import { PathSlider } from "./PathSlider";
import { GhostPicture, PanelPicture } from "./Picture";
import { Rates } from "./Rates";
import { RegionChooser } from "./RegionChooser";
import { Settings } from "./Settings";
import { Busy, Problem } from "./Status";
import { Suspects } from "./Suspects";

export function MapCard({ map, number }: { map: MapPanel; number: number }) {
  const explorer = useExplorer();
  const fit = map.result.value;
  return (
    <section class="card" aria-label={`Map ${number}: ${map.method.value}`}>
      <MethodChooser map={map} number={number} removable={explorer.maps.value.length > 1} />
      <Rates map={map} />
      <div class={map.control.value ? "plots pair" : "plots"}>
        <div class="plot" onFocusOut={() => explorer.hover(null, map)}>
          <PanelPicture map={map} number={number} />
          <div class="over">
            <Busy of={map.planning} />
            <Busy of={map.fitting} />
            <Problem of={map.fitting} />
            <Pending map={map} />
          </div>
        </div>
        {map.control.value && <GhostPicture map={map} />}
      </div>
      <Problem of={map.planning} />
      <PathSlider map={map} />
      {fit && <Tools map={map} />}
      {fit && fit.body.notes.length > 0 && (
        <ul class="quiet notes">
          {fit.body.notes.map((note) => (
            <li key={note}>{note}</li>
          ))}
        </ul>
      )}
    </section>
  );
}

/** What stands over a map that is not of the chosen settings. */
function Pending({ map }: { map: MapPanel }) {
  const why = map.waiting.value
    ? `This fit will take ${map.plan.value?.text ?? "a while"}.`
    : map.stale.value
      ? "This map is of the settings before."
      : !map.result.value && !map.fitting.busy.value && !map.planning.busy.value
        ? "Not fitted."
        : null;
  if (why === null) return null;
  return (
    <div class="busy">
      <span>{why}</span>
      <button type="button" class="main" onClick={() => void map.start()}>
        Fit now
      </button>
    </div>
  );
}

type Tool = "settings" | "axes" | "shuffled" | "regions" | "suspects" | "export";

/** A bar of buttons, each of which opens one sheet below the map. */
function Tools({ map }: { map: MapPanel }) {
  const explorer = useExplorer();
  const [open, setOpen] = useState<Tool | null>(null);
  const { has } = map.result.value!.body;
  const server = explorer.hasServer;
  const tools: [Tool, string, boolean][] = [
    ["settings", "Settings", server && (map.info?.controls.length ?? 0) > 0],
    ["axes", "Axes", map.result.value!.k > 1],
    ["shuffled", "Graph test", server && has.control],
    ["regions", "Regions", server && map.result.value!.k > 1],
    ["suspects", "Suspects", server && has.suspects],
    ["export", "Export", server],
  ];
  const usable = tools.filter(([, , there]) => there);
  const shown = usable.some(([tool]) => tool === open) ? open : null;
  const id = `tool-${map.key}`;
  return (
    <div class="tools">
      <div class="toolbar" role="group" aria-label="More about this map">
        {usable.map(([tool, title]) => (
          <button
            key={tool}
            type="button"
            aria-expanded={shown === tool}
            aria-controls={id}
            onClick={() => setOpen(shown === tool ? null : tool)}
          >
            {title}
          </button>
        ))}
      </div>
      <div id={id} class={shown ? "tool" : "nothing"}>
        {shown === "settings" && <Settings map={map} />}
        {shown === "axes" && <Axes map={map} />}
        {shown === "shuffled" && <Ghost map={map} />}
        {shown === "regions" && <RegionChooser map={map} />}
        {shown === "suspects" && <Suspects map={map} />}
        {shown === "export" && <ExportMenu map={map} />}
      </div>
    </div>
  );
}
