"""Measure the graphs of many rows: exact neighbors, faiss, anchors.

``python benchmarks/graphs.py`` prints the lines (about fifteen minutes, most of it faiss and exact
search); ``--quick`` takes 2,500 and 10,000 rows of 20 columns.  Single-thread CPU seconds of
``build``; the rows are five classes, half of the columns informative.  A large exact search is
measured once.  The ratio of a line is the exact search over it, the growth the time at the largest
number of rows over that at the smallest.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec

import numpy as np
from lines import Line, Times, cpu, in_turn
from sklearn.datasets import make_classification
from sklearn.preprocessing import scale
from threadpoolctl import threadpool_limits

from marginfold.graphs import AnchorGraph, GraphRule, NeighborGraph

SIZES = (20_000, 100_000)
QUICK_SIZES = (2_500, 10_000)

COLUMNS = (20, 50)
QUICK_COLUMNS = (20,)

ONCE = 50_000
"""Rows above which the exact search is measured once."""

RULES: dict[str, GraphRule] = {
    "exact neighbors": NeighborGraph(search="exact"),
    "anchors": AnchorGraph(),
}
if find_spec("faiss"):
    import faiss  # noqa: F401 - the limit of threads reaches only what is loaded

    RULES["faiss neighbors"] = NeighborGraph(search="faiss")


def lines(quick: bool) -> list[Line]:
    """Return the lines of the table."""
    table = []
    with threadpool_limits(1):
        for columns in QUICK_COLUMNS if quick else COLUMNS:
            table += lines_of(QUICK_SIZES if quick else SIZES, columns)
    return table


def lines_of(sizes: tuple[int, ...], columns: int) -> list[Line]:
    """Return the lines of one number of columns: a line for each rule and size, and the growth."""
    table, seconds = [], {}
    for n in sizes:
        X = rows(n, columns)
        times = measured({name: partial(rule.build, X) for name, rule in RULES.items()}, n)
        exact = times["exact neighbors"]
        for name, spent in times.items():
            seconds[name, n] = spent.median
            theirs = exact if spent is not exact else "-"
            work = f"{name}, {n:,} x {columns}{recall_of(RULES[name], X)}"
            table.append(Line(work, spent, theirs))
    few, many = sizes[0], sizes[-1]
    for name in RULES:
        growth = f"{seconds[name, many] / seconds[name, few]:.3g}x"
        work = f"{name}, {columns} columns: time at {many:,} over {few:,} rows"
        table.append(Line(work, growth, needed=f"{many / few:.3g}x is linear"))
    return table


def measured(works: dict[str, Callable[[], object]], n: int) -> dict[str, Times]:
    """Return the times of all; those of a large exact search from one run."""
    if n <= ONCE:
        return dict(zip(works, in_turn(list(works.values())), strict=True))
    others = {name: work for name, work in works.items() if name != "exact neighbors"}
    times = {"exact neighbors": Times((cpu(works["exact neighbors"]),))}
    return times | dict(zip(others, in_turn(list(others.values())), strict=True))


def rows(n: int, columns: int) -> np.ndarray:
    """Return rows of five classes: half of the columns inform, a quarter repeats them."""
    X, _ = make_classification(
        n,
        columns,
        n_informative=columns // 2,
        n_redundant=columns // 4,
        n_classes=5,
        n_clusters_per_class=2,
        class_sep=1.5,
        random_state=0,
    )
    return np.asarray(scale(X))


def recall_of(rule: GraphRule, X: np.ndarray) -> str:
    """Return the measured recall as words; nothing where the search is exact or there is none."""
    if getattr(rule, "search", "exact") == "exact":
        return ""
    return f" (recall {rule.build(X).recall:.3f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    for line in lines(parser.parse_args().quick):
        print(line, flush=True)


if __name__ == "__main__":
    main()
