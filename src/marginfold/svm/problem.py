"""The support vector problem and its solution.

Problem b of a batch, in whitened coordinates s (maths: one metric, all rows shared)::

    P(s, b) = 1/2 |s|^2 + sum_i c_i max(0, 1 - y_i (x_i's + b)),    s orthogonal to N_b
    D(a)    = sum_i a_i - 1/2 |P_N X'(y a)|^2,    0 <= a <= c,  y'a = 0

with ``x_i = scale_b * rows_i``.  Weak duality makes ``P - D`` an error bound, whatever produced
the point: the certificate evaluates both on the original problem.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from marginfold.errors import SolverError
from marginfold.linalg.tall import Array, SharedRows
from marginfold.runtime.jit import compiled_module

EPS, TINY = float(np.finfo(np.float64).eps), float(np.finfo(np.float64).tiny)

PASSES = 2
"""Projections in a row: the second removes what rounding left of the first."""

EXACT = 1e-12
"""Relative gap at which a solution is as good as exact."""

COMPILED_COLUMNS = 100
"""Dimensions up to which compiling pays: above, most of the time is spent in matrix products."""


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
    compiled : bool
        Whether compiled functions work on it, as far as they pay.
    """

    rows: SharedRows
    signs: Array
    costs: Array
    scale: Array
    deflated: Array
    compiled: bool = False

    def __len__(self) -> int:
        return len(self.signs)

    def marked(self, compiled: bool) -> SVMBatch:
        """Return the batch for compiled functions, which need plain arrays, or for NumPy."""
        if self.compiled == compiled:
            return self
        signs, costs, scale, deflated = (
            np.require(array, np.float64, ("C", "W"))
            for array in (self.signs, self.costs, self.scale, self.deflated)
        )
        return SVMBatch(self.rows, signs, costs, scale, deflated, compiled)

    def arrays(self, b: int) -> tuple[Array, ...]:
        """Return what compiled functions are given of problem b."""
        rows = self.rows
        return (
            rows.table,
            rows.centre,
            self.signs[b],
            self.costs[b],
            self.scale[b],
            self.deflated[b],
        )

    def compiled_functions(self, name: str) -> Any:
        """Return a module of compiled functions beside this one if they serve these problems."""
        if self.compiled and self.scale.shape[1] <= COMPILED_COLUMNS:
            return compiled_module(f"marginfold.svm.{name}")
        return None

    @cached_property
    def smaller_sides(self) -> Array:
        """The total cost of the cheaper side of each problem."""
        above = self.signs > 0
        positive = np.where(above, self.costs, 0.0).sum(axis=1)
        return np.minimum(positive, np.where(above, 0.0, self.costs).sum(axis=1))

    def only(self, b: int) -> SVMBatch:
        """Return problem b alone, without a copy."""
        one = slice(b, b + 1)
        return SVMBatch(
            self.rows,
            self.signs[one],
            self.costs[one],
            self.scale[one],
            self.deflated[one],
            self.compiled,
        )

    def project_all(self, vectors: Array) -> Array:
        """Return vectors (B, r) without their parts along the deflated directions."""
        N = self.deflated
        for _ in range(PASSES if N.shape[2] else 0):
            vectors = vectors - (N @ (N.mT @ vectors[..., None]))[..., 0]
        return vectors

    def whitened(self, b: int, rows: Array | slice = slice(None)) -> Array:
        """Return the features of problem b, without their part along the deflated directions."""
        N = self.deflated[b]
        X = self.rows.features[rows] * self.scale[b]
        for _ in range(PASSES if N.shape[1] else 0):
            X -= (X @ N) @ N.T
        return np.asarray(X)

    def take(self, problems: Sequence[int] | Array, rows: Array | None = None) -> SVMBatch:
        """Return the batch of some problems, on some rows (which are centred anew)."""
        index = np.asarray(problems)
        signs, costs = self.signs[index], self.costs[index]
        return SVMBatch(
            rows=self.rows if rows is None else SharedRows(self.rows.features[rows]),
            signs=signs if rows is None else signs.take(rows, axis=1),
            costs=costs if rows is None else costs.take(rows, axis=1),
            scale=self.scale[index],
            deflated=self.deflated[index],
            compiled=self.compiled,
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
    return np.asarray(batch.only(b).project_all(vector[None])[0])


def uncentre(batch: SVMBatch, b: int, solution: SVMSolution) -> SVMSolution:
    """Return the solution with the intercept of the rows as they were given."""
    shift = float(batch.rows.centre @ (batch.scale[b] * solution.coef))
    return replace(solution, intercept=solution.intercept - shift)
