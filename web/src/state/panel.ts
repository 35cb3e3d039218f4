/** One map on the screen: its method and settings, what the fit gave, and the questions that can be asked of it. */

import { batch, computed, signal, type ReadonlySignal } from "@preact/signals";
import type { View } from "../render/renderer";
import type { Answer, FrameArray } from "../transport/transport";
import type {
  ControlBody,
  ErrorRate,
  ErrorsBody,
  FitBody,
  Method,
  Params,
  ParamValue,
  PlanBody,
  RegionClassifier,
  RegionsBody,
  SuspectsBody,
} from "./calls";
import { alignedPath, pictureOf, pictureOfStep, type Path, type Picture } from "./picture";
import { Latest } from "./request";
import type { Explorer } from "./explorer";

/** A fit whose planned time, in the geometric middle of its range, is above this many seconds waits for the person. */
const PATIENCE = 20;

/** A path is asked for without a click when the single fit took at most this many seconds. */
const PATH_PATIENCE = 5;

/** The side of the grid of decision regions. */
const REGION_SIZE = 160;

/** The parameter that the slider over a path moves. */
export const WEIGHT = "graph_weight";

export interface Fit {
  body: FitBody;
  coordinates: Float32Array;
  k: number;
}

export interface Regions {
  body: RegionsBody;
  grid: FrameArray;
}

export class MapPanel {
  readonly method = signal("");
  readonly params = signal<Params>({});
  readonly axes = signal<readonly [number, number]>([0, 1]);
  readonly result = signal<Fit | null>(null);
  /** What of the map is in view; null is everything. */
  readonly view = signal<View | null>(null);
  readonly plan = signal<PlanBody | null>(null);
  /** The method and settings of the result, to tell when others are chosen. */
  readonly fitted = signal<{ method: string; params: Params } | null>(null);
  /** Whether a long fit waits for the person to start it. */
  readonly waiting = signal(false);
  readonly path = signal<Path | null>(null);
  /** The step of the path that is drawn; null draws the fit. */
  readonly step = signal<number | null>(null);
  /** The step of the path to which the result belongs; null when it is a fit of its own. */
  readonly resultStep = signal<number | null>(null);
  readonly control = signal<{ body: ControlBody; fit: Fit } | null>(null);
  readonly classifier = signal<RegionClassifier | null>(null);
  readonly regions = signal<Regions | null>(null);
  readonly suspects = signal<SuspectsBody | null>(null);
  /** The errors on the axes that are drawn, where these are not the first two. */
  readonly axesErrors = signal<ErrorsBody | null>(null);

  readonly fitting: Latest;
  readonly planning: Latest;
  readonly pathing: Latest;
  readonly controlling: Latest;
  readonly dividing: Latest;
  readonly suspecting: Latest;
  readonly counting: Latest;

  /** Whether the result is what is drawn; between two fits of a path it is not. */
  readonly whole: ReadonlySignal<boolean> = computed(
    () => this.path.value === null || this.step.value === null || this.step.value === this.resultStep.value,
  );

  /** What is drawn now. */
  readonly picture: ReadonlySignal<Picture | null> = computed(() => {
    const [path, step, fit] = [this.path.value, this.step.value, this.result.value];
    if (path && step !== null && !this.whole.value) return pictureOfStep(path, step);
    return fit && pictureOf(fit.coordinates, fit.k, this.axes.value);
  });

  /** The errors on the axes that are drawn; null where they are not known: on training rows between two fits of a path. */
  readonly errors: ReadonlySignal<{ heldOut: ErrorRate | null; training: ErrorRate | null } | null> = computed(() => {
    const [path, step, fit] = [this.path.value, this.step.value, this.result.value];
    if (path && step !== null && !this.whole.value) return { heldOut: path.body.errors[step], training: null };
    if (!fit?.body.errors) return null;
    const errors = this.firstAxes ? fit.body.errors : this.axesErrors.value;
    return { heldOut: errors?.held_out ?? null, training: errors?.training ?? null };
  });

  /** The errors in all components, where these are more than are drawn. */
  readonly allErrors: ReadonlySignal<ErrorsBody | null> = computed(() => {
    const fit = this.result.value;
    return fit?.body.errors && fit.k > 2 && this.whole.value ? fit.body.errors.all : null;
  });

  /** Whether the map on the screen is of earlier settings and no fit is under way. */
  readonly stale: ReadonlySignal<boolean> = computed(() => {
    const fitted = this.fitted.value;
    const idle = this.fitting.busy.value === null && this.planning.busy.value === null;
    return idle && fitted !== null && (fitted.method !== this.method.value || fitted.params !== this.params.value);
  });

  constructor(
    private readonly explorer: Explorer,
    readonly key: number,
    method: Method,
  ) {
    const latest = () => new Latest(explorer.transport);
    this.fitting = latest();
    this.planning = latest();
    this.pathing = latest();
    this.controlling = latest();
    this.dividing = latest();
    this.suspecting = latest();
    this.counting = latest();
    this.method.value = method.name;
    this.params.value = startingParams(method);
  }

  /** Whether the first two axes are drawn, in either order, or the only one. */
  get firstAxes(): boolean {
    const [across, up] = this.axes.value;
    return (this.result.value?.k ?? 1) < 2 || (across !== up && Math.max(across, up) === 1);
  }

  /** The method as the table's description lists it. */
  get info(): Method | null {
    return this.explorer.methods.value.find((each) => each.name === this.method.value) ?? null;
  }

  /** Change to another method with its own starting settings, and fit it. */
  choose(name: string, params?: Params): Promise<void> {
    const method = this.explorer.methods.value.find((each) => each.name === name);
    if (!method) return Promise.resolve();
    this.method.value = name;
    this.params.value = params ?? startingParams(method);
    return this.refit();
  }

  /** Change one setting and fit again. */
  set(name: string, value: ParamValue): Promise<void> {
    this.params.value = { ...this.params.value, [name]: value };
    return this.refit();
  }

  /** Say what the fit will take, then fit; a long one waits for `start`. */
  async refit(): Promise<void> {
    this.fitting.cancel();
    this.waiting.value = false;
    if (!this.explorer.hasServer) return this.start();
    const answer = await this.planning.ask("plan", this.#request(), "Planning");
    if (answer) this.plan.value = answer.body as PlanBody;
    else if (this.planning.error.value === null) return;
    this.waiting.value = answer !== null && isLong(answer.body);
    if (!this.waiting.value) await this.start();
  }

  /** Fit now. The old map stays until the new one is there, also when the fit fails or is cancelled. */
  async start(): Promise<void> {
    this.waiting.value = false;
    const request = this.#request();
    const answer = await this.fitting.ask("fit", request, "Fitting");
    if (!answer) return;
    const fit = fitOf(answer);
    this.pathing.cancel();
    batch(() => {
      this.path.value = null;
      this.step.value = null;
      this.resultStep.value = null;
      this.fitted.value = request;
      this.view.value = null;
      this.#accept(fit);
    });
    this.explorer.say(fit.body.errors ? `${fit.body.method}: held-out error ${fit.body.errors.held_out.text}` : fit.body.method);
    if (fit.body.has.path && fit.body.seconds <= PATH_PATIENCE) await this.preparePath();
  }

  /** Compute the path over the graph weight, which feeds the slider. */
  async preparePath(): Promise<void> {
    const answer = await this.pathing.ask("path", this.#request(), "Preparing the slider");
    if (!answer) return;
    const { steps, low, high } = answer.arrays;
    this.#align({ body: answer.body, arrays: { steps, low, high } }, answer.body.chosen);
  }

  /** Draw a step of the path; needs no server. */
  slide(step: number): void {
    batch(() => {
      this.axes.value = [0, 1];
      this.step.value = step;
      this.#forgetAnswers();
    });
  }

  /** Fetch the whole fit at the step that is drawn: all components, errors and gains. */
  async settle(): Promise<void> {
    const [path, step] = [this.path.value, this.step.value];
    if (!path || step === null || this.whole.value || !this.explorer.hasServer) return;
    const answer = await this.fitting.ask("path_map", { path: path.body.path, index: step }, "Fitting at this weight");
    if (!answer || this.step.value !== step) return;
    const fit = fitOf(answer);
    batch(() => {
      this.resultStep.value = step;
      if (WEIGHT in this.params.value) this.params.value = { ...this.params.value, [WEIGHT]: path.body.weights[step] };
      this.fitted.value = this.#request();
      this.#accept(fit);
      this.#align(path, step);
    });
  }

  /** Draw other components. */
  setAxes(axes: readonly [number, number]): void {
    if (axes[0] === this.axes.value[0] && axes[1] === this.axes.value[1]) return;
    batch(() => {
      this.axes.value = axes;
      this.view.value = null;
      this.regions.value = null;
      if (!this.explorer.hasServer) this.step.value = null;
    });
    if (this.whole.value) {
      void this.#divide();
      void this.#count();
    } else void this.settle();
  }

  /** Show the decision regions of a classifier on the two axes; null takes them away. */
  setClassifier(classifier: RegionClassifier | null): Promise<void> {
    this.classifier.value = classifier;
    this.regions.value = null;
    return this.#divide();
  }

  /** Draw what the method makes of a graph whose nodes are shuffled. */
  async askControl(): Promise<void> {
    const answer = await this.#askOfMap(this.controlling, "control", "Shuffling the graph");
    if (answer) this.control.value = { body: answer.body, fit: fitOf(answer) };
  }

  /** List the rows whose held-out margin speaks against their label. */
  async askSuspects(): Promise<void> {
    const answer = await this.#askOfMap(this.suspecting, "suspects", "Looking for suspects");
    if (answer) this.suspects.value = answer.body;
  }

  /** Stop everything that runs for this map. */
  cancel(): void {
    for (const each of [this.fitting, this.planning, this.pathing, this.controlling, this.dividing, this.suspecting, this.counting]) each.cancel();
  }

  /** Count the errors on the axes that are drawn. */
  async #count(): Promise<void> {
    this.axesErrors.value = null;
    this.counting.cancel();
    if (this.firstAxes) return;
    const axes = [...this.axes.value].sort((a, b) => a - b);
    const answer = await this.#askOfMap(this.counting, "errors", "Counting errors", { axes });
    if (answer) this.axesErrors.value = answer.body;
  }

  async #divide(): Promise<void> {
    const [classifier, axes] = [this.classifier.value, this.axes.value];
    this.dividing.cancel();
    if (classifier === null || (this.result.value?.k ?? 0) < 2) return;
    const answer = await this.#askOfMap(this.dividing, "regions", "Drawing regions", { axes, classifier, size: REGION_SIZE });
    if (answer) this.regions.value = { body: answer.body, grid: answer.arrays.grid };
  }

  async #askOfMap(place: Latest, call: string, stage: string, more: object = {}): Promise<Answer | null> {
    const fit = this.result.value;
    const answer = fit && (await place.ask(call, { map: fit.body.map, ...more }, stage));
    return answer && this.result.value === fit ? answer : null;
  }

  /** Turn the path so that it looks as the fit at that step does. */
  #align(path: Path, step: number): void {
    const fit = this.result.value;
    this.path.value = fit ? alignedPath(path, step, fit.coordinates, fit.k) : path;
  }

  #accept(fit: Fit): void {
    const axes = this.axes.value;
    this.result.value = fit;
    if (Math.max(...axes) >= fit.k) this.axes.value = [0, Math.min(1, fit.k - 1)];
    this.#forgetAnswers();
    void this.#divide();
    void this.#count();
  }

  #forgetAnswers(): void {
    for (const each of [this.controlling, this.suspecting, this.dividing]) each.cancel();
    this.control.value = null;
    this.suspects.value = null;
    this.regions.value = null;
  }

  #request(): { method: string; params: Params } {
    return { method: this.method.value, params: this.params.value };
  }
}

/** The settings with which a method begins. */
export function startingParams(method: Method): Params {
  return Object.fromEntries(method.controls.map((control) => [control.name, control.value]));
}

function isLong({ seconds: [low, high] }: PlanBody): boolean {
  return Math.sqrt(low * high) > PATIENCE;
}

function fitOf(answer: Answer): Fit {
  const coordinates = answer.arrays.coordinates;
  return { body: answer.body, coordinates: coordinates as unknown as Float32Array, k: coordinates.shape[1] ?? 1 };
}
