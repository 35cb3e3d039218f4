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
from marginfold.solvers.crossover import REFINEMENTS, VIOLATION, face_of, is_too_large
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
        s, intercepts, duals = _solve_faces(part, free, upper)
    except np.linalg.LinAlgError:
        return []
    excess = part.signs * ((s * part.scale) @ part.rows.features.T + intercepts) - 1.0
    wrong = (lower & (excess < -VIOLATION)) | (upper & (excess > VIOLATION))
    wrong |= (duals < 0.0) | (duals > part.costs)
    good = _leading(~wrong.any(axis=1))
    if not good:
        return []
    part = batch.take(problems[:good])
    found = certify_all(part, s[:good], duals[:good], n_iter=0, tol=tol)
    return found[: _leading(np.array([solution.gap <= EXACT for solution in found]))]


def _leading(flags: Array) -> int:
    """Return the number of true values before the first that is not."""
    return len(flags) if flags.all() else int(flags.argmin())


def _solve_faces(batch: SVMBatch, free: Array, upper: Array) -> tuple[Array, Array, Array]:
    """Return directions, biases and multipliers that satisfy the equations of the face.

    Shapes (B, r), (B, 1) and (B, n).
    """
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
    sizes[sizes == 0] = 1.0  # a single row
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
    s = batch.project_all(s)
    return s, intercepts - (centres * s).sum(axis=1, keepdims=True), duals
