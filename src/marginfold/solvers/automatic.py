"""The choice of a solver by the shape of the problem; every answer is certified.

An interior point method costs the same whatever the data: about a dozen matrix products of n r^2.
libsvm costs as much as it needs iterations: few when the classes are apart, or when there are about
as many dimensions as rows.  There it goes first, with a limit; its active set is made exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from marginfold.parameters import Number, check_parameters
from marginfold.rows import Array
from marginfold.solvers.interior_point import InteriorPoint
from marginfold.solvers.libsvm import LibSVM
from marginfold.solvers.svm import SVMBatch, SVMSolution, check_batch, project, single

FEW_ROWS_PER_DIMENSION = 7
"""Rows per dimension up to which libsvm needs less time than matrix products of n r^2."""

MANY_DIMENSIONS = 100
"""Dimensions from which matrix products of n r^2 are dear."""

ITERATIONS_PER_ROW = 3
"""Iterations after which libsvm is stopped and the interior point method begins."""

APART = 0.005
"""Share of rows on the wrong side of the plane between the means, up to which classes are apart."""

MOST_ROWS = 20_000
"""Rows up to which libsvm goes first when the classes are apart."""

FIRST_TOLERANCE = 1e-3
"""libsvm's own tolerance: enough to know which rows are on the margin."""


@dataclass(frozen=True)
class Automatic:
    """Solve support vector problems by the interior point method, or by libsvm where it is quicker.

    Parameters
    ----------
    tol : float, default=1e-8
        Relative duality gap to reach, whichever solver finds the solution.

    Examples
    --------
    >>> from marginfold.solvers import Automatic
    >>> solution = Automatic().solve([[0.0], [1.0], [2.0], [3.0]], [-1, -1, 1, 1], C=10.0)
    >>> round(float(solution.coef[0]), 6), solution.converged
    (2.0, True)
    """

    tol: float = 1e-8

    def __post_init__(self) -> None:
        check_parameters(self, {"tol": Number(0.0, inclusive=False)})

    def solve(self, U: ArrayLike, y: ArrayLike, C: ArrayLike) -> SVMSolution:
        """Solve one problem with features U, labels +1/-1 and costs C (scalar or per row)."""
        return self.solve_batch(single(U, y, C))[0]

    def solve_batch(self, batch: Any) -> list[SVMSolution]:
        """Solve every problem of an `SVMBatch` or `BlockBatch`."""
        general = InteriorPoint(tol=self.tol)
        if not isinstance(batch, SVMBatch):
            return general.solve_batch(batch)
        check_batch(batch)
        found: dict[int, SVMSolution] = {}
        for b in range(len(batch)):
            solution = self._try_libsvm(batch, b) if _suits_libsvm(batch, b) else None
            if solution is not None:
                found[b] = solution
        rest = [b for b in range(len(batch)) if b not in found]
        if rest:
            part = batch if len(rest) == len(batch) else batch.take(rest)
            found |= zip(rest, general.solve_batch(part), strict=True)
        return [found[b] for b in range(len(batch))]

    def _try_libsvm(self, batch: SVMBatch, b: int) -> SVMSolution | None:
        """Return what libsvm finds within its limit, if it is certified."""
        limit = ITERATIONS_PER_ROW * batch.signs.shape[1]
        first = LibSVM(tol=self.tol, kkt_tol=FIRST_TOLERANCE, max_iter=limit, quiet=True)
        try:
            with np.errstate(all="ignore"):  # what overflows is not certified
                solution = first.solve_problem(batch, b)
        except ValueError:  # scikit-learn refuses numbers that libsvm cannot work with
            return None
        return solution if solution.converged else None


def _suits_libsvm(batch: SVMBatch, b: int) -> bool:
    n, r = batch.rows.features.shape
    if n < r or (r > MANY_DIMENSIONS and n <= FEW_ROWS_PER_DIMENSION * r):
        return True
    return n <= MOST_ROWS and r <= MANY_DIMENSIONS and _are_apart(batch, b)


def _are_apart(batch: SVMBatch, b: int) -> bool:
    """Return whether hardly a row is on the wrong side of the plane between the means.

    The mean rows are compared in units of each feature's variance, without what is deflated.
    """
    y, X = batch.signs[b], batch.rows.features
    taken = batch.costs[b] > 0
    sides = np.stack([(y > 0) & taken, (y < 0) & taken]).astype(np.float64)
    means = (sides @ X) / sides.sum(axis=1, keepdims=True)
    variances, scale = batch.rows.variances, batch.scale[b]
    apart = (means[0] - means[1]) / np.where(variances > 0, variances, 1.0)
    direction: Array = scale * project(batch, b, apart / scale)
    wrong = y * (X @ direction - 0.5 * (means[0] + means[1]) @ direction) <= 0
    return bool(np.count_nonzero(wrong & taken) <= APART * len(y))
