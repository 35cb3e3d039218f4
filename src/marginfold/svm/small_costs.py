"""Problems whose costs are so small that every row is inside the margin.

Then all multipliers are at their bounds: ``s = P_N X'(y c)`` is the difference of the two sides'
mean rows, and there is a bias with ``y (x's + b) <= 1`` for all rows.  This needs sides of equal
total cost, as balanced ones have, and is seen in two passes over the rows; the sides reach into
each other by no less than their mean rows are apart, which mostly rules it out after one.
"""

from __future__ import annotations

import numpy as np

from marginfold.linalg.tall import Array
from marginfold.svm.certificate import certify
from marginfold.svm.problem import EPS, SVMBatch, SVMSolution, uncentre

MOST_ENTRIES = 1_000_000
"""Multipliers of the problems that are looked at side by side: further arrays stay as small."""

MARGIN = 2.0
"""Distance between the margins of the two sides."""

ROUNDING = 1e-9
"""Relative rounding error that the distance of the mean rows may have."""


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
    pushed = y * c
    balanced = np.abs(pushed.sum(axis=1)) <= y.shape[1] * EPS * c.sum(axis=1)
    problems = problems[balanced]
    if len(problems) > 1:
        part = batch.take(problems)
        s = part.project_all((pushed[balanced] @ part.rows.features) * part.scale)
        problems = problems[_is_possible(s, part.smaller_sides)]
    found = {}
    for b in problems:
        solution = _solve_one(batch.only(int(b)), tol)
        if solution is not None:
            found[int(b)] = solution
    return found


def _is_possible(s: Array, sides: Array) -> Array:
    """Return whether the mean rows are no farther apart than the margins."""
    return np.asarray(np.einsum("bj,bj->b", s, s) <= MARGIN * (1.0 + ROUNDING) * sides)


def _solve_one(one: SVMBatch, tol: float) -> SVMSolution | None:
    s = one.project_all(((one.signs * one.costs) @ one.rows.features) * one.scale)
    if not _is_possible(s, one.smaller_sides)[0]:
        return None
    scores = (s * one.scale) @ one.rows.features.T
    if _reach(scores, one.signs, one.costs) > MARGIN:
        return None
    solution = certify(one, 0, s[0], one.costs[0], n_iter=0, tol=tol)
    return uncentre(one, 0, solution) if solution.converged else None


def _reach(f: Array, y: Array, c: Array) -> float:
    """Return how far the sides reach into each other; rows without cost do not count."""
    above = f.max(initial=-np.inf, where=(y > 0) & (c > 0))
    below = f.min(initial=np.inf, where=(y < 0) & (c > 0))
    return float(above - below)
