import "./map.css";
import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { palette as paletteOf, type Palette } from "../render/palette";
import type { Points, Size, View } from "../render/renderer";
import { makeGrid } from "../select/grid";
import { lasso } from "../select/lasso";
import { nearest } from "../select/nearest";
import { listen, type How } from "./gestures";
import { useLatest, useListeners, usePoints, useSize } from "./hooks";
import { handleKey, KEYS_IN_WORDS } from "./keys";
import { placeLabels, type Anchor } from "./labels";
import { drawRegions, regionPicture, type Regions } from "./regions";
import { extentOf, fitView, pan, project, unproject, zoom, type Place } from "./view";

/** Everything a map is told, and whom it tells. */
export interface MapProps {
  points: Points;
  /** What is shown; null shows everything. */
  view: View | null;
  /** The extent [x0, x1, y0, y1] that counts as everything, where it is not that of the points: all steps of a path. */
  extent?: [number, number, number, number] | null;
  /** A view that the person has chosen; null to show everything. */
  onView?(view: View | null): void;
  /** The row under the pointer, or the nearest to the middle after a key, and the place in the map's own numbers; null where there is none. */
  onHover?(row: number | null, place: [number, number] | null): void;
  /** The row that was clicked, null for a click beside all rows. */
  onPick?(row: number | null): void;
  onLasso?(rows: Uint32Array, how: How): void;
  /** What a drag without Shift does; "pan" when absent. */
  tool?: "pan" | "lasso";
  /** Rows to mark, as in another map. */
  hovered?: number | null;
  pinned?: number | null;
  regions?: Regions | null;
  anchors?: readonly Anchor[];
  /** Names of the two axes. */
  labels?: readonly [string, string];
  /** What a screen reader says first. */
  description: string;
  dark?: boolean;
  /** Counts when the map appears. */
  renderer?: "webgl2" | "canvas";
}

/** Pixels around the pointer in which a row is found. */
const REACH = 14;

/** How far a person can zoom out and in, relative to the view of everything. */
const ZOOM_RANGE = [0.2, 5000];

const NO_ANCHORS: readonly Anchor[] = [];

/** A map of rows: drag to move, wheel or two fingers to zoom, Shift and drag for a lasso, click to pin, and keys. */
export function Map(props: MapProps) {
  const { points, dark = false } = props;
  const root = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const size = useSize(root);
  const palette = paletteOf(dark);
  const everything = useMemo(() => size && fitView(props.extent ?? extentOf(points.x, points.y), size), [props.extent, points.x, points.y, size]);
  const view = props.view ?? everything;
  const [line, setLine] = useState<Place[] | null>(null);
  const [keyed, setKeyed] = useState(false);
  const grid = useRef<ReturnType<typeof makeGrid> | null>(null);
  usePoints(canvas, points, view, size, palette, props.renderer);

  const act = useLatest(size && view && everything && { props, size, view, everything });
  const rowAt = (at: Place, reach = REACH): number | null => {
    const { props, size, view } = act.current!;
    const { x, y, state } = props.points;
    if (grid.current?.x !== x || grid.current.y !== y) grid.current = makeGrid(x, y);
    const row = nearest(grid.current, ...unproject(view, size, at), reach / view.scale, state, view.stretch);
    return row < 0 ? null : row;
  };
  const placeAt = (at: Place) => unproject(act.current!.view, act.current!.size, at);
  const show = (next: View) => {
    const { props, view, everything } = act.current!;
    const [out, into] = ZOOM_RANGE.map((range) => range * everything.scale);
    if (next.scale < Math.min(out, view.scale) || next.scale > Math.max(into, view.scale)) return;
    act.current!.view = next; // a second gesture may come before the next rendering
    props.onView?.(next);
  };
  const select = (corners: Place[], how: How) => {
    const { props, size, view } = act.current!;
    const polygon = corners.flatMap((at) => unproject(view, size, at));
    props.onLasso?.(lasso(props.points.x, props.points.y, polygon, props.points.state), how);
  };
  const moveBy = (right: number, down: number) => show(pan(act.current!.view, right, down));
  const zoomBy = (factor: number, at: Place) => show(zoom(act.current!.view, act.current!.size, factor, at));

  useListeners(root, (element) =>
    listen(element, {
      lassoTool: () => act.current?.props.tool === "lasso",
      pan: moveBy,
      zoom: zoomBy,
      hover(at) {
        setKeyed(false);
        act.current?.props.onHover?.(at && rowAt(at), at && placeAt(at));
      },
      click: (at) => act.current?.props.onPick?.(rowAt(at)),
      fit: () => act.current?.props.onView?.(null),
      drawing: setLine,
      lasso: select,
    }),
  );

  const onKey = (event: KeyboardEvent) => {
    if (!act.current || event.ctrlKey || event.metaKey || event.altKey) return;
    const { props, size } = act.current;
    const middle = { left: size.width / 2, top: size.height / 2 };
    const known = handleKey(event.key, {
      pan: moveBy,
      zoom: (factor) => zoomBy(factor, middle),
      fit: () => props.onView?.(null),
      pin: () => props.onPick?.(rowAt(middle, 3 * REACH)),
      selectShown: () => select(cornersOf(size), "replace"),
      clear: () => props.onLasso?.(new Uint32Array(0), "replace"),
    });
    if (!known) return;
    event.preventDefault();
    setKeyed(true);
    requestAnimationFrame(() => act.current && props.onHover?.(rowAt(middle, 3 * REACH), placeAt(middle)));
  };

  return (
    <div
      ref={root}
      class={`mf-map${props.tool === "lasso" ? " mf-lasso-tool" : ""}`}
      tabIndex={0}
      role="application"
      aria-roledescription="map"
      aria-label={`${props.description} ${KEYS_IN_WORDS}`}
      onKeyDown={onKey}
      onBlur={() => setKeyed(false)}
    >
      {props.regions && view && size && <RegionLayer regions={props.regions} view={view} size={size} palette={palette} />}
      <canvas ref={canvas} class="mf-layer mf-points" aria-hidden="true" />
      {view && size && <Overlay {...props} line={line} keyed={keyed} view={view} size={size} palette={palette} />}
    </div>
  );
}

interface Layer {
  view: View;
  size: Size;
  palette: Palette;
}

function RegionLayer({ regions, view, size, palette }: Layer & { regions: Regions }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const picture = useMemo(() => regionPicture(regions, palette), [regions, palette]);
  useLayoutEffect(() => drawRegions(canvas.current!, picture, regions.extent, view, size), [picture, view, size]);
  return <canvas ref={canvas} class="mf-layer mf-regions" aria-hidden="true" />;
}

/** What lies over the points: names of classes and axes, marks of rows, the lasso's line. */
function Overlay({ points, anchors = NO_ANCHORS, labels, hovered, pinned, line, keyed, view, size }: MapProps & Layer & { line: Place[] | null; keyed: boolean }) {
  const mark = (row: number | null | undefined, name: string) => {
    if (row === null || row === undefined || !(points.state[row] & 3)) return null;
    const { left, top } = project(view, size, points.x[row], points.y[row]);
    return <circle class={name} cx={left} cy={top} r={name === "mf-pinned" ? 9 : 7} />;
  };
  return (
    <svg class="mf-layer mf-over" width={size.width} height={size.height} aria-hidden="true">
      {placeLabels(anchors, view, size).map(({ class: kind, name, left, top }) => (
        <text key={kind} class="mf-anchor" x={left} y={top}>
          {name}
        </text>
      ))}
      {labels && (
        <g class="mf-axes">
          <text x={size.width - 8} y={size.height - 8} text-anchor="end">
            {labels[0]} →
          </text>
          <text x={8} y={18}>
            ↑ {labels[1]}
          </text>
        </g>
      )}
      {mark(hovered, "mf-hovered")}
      {mark(pinned, "mf-pinned")}
      {keyed && <path class="mf-cross" d={crossAt(size)} />}
      {line && <polygon class="mf-line" points={line.map(({ left, top }) => `${left},${top}`).join(" ")} />}
    </svg>
  );
}

function crossAt({ width, height }: Size): string {
  return `M${width / 2 - 10} ${height / 2}h20M${width / 2} ${height / 2 - 10}v20`;
}

function cornersOf({ width, height }: Size): Place[] {
  return [
    { left: 0, top: 0 },
    { left: width, top: 0 },
    { left: width, top: height },
    { left: 0, top: height },
  ];
}
