/** How a classifier divides the plane of the two axes on the screen. */

import { REGION_CLASSIFIERS, type RegionClassifier } from "../state/calls";
import type { MapPanel } from "../state/panel";
import { Busy, Problem } from "./Status";

export function RegionChooser({ map }: { map: MapPanel }) {
  const regions = map.regions.value;
  return (
    <div class="stack">
      <label class="field">
        <span>Classifier trained on the two axes of this map</span>
        <select
          value={map.classifier.value ?? ""}
          onChange={(event) => void map.setClassifier((event.currentTarget.value || null) as RegionClassifier | null)}
        >
          <option value="">none</option>
          {REGION_CLASSIFIERS.map((name) => (
            <option key={name} value={name}>
              {name}
            </option>
          ))}
        </select>
      </label>
      {regions && (
        <p>
          Its error on held-out rows: <strong>{regions.body.error.text}</strong>
        </p>
      )}
      <Busy of={map.dividing} />
      <Problem of={map.dividing} />
    </div>
  );
}
