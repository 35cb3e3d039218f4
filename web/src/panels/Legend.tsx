/** The classes with their marks; a click hides a class or shows it again. */

import { legendMark, palette, type Shape } from "../render/palette";
import { useExplorer } from "./context";
import { dark } from "./theme";

export function Legend() {
  const explorer = useExplorer();
  const classes = explorer.description.value?.classes ?? [];
  const hidden = explorer.hidden.value;
  const counts = heldOutCounts(explorer.classes.value, explorer.heldOut.value, classes.length, explorer.showTraining.value);
  return (
    <section class="legend" aria-label="Classes">
      <h2>
        {explorer.description.value?.target} <span class="quiet">click to hide</span>
      </h2>
      <ul>
        {classes.map(({ name }, index) => (
          <li key={index}>
            <button
              type="button"
              aria-pressed={!hidden.has(index)}
              aria-label={`Class ${name}, ${counts[index].toLocaleString("en")} rows`}
              onClick={() => explorer.toggleClass(index)}
            >
              <Mark index={index} />
              <span class="name">{name}</span>
              <span class="quiet">{counts[index].toLocaleString("en")}</span>
            </button>
          </li>
        ))}
      </ul>
      <p class="quiet">
        {explorer.showTraining.value ? "Filled: held out. Open: seen by the fit." : "Only rows that no fit has seen are drawn."}
      </p>
    </section>
  );
}

/** The marker of a class. */
export function Mark({ index }: { index: number }) {
  const { colour, shape } = legendMark(palette(dark.value), index);
  return (
    <svg class="mark" viewBox="-6 -6 12 12" aria-hidden="true">
      <path d={OUTLINES[shape]} fill={colour} />
    </svg>
  );
}

const OUTLINES: Record<Shape, string> = {
  disc: "M-5 0a5 5 0 1 0 10 0a5 5 0 1 0 -10 0z",
  square: "M-4.5 -4.5h9v9h-9z",
  diamond: "M0 -5.5L5.5 0L0 5.5L-5.5 0z",
  triangle: "M0 -5L5.5 4.5H-5.5z",
};

function heldOutCounts(classes: Uint16Array, heldOut: Uint8Array, count: number, all: boolean): number[] {
  const counts = new Array<number>(count).fill(0);
  for (let row = 0; row < classes.length; row++) if (all || heldOut[row] === 1) counts[classes[row]] += 1;
  return counts;
}
