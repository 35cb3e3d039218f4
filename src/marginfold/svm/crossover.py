"""From a nearly optimal point to the exact one: solve the optimality conditions on a face.

The point suggests which multipliers are 0 (`lower`), which are c (`upper`) and which are free.  A
guess that was slightly wrong is repaired by moving the rows that violate their sign.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from marginfold.linalg.tall import Array
from marginfold.svm.active_set import BOUND, VIOLATION, FaceRules, face_of, most_free, solve_faces
from marginfold.svm.certificate import Limits, certify, solution_of
from marginfold.svm.problem import EXACT, SVMBatch, SVMSolution

ROUNDS = 6
"""Largest number of repaired guesses."""

NEIGHBORS = 2
"""Repaired guesses when the face is that of another problem."""


def crossover(
    batch: SVMBatch, b: int, lower: Array, upper: Array, dual: Array, *, n_iter: int, tol: float
) -> SVMSolution | None:
    """Return the best certified solution on the faces that a nearly optimal point suggests.

    With more free rows than dimensions the equations are singular: first the doubtful rows go to
    their bounds.
    """
    best = None
    for face in _guesses(batch, b, lower, upper, dual):
        found = _repair(batch, b, *face, n_iter=n_iter, tol=tol)
        if best is None or (found is not None and found.gap < best.gap):
            best = found
        if best is not None and best.gap <= EXACT:
            break
    return best


def _guesses(
    batch: SVMBatch, b: int, lower: Array, upper: Array, dual: Array
) -> Iterator[tuple[Array, Array]]:
    """Yield faces, the likeliest first."""
    free = ~(lower | upper)
    most = batch.scale.shape[1] - np.count_nonzero(batch.deflated[b].any(axis=0)) + 1
    if np.count_nonzero(free) > most:
        c = batch.costs[b]
        share = np.full(len(c), -1.0)  # of the cost; rows without one are at both bounds
        share[free] = np.minimum(dual, c - dual)[free] / c[free]
        surplus = np.argsort(-share)[most:]
        surplus = surplus[share[surplus] >= 0]
        below, above = lower.copy(), upper.copy()
        above[surplus] = dual[surplus] > 0.5 * c[surplus]
        below[surplus] = ~above[surplus]
        yield below, above
    yield lower, upper


def from_face(batch: SVMBatch, b: int, dual: Array, *, tol: float) -> SVMSolution | None:
    """Return the solution on the face of another problem's multipliers, if it is the right one."""
    lower, upper = face_of(dual, batch.costs[b])
    found = _repair(batch, b, lower, upper, n_iter=0, tol=tol, rounds=NEIGHBORS, hasty=True)
    return found if found is not None and found.gap <= EXACT else None


def _repair(
    batch: SVMBatch,
    b: int,
    lower: Array,
    upper: Array,
    *,
    n_iter: int,
    tol: float,
    rounds: int = ROUNDS,
    hasty: bool = False,
) -> SVMSolution | None:
    """Solve the face and move the rows that violate their sign, until none does.

    In haste, a face that is wrong is not certified if there is another round.
    """
    compiled = batch.compiled_functions("compiled_finish")
    if compiled is not None:
        sets = lower.copy(), upper.copy(), rounds, hasty, most_free(batch)
        rules = Limits(), FaceRules()
        done, gap, point = compiled.repair(batch.arrays(b), *sets, *rules)
        if done:
            return solution_of(point, n_iter=n_iter, tol=tol) if np.isfinite(gap) else None
    c = batch.costs[b]
    best: SVMSolution | None = None
    for left in reversed(range(rounds)):
        free = ~(lower | upper)
        if np.count_nonzero(free) > most_free(batch):
            return best
        face = solve_faces(batch.only(b), np.flatnonzero(free), upper)
        s, dual, excess = face.s[0], face.duals[0], face.excess[0]
        if not np.isfinite(s).all():
            return best
        kept_lower = lower & (excess >= -VIOLATION)
        kept_upper = upper & (excess <= VIOLATION)
        outside = free & ((dual < -BOUND * c) | (dual > (1.0 + BOUND) * c))
        wrong = outside.any() or not ((kept_lower == lower).all() and (kept_upper == upper).all())
        if not (wrong and left and hasty):
            candidate = certify(batch, b, s, dual, n_iter=n_iter, tol=tol)
            if best is None or candidate.gap < best.gap:
                best = candidate
            if best.gap <= EXACT:
                return best
        new_lower = kept_lower | (free & (dual < 0))
        new_upper = kept_upper | (free & (dual > c))
        if (new_lower == lower).all() and (new_upper == upper).all():
            return best
        lower, upper = new_lower, new_upper
    return best
