import "./style.css";
import { effect } from "@preact/signals";
import { mount } from "./app";
import { Explorer } from "./state/explorer";
import { WEIGHT, type MapPanel } from "./state/panel";
import { widgetTransport, type WidgetModel } from "./transport/widget";

/** anywidget's model: messages, and the traits that Python sees. */
interface TraitModel extends WidgetModel {
  get(name: "selection"): number[];
  get(name: "weight"): number | null;
  set(name: string, value: unknown): void;
  save_changes(): void;
  on(event: string, listener: (...content: never[]) => void): void;
  off(event: string, listener: (...content: never[]) => void): void;
}

/** What anywidget calls for each view of the widget. */
function render({ model, el }: { model: TraitModel; el: HTMLElement }): () => void {
  const transport = widgetTransport(model);
  const explorer = new Explorer(transport, "widget");
  const unlink = [linkSelection(model, explorer), linkWeight(model, explorer)];
  const unmount = mount(el, transport, { explorer });
  return () => {
    for (const each of unlink) each();
    unmount();
    transport.close();
  };
}

/** Selected rows are the trait `selection`, both ways. */
function linkSelection(model: TraitModel, explorer: Explorer): () => void {
  const read = () => {
    const wanted = model.get("selection");
    if (!same(wanted, [...explorer.selection.peek()])) explorer.select(wanted);
  };
  const stop = effect(() => {
    const ids = [...explorer.selection.value];
    if (explorer.description.value && !same(ids, model.get("selection"))) store(model, "selection", ids);
  });
  model.on("change:selection", read);
  return () => {
    stop();
    model.off("change:selection", read);
  };
}

/** The graph weight of the first map with a slider is the trait `weight`, both ways. */
function linkWeight(model: TraitModel, explorer: Explorer): () => void {
  const read = () => {
    const wanted = model.get("weight");
    const map = slider(explorer);
    const weights = map?.path.peek()?.body.weights;
    if (!map || !weights || wanted === null || weightOf(map) === wanted) return;
    const distances = weights.map((weight) => Math.abs(weight - wanted));
    map.slide(distances.indexOf(Math.min(...distances)));
    void map.settle();
  };
  const stop = effect(() => {
    const map = slider(explorer);
    const weight = map ? weightOf(map) : null;
    if (weight !== null && weight !== model.get("weight")) store(model, "weight", weight);
  });
  model.on("change:weight", read);
  return () => {
    stop();
    model.off("change:weight", read);
  };
}

function slider(explorer: Explorer): MapPanel | undefined {
  return explorer.maps.value.find((map) => map.path.value !== null);
}

/** The weight that a map shows: of the step that is drawn, else of its fit. */
function weightOf(map: MapPanel): number | null {
  const [path, step] = [map.path.value, map.step.value];
  if (path && step !== null) return path.body.weights[step];
  const fitted = map.result.value?.body.params[WEIGHT];
  return typeof fitted === "number" ? fitted : null;
}

function store(model: TraitModel, name: string, value: unknown): void {
  model.set(name, value);
  model.save_changes();
}

function same(a: readonly number[], b: readonly number[]): boolean {
  return a.length === b.length && a.every((each, at) => each === b[at]);
}

export default { render };
