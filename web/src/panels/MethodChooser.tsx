/** The method and kernel of a map, with what the fit takes beside it. */

import type { Method } from "../state/calls";
import { FIRST_METHODS } from "../state/explorer";
import type { MapPanel } from "../state/panel";
import { useExplorer } from "./context";
import { Choice } from "./Settings";

const GROUPS: [string, (method: Method) => boolean][] = [
  ["First looks", (method) => FIRST_METHODS.includes(method.name)],
  ["Linear", (method) => method.group === "linear"],
  ["With a kernel", (method) => method.group === "kernel"],
  ["Maps", (method) => method.group === "map"],
  ["Classifiers", (method) => method.group === "classifier"],
];

/** The control that stands beside the method instead of among the settings. */
export const KERNEL = "kernel";

export function MethodChooser({ map, number, removable }: { map: MapPanel; number: number; removable: boolean }) {
  const explorer = useExplorer();
  const info = map.info;
  const kernel = info?.controls.find((control) => control.name === KERNEL && control.kind === "choice");
  const fixed = !explorer.hasServer && explorer.methods.value.length <= explorer.maps.value.length;
  if (fixed) return <h2 class="method">{info?.title ?? map.method.value}</h2>;
  return (
    <div class="method">
      <label class="field grow">
        <span class="hearable">Method of map {number}</span>
        <select value={map.method.value} title={info?.title} onChange={(event) => void map.choose(event.currentTarget.value)}>
          {grouped(explorer.methods.value).map(([title, methods]) => (
            <optgroup key={title} label={title}>
              {methods.map((method) => (
                <option key={method.name} value={method.name} disabled={method.why_not !== null} title={method.why_not ?? ""}>
                  {method.title}
                  {method.why_not !== null ? ` (${method.why_not})` : method.name !== map.method.value && method.plan !== "" && ` (${method.plan})`}
                </option>
              ))}
            </optgroup>
          ))}
        </select>
      </label>
      {kernel && <Choice map={map} control={kernel} />}
      {explorer.hasServer && <Duration map={map} />}
      {removable && explorer.hasServer && (
        <button type="button" class="bare" aria-label={`Remove map ${number}`} onClick={() => explorer.removeMap(map)}>
          ×
        </button>
      )}
    </div>
  );
}

/** What the fit took, or what it is planned to take. */
function Duration({ map }: { map: MapPanel }) {
  const fit = map.result.value;
  const done = fit && !map.stale.value && map.fitting.busy.value === null;
  const planned = map.plan.value?.text ?? map.info?.plan;
  return (
    <span class="quiet duration" title={planned ? `planned: ${planned}` : undefined}>
      {done ? `fitted in ${seconds(fit.body.seconds)}` : planned && `takes ${planned}`}
    </span>
  );
}

function seconds(value: number): string {
  if (value < 0.01) return "under 0.01 s";
  return `${value < 10 ? value.toPrecision(2) : Math.round(value)} s`;
}

function grouped(methods: Method[]): [string, Method[]][] {
  const left = new Set(methods);
  const groups = GROUPS.map(([title, belongs]): [string, Method[]] => {
    const members = [...left].filter(belongs);
    for (const member of members) left.delete(member);
    return [title, members];
  });
  return groups.filter(([, members]) => members.length > 0);
}
