"""The kernel matrix whose eigenvectors are the coordinates: weighted and, if wanted, centred."""

from __future__ import annotations

from typing import Any

import numpy as np

from marginfold.errors import MarginfoldWarning, warn
from marginfold.feature_maps.kernel_values import finite_peak
from marginfold.linalg import leading_pairs
from marginfold.linalg.decompositions import eigh, product
from marginfold.linalg.tall import Array, column_signs

RANK_RESOLUTION = 1e-10
"""Eigenvalues below this share of the largest one are cut."""

INDEFINITE = 1e-6
"""A negative eigenvalue above this share of the largest one is worth a warning."""

CONSTANT_MARGIN = 4.0
"""Eigenvalues are noise up to this multiple of what centring leaves of the constant direction."""


class CentredKernel:
    """``R (I - 1s') K (I - s1') R`` with the shares s of the rows and ``R^2 = n diag(s)``.

    With ``u = R 1 / sqrt(n)`` this is ``(I - uu') R K R (I - uu')``: products need K only once, and
    no second matrix of its size.  Without centring it is ``R K R``.

    Parameters
    ----------
    K : array of shape (n, n)
        Symmetric up to rounding; it is not written to.
    share : array of shape (n,)
        Positive weights with sum 1.
    center : bool

    Attributes
    ----------
    column_means, mean : array of shape (n,) and float
        Weighted means of the kernel, zeros without centring.
    trace : float
        Of the whole matrix: the sum of its eigenvalues.
    peak : float
        The largest absolute entry of K.
    """

    def __init__(self, K: Array, share: Array, *, center: bool) -> None:
        self.K, self.share, self.center = K, share, center
        self.peak = finite_peak(K)
        self.roots = np.sqrt(share * len(K))
        self.column_means, self.mean = np.zeros(len(K)), 0.0
        if center:
            self.column_means = share @ K
            self.mean = float(self.column_means @ share)
        self.trace = len(K) * (float(share @ np.diagonal(K)) - self.mean)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return len(self.K), len(self.K)

    def __matmul__(self, V: Array) -> Array:
        rows = self._without_constant(V.T) * self.roots  # rows times a matrix are faster
        return self._without_constant((rows @ self.K) * self.roots).T

    def __array__(self, dtype: Any = None, copy: Any = None) -> Array:
        weighted = self.weighted(self.centred())
        return self._without_constant(self._without_constant(weighted).T)

    def centred(self) -> Array:
        """Return the centred kernel, K itself without centring."""
        if not self.center:
            return self.K
        out = self.K - self.column_means
        out -= (self.K @ self.share)[:, None]
        out += self.mean
        return out

    def weighted(self, centred: Array) -> Array:
        """Return the symmetrised centred kernel times the roots on both sides."""
        out = centred + centred.T
        out *= 0.5
        out *= self.roots[:, None]
        out *= self.roots
        return out

    def without_mean(self, mixtures: Array) -> Array:
        """Return mixtures of images about their mean as mixtures of the images themselves."""
        if not self.center:
            return mixtures
        return np.asarray(mixtures - np.outer(self.share, mixtures.sum(axis=0)))

    def rounding(self, weighted: Array | None = None) -> float:
        """Return the size of eigenvalues that are only rounding errors of K or of its centring."""
        noise = len(self.K) * float(np.finfo(float).eps) * self.peak
        if weighted is None or not self.center:
            return noise
        return max(noise, CONSTANT_MARGIN * float(np.linalg.norm(weighted @ self._constant)))

    @property
    def _constant(self) -> Array:
        """The direction u that centring removes."""
        return np.asarray(self.roots / np.linalg.norm(self.roots))

    def _without_constant(self, rows: Array) -> Array:
        """Return ``rows (I - uu')``."""
        if not self.center:
            return rows
        u = self._constant
        return rows - np.outer(rows @ u, u)


def kernel_coordinates(
    kernel: CentredKernel, rank: int | None, name: str
) -> tuple[Array, Array, Array]:
    """Return eigenvalues, the dual basis and the coordinates of the training rows.

    Eigenvalues at the rounding error of the kernel are no coordinates, negative ones neither.
    """
    roots = kernel.roots[:, None]
    if rank is None:
        centred = kernel.centred()
        weighted = kernel.weighted(centred)
        rounding = kernel.rounding(weighted)
        S, U = eigh(weighted)
    else:
        rounding = kernel.rounding()
        S, U = (pairs[..., ::-1] for pairs in leading_pairs(kernel, rank))
    if S[0] < -max(INDEFINITE * float(np.abs(S).max()), rounding):
        warn(
            f"The kernel {name} is not positive semi-definite (eigenvalue {S[0]:.3g} "
            f"beside {S[-1]:.3g}); its negative part is dropped.",
            MarginfoldWarning,
        )
    order = np.flatnonzero(S > max(RANK_RESOLUTION * float(S[-1]), rounding))[::-1]
    basis = kernel.without_mean(roots * U[:, order] / np.sqrt(S[order]))
    scores = product(centred, basis) if rank is None else U[:, order] * np.sqrt(S[order]) / roots
    signs = column_signs(scores)
    return S[order], basis * signs, np.asarray(scores * signs)
