"use strict";

// Positions of the keys in sorted order. A missing key (null, NaN) comes last in both directions;
// equal keys stay as they were.
function order(keys, descending) {
  const missing = (key) => key === null || Number.isNaN(key);
  const sign = descending ? -1 : 1;
  return keys.map((_, place) => place).sort((a, b) => {
    if (missing(keys[a]) || missing(keys[b])) {
      return missing(keys[a]) - missing(keys[b]) || a - b;
    }
    return sign * compare(keys[a], keys[b]) || a - b;
  });
}

function compare(a, b) {
  if (typeof a === "string") {
    return a.localeCompare(b, "en", { numeric: true });
  }
  return a < b ? -1 : a > b ? 1 : 0;
}

// Up, down, as it was.
function next(state) {
  return { none: "ascending", ascending: "descending", descending: "none" }[state];
}

function keyOf(cell, numeric) {
  const text = cell.getAttribute("data-sort");
  if (text === null || !numeric) {
    return text;
  }
  return Number(text);
}

function makeSortable(table) {
  const body = table.tBodies[0];
  const rows = Array.from(body.rows);
  const heads = Array.from(table.tHead.rows[0].cells);
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const state = next(head.getAttribute("aria-sort"));
      heads.forEach((other) => other.setAttribute("aria-sort", "none"));
      head.setAttribute("aria-sort", state);
      const keys = rows.map((row) =>
        state === "none" ? 0 : keyOf(row.cells[column], head.hasAttribute("data-numeric")));
      body.append(...order(keys, state === "descending").map((place) => rows[place]));
    });
  });
}

// Show the records behind a number in the line below its table.
function trace(link) {
  const cell = link.closest("td, th");
  const table = cell.closest("table");
  const line = cell.closest(".block").querySelector(".trace");
  const column = table.tHead.rows[0].cells[cell.cellIndex].textContent.trim();
  const row = cell.parentElement.cells[0].querySelector(".text").textContent.trim();
  const source = document.getElementById(link.getAttribute("href").slice(1));
  line.querySelector(".what").textContent = `${row}, ${column}: ${link.title || link.textContent}`;
  line.querySelector(".how").textContent = source.textContent.trim();
  line.hidden = false;
}

function start() {
  document.querySelectorAll("table[data-sortable]").forEach(makeSortable);
  document.querySelectorAll("a[data-source]").forEach((link) => {
    link.addEventListener("focus", () => trace(link));
    link.addEventListener("click", (event) => {
      event.preventDefault();
      trace(link);
    });
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") {
      document.querySelectorAll(".trace").forEach((line) => { line.hidden = true; });
    }
  });
}

if (typeof document === "undefined") {
  module.exports = { order, next };
} else {
  start();
}
