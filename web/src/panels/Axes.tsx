/** The gain of every component as a bar, and which two of them are drawn. */

import type { MapPanel } from "../state/panel";
import { readable } from "./Settings";

export function Axes({ map }: { map: MapPanel }) {
  const fit = map.result.value!;
  const { axes: names, gain, new_gain } = fit.body;
  const [across, up] = map.axes.value;
  const top = Math.max(...(gain ?? []), ...(new_gain ?? []), Number.MIN_VALUE);
  return (
    <div class="scroll">
      <table class="gains">
        <caption>{gain ? "The longer the bar, the more the component tells; choose which two are drawn." : "Choose which two components are drawn."}</caption>
        <thead>
          <tr>
            <th scope="col">Component</th>
            {gain && <th scope="col">Gain</th>}
            <th scope="col">Across</th>
            <th scope="col">Up</th>
          </tr>
        </thead>
        <tbody>
          {names.map((name, index) => (
            <tr key={index}>
              <th scope="row">{name}</th>
              {gain && (
                <td class="bar">
                  <svg viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">
                    <rect class="old" width={100 * Math.max(0, gain[index] / top)} height={10} />
                    {repeats(gain[index], new_gain?.[index]) && (
                      <rect class="new" y={6} width={100 * Math.max(0, new_gain![index] / top)} height={4} />
                    )}
                  </svg>
                  <span>
                    {readable(gain[index])}
                    {repeats(gain[index], new_gain?.[index]) && <span class="quiet"> (new: {readable(new_gain![index])})</span>}
                  </span>
                </td>
              )}
              <td>
                <input
                  type="radio"
                  name={`across-${map.key}`}
                  aria-label={`${name} across`}
                  checked={across === index}
                  onChange={() => map.setAxes(index === up ? [index, across] : [index, up])}
                />
              </td>
              <td>
                <input
                  type="radio"
                  name={`up-${map.key}`}
                  aria-label={`${name} up`}
                  checked={up === index}
                  onChange={() => map.setAxes(index === across ? [up, index] : [across, index])}
                />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** Whether part of a component's gain repeats earlier components. */
function repeats(gain: number, fresh: number | undefined): boolean {
  return fresh !== undefined && Math.abs(gain - fresh) > 0.005;
}
