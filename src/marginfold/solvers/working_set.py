"""Problems with nearly as many dimensions as rows: solve on the rows that matter.

Rows whose multiplier is zero do not influence the solution.  The problem is solved on a working set
of m rows, in the m dimensions that they span; rows inside the margin join the set until none is
left.  Then the solution is optimal on all rows, and it is certified on all rows.  One solve costs
O(m^3) instead of O(n r^2).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.linalg

from marginfold.rows import Array, SharedRows
from marginfold.solvers.svm import SVMBatch, SVMSolution, certify

LARGE_RANK = 100
"""Dimensions from which a working set may pay."""

ROWS_PER_DIMENSION = 4
"""With more rows per dimension than this, a step on all rows is cheap enough."""

FIRST_SHARE = 0.1
"""Share of the rows in the first working set."""

LARGEST_SHARE = 0.6
"""Share of the rows above which a working set no longer pays."""

VIOLATION = 1e-10
"""How far inside the margin a row must be to join the working set."""


def pays(batch: SVMBatch) -> bool:
    """Return whether the shape of the problems suggests a working set."""
    n, r = batch.rows.features.shape
    return LARGE_RANK < r and n <= ROWS_PER_DIMENSION * r


def solve_on_working_set(
    batch: SVMBatch, b: int, solve: Callable[[SVMBatch], SVMSolution], *, tol: float
) -> SVMSolution | None:
    """Return the solution certified on all rows, or None if too many rows matter."""
    y, n = batch.signs[b], len(batch.signs[b])
    working = np.sort(np.concatenate([_spaced(np.flatnonzero(y == side)) for side in (1, -1)]))
    n_iter = 0
    while len(working) <= LARGEST_SHARE * n:
        basis, part = _restrict(batch, b, working)
        solution = solve(part)
        n_iter += solution.n_iter
        s = basis @ solution.coef
        excess = y * (batch.rows.features @ (batch.scale[b] * s) + solution.intercept) - 1.0
        excess[working] = 0.0
        inside = np.flatnonzero(excess < -VIOLATION)
        if not len(inside):
            dual = np.zeros(n)
            dual[working] = solution.dual
            return certify(batch, b, s, dual, n_iter=n_iter, tol=tol)
        worst = inside[np.argsort(excess[inside])[: len(working)]]
        working = np.union1d(working, worst)
    return None


def _spaced(rows: Array) -> Array:
    """Return evenly spaced rows of one side."""
    count = max(1, round(FIRST_SHARE * len(rows)))
    return rows[np.linspace(0, len(rows) - 1, count).astype(int)]


def _restrict(batch: SVMBatch, b: int, working: Array) -> tuple[Array, SVMBatch]:
    """Return an orthonormal basis of the working rows and the problem in its coordinates."""
    N = batch.deflated[b]
    X = batch.rows.features[working] * batch.scale[b]
    X -= (X @ N) @ N.T
    basis, R = scipy.linalg.qr(X.T, mode="economic", check_finite=False)
    m = R.shape[0]
    part = SVMBatch(
        rows=SharedRows(R.T),
        signs=batch.signs[[b]][:, working],
        costs=batch.costs[[b]][:, working],
        scale=np.ones((1, m)),
        deflated=np.zeros((1, m, 0)),
    )
    return basis, part
