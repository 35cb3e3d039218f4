"""Decompositions that Ctrl-C ends at once, however large the matrix is.

A call of LAPACK cannot be interrupted: Python raises KeyboardInterrupt only after it has returned,
for the eigenvectors of 6000 rows after a minute.  A large one runs in a thread of its own, and this
thread waits for it in short steps, between which Python looks for signals.  After an interrupt the
call comes to its end unheard, or ends with the process.  What can be cut into blocks is cut.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import copy_context
from functools import partial
from threading import Thread
from typing import Any, TypeVar

import numpy as np
import scipy.linalg
from scipy.linalg import lapack

from marginfold.linalg import blocked
from marginfold.linalg.blocked import blocks_of
from marginfold.linalg.syevr import syevr
from marginfold.linalg.tall import Array

LONG = 1500
"""Columns from which a decomposition takes longer than half a second on one core."""

STEP = 0.05
"""Seconds that a step of waiting takes at most."""

R = TypeVar("R")


def eigh(A: Array, subset: tuple[int, int] | None = None) -> tuple[Array, Array]:
    """Return the eigenvalues, smallest first, and eigenvectors of a finite symmetric matrix.

    Parameters
    ----------
    A : array of shape (n, n)
        Only the lower triangle is read.
    subset : pair of int, optional
        The numbers of the first and the last pair to return; None for all.

    Examples
    --------
    >>> import numpy as np
    >>> from marginfold.linalg.decompositions import eigh
    >>> eigh(np.diag([5.0, 1.0, 3.0]))[0]
    array([1., 3., 5.])
    """
    if len(A) < LONG:
        values, vectors = scipy.linalg.eigh(A, subset_by_index=subset, check_finite=False)
        return values, vectors
    return interruptible(partial(syevr, A, subset, vectors=True))


def eigvalsh(A: Array) -> Array:
    """Return the eigenvalues of a finite symmetric matrix, smallest first."""
    if len(A) < LONG:
        return np.asarray(scipy.linalg.eigvalsh(A, check_finite=False))
    return interruptible(partial(syevr, A, None, vectors=False))[0]


def qr(A: Array) -> tuple[Array, Array]:
    """Return orthonormal columns Q and a triangle R with ``A = Q R``, as many as the smaller side.

    The entries of A are finite.
    """
    if min(A.shape) < LONG:
        Q, R = scipy.linalg.qr(A, mode="economic", check_finite=False)
        return Q, R
    Q, R = interruptible(partial(np.linalg.qr, A))  # unlike SciPy's, it lets other threads run
    return Q, R


def cholesky(A: Array, *, lower: bool, overwrite: bool = False) -> tuple[Array, bool]:
    """Return the lower triangle F with ``F F' = A``, or its transpose, and whether there is none.

    What is on the other side of the diagonal is not defined.  With ``overwrite`` A may be written
    to: if its columns are contiguous, that saves a copy.
    """
    if len(A) < LONG:
        factor, failed = lapack.dpotrf(A, lower=int(lower), clean=0, overwrite_a=int(overwrite))
        return factor, bool(failed)
    factor = np.array(A, order="C")
    definite = blocked.cholesky(factor, "factorisation")
    return np.asfortranarray(factor) if lower else factor.T, not definite


def solve_lower(F: Array, B: Array, *, transposed: bool = False) -> Array:
    """Return ``F^-1 B``, or ``F^-T B``, for a lower triangle F; few columns of B at a time."""
    options: dict[str, Any] = {"lower": True, "trans": int(transposed), "check_finite": False}
    if min(len(F), B.shape[1]) < LONG:
        return np.asarray(scipy.linalg.solve_triangular(F, B, **options))
    out = np.empty(B.shape, order="F")
    for block in blocks_of(len(F), B.shape[1]):
        out[:, block] = scipy.linalg.solve_triangular(F, B[:, block], **options)
    return out


def product(A: Array, B: Array, out: Array | None = None) -> Array:
    """Return ``A B``, block by block of the rows of A if both are large."""
    if min(*A.shape, *B.shape) < LONG:
        return np.asarray(np.matmul(A, B, out=out))
    found = np.empty((len(A), B.shape[1])) if out is None else out
    for block in blocks_of(len(A)):
        np.matmul(A[block], B, out=found[block])
    return found


def interruptible(function: Callable[[], R]) -> R:
    """Return what a function returns that takes long, and gives up Python's lock meanwhile."""
    found: list[R] = []
    failed: list[BaseException] = []

    def call() -> None:
        try:
            found.append(function())
        except BaseException as error:
            failed.append(error)

    thread = Thread(target=copy_context().run, args=(call,), daemon=True)
    thread.start()
    while thread.is_alive():
        thread.join(STEP)
    if failed:
        raise failed[0]
    return found[0]
