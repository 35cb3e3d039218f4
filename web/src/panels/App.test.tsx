// @vitest-environment happy-dom
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { mount } from "../app";
import type { Mode } from "../state/explorer";
import { FakeTransport, settled } from "../state/fake";

vi.mock("./Picture", () => ({ PanelPicture: () => null, GhostPicture: () => null }));

let root: HTMLElement;
let close = () => {};

beforeEach(() => {
  root = document.createElement("div");
  document.body.append(root);
});

afterEach(() => {
  close();
  root.remove();
});

async function show(mode: Mode = "page", transport = new FakeTransport()): Promise<FakeTransport> {
  close = mount(root, transport, { mode });
  await drawn();
  return transport;
}

async function drawn(): Promise<void> {
  for (let turn = 0; turn < 4; turn += 1) await settled();
  await new Promise((resolve) => setTimeout(resolve, 30));
}

const button = (words: string) => [...root.querySelectorAll("button")].find((each) => each.textContent?.trim() === words);

test("the header names the table and why a column is left out", async () => {
  await show();
  expect(root.querySelector("h1")?.textContent).toBe("clouds.csv");
  expect(root.querySelector(".reasons")?.textContent).toContain("a different value in every row");
});

test("both errors stand beside each map, the training error marked as seen by the fit", async () => {
  await show();
  const cards = [...root.querySelectorAll(".card")];
  expect(cards).toHaveLength(2);
  for (const card of cards) {
    expect(card.querySelector(".rates")?.textContent).toContain("Error on held-out rows5 % (2 to 10) of 30 rows");
    expect(card.querySelector(".rates")?.textContent).toContain("seen by the fit");
  }
});

test("every control has a name", async () => {
  await show();
  for (const words of ["Settings", "Axes", "Regions", "Export"]) {
    for (const each of root.querySelectorAll("button")) if (each.textContent === words) each.click();
    await drawn();
    for (const control of root.querySelectorAll("input, select, button, summary")) {
      const label = control.closest("label")?.textContent ?? "";
      const name = control.getAttribute("aria-label") ?? (control.matches("button, summary") ? control.textContent : label);
      expect(name?.trim(), control.outerHTML).not.toBe("");
    }
  }
});

test("a class is hidden by its button, which says so", async () => {
  await show();
  const legend = root.querySelector<HTMLButtonElement>(".legend button")!;
  expect(legend.getAttribute("aria-pressed")).toBe("true");
  legend.click();
  await drawn();
  expect(legend.getAttribute("aria-pressed")).toBe("false");
});

test("markup in names and cells is shown as text", async () => {
  const transport = new FakeTransport();
  const evil = "<img src=x onerror=alert(1)>";
  const call = transport.call.bind(transport);
  transport.call = async (name: string, params?: object, options?: object) => {
    const answer = await call<any>(name, params, options);
    if (name === "describe") {
      answer.body.name = answer.body.classes[0].name = answer.body.columns[2].why = answer.body.notes[0] = evil;
      answer.body.methods[0].title = evil;
    }
    return answer as any;
  };
  await show("page", transport);
  expect(root.querySelector("img")).toBeNull();
  expect(root.querySelector("h1")?.textContent).toBe(evil);
});

test("a file without a server offers nothing that needs one", async () => {
  await show("static");
  for (const words of ["Settings", "Export", "Suspects", "Add a map", "Copy as Python", "Open …"]) {
    expect(button(words), words).toBeUndefined();
  }
  expect(button("Axes")).toBeDefined();
  expect(root.textContent).toContain("works without a server");
  expect(root.querySelector(".path input[type=range]")).not.toBeNull();
});

test("a failing call is told where it belongs, as an alert", async () => {
  const transport = await show();
  transport.hold.add("control");
  [...root.querySelectorAll("button")].find((each) => each.textContent === "Graph test")!.click();
  await drawn();
  button("Draw it with a shuffled graph")!.click();
  await drawn();
  await transport.held[0].fail("the graph has no edges");
  await drawn();
  const alert = [...root.querySelectorAll('.tool [role="alert"]')].find((each) => each.textContent !== "");
  expect(alert?.textContent).toBe("the graph has no edges");
});

test("counts are spoken", async () => {
  await show();
  expect(root.querySelector("[aria-live]")?.textContent).toContain("held-out error");
});
