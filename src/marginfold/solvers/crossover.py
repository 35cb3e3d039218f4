"""From a nearly optimal point to the exact one: solve the optimality conditions on a face.

Once it is known which multipliers are 0 (`lower`), which are c (`upper`) and which are free, the
solution follows from linear equations: ``y_i (x_i's + b) = 1`` on the free rows and ``y'a = 0``.
A guess that was slightly wrong is repaired by moving the rows that violate their sign.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.linalg
from scipy.linalg import lapack

from marginfold.rows import Array
from marginfold.solvers.certificate import certify
from marginfold.solvers.svm import EXACT, SVMBatch, SVMSolution, project

ROUNDS = 6
"""Largest number of repaired guesses."""

NEIGHBORS = 2
"""Repaired guesses when the face is that of another problem."""

BOUND = 1e-9
"""Share of the cost within which a multiplier is at its bound."""

SPARE_ROWS = 60
"""Free rows beyond twice the dimension, above which the face is not identified yet."""

FACE_RESOLUTION = 1e-12
"""Relative size of the singular values of a face that count as zero."""

REGULAR = 1e-9
"""Relative size of the pivots of a face from which it is regular."""

REFINEMENTS = 2
"""Further solves that remove the cancellation in ``s = X'(y a)`` when multipliers are huge."""

VIOLATION = 1e-9
"""Margin violation above which a row changes sides."""


def crossover(
    batch: SVMBatch, b: int, lower: Array, upper: Array, dual: Array, *, n_iter: int, tol: float
) -> SVMSolution | None:
    """Return the best certified solution on the faces that a nearly optimal point suggests."""
    best = _repair(batch, b, lower, upper, None, n_iter=n_iter, tol=tol)
    if best is not None and best.gap <= EXACT:
        return best
    c = batch.costs[b]
    free = ~(lower | upper)
    share = np.full(len(c), -1.0)  # of the cost; rows without one are at both bounds
    share[free] = np.minimum(dual, c - dual)[free] / c[free]
    n_free = batch.scale.shape[1] - np.count_nonzero(batch.deflated[b].any(axis=0)) + 1
    surplus = np.argsort(-share)[n_free:]
    surplus = surplus[share[surplus] >= 0]
    if len(surplus):  # more free rows than dimensions: the doubtful ones go to their bounds
        lower, upper = lower.copy(), upper.copy()
        above = dual[surplus] > 0.5 * c[surplus]
        lower[surplus], upper[surplus] = ~above, above
        best = _repair(batch, b, lower, upper, best, n_iter=n_iter, tol=tol)
    return best


def from_face(batch: SVMBatch, b: int, dual: Array, *, tol: float) -> SVMSolution | None:
    """Return the solution on the face of another problem's multipliers, if it is the right one."""
    lower, upper = face_of(dual, batch.costs[b])
    found = _repair(batch, b, lower, upper, None, n_iter=0, tol=tol, rounds=NEIGHBORS, hasty=True)
    return found if found is not None and found.gap <= EXACT else None


def face_of(dual: Array, costs: Array) -> tuple[Array, Array]:
    """Return which multipliers are 0 and which are at their bounds."""
    return dual <= BOUND * costs, dual >= (1.0 - BOUND) * costs


def is_too_large(batch: SVMBatch, n_free: int) -> bool:
    """Return whether so many rows are free that the face cannot be the right one."""
    return n_free > 2 * batch.rows.n_columns + SPARE_ROWS


def _repair(
    batch: SVMBatch,
    b: int,
    lower: Array,
    upper: Array,
    best: SVMSolution | None,
    *,
    n_iter: int,
    tol: float,
    rounds: int = ROUNDS,
    hasty: bool = False,
) -> SVMSolution | None:
    """Solve the face and move the rows that violate their sign, until none does.

    In haste, a face that is wrong is not certified if there is another round.
    """
    y, c = batch.signs[b], batch.costs[b]
    for left in reversed(range(rounds)):
        free = ~(lower | upper)
        if is_too_large(batch, int(np.count_nonzero(free))):
            return best
        s, intercept, dual = _solve_face(batch, b, free, upper)
        if not np.isfinite(s).all():
            return best
        excess = y * (batch.rows.features @ (batch.scale[b] * s) + intercept) - 1.0
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


def _solve_face(batch: SVMBatch, b: int, free: Array, upper: Array) -> tuple[Array, float, Array]:
    """Return (s, intercept, dual) that satisfies the equations of one face."""
    y, c = batch.signs[b], batch.costs[b]
    X = batch.whitened(b, np.flatnonzero(free))
    centre = X.sum(axis=0) / max(len(X), 1)
    X -= centre
    pushed = np.where(upper, y * c, 0.0)
    s_upper = project(batch, b, batch.scale[b] * (pushed @ batch.rows.features))
    s_upper = s_upper - centre * pushed.sum()
    s, beta, intercept = s_upper, np.zeros(len(X)), 0.0
    solve = _bordered_solver(X)
    total, values = -pushed.sum(), y[free]
    for _ in range(1 + REFINEMENTS if len(X) else 0):
        wanted = values - X @ s - intercept
        change, shift = solve(wanted, total - beta.sum())
        s, beta, intercept = s + X.T @ change, beta + change, intercept + shift
    s = project(batch, b, s)
    dual = np.where(upper, c, 0.0)
    dual[free] = values * beta
    return s, intercept - float(centre @ s), dual


def _bordered_solver(X: Array) -> Callable[[Array, float], tuple[Array, float]]:
    """Return a solver of ``X X' beta + b = values, sum(beta) = total`` (least norm if singular)."""
    m = len(X)
    size = float(np.sqrt((X * X).sum() / max(m, 1))) or 1.0
    scaled = X / size
    system = np.ones((m + 1, m + 1))
    np.matmul(scaled, scaled.T, out=system[:m, :m])
    system[m, m] = 0.0
    factors, pivots, failed = lapack.dgetrf(system)
    sizes = np.abs(factors.diagonal())
    if not failed and sizes.min() > REGULAR * sizes.max():

        def regular(right: Array) -> Array:
            return np.asarray(lapack.dgetrs(factors, pivots, right)[0])

        invert = regular
    else:
        values, vectors = scipy.linalg.eigh(system, check_finite=False)
        kept = np.abs(values) > FACE_RESOLUTION * np.abs(values).max()
        values, vectors = values[kept], vectors[:, kept]

        def least(right: Array) -> Array:
            return np.asarray(vectors @ ((right @ vectors) / values))

        invert = least

    def solve(wanted: Array, total: float) -> tuple[Array, float]:
        # beta is in units of 1/size^2: the border and the Gram matrix have comparable entries
        right = np.empty(m + 1)
        right[:m], right[m] = wanted, total * size**2
        solution = invert(right)
        return solution[:m] / size**2, float(solution[m])

    return solve
