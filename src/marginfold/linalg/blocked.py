"""Factorisations of large matrices in blocks, so that none of them keeps a user waiting.

A call of LAPACK cannot be interrupted.  Here every call takes a fraction of a second; between two
of them the work is reported and can be cancelled.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.linalg import lapack, solve_triangular

from marginfold.linalg.tall import Array
from marginfold.runtime.progress import report

CALL_OPERATIONS = 1e10
"""Floating-point operations of one call, about a third of a second on one core."""

LEAST_BLOCK, LARGEST_BLOCK = 64, 1024
"""Rows of a block: with fewer the calls themselves cost time, with more the cache is left."""


def blocks_of(n: int, n_rows: int | None = None) -> Iterator[slice]:
    """Yield slices of rows (n of them) whose products with an n x n matrix are short calls."""
    fitting = int(CALL_OPERATIONS / (2.0 * n * n)) if n else LARGEST_BLOCK
    size = min(max(fitting, LEAST_BLOCK), LARGEST_BLOCK)
    end = n if n_rows is None else n_rows
    return (slice(start, min(start + size, end)) for start in range(0, end, size))


def cholesky(A: Array, stage: str) -> bool:
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


def reverse_cholesky(A: Array, stage: str) -> bool:
    """Write an upper triangle R with ``A = R R'`` over A; else as `cholesky`, upper for lower."""
    flipped = np.ascontiguousarray(A[::-1, ::-1])
    definite = cholesky(flipped, stage)
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
