"""Problems that are better solved in coordinates of their own than in those of the batch.

With nearly as many dimensions as rows, solve on the rows that matter: rows whose multiplier is zero
do not influence the solution.  The problem is solved on a working set of m rows, in the dimensions
that they span; rows inside the margin join the set until none is left.  Then the solution is
optimal on all rows, and it is certified on all rows.  One solve costs O(m^3) instead of O(n r^2).

With a deflated direction along which the rows vary far more than elsewhere, remove that part from
the rows: projecting in each step would drown the rest in rounding errors.  In exact arithmetic it
is the same problem; the certificate is that of the rows without this part.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import scipy.linalg

from marginfold.linalg.tall import Array, SharedRows
from marginfold.svm.certificate import certify
from marginfold.svm.problem import SVMBatch, SVMSolution

LARGE_RANK = 100
"""Dimensions from which a working set may pay."""

ROWS_PER_DIMENSION = 4
"""With more rows per dimension than this, a step on all rows is cheap enough."""

SMALL = 200
"""Rows up to which there is no need to look for those that matter."""

DWARFED = 1e-4
"""Share of the variance outside the deflated directions below which it drowns in the rest."""

FIRST_SHARE = 0.1
"""Share of the rows in the first working set."""

LARGEST_SHARE = 0.6
"""Share of the rows above which a working set no longer pays."""

ROUGH_TOL = 1e-3
"""Relative gap that suffices to see which rows are inside the margin."""

VIOLATION = 1e-10
"""How far inside the margin a row must be to join the working set."""


def pays(batch: SVMBatch) -> bool:
    """Return whether the shape of the problems suggests a working set."""
    n, r = batch.rows.features.shape
    return n < r or (LARGE_RANK < r and n <= ROWS_PER_DIMENSION * r)


def solve_on_working_set(
    batch: SVMBatch,
    b: int,
    solve: Callable[[SVMBatch, float], SVMSolution],
    *,
    tol: float,
    first: Array | None = None,
) -> SVMSolution | None:
    """Return the solution certified on all rows, or None if too many rows matter.

    Parameters
    ----------
    batch : SVMBatch
    b : int
        The problem of the batch.
    solve : callable
        Solver of the problem on some rows, to a given gap.
    tol : float
        Relative duality gap to reach.
    first : array of row numbers, optional
        The rows to begin with, of both sides, roughly at first; by default evenly spaced ones.
    """
    y, n = batch.signs[b], len(batch.signs[b])
    if first is not None:
        working = np.sort(first)
    elif n < min(SMALL, batch.scale.shape[1]):
        working = np.arange(n)
    else:
        working = np.sort(np.concatenate([_spaced(np.flatnonzero(y == side)) for side in (1, -1)]))
    n_iter = 0
    rough = first is not None
    while True:
        basis, part = _restrict(batch, b, working)
        solution = solve(part, ROUGH_TOL if rough else tol)
        coef = solution.coef if basis is None else basis @ solution.coef
        n_iter += solution.n_iter
        inside: Array = np.empty(0, dtype=np.intp)
        if len(working) < n:
            scores = batch.rows.features @ (batch.scale[b] * coef)
            excess = y * (scores + solution.intercept) - 1.0
            excess[working] = 0.0
            excess[batch.costs[b] <= 0] = 0.0
            inside = np.flatnonzero(excess < -VIOLATION)
        if len(inside):
            worst = inside[np.argsort(excess[inside])[: len(working)]]
            working = np.union1d(working, worst)
        elif not rough:
            dual = np.zeros(n)
            dual[working] = solution.dual
            return certify(batch, b, coef, dual, n_iter=n_iter, tol=tol)
        rough = False
        if LARGEST_SHARE * n < len(working) < n:
            if n >= batch.scale.shape[1]:
                return None
            working = np.arange(n)


def _spaced(rows: Array) -> Array:
    """Return evenly spaced rows of one side."""
    count = max(1, round(FIRST_SHARE * len(rows)))
    return rows[np.linspace(0, len(rows) - 1, count).astype(int)]


def _restrict(batch: SVMBatch, b: int, working: Array) -> tuple[Array | None, SVMBatch]:
    """Return an orthonormal basis of the working rows and the problem in its coordinates.

    As many rows as dimensions are taken in the coordinates that they have.
    """
    if len(working) >= batch.scale.shape[1]:
        return None, batch.take([b], working)
    X = batch.whitened(b, working)
    basis, R = scipy.linalg.qr(X.T, mode="economic", check_finite=False)
    m = R.shape[0]
    part = SVMBatch(
        rows=SharedRows(R.T),
        signs=batch.signs[[b]][:, working],
        costs=batch.costs[[b]][:, working],
        scale=np.ones((1, m)),
        deflated=np.zeros((1, m, 0)),
        compiled=batch.compiled,
    )
    return basis, part


def is_dwarfed(batch: SVMBatch, b: int) -> bool:
    """Return whether the deflated part of the rows is so large that the rest drowns in it."""
    N = batch.deflated[b]
    if not N.any():
        return False
    total = float(batch.rows.variances @ batch.scale[b] ** 2)
    inside = batch.rows.features @ (batch.scale[b][:, None] * N)
    return total - float((inside**2).sum()) / len(inside) < DWARFED * total


def without_deflated_part(batch: SVMBatch, b: int) -> SVMBatch:
    """Return problem b alone, on rows from which the deflated part is removed."""
    X = batch.whitened(b)
    return replace(batch.take([b]), rows=SharedRows(X), scale=np.ones((1, X.shape[1])))
