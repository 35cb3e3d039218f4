"""The equations of a face, for problems side by side.

Once it is known which multipliers are 0, which are c (`upper`) and which are free, the solution
follows from linear equations: ``y_i (x_i's + b) = 1`` on the free rows and ``y'a = 0``.  Each
problem is treated as if it were alone: the result does not depend on its company in any bit, and
whoever finds the face gets the same directions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg
from scipy.linalg import lapack

from marginfold.linalg.tall import Array
from marginfold.svm.problem import PASSES, SVMBatch

SPARE_ROWS = 60
"""Free rows beyond twice the dimension, above which the face is not identified yet."""

REGULAR = 1e-9
"""Relative size of the pivots of a face from which it is regular."""

FACE_RESOLUTION = 1e-12
"""Relative size of the eigenvalues of a face that count as zero."""

REFINEMENTS = 2
"""Further solves that remove the cancellation in ``s = X'(y a)`` when multipliers are huge."""

BOUND = 1e-9
"""Share of the cost within which a multiplier is at its bound."""

VIOLATION = 1e-9
"""Margin violation above which a row is on another face."""


class FaceRules(NamedTuple):
    """The constants above, for functions that were compiled before one of them changed."""

    regular: float = REGULAR
    refinements: int = REFINEMENTS
    passes: int = PASSES
    bound: float = BOUND
    violation: float = VIOLATION


class Faces(NamedTuple):
    """Points that satisfy the equations.

    Attributes
    ----------
    s : array of shape (B, r)
    intercepts : array of shape (B, 1)
    duals : array of shape (B, n)
    excess : array of shape (B, n)
        ``y (x's + b) - 1``.
    """

    s: Array
    intercepts: Array
    duals: Array
    excess: Array


def face_of(dual: Array, costs: Array) -> tuple[Array, Array]:
    """Return which multipliers are 0 and which are at their bounds."""
    return dual <= BOUND * costs, dual >= (1.0 - BOUND) * costs


def most_free(batch: SVMBatch) -> int:
    """Return the number of free rows above which the face cannot be the right one."""
    return 2 * batch.rows.n_columns + SPARE_ROWS


def solve_faces(batch: SVMBatch, free: Array, upper: Array) -> Faces:
    """Solve the equations of one face for all problems of a batch with the same labels and costs.

    ``free`` are row numbers, ``upper`` is a mask.  Singular equations get the solution of least
    norm.
    """
    compiled = batch.compiled_functions("compiled_finish")
    if compiled is None or not len(free):
        return _side_by_side(batch, free, upper)
    return _one_by_one(compiled, batch, free, upper)


def _side_by_side(batch: SVMBatch, free: Array, upper: Array) -> Faces:
    """Do it with NumPy."""
    y, c, m = batch.signs[0], batch.costs[0], len(free)
    X = batch.rows.features[free] * batch.scale[:, None]
    N = batch.deflated
    for _ in range(PASSES if N.shape[2] else 0):
        X -= (X @ N) @ N.mT
    centres = X.sum(axis=1) / max(m, 1)
    X -= centres[:, None]
    pushed = np.where(upper, y * c, 0.0)
    total, values = pushed.sum(), y[free]
    s = batch.project_all(batch.scale * (pushed @ batch.rows.features)) - centres * total
    sizes = (X * X).sum(axis=(1, 2))[:, None] / max(m, 1)  # beta is in units of 1 / size
    sizes[sizes == 0] = 1.0
    systems = np.ones((len(batch), m + 1, m + 1))
    systems[:, :m, :m] = (X @ X.mT) / sizes[:, :, None]
    systems[:, m, m] = 0.0
    solvers = [_solver(system) for system in systems]
    beta, intercepts = np.zeros((len(batch), m)), np.zeros((len(batch), 1))
    right = np.empty((len(batch), m + 1))
    for _ in range(1 + REFINEMENTS):
        right[:, :m] = values - (X @ s[..., None])[..., 0] - intercepts
        right[:, m:] = (-total - beta.sum(axis=1, keepdims=True)) * sizes
        change = np.stack([solve(part) for solve, part in zip(solvers, right, strict=True)])
        intercepts += change[:, m:]
        change = change[:, :m] / sizes
        beta += change
        s += (change[:, None] @ X)[:, 0]
    duals = np.where(upper, c, np.zeros((len(batch), 1)))
    duals[:, free] = values * beta
    s = batch.project_all(s)
    intercepts -= (centres * s).sum(axis=1, keepdims=True)
    excess = batch.signs * ((s * batch.scale) @ batch.rows.features.T + intercepts) - 1.0
    return Faces(s, intercepts, duals, excess)


def _one_by_one(compiled: Any, batch: SVMBatch, free: Array, upper: Array) -> Faces:
    """Do it with a compiled function; singular equations are left to NumPy."""
    B, n = batch.signs.shape
    faces = Faces(*(np.empty((B, size)) for size in (batch.scale.shape[1], 1, n, n)))
    for b in range(B):
        table, _, *problem = batch.arrays(b)
        regular, *face = compiled.solve_face(table, *problem, free, upper, FaceRules())
        if not regular:
            face = [part[0] for part in _side_by_side(batch.only(b), free, upper)]
        for parts, part in zip(faces, face, strict=True):
            parts[b] = part
    return faces


def _solver(system: Array) -> Callable[[Array], Array]:
    """Return a solver of symmetric equations, by their regular part if they are singular."""
    factors, pivots, failed = lapack.dgetrf(system)
    sizes = np.abs(factors.diagonal())
    if not failed and sizes.min() > REGULAR * sizes.max():
        return lambda right: np.asarray(lapack.dgetrs(factors, pivots, right)[0])
    if not np.isfinite(system).all():
        return lambda right: np.full_like(right, np.nan)
    values, vectors = scipy.linalg.eigh(system, check_finite=False)
    kept = np.abs(values) > FACE_RESOLUTION * np.abs(values).max()
    values, vectors = values[kept], vectors[:, kept]
    return lambda right: np.asarray(vectors @ ((right @ vectors) / values))
