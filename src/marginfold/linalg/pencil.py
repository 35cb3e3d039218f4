"""Generalised eigenvalue problem: the largest eigenpairs of a symmetric-definite pencil."""

from __future__ import annotations

import numpy as np
import scipy.linalg

from marginfold.errors import InvalidParameterError
from marginfold.linalg.leading import leading_pairs
from marginfold.linalg.tall import Array


def pencil_pairs(A: Array, B: Array, k: int) -> tuple[Array, Array]:
    """Return the k largest pairs of ``A v = mu B v``, with ``v'Bv = 1``, largest first.

    Parameters
    ----------
    A : array of shape (r, r)
        Symmetric.
    B : array of shape (r, r)
        Symmetric and positive definite: it stands on the right, so that a singular A is harmless.
    k : int
        At most r pairs are returned.

    Examples
    --------
    >>> import numpy as np
    >>> from marginfold.linalg import pencil_pairs
    >>> values, vectors = pencil_pairs(np.diag([1.0, 6.0]), np.diag([1.0, 2.0]), 1)
    >>> values
    array([3.])
    """
    r = len(A)
    k = min(k, r)
    if k == 0:  # SciPy before 1.14 decomposes no empty matrix
        return np.zeros(0), np.zeros((r, 0))
    F = definite_factor(B)
    half = scipy.linalg.solve_triangular(F, A, lower=True, check_finite=False)
    C = scipy.linalg.solve_triangular(F, half.T, lower=True, check_finite=False)
    values, vectors = leading_pairs(0.5 * (C + C.T), k)  # F^-1 A F^-T, with v = F^-T u
    return values, scipy.linalg.solve_triangular(
        F, vectors, lower=True, trans=1, check_finite=False
    )


def definite_factor(B: Array) -> Array:
    """Return the lower Cholesky factor of a matrix that a ridge should have made definite."""
    try:
        return np.asarray(scipy.linalg.cholesky(B, lower=True, check_finite=False))
    except scipy.linalg.LinAlgError as error:
        raise InvalidParameterError(
            "The ridge (or shrinkage) is too small: the problem is not definite beyond rounding. "
            "Raise it, 1e-8 is a safe relative value."
        ) from error
