"""From a nearly optimal point to the exact one: solve the optimality conditions on a face.

Once it is known which multipliers are 0 (`lower`), which are c (`upper`) and which are free, the
solution follows from linear equations: ``y_i (x_i's + b) = 1`` on the free rows and ``y'a = 0``.
A guess that was slightly wrong is repaired by moving the rows that violate their sign.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg

from marginfold.rows import Array
from marginfold.solvers.svm import SVMBatch, SVMSolution, certify

ROUNDS = 6
"""Largest number of repaired guesses."""

SPARE_ROWS = 60
"""Free rows beyond twice the dimension, above which the face is not identified yet."""

FACE_RESOLUTION = 1e-12
"""Relative size of the singular values of a face that count as zero."""

REFINEMENTS = 2
"""Further solves that remove the cancellation in ``s = X'(y a)`` when multipliers are huge."""

EXACT = 1e-12
"""Relative gap at which a face counts as the right one."""

VIOLATION = 1e-9
"""Margin violation above which a row changes sides."""


def crossover(
    batch: SVMBatch, b: int, lower: Array, upper: Array, start: SVMSolution, *, tol: float
) -> SVMSolution:
    """Return the best certified solution among ``start`` and the faces that it suggests."""
    best = _repair(batch, b, lower, upper, start, tol=tol)
    if best.gap > EXACT:
        share = np.minimum(start.dual, batch.costs[b] - start.dual) / batch.costs[b]
        free = np.where(lower | upper, -1.0, share)
        surplus = np.argsort(-free)[batch.rows.features.shape[1] - batch.deflated.shape[2] + 1 :]
        surplus = surplus[free[surplus] >= 0]
        if len(surplus):  # more free rows than dimensions: the doubtful ones go to their bounds
            lower, upper = lower.copy(), upper.copy()
            above = start.dual[surplus] > 0.5 * batch.costs[b][surplus]
            lower[surplus], upper[surplus] = ~above, above
            best = _repair(batch, b, lower, upper, best, tol=tol)
    return best


def _repair(
    batch: SVMBatch, b: int, lower: Array, upper: Array, best: SVMSolution, *, tol: float
) -> SVMSolution:
    """Solve the face and move the rows that violate their sign, until none does."""
    y, c = batch.signs[b], batch.costs[b]
    for _ in range(ROUNDS):
        free = ~(lower | upper)
        if np.count_nonzero(free) > 2 * batch.rows.features.shape[1] + SPARE_ROWS:
            return best
        s, intercept, dual = _solve_face(batch, b, free, upper)
        if not np.isfinite(s).all():
            return best
        candidate = certify(batch, b, s, dual, n_iter=best.n_iter, tol=tol)
        if candidate.gap < best.gap:
            best = candidate
        excess = y * (batch.rows.features @ (batch.scale[b] * s) + intercept) - 1.0
        new_lower = (lower & (excess >= -VIOLATION)) | (free & (dual < 0))
        new_upper = (upper & (excess <= VIOLATION)) | (free & (dual > c))
        if (new_lower == lower).all() and (new_upper == upper).all():
            return best
        lower, upper = new_lower, new_upper
    return best


def _solve_face(batch: SVMBatch, b: int, free: Array, upper: Array) -> tuple[Array, float, Array]:
    """Return (s, intercept, dual) that satisfies the equations of one face."""
    y, c, N = batch.signs[b], batch.costs[b], batch.deflated[b]
    X = batch.rows.features[free] * batch.scale[b]
    X -= (X @ N) @ N.T
    centre = X.mean(axis=0) if len(X) else np.zeros(X.shape[1])
    X -= centre
    pushed = np.where(upper, y * c, 0.0)
    s_upper = batch.scale[b] * (pushed @ batch.rows.features)
    s_upper = s_upper - N @ (N.T @ s_upper) - centre * pushed.sum()
    s, beta, intercept = s_upper, np.zeros(len(X)), 0.0
    for _ in range(1 + REFINEMENTS if len(X) else 0):
        wanted = y[free] - X @ s - intercept
        change, shift = _solve_bordered(X, wanted, -pushed.sum() - beta.sum())
        s, beta, intercept = s + X.T @ change, beta + change, intercept + shift
    s = s - N @ (N.T @ s)
    dual = np.where(upper, c, 0.0)
    dual[free] = y[free] * beta
    return s, intercept - float(centre @ s), dual


def _solve_bordered(X: Array, values: Array, total: float) -> tuple[Array, float]:
    """Solve ``X X' beta + b = values, sum(beta) = total`` (least norm if it is singular)."""
    m = len(X)
    size = float(np.sqrt((X * X).sum() / m)) or 1.0
    system = np.ones((m + 1, m + 1))
    system[:m, :m] = (X / size) @ (X / size).T
    system[m, m] = 0.0
    # beta is in units of 1/size^2 so that the border and the Gram matrix have comparable entries
    right = np.append(values, total * size**2)
    solution = scipy.linalg.lstsq(system, right, cond=FACE_RESOLUTION, check_finite=False)[0]
    return solution[:m] / size**2, float(solution[m])
