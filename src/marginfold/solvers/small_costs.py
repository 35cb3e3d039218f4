"""Problems whose costs are so small that every row is inside the margin.

Then all multipliers are at their bounds: ``s = P_N X'(y c)`` is the difference of the two sides'
mean rows, and there is a bias with ``y (x's + b) <= 1`` for all rows.  This needs sides of equal
total cost, as balanced ones have, and is seen in two passes over the rows.
"""

from __future__ import annotations

import numpy as np

from marginfold.rows import Array
from marginfold.solvers.certificate import certify
from marginfold.solvers.svm import EPS, SVMBatch, SVMSolution, uncentre

MOST_ENTRIES = 1_000_000
"""Multipliers of the problems that are looked at side by side: further arrays stay as small."""

MARGIN = 2.0
"""Distance between the margins of the two sides."""


def solve_small_costs(batch: SVMBatch, *, tol: float) -> dict[int, SVMSolution]:
    """Return the certified solutions of the problems of this kind."""
    found: dict[int, SVMSolution] = {}
    step = max(1, MOST_ENTRIES // batch.signs.shape[1])
    for begin in range(0, len(batch), step):
        problems = np.arange(begin, min(begin + step, len(batch)))
        found |= _solve_some(batch, problems, tol)
    return found


def _solve_some(batch: SVMBatch, problems: Array, tol: float) -> dict[int, SVMSolution]:
    y, c = batch.signs[problems], batch.costs[problems]
    balanced = np.abs((y * c).sum(axis=1)) <= y.shape[1] * EPS * c.sum(axis=1)
    if not balanced.any():
        return {}
    part = batch.take(problems[balanced])
    s = part.project_all(((part.signs * part.costs) @ part.rows.features) * part.scale)
    scores = (s * part.scale) @ part.rows.features.T
    found = {}
    for i, b in enumerate(problems[balanced]):
        if _reach(scores[i], part.signs[i], part.costs[i]) <= MARGIN:
            solution = certify(part, i, s[i], part.costs[i], n_iter=0, tol=tol)
            if solution.converged:
                found[int(b)] = uncentre(part, i, solution)
    return found


def _reach(f: Array, y: Array, c: Array) -> float:
    """Return how far the sides reach into each other; rows without cost do not count."""
    above = f.max(initial=-np.inf, where=(y > 0) & (c > 0))
    below = f.min(initial=np.inf, where=(y < 0) & (c > 0))
    return float(above - below)
