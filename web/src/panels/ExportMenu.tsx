/** Files to keep of a map. */

import { EXPORT_KINDS, type ExportKind } from "../state/calls";
import type { MapPanel } from "../state/panel";
import { useExplorer } from "./context";
import { Busy, Problem } from "./Status";

const WORDS: Record<ExportKind, [string, string]> = {
  csv: ["Coordinates (CSV)", "every row with its class and components"],
  png: ["Picture (PNG)", "for slides"],
  svg: ["Picture (SVG)", "for papers"],
  skops: ["Model (skops)", "to load again without running foreign code"],
  html: ["Page (HTML)", "this map in one file that works without a server"],
};

export function ExportMenu({ map }: { map: MapPanel }) {
  const explorer = useExplorer();
  const save = async (kind: ExportKind) => {
    const file = await explorer.export(map, kind);
    if (!file) return;
    download(file.name, file.content);
    explorer.say(`${file.name} saved`);
  };
  return (
    <div class="stack">
      <ul class="exports">
        {EXPORT_KINDS.map((kind) => (
          <li key={kind}>
            <button type="button" onClick={() => void save(kind)}>
              {WORDS[kind][0]}
            </button>
            <span class="quiet">{WORDS[kind][1]}</span>
          </li>
        ))}
      </ul>
      <Busy of={explorer.exporting} />
      <Problem of={explorer.exporting} />
    </div>
  );
}

function download(name: string, content: Blob): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(content);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}
