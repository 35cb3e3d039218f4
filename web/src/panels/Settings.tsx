/** The settings of a method: sliders and choices that fit again when they are let go. */

import { useEffect, useState } from "preact/hooks";
import type { Control, ParamValue } from "../state/calls";
import { WEIGHT, type MapPanel } from "../state/panel";
import { KERNEL } from "./MethodChooser";

/** Steps of a slider over a continuous range. */
const STEPS = 100;

export function Settings({ map }: { map: MapPanel }) {
  const info = map.info;
  const controls = info?.controls.filter((control) => control.name !== KERNEL && !(info.path && control.name === WEIGHT)) ?? [];
  return (
    <div class="settings">
      {controls.map((control) =>
        control.kind === "choice" ? <Choice key={control.name} map={map} control={control} /> : <Slider key={control.name} map={map} control={control} />,
      )}
      {controls.length === 0 && <p class="quiet">This method has no further settings.</p>}
    </div>
  );
}

/** One of several values. */
export function Choice({ map, control }: { map: MapPanel; control: Control }) {
  const choices = control.choices ?? [];
  const value = map.params.value[control.name] ?? control.value;
  return (
    <label class="field" title={control.help ?? undefined}>
      <span>{control.title}</span>
      <select
        value={String(choices.findIndex((choice) => choice === value))}
        onChange={(event) => void map.set(control.name, choices[Number(event.currentTarget.value)])}
      >
        {choices.map((choice, index) => (
          <option key={index} value={String(index)}>
            {choice === null ? "automatic" : String(choice)}
          </option>
        ))}
      </select>
    </label>
  );
}

function Slider({ map, control }: { map: MapPanel; control: Control }) {
  const set = map.params.value[control.name] ?? control.value;
  const [value, setValue] = useState<ParamValue>(set);
  useEffect(() => setValue(set), [set]);
  const scale = scaleOf(control);
  const text = value === null ? "automatic" : readable(Number(value));
  const middle = scale.value(Math.round(scale.steps / 2));
  return (
    <div class="field slider">
      <label>
        <span>
          {control.title} <output>{text}</output>
        </span>
        <input
          type="range"
          min={0}
          max={scale.steps}
          step={1}
          value={scale.step(Number(value ?? middle))}
          disabled={value === null}
          aria-valuetext={text}
          onInput={(event) => setValue(scale.value(Number(event.currentTarget.value)))}
          onChange={(event) => void map.set(control.name, scale.value(Number(event.currentTarget.value)))}
        />
      </label>
      {control.automatic && (
        <label class="quiet">
          <input
            type="checkbox"
            aria-label={`${control.title}: automatic`}
            checked={value === null}
            onChange={(event) => void map.set(control.name, event.currentTarget.checked ? null : middle)}
          />
          automatic
        </label>
      )}
      {control.help && <span class="quiet">{control.help}</span>}
    </div>
  );
}

interface Scale {
  steps: number;
  value(step: number): number;
  step(value: number): number;
}

/** The steps of a slider and the values they stand for. */
export function scaleOf({ kind, low, high }: Pick<Control, "kind" | "low" | "high">): Scale {
  const [from, to] = [low ?? 0, high ?? 1];
  if (kind === "integer") return { steps: to - from, value: (step) => from + step, step: (value) => value - from };
  const [first, last] = kind === "log" ? [Math.log10(from), Math.log10(to)] : [from, to];
  const place = (step: number) => first + ((last - first) * step) / STEPS;
  return {
    steps: STEPS,
    value: (step) => clamp(Number((kind === "log" ? 10 ** place(step) : place(step)).toPrecision(3)), from, to),
    step: (value) => Math.round((((kind === "log" ? Math.log10(value) : value) - first) / (last - first)) * STEPS),
  };
}

function clamp(value: number, low: number, high: number): number {
  return Math.min(Math.max(value, low), high);
}

/** A number in few digits. */
export function readable(value: number): string {
  const size = Math.abs(value);
  if (value === 0 || (size >= 0.001 && size < 100000)) return String(Number(value.toPrecision(3)));
  return value.toExponential(1).replace("e+", "e");
}
