"""Problems that follow each other on one face, solved together.

Along a chain (see `chains`) the sets of multipliers at 0, at their bound and between often stay the
same for a while.  The equations of this face (see `crossover`) then differ only in the metric and
in what is deflated: they are solved side by side, and so are the certificates computed.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from marginfold.rows import Array
from marginfold.solvers.certificate import certify_all
from marginfold.solvers.crossover import REFINEMENTS, face_of, is_too_large
from marginfold.solvers.svm import EXACT, PASSES, SVMBatch, SVMSolution


def solve_on_face(
    batch: SVMBatch, problems: Sequence[int], dual: Array, *, tol: float
) -> list[SVMSolution]:
    """Return the exact solutions on the face of the given multipliers, up to the first that is not.

    The problems have the same labels and costs.
    """
    lower, upper = face_of(dual, batch.costs[problems[0]])
    free = np.flatnonzero(~(lower | upper))
    if not len(free) or is_too_large(batch, len(free)):
        return []
    part = batch.take(problems)
    try:
        s, duals = _solve_faces(part, free, upper)
    except np.linalg.LinAlgError:
        return []
    found = []
    for solution in certify_all(part, s, duals, n_iter=0, tol=tol):
        if not solution.gap <= EXACT:
            break
        found.append(solution)
    return found


def _solve_faces(batch: SVMBatch, free: Array, upper: Array) -> tuple[Array, Array]:
    """Return directions (B, r) and multipliers (B, n) that satisfy the equations of the face."""
    y, c, m = batch.signs[0], batch.costs[0], len(free)
    X = batch.rows.features[free] * batch.scale[:, None]
    N = batch.deflated
    for _ in range(PASSES if N.shape[2] else 0):
        X -= (X @ N) @ N.mT
    centres = X.mean(axis=1)
    X -= centres[:, None]
    pushed = np.where(upper, y * c, 0.0)
    total, values = pushed.sum(), y[free]
    s = batch.project_all(batch.scale * (pushed @ batch.rows.features)) - centres * total
    sizes = (X * X).sum(axis=(1, 2))[:, None] / m  # beta is in units of 1 / size
    systems = np.ones((len(batch), m + 1, m + 1))
    systems[:, :m, :m] = (X @ X.mT) / sizes[:, :, None]
    systems[:, m, m] = 0.0
    inverses = np.linalg.inv(systems)
    beta, intercepts = np.zeros((len(batch), m)), np.zeros((len(batch), 1))
    right = np.empty((len(batch), m + 1))
    for _ in range(1 + REFINEMENTS):
        right[:, :m] = values - (X @ s[..., None])[..., 0] - intercepts
        right[:, m:] = (-total - beta.sum(axis=1, keepdims=True)) * sizes
        change = (inverses @ right[..., None])[..., 0]
        intercepts += change[:, m:]
        change = change[:, :m] / sizes
        beta += change
        s += (change[:, None] @ X)[:, 0]
    duals = np.where(upper, c, np.zeros((len(batch), 1)))
    duals[:, free] = values * beta
    return batch.project_all(s), duals
