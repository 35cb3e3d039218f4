"""Deflation: which directions are taken, and what that means for the next problem.

A new direction must be orthogonal to the earlier ones, ``W'w = 0``.  With ``w = D^(-1/2) s`` that
is ``(D^(-1/2) W)'s = 0``: in whitened coordinates a plain Euclidean projection.  Both sets are kept
orthonormal by Gram-Schmidt in two passes.  One pass is not enough: w is a sum with massive
cancellation, and the papers' recursions lose orthogonality completely after five components.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
import scipy.linalg

from marginfold.linalg.tall import Array, column_signs
from marginfold.svm.problem import without

NO_VARIANCE = 1e-12
"""Share of the total variance below which a direction has none."""


@dataclass(frozen=True)
class Deflation:
    """Directions found so far, in the eigenvectors' coordinates.

    Attributes
    ----------
    W : array of shape (r, k)
        Orthonormal directions.
    N : array of shape (r, k)
        Orthonormal basis of ``scale * W``: where whitened weights must not go.
    """

    W: Array
    N: Array

    @classmethod
    def none(cls, n_coordinates: int) -> Self:
        """Return the start: nothing is deflated."""
        return cls(W=np.zeros((n_coordinates, 0)), N=np.zeros((n_coordinates, 0)))

    def append(self, w: Array, scale: Array) -> Self:
        """Add the direction of w (not zero)."""
        direction = orthonormal_part(w, self.W)  # 000 Alg. 1 step 7; P_k of (7) is I - W W'
        normal = orthonormal_part(scale * direction, self.N)
        return type(self)(
            W=np.column_stack([self.W, direction]), N=np.column_stack([self.N, normal])
        )

    def complement(self, s: Array) -> Array:
        """Return whitened vectors (rows) without their deflated part."""
        return without(self.N, s.T).T


def orthonormal_part(w: Array, W: Array) -> Array:
    """Return the unit vector along the part of w that is orthogonal to the columns of W."""
    w = without(W, w / np.sqrt(w @ w))
    return np.asarray(w / np.sqrt(w @ w))


def leading_directions(total: Array, W: Array, n_directions: int) -> Array:
    """Return the leading eigenvectors of the total scatter in the complement of W.

    The sign of each makes its largest entry positive; directions without variance are left out.
    """
    r, k = W.shape
    if k == r:  # SciPy before 1.14 decomposes no empty matrix
        return np.zeros((r, 0))
    basis = scipy.linalg.qr(W)[0][:, k:] if k else np.eye(r)
    variances, vectors = scipy.linalg.eigh(basis.T @ total @ basis)
    varying = np.flatnonzero(variances > NO_VARIANCE * np.trace(total))[::-1]
    directions = basis @ vectors[:, varying[:n_directions]]
    return np.asarray(directions * column_signs(directions))
