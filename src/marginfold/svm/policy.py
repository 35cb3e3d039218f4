"""The choice of a solver by the shape of the problem; every answer is certified.

An interior point method costs the same whatever the data: about a dozen matrix products of n r^2.
When all rows are inside the margin, as with small costs, the solution is known in closed form.
When the classes are apart, few rows matter: the nearest ones of both sides go first, and those that
turn out to be inside the margin join them.  In many dimensions, sweeps over the rows find the face
(`descent`).  They are compiled; without numba, libsvm goes first when there are about as many
dimensions as rows, with a limit, and its active set is made exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from marginfold.linalg.tall import Array
from marginfold.svm.coordinate_descent import descend
from marginfold.svm.interior_point import InteriorPoint
from marginfold.svm.iterations import COMPILED, require_compiled
from marginfold.svm.libsvm import LibSVM
from marginfold.svm.problem import SVMBatch, SVMSolution, check_batch, project, single
from marginfold.svm.small_costs import solve_small_costs
from marginfold.validation.parameters import Number, check_parameters

FEW_ROWS_PER_DIMENSION = 7
"""Rows per dimension up to which libsvm needs less time than matrix products of n r^2."""

MANY_DIMENSIONS = 100
"""Dimensions from which matrix products of n r^2 are dear."""

ITERATIONS_PER_ROW = 3
"""Iterations after which libsvm is stopped and the interior point method begins."""

APART = 0.005
"""Share of rows on the wrong side of the plane between the means, up to which classes are apart."""

FIRST_ROWS = 4
"""Rows per dimension that go first when the classes are apart."""

SMALL = 16_000
"""Numbers in the rows, per problem of a batch, up to which it is not asked which rows matter."""

FEW_ROWS = 2000
"""Rows up to which libsvm is quicker than NumPy when the classes are apart."""

FIRST_TOLERANCE = 1e-3
"""libsvm's own tolerance: enough to know which rows are on the margin."""


@dataclass(frozen=True)
class Automatic:
    """Solve support vector problems by the interior point method, or by what is quicker.

    Parameters
    ----------
    tol : float, default=1e-8
        Relative duality gap to reach, whichever solver finds the solution.
    compiled : bool or "auto", default="auto"
        As for `InteriorPoint`.

    Examples
    --------
    >>> from marginfold.svm import Automatic
    >>> solution = Automatic().solve([[0.0], [1.0], [2.0], [3.0]], [-1, -1, 1, 1], C=10.0)
    >>> round(float(solution.coef[0]), 6), solution.converged
    (2.0, True)
    """

    tol: float = 1e-8
    compiled: bool | str = "auto"

    def __post_init__(self) -> None:
        check_parameters(self, {"tol": Number(0.0, inclusive=False), "compiled": COMPILED})
        require_compiled(self.compiled)

    def solve(self, U: ArrayLike, y: ArrayLike, C: ArrayLike) -> SVMSolution:
        """Solve one problem with features U, labels +1/-1 and costs C (scalar or per row)."""
        return self.solve_batch(single(U, y, C))[0]

    def solve_batch(self, batch: Any) -> list[SVMSolution]:
        """Solve every problem of an `SVMBatch` or `BlockBatch`."""
        general = _interior_point(self.tol, self.compiled)
        if not isinstance(batch, SVMBatch):
            return general.solve_batch(batch)
        check_batch(batch)
        batch = batch.marked(general.is_compiled)
        with np.errstate(all="ignore"):  # what overflows is not certified
            found = solve_small_costs(batch, tol=self.tol)
        if general.is_compiled and batch.scale.shape[1] > MANY_DIMENSIONS:
            return self._solve_in_turn(general, batch, found)
        for b in range(len(batch)):
            solution = None if b in found else self._solve_special(general, batch, b)
            if solution is not None and solution.converged:
                found[b] = solution
        rest = [b for b in range(len(batch)) if b not in found]
        if rest:
            part = batch if len(rest) == len(batch) else batch.take(rest)
            found |= zip(rest, general.solve_batch(part), strict=True)
        return [found[b] for b in range(len(batch))]

    def _solve_in_turn(
        self, general: InteriorPoint, batch: SVMBatch, found: dict[int, SVMSolution]
    ) -> list[SVMSolution]:
        """Solve by coordinates, each problem from where one of the same labels and costs ended."""
        for b in range(len(batch)):
            if b in found:
                continue
            start = found[b - 1].dual if b and _is_alike(batch, b - 1, b) else None
            with np.errstate(all="ignore"):  # what overflows is not certified
                solution = descend(batch, b, tol=self.tol, start=start)
            if solution is None or not solution.converged:
                solution = general.solve_batch(batch.take([b]))[0]
            if not solution.converged:
                last = self._try_libsvm(batch, b)
                solution = last if last is not None and last.gap < solution.gap else solution
            found[b] = solution
        return [found[b] for b in range(len(batch))]

    def _solve_special(self, general: InteriorPoint, batch: SVMBatch, b: int) -> SVMSolution | None:
        """Return what a quicker way finds, if there is one."""
        n, r = batch.rows.features.shape
        if n < r or (r > MANY_DIMENSIONS and n <= FEW_ROWS_PER_DIMENSION * r):
            return self._try_libsvm(batch, b)
        if r > MANY_DIMENSIONS or (general.is_compiled and n * r <= SMALL * len(batch)):
            return None
        scores = _scores_if_apart(batch, b)
        if scores is None:
            return None
        if n <= FEW_ROWS and not general.is_compiled:
            return self._try_libsvm(batch, b)
        count = FIRST_ROWS * (r + 1) // 2
        nearest = [_least(scores, batch.signs[b] == side, count) for side in (1.0, -1.0)]
        return general.solve_from(batch, b, np.concatenate(nearest))

    def _try_libsvm(self, batch: SVMBatch, b: int) -> SVMSolution | None:
        """Return what libsvm finds within its limit."""
        limit = ITERATIONS_PER_ROW * batch.signs.shape[1]
        first = LibSVM(tol=self.tol, kkt_tol=FIRST_TOLERANCE, max_iter=limit, quiet=True)
        try:
            with np.errstate(all="ignore"):  # what overflows is not certified
                return first.solve_problem(batch, b)
        except ValueError:  # scikit-learn refuses numbers that libsvm cannot work with
            return None


@cache
def _interior_point(tol: float, compiled: bool | str) -> InteriorPoint:
    """Return a solver whose parameters are not checked again for every problem."""
    return InteriorPoint(tol=tol, compiled=compiled)


def _is_alike(batch: SVMBatch, one: int, other: int) -> bool:
    """Return whether two problems have the same labels and costs."""
    return all(np.array_equal(part[one], part[other]) for part in (batch.signs, batch.costs))


def _scores_if_apart(batch: SVMBatch, b: int) -> Array | None:
    """Return how far each row is on the right side of the plane between the means.

    The mean rows are compared in units of each feature's variance, without what is deflated.
    Unless hardly a row is on the wrong side, the classes are not apart and None is returned.
    """
    y, X = batch.signs[b], batch.rows.features
    taken = batch.costs[b] > 0
    sides = np.stack([(y > 0) & taken, (y < 0) & taken]).astype(np.float64)
    means = (sides @ X) / sides.sum(axis=1, keepdims=True)
    variances, scale = batch.rows.variances, batch.scale[b]
    apart = (means[0] - means[1]) / np.where(variances > 0, variances, 1.0)
    direction: Array = scale * project(batch, b, apart / scale)
    scores = y * (X @ direction - 0.5 * (means[0] + means[1]) @ direction)
    apart_enough = np.count_nonzero((scores <= 0) & taken) <= APART * len(y)
    return np.where(taken, scores, np.inf) if apart_enough else None


def _least(scores: Array, chosen: Array, count: int) -> Array:
    """Return the rows of least score among those chosen."""
    rows = np.flatnonzero(chosen & np.isfinite(scores))
    if len(rows) > count:
        rows = rows[np.argpartition(scores[rows], count)[:count]]
    return rows
