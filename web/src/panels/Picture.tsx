import type { MapPanel } from "../state/panel";

export function PanelPicture({ map }: { map: MapPanel; number: number }) {
  return <p>{map.method.value}</p>;
}

export function GhostPicture({ map }: { map: MapPanel }) {
  return <p>{map.method.value}</p>;
}
