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

MARGIN = 2.0
"""Distance between the margins of the two sides."""


def solve_small_costs(batch: SVMBatch, *, tol: float) -> dict[int, SVMSolution]:
    """Return the certified solutions of the problems of this kind."""
    pushed = batch.signs * batch.costs
    total = batch.costs.sum(axis=1)
    balanced = np.abs(pushed.sum(axis=1)) <= pushed.shape[1] * EPS * total
    index = np.flatnonzero(balanced)
    if not len(index):
        return {}
    part = batch if len(index) == len(batch) else batch.take(index)
    s = part.project_all((pushed[index] @ part.rows.features) * part.scale)
    scores = (s * part.scale) @ part.rows.features.T
    found = {}
    for b, f, coef in zip(index, scores, s, strict=True):
        if _reach(f, batch.signs[b], batch.costs[b]) <= MARGIN:
            solution = certify(batch, int(b), coef, batch.costs[b], n_iter=0, tol=tol)
            if solution.converged:
                found[int(b)] = uncentre(batch, int(b), solution)
    return found


def _reach(f: Array, y: Array, c: Array) -> float:
    """Return how far the sides reach into each other; rows without cost do not count."""
    above = f.max(initial=-np.inf, where=(y > 0) & (c > 0))
    below = f.min(initial=np.inf, where=(y < 0) & (c > 0))
    return float(above - below)
