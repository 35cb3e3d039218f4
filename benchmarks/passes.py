"""A fit on a million rows by stage, in passes: the time of one product of all rows with a vector.

One thread, CPU time, the smallest of several runs in turn; ratios to a pass in the same process
depend little on the machine.

    python benchmarks/passes.py [--quick]
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

import numpy as np
from lines import Line, in_turn
from threadpoolctl import threadpool_limits

from marginfold import MMDA
from marginfold.estimators.inputs import prepare
from marginfold.geometry.metric import Penalty
from marginfold.validation.rows import read_labelled

FEATURES = 20

APART = 2.0
"""Distance between the means of the two classes, in standard deviations of a feature."""

NEEDED = "at most 60"


def problem(n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Return rows of two classes that overlap, and labels."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, n_rows)
    X = rng.normal(size=(n_rows, FEATURES))
    X[:, 0] += APART * y
    return X, y


def passes(quick: bool = False) -> Iterator[Line]:
    """Yield a line for each stage, which contains the one before, and for the whole fit."""
    X, y = problem(100_000 if quick else 1_000_000)
    w = np.ones(FEATURES)
    works = {
        "one pass": lambda: X @ w,
        "validation": lambda: read_labelled(MMDA(), X, y, None),
        "validation and the solver's rows": lambda: prepare(MMDA(), X, y, None, Penalty(None)),
        "MMDA(1, C=100).fit": lambda: MMDA(1, C=100.0).fit(X, y),
    }
    with threadpool_limits(1):
        times = dict(zip(works, in_turn(list(works.values())), strict=True))
    one = min(times["one pass"].seconds)
    for name, found in times.items():
        needed = NEEDED if name.endswith("fit") else "-"
        taken = f"{min(found.seconds) / one:.1f} passes"
        yield Line(f"{name}, n = {len(X)}, d = {FEATURES}", taken, needed=needed)


if __name__ == "__main__":
    for line in passes("--quick" in sys.argv):
        print(line)
