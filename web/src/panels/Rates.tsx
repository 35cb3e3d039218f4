/** The errors of a map on the axes that it draws, on rows that the fit has not seen first; then in all components. */

import type { MapPanel } from "../state/panel";
import { useExplorer } from "./context";

export function Rates({ map }: { map: MapPanel }) {
  const { hasServer } = useExplorer();
  const [errors, all, fit] = [map.errors.value, map.allErrors.value, map.result.value];
  if (!errors || !fit) return <div class="rates" />;
  const judge = `${fit.body.errors?.neighbors ?? 5} nearest neighbors`;
  const unknown = map.counting.error.value === null && hasServer ? "…" : "not in this file";
  return (
    <dl class="rates" title={`Error of ${judge} among training rows on the axes that are drawn; the range is the 95 % interval`}>
      <div>
        <dt>Error on held-out rows</dt>
        <dd>{errors.heldOut?.text ?? unknown}</dd>
      </div>
      <div class="quiet">
        <dt>on training rows, seen by the fit</dt>
        <dd>{errors.training?.text ?? (hasServer ? "…" : "known at the fitted weight only")}</dd>
      </div>
      {all && (
        <div class="quiet">
          <dt>on held-out rows in all {fit.k} components</dt>
          <dd>{all.held_out.text}</dd>
        </div>
      )}
    </dl>
  );
}
