"""The support vector problem, its solution and the certificate that every solver must pass.

Problem b of a batch, in whitened coordinates s (maths: one metric, all rows shared)::

    P(s, b) = 1/2 |s|^2 + sum_i c_i max(0, 1 - y_i (x_i's + b)),    s orthogonal to N_b
    D(a)    = sum_i a_i - 1/2 |P_N X'(y a)|^2,    0 <= a <= c,  y'a = 0

with ``x_i = scale_b * rows_i``.  Weak duality makes ``P - D`` an error bound, whatever produced
the point: the certificate evaluates both on the original problem.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from marginfold.errors import SolverError
from marginfold.rows import Array, SharedRows

ROUNDING = 4.0 * float(np.finfo(np.float64).eps)
"""Relative rounding error of a margin, in units of its summands."""

EPS, TINY = float(np.finfo(np.float64).eps), float(np.finfo(np.float64).tiny)

PASSES = 2
"""Projections in a row: the second removes what rounding left of the first."""

STRETCH_LIMIT = 1e-6
"""Largest relative change of a direction that may remove rounding errors of the margins."""

EXACT = 1e-12
"""Relative gap at which a solution is as good as exact."""

UPPER_SHARE = 1.0 - 1e-6
"""Multipliers above this share of their bound belong to rows inside the margin."""


@dataclass(frozen=True)
class SVMSolution:
    """One solved problem with its certificate.

    Attributes
    ----------
    coef : array of shape (r,)
        The weight vector in whitened coordinates.
    intercept : float
        The unregularised bias, the midpoint of the interval of optimal values.
    dual : array of shape (n,)
        A strictly feasible dual point: ``0 <= dual <= costs`` and ``y'dual = 0``.
    objective, dual_objective : float
        Primal value of (coef, intercept) and dual value of ``dual``.
    gap : float
        ``(objective - dual_objective) / objective``: a bound of the relative error.
    n_iter : int
        Iterations used.
    converged : bool
        Whether the gap is within the tolerance.
    """

    coef: Array
    intercept: float
    dual: Array
    objective: float
    dual_objective: float
    gap: float
    n_iter: int
    converged: bool


@dataclass(frozen=True)
class SVMBatch:
    """Support vector problems that share their rows.

    Attributes
    ----------
    rows : SharedRows
        n rows with r features; they are centred, which a free bias makes lossless.
    signs : array of shape (B, n)
        Labels, +1 or -1.
    costs : array of shape (B, n)
        Upper bounds of the multipliers; a row with cost 0 does not take part.
    scale : array of shape (B, r)
        Problem b sees the features ``rows.features * scale[b]``.
    deflated : array of shape (B, r, k)
        Orthonormal columns (or zero columns) to which ``coef`` must be orthogonal.
    """

    rows: SharedRows
    signs: Array
    costs: Array
    scale: Array
    deflated: Array

    def __len__(self) -> int:
        return len(self.signs)

    def smaller_side(self, b: int) -> float:
        """Return the total cost of the cheaper side."""
        y, c = self.signs[b], self.costs[b]
        return float(min(c @ (y > 0), c @ (y < 0)))

    def whitened(self, b: int, rows: Array | slice = slice(None)) -> Array:
        """Return the features of problem b, without their part along the deflated directions."""
        N = self.deflated[b]
        X = self.rows.features[rows] * self.scale[b]
        for _ in range(PASSES if N.shape[1] else 0):
            X -= (X @ N) @ N.T
        return np.asarray(X)

    def take(self, problems: Sequence[int], rows: Array | None = None) -> SVMBatch:
        """Return the batch of some problems, on some rows (which are centred anew)."""
        index = np.asarray(problems)
        kept = slice(None) if rows is None else rows
        return SVMBatch(
            rows=self.rows if rows is None else SharedRows(self.rows.features[rows]),
            signs=self.signs[index][:, kept],
            costs=self.costs[index][:, kept],
            scale=self.scale[index],
            deflated=self.deflated[index],
        )


class SVMSolver(Protocol):
    """What a solver must offer: arrays in, frozen solutions out."""

    def solve(self, U: ArrayLike, y: ArrayLike, C: ArrayLike) -> SVMSolution:
        """Solve one problem with features U, labels +1/-1 and costs C (scalar or per row)."""

    def solve_batch(self, batch: Any) -> list[SVMSolution]:
        """Solve every problem of an `SVMBatch`, or of a `BlockBatch` if the solver can."""


def single(U: ArrayLike, y: ArrayLike, C: ArrayLike) -> SVMBatch:
    """Return the batch of one plain problem, checked."""
    rows = np.asarray(U, dtype=np.float64)
    signs = np.asarray(y, dtype=np.float64)
    if rows.ndim != 2 or signs.shape != (len(rows),):
        raise SolverError(
            f"A problem needs features of shape (n, r) and n labels; got {rows.shape} and "
            f"{signs.shape}."
        )
    if not (np.abs(signs) == 1.0).all():
        raise SolverError("Labels must be +1 or -1; encode the classes first.")
    costs = np.asarray(C, dtype=np.float64)
    if costs.ndim == 0:
        costs = np.full(signs.shape, float(costs))
    if costs.shape != signs.shape:
        raise SolverError(
            f"Costs must be one number or one for each row; got shape {costs.shape} for "
            f"{len(signs)} rows."
        )
    r = rows.shape[1]
    with np.errstate(all="ignore"):
        shared = SharedRows(rows)
    batch = SVMBatch(shared, signs[None], costs[None], np.ones((1, r)), np.zeros((1, r, 0)))
    _check_finite(batch)
    return batch


def check_batch(batch: SVMBatch) -> None:
    """Refuse numbers that no solver can work with, and problems with one side only."""
    _check_finite(batch)
    with np.errstate(over="ignore"):
        finite = np.isfinite(batch.costs.sum(axis=1)).all()
    if not finite or (batch.costs < 0).any():
        raise SolverError("Costs must be finite, also their sum, and not negative.")
    for side in (1.0, -1.0):
        if not ((batch.signs == side) & (batch.costs > 0)).any(axis=1).all():
            raise SolverError(
                "Each problem needs rows of both labels with a positive cost; "
                f"one has no row labelled {side:+.0f}."
            )


def _check_finite(batch: SVMBatch) -> None:
    """Refuse features that are not finite; a finite mean row has finite summands."""
    finite = np.isfinite(batch.rows.centre).all() or np.isfinite(batch.rows.table).all()
    if not (finite and np.isfinite(batch.scale).all()):
        raise SolverError("Features must be finite; got NaN or infinity.")


def project(batch: SVMBatch, b: int, vector: Array) -> Array:
    """Return the part of a vector that is orthogonal to the deflated directions of problem b."""
    N = batch.deflated[b]
    for _ in range(PASSES if N.shape[1] else 0):
        vector = vector - N @ (N.T @ vector)
    return vector


def certify(
    batch: SVMBatch, b: int, coef: Array, dual: Array, *, n_iter: int, tol: float
) -> SVMSolution:
    """Turn any primal direction and any dual guess into a solution with a valid gap.

    The intercept belongs to the centred rows; `uncentre` turns it into that of the given rows.
    """
    y, c = batch.signs[b], batch.costs[b]
    if not np.isfinite(dual).all():
        dual = np.nan_to_num(dual, nan=0.0)
    dual = balance(np.minimum(np.maximum(dual, 0.0), c), y)
    s_dual = project(batch, b, batch.scale[b] * ((y * dual) @ batch.rows.features))
    dual_objective = float(dual.sum() - 0.5 * s_dual @ s_dual) - _dual_rounding(
        batch, b, dual, s_dual
    )
    if not dual_objective >= 0:  # a = 0 is feasible and better
        dual, s_dual, dual_objective = np.zeros_like(dual), np.zeros_like(s_dual), 0.0
    objective, s, intercept = _evaluate(batch, b, coef, dual)
    if not objective - dual_objective <= EXACT * objective:
        other = _evaluate(batch, b, s_dual, dual)
        if other[0] < objective:
            objective, s, intercept = other
    if not objective <= 2.0 * batch.smaller_side(b):  # s = 0 is better
        objective, s, intercept = _evaluate(batch, b, np.zeros_like(coef), dual)
    gap = max(0.0, objective - dual_objective) / max(objective, TINY)
    return SVMSolution(
        coef=s,
        intercept=intercept,
        dual=dual,
        objective=objective,
        dual_objective=dual_objective,
        gap=gap,
        n_iter=n_iter,
        converged=bool(gap <= tol),
    )


def _dual_rounding(batch: SVMBatch, b: int, dual: Array, s_dual: Array) -> float:
    """Return what the rounding of the centred rows may add to the dual value.

    Each entry was stored with a relative error of eps, independent of the others.
    """
    lost = EPS * batch.rows.largest * batch.scale[b] * float(np.sqrt(dual @ dual))
    return float(np.abs(s_dual) @ lost + 0.5 * (lost @ lost))


def uncentre(batch: SVMBatch, b: int, solution: SVMSolution) -> SVMSolution:
    """Return the solution with the intercept of the rows as they were given."""
    shift = float(batch.rows.centre @ (batch.scale[b] * solution.coef))
    return replace(solution, intercept=solution.intercept - shift)


def _evaluate(batch: SVMBatch, b: int, s: Array, dual: Array) -> tuple[float, Array, float]:
    """Return a bound of the objective of s with its best bias, or of s slightly stretched.

    A row on the margin that rounding puts inside it costs ``c * eps``: for huge costs more than
    the certificate allows.  The bound counts this; stretching (s, b) by as much as rounding can
    take away puts such rows outside again.
    """
    y, c = batch.signs[b], batch.costs[b]
    weights = batch.scale[b] * s
    f = batch.rows.features @ weights
    low, high = intercept_interval(f, y, c)
    intercept = 0.5 * (low + high)
    margins = y * (f + intercept)
    hinge = np.maximum(0.0, 1.0 - margins)
    objective = 0.5 * float(s @ s) + float(c @ hinge)
    if not np.isfinite(objective):
        return np.inf, np.zeros_like(s), 0.0
    free = dual < UPPER_SHARE * c
    short = float(hinge[free].max(initial=0.0))
    near = np.flatnonzero(free & (np.abs(1.0 - margins) < STRETCH_LIMIT))
    if short < STRETCH_LIMIT and len(near):
        size = np.abs(weights)
        summands = float((np.abs(batch.rows.features[near]) @ size).max())
        summands += abs(intercept) + 2.0 * float(np.abs(batch.rows.centre) @ size)
        rounding = ROUNDING * (1.0 + summands)
        objective += rounding * float(c[near].sum())
        factor = 1.0 + 2.0 * (short + rounding)
        hinge = np.maximum(0.0, 1.0 - factor * margins)
        stretched = 0.5 * factor**2 * float(s @ s) + float(c @ hinge)
        if stretched < objective:
            return stretched, factor * s, factor * intercept
    return objective, s, intercept


def balance(dual: Array, y: Array) -> Array:
    """Scale the heavier side down so that ``y'dual = 0`` holds; the box is not left."""
    positive = float(dual[y > 0].sum())
    negative = float(dual[y < 0].sum())
    if positive == negative:
        return dual
    low = min(positive, negative)
    factors = np.where(y > 0, _ratio(low, positive), _ratio(low, negative))
    return dual * factors


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole > 0 else 0.0


def intercept_interval(f: Array, y: Array, c: Array) -> tuple[float, float]:
    """Return the interval of biases that minimise the hinge loss of the scores ``f + b``.

    The slope in b is ``-sum_{y>0} c + sum_{y_i - f_i <= b} c_i``: a weighted quantile of the break
    points.  With a zero slope between two of them the optimum is an interval.
    """
    points = y - f
    order = np.argsort(points)
    slope = np.cumsum(c[order]) - c[y > 0].sum()
    flat = len(c) * EPS * c.sum()  # rounding of the cumulated costs
    first = int(np.searchsorted(slope, -flat))
    first = min(first, len(order) - 1)
    low = high = float(points[order[first]])
    if abs(slope[first]) <= flat and first + 1 < len(order):
        high = float(points[order[first + 1]])
    return low, high
