/** Both errors of a map, the one on rows that the fit has not seen first. */

import type { MapPanel } from "../state/panel";
import { useExplorer } from "./context";

export function Rates({ map }: { map: MapPanel }) {
  const { hasServer } = useExplorer();
  const errors = map.errors.value;
  if (!errors) return <div class="rates" />;
  const about = map.result.value?.body.errors?.about ?? "nearest neighbors on this map";
  return (
    <dl class="rates" title={`Error of ${about}; the range is the 95 % interval`}>
      <div>
        <dt>Error on held-out rows</dt>
        <dd>{errors.heldOut.text}</dd>
      </div>
      <div class="quiet">
        <dt>on training rows, seen by the fit</dt>
        <dd>{errors.training?.text ?? (hasServer ? "…" : "known at the fitted weight only")}</dd>
      </div>
    </dl>
  );
}
