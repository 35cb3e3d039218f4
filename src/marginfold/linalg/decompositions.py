"""Decompositions that Ctrl-C ends at once, however large the matrix is.

A call of LAPACK cannot be interrupted: Python raises KeyboardInterrupt only after it has returned,
for the eigenvectors of 6000 rows after a minute.  A large one runs in a thread of its own, and this
thread waits for it in short steps, between which Python looks for signals.  After an interrupt the
call comes to its end unheard, or ends with the process.  SciPy's wrapper of the eigenvalue problem
would hold Python's lock meanwhile; `ctypes` gives it up.

What can be cut into blocks is cut: every call takes a fraction of a second, and between two of them
the work is reported and can be cancelled.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from contextvars import copy_context
from functools import cache, partial
from threading import Thread
from typing import Any, TypeVar

import numpy as np
import scipy.linalg
from scipy import LowLevelCallable
from scipy.linalg import LinAlgError, cython_lapack, lapack, solve_triangular

from marginfold.linalg.tall import Array
from marginfold.runtime.progress import report

LONG = 1500
"""Columns from which a decomposition takes longer than half a second on one core."""

STEP = 0.05
"""Seconds that a step of waiting takes at most."""

QUERY = -1
"""Length of a workspace that asks for the best length."""

CALL_OPERATIONS = 1e10
"""Floating-point operations of one call, about a third of a second on one core."""

LEAST_BLOCK, LARGEST_BLOCK = 64, 1024
"""Rows of a block: with fewer the calls themselves cost time, with more the cache is left."""

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
    definite = factorise(factor, "factorisation")
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


def syevr(A: Array, subset: tuple[int, int] | None, *, vectors: bool) -> tuple[Array, Array]:
    """Return eigenvalues, smallest first, and eigenvectors (an empty array without ``vectors``).

    The lower triangle of A is read, and A is not written to.  The results are those of
    `scipy.linalg.eigh`, to the last bit.
    """
    n = len(A)
    first, last = (0, n - 1) if subset is None else subset
    a = np.array(A, dtype=np.float64, order="F")
    m = last - first + 1
    z = np.empty((n, m) if vectors else (1, 1), order="F")
    values, support = np.empty(n), np.empty(2 * max(1, m), dtype=np.intc)
    found, info = ctypes.c_int(), ctypes.c_int()

    def call(work: Array, lwork: int, iwork: Array, liwork: int) -> None:
        _dsyevr()(
            b"V" if vectors else b"N",
            b"A" if subset is None else b"I",
            b"L",
            _int(n),
            a.ctypes,
            _int(n),
            _float(0.0),
            _float(1.0),
            _int(first + 1),
            _int(last + 1),
            _float(0.0),
            ctypes.byref(found),
            values.ctypes,
            z.ctypes,
            _int(len(z)),
            support.ctypes,
            work.ctypes,
            _int(lwork),
            iwork.ctypes,
            _int(liwork),
            ctypes.byref(info),
        )

    work, iwork = np.empty(1), np.empty(1, dtype=np.intc)
    call(work, QUERY, iwork, QUERY)
    lwork, liwork = int(work[0]), int(iwork[0])
    call(np.empty(lwork), lwork, np.empty(liwork, dtype=np.intc), liwork)
    if info.value:
        raise LinAlgError(f"LAPACK's dsyevr failed on a matrix of {n} rows (info {info.value}).")
    return values[: found.value], z[:, : found.value] if vectors else z[:0, :0]


@cache
def _dsyevr() -> Any:
    """Return the routine that SciPy offers to compiled code."""
    capsule = LowLevelCallable.from_cython(cython_lapack, "dsyevr").function
    python = ctypes.pythonapi
    python.PyCapsule_GetName.restype = ctypes.c_char_p
    python.PyCapsule_GetName.argtypes = [ctypes.py_object]
    python.PyCapsule_GetPointer.restype = ctypes.c_void_p
    python.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    address = python.PyCapsule_GetPointer(capsule, python.PyCapsule_GetName(capsule))
    letters, pointers = [ctypes.c_char_p] * 3, [ctypes.c_void_p] * 18
    return ctypes.CFUNCTYPE(None, *letters, *pointers)(address)


def _int(value: int) -> Any:
    return ctypes.byref(ctypes.c_int(value))


def _float(value: float) -> Any:
    return ctypes.byref(ctypes.c_double(value))


def blocks_of(n: int, n_rows: int | None = None) -> Iterator[slice]:
    """Yield slices of rows (n of them) whose products with an n x n matrix are short calls."""
    fitting = int(CALL_OPERATIONS / (2.0 * n * n)) if n else LARGEST_BLOCK
    size = min(max(fitting, LEAST_BLOCK), LARGEST_BLOCK)
    end = n if n_rows is None else n_rows
    return (slice(start, min(start + size, end)) for start in range(0, end, size))


def factorise(A: Array, stage: str) -> bool:
    """Write the lower Cholesky factor over A; return False if A is not positive definite.

    Only the lower triangle is read; what is above it is set to zero.
    """
    n = len(A)
    for block in blocks_of(n):
        report(stage, block.start, n)
        own, below = A[block, block], A[block.stop :, block]
        if block.start:
            known = A[block, : block.start]
            own -= known @ known.T
            below -= A[block.stop :, : block.start] @ known.T
        factor, failed = lapack.dpotrf(own, lower=1, clean=1)
        if failed:
            return False
        own[:] = factor
        below[:] = solve_triangular(factor, below.T, lower=True, check_finite=False).T
        A[block, block.stop :] = 0.0
    return True


def reverse_factorise(A: Array, stage: str) -> bool:
    """Write an upper triangle R with ``A = R R'`` over A; else as `cholesky`, upper for lower."""
    flipped = np.ascontiguousarray(A[::-1, ::-1])
    definite = factorise(flipped, stage)
    A[:] = flipped[::-1, ::-1]
    return definite


def form_of(C: Array, LC: Array, stage: str) -> Array:
    """Return ``C' LC`` for a lower triangle C, if that is symmetric."""
    n = len(C)
    M = np.empty((n, n))
    for block in blocks_of(n):
        report(stage, block.start, n)
        M[block.start :, block] = C[block.start :, block.start :].T @ LC[block.start :, block]
    return mirrored(M)


def quotient(C: Array, R: Array, stage: str) -> None:
    """Write ``C R^-T``, a lower triangle, over the lower triangle C; R is an upper one."""
    n = len(C)
    for block in reversed(list(blocks_of(n))):
        report(stage, n - block.stop, n)
        rows = C[block, : block.stop].T
        triangle = R[: block.stop, : block.stop]
        C[block, : block.stop] = solve_triangular(triangle, rows, check_finite=False).T


def square_of(U: Array, stage: str) -> Array:
    """Return ``U U'`` for a lower triangle U."""
    n = len(U)
    G = np.empty((n, n))
    for block in blocks_of(n):
        report(stage, block.start, n)
        G[block, : block.stop] = U[block, : block.stop] @ U[: block.stop, : block.stop].T
    return mirrored(G)


def mirrored(A: Array) -> Array:
    """Write the lower triangle of A over the upper one, block by block, and return A."""
    for block in blocks_of(len(A)):
        A[: block.start, block] = A[block, : block.start].T
        own = A[block, block]
        own[:] = np.tril(own) + np.tril(own, -1).T
    return A
