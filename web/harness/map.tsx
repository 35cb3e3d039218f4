/** A page of maps alone, for the tests that need a real browser: what maps tell is kept in `globalThis.told`. */
import "./map.css";
import { render } from "preact";
import { useState } from "preact/hooks";
import { Map } from "../src/map/Map";
import { pixelsOf } from "./pixels";
import type { Points, View } from "../src/render/renderer";

interface Given {
  count: number;
  renderer: "webgl2" | "canvas";
  x: number[];
  y: number[];
  colour: number[];
  state: number[];
  regions?: { grid: number[]; width: number; height: number; extent: [number, number, number, number] };
}

const told: unknown[][] = [];
let shown: View | null = null;

function Maps({ count, renderer, regions, ...rows }: Given) {
  const [view, setView] = useState<View | null>(null);
  const [points] = useState<Points>(() => ({
    x: Float32Array.from(rows.x),
    y: Float32Array.from(rows.y),
    colour: Uint16Array.from(rows.colour),
    state: Uint8Array.from(rows.state),
  }));
  const [under] = useState(() => regions && { ...regions, grid: Uint16Array.from(regions.grid) });
  const note = (...what: unknown[]) => void told.push(what);
  shown = view;
  return (
    <>
      {Array.from({ length: count }, (_, index) => (
        <div key={index} class="frame">
          <Map
            points={points}
            view={view}
            onView={(next) => {
              note("view", next);
              setView(next);
            }}
            onHover={(row) => note("hover", row)}
            onPick={(row) => note("pick", row)}
            onLasso={(ids, how) => note("lasso", Array.from(ids), how)}
            regions={under}
            anchors={[{ class: 0, name: "<b>first</b>", at: [0, 0] }]}
            labels={["component 1", "component 2"]}
            description={`Map ${index + 1}.`}
            renderer={renderer}
          />
        </div>
      ))}
    </>
  );
}

/** Pixels of a map's points, in base64. */
function pixels(index: number): string {
  const canvas = document.querySelectorAll<HTMLCanvasElement>("canvas.mf-points")[index];
  return pixelsOf(canvas);
}

Object.assign(globalThis, { told, pixels, view: () => shown, show: (given: Given) => render(<Maps {...given} />, document.body) });
