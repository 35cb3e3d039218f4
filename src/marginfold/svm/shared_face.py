"""Problems that follow each other on one face, solved together.

Along a chain (see `chains`) the sets of multipliers at 0, at their bound and between often stay the
same for a while.  The equations of this face (see `faces`) then differ only in the metric and
in what is deflated: they are solved side by side, and so are the certificates computed.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from marginfold.linalg.tall import Array
from marginfold.svm.active_set import VIOLATION, FaceRules, face_of, most_free, solve_faces
from marginfold.svm.certificate import Limits, certify_all, solution_of
from marginfold.svm.problem import EXACT, SVMBatch, SVMSolution


def solve_on_face(
    batch: SVMBatch, problems: Sequence[int], dual: Array, *, tol: float
) -> list[SVMSolution]:
    """Return the exact solutions on the face of the given multipliers, up to the first that is not.

    The problems have the same labels and costs.
    """
    lower, upper = face_of(dual, batch.costs[problems[0]])
    free = np.flatnonzero(~(lower | upper))
    if not 0 < len(free) <= most_free(batch):
        return []
    compiled = batch.compiled_functions("compiled_finish")
    if compiled is not None:
        stacks = batch.scale[problems], batch.deflated[problems]
        good, *points = compiled.solve_on_face(
            batch.arrays(problems[0]), *stacks, lower, upper, Limits(), FaceRules()
        )
        coefs, intercepts, duals, objectives = (part[:good] for part in points)
        return [
            solution_of((coef, intercept, dual, *values), n_iter=0, tol=tol)
            for coef, intercept, dual, values in zip(
                coefs, intercepts, duals, objectives, strict=True
            )
        ]
    part = batch.take(problems)
    s, _, duals, excess = solve_faces(part, free, upper)
    wrong = (lower & (excess < -VIOLATION)) | (upper & (excess > VIOLATION))
    wrong |= (duals < 0.0) | (duals > part.costs)
    good = _leading(np.logical_not(wrong.any(axis=1)))
    if not good:
        return []
    part = batch.take(problems[:good])
    found = certify_all(part, s[:good], duals[:good], n_iter=0, tol=tol)
    return found[: _leading(np.array([solution.gap <= EXACT for solution in found]))]


def _leading(flags: Array) -> int:
    """Return the number of true values before the first that is not."""
    return len(flags) if flags.all() else int(flags.argmin())
