/** The slider over the graph weight with the held-out error as a curve, both from one path. */

import type { ErrorRate } from "../state/calls";
import type { MapPanel } from "../state/panel";
import type { Path } from "../state/picture";
import { readable } from "./Settings";
import { Busy, Problem } from "./Status";

/** Size of the curve's own coordinates; it is stretched to the slider's width. */
const [WIDTH, HEIGHT] = [100, 40];

export function PathSlider({ map }: { map: MapPanel }) {
  const [path, fit] = [map.path.value, map.result.value];
  if (!fit?.body.has.path) return null;
  return (
    <div class="path">
      {path ? (
        <Slider map={map} path={path} />
      ) : (
        map.pathing.busy.value === null && (
          <button type="button" onClick={() => void map.preparePath()}>
            Prepare the slider over the graph weight
          </button>
        )
      )}
      <Busy of={map.pathing} />
      <Problem of={map.pathing} />
    </div>
  );
}

function Slider({ map, path }: { map: MapPanel; path: Path }) {
  const { weights, errors, chosen } = path.body;
  const step = map.step.value ?? chosen;
  const words = `graph weight ${readable(weights[step])}, held-out error ${errors[step].text}`;
  return (
    <>
      <label class="field slider">
        <span>
          Graph weight <output>{readable(weights[step])}</output>
        </span>
        <input
          type="range"
          min={0}
          max={weights.length - 1}
          step={1}
          value={step}
          aria-valuetext={words}
          onInput={(event) => map.slide(Number(event.currentTarget.value))}
          onChange={() => void map.settle()}
        />
      </label>
      <Curve weights={weights} errors={errors} step={step} />
      {map.step.value !== null && (
        <p class="quiet">A weight picked by this curve is picked by the held-out rows: they no longer judge it freely.</p>
      )}
    </>
  );
}

/** The held-out error at each step with its interval; the line marks the step on the screen. */
function Curve({ weights, errors, step }: { weights: number[]; errors: ErrorRate[]; step: number }) {
  const bottom = Math.min(...errors.map((error) => error.low));
  const top = Math.max(...errors.map((error) => error.high), bottom + 0.01);
  const x = (index: number) => (errors.length < 2 ? 0 : (WIDTH * index) / (errors.length - 1));
  const y = (value: number) => (HEIGHT * (top - value)) / (top - bottom);
  const at = (index: number, value: number) => `${x(index).toFixed(2)},${y(value).toFixed(2)}`;
  const line = errors.map((error, index) => at(index, error.value)).join(" ");
  const low = errors.map((error, index) => at(index, error.low)).reverse();
  const band = [...errors.map((error, index) => at(index, error.high)), ...low].join(" ");
  const best = Math.min(...errors.map((error) => error.value));
  const worst = Math.max(...errors.map((error) => error.value));
  return (
    <div class="curve">
      <svg
        viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
        preserveAspectRatio="none"
        role="img"
        aria-label={`Held-out error along the graph weight: from ${percent(best)} to ${percent(worst)}`}
      >
        <polygon class="band" points={band} />
        <polyline class="line" points={line} />
        <line class="now" x1={x(step)} x2={x(step)} y1={0} y2={HEIGHT} />
      </svg>
      <div class="ends quiet" aria-hidden="true">
        <span>{readable(weights[0])}</span>
        <span>
          held-out error {best === worst ? percent(best) : `${percent(best)} to ${percent(worst)}`}
        </span>
        <span>{readable(weights[weights.length - 1])}</span>
      </div>
    </div>
  );
}

function percent(share: number): string {
  return `${Number((100 * share).toFixed(1))} %`;
}
