"""Exact kernel coordinates: Z Z' is the centred kernel of the training rows.

They are the eigenvectors of the kernel matrix, weighted and, if wanted, centred.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from marginfold.errors import MarginfoldWarning, warn
from marginfold.feature_maps.feature_map import KernelFunction, KernelName
from marginfold.feature_maps.kernel_map import BLOCK_BYTES, PARAMETERS, KernelMap
from marginfold.feature_maps.kernel_values import (
    check_kernel,
    finite_peak,
    resolve_gamma,
    shown_function,
    square_kernel,
    symmetrised,
)
from marginfold.linalg import leading_pairs
from marginfold.linalg.decompositions import eigh, product
from marginfold.linalg.leading import LARGE_SHARE
from marginfold.linalg.tall import Array, column_signs
from marginfold.runtime.memory import require_memory
from marginfold.validation.parameters import check_parameters, shown

ALL_COPIES, MANY_COPIES, FEW_COPIES = 9, 6, 2
"""Measured: matrices of rows by rows that are held at the peak for all coordinates, for a large
share of them, and for few."""

LOW_RANK = 500
"""Rank of the kernel that is proposed instead of one that does not fit into memory."""

RANK_RESOLUTION = 1e-10
"""Eigenvalues below this share of the largest one are cut."""

INDEFINITE = 1e-6
"""A negative eigenvalue above this share of the largest one is worth a warning."""

CONSTANT_MARGIN = 4.0
"""Eigenvalues are noise up to this multiple of what centring leaves of the constant direction."""


class ExactKernel(KernelMap):
    """Coordinates in which a kernel method is a linear method, without approximation.

    With K_c the centred kernel of the training rows and ``K_c = U S U'``, the coordinates of a row
    are ``z(x) = k_c(x) U S^(-1/2)``; on the training rows ``Z Z' = K_c``.  They are the scores of
    kernel PCA (with sample weights: of the weighted rows), with the largest score positive.

    Parameters
    ----------
    kernel : str or callable, default="rbf"
        "linear", "rbf", "poly", "sigmoid", "cosine", "laplacian", "precomputed", or a function of
        two matrices that returns the kernel matrix between their rows.
    gamma : "scale", "auto" or float, default="scale"
        Kernel coefficient: "scale" is 1 / (n_features * variance of X), "auto" 1 / n_features.
    degree : int, default=3
        Degree of the polynomial kernel.
    coef0 : float, default=1.0
        Constant of the polynomial and sigmoid kernels.
    rank : int or None, default=None
        Number of leading coordinates to find, fewer if the kernel has no more; None for all.  With
        a small rank the time does not grow with the cube of the rows: see `leading_pairs`.
    center : bool, default=True
        Whether the kernel is centred.  Without centring ``Z Z' = K``.

    Attributes
    ----------
    gamma_ : float
        The coefficient used.
    eigenvalues_ : array of shape (rank,)
        The positive eigenvalues of the centred (and weighted) kernel, the leading ones if `rank`
        is given.
    trace_ : float
        The sum of all its eigenvalues, including those that are left out.
    dual_basis_ : array of shape (n_training_rows, rank)
        ``U S^(-1/2)``: coordinates are centred kernel values times this.
    training_rows_ : array
        The training rows (their indices if the kernel is precomputed), without those of weight 0.
    origin_ : array or 0
        What is subtracted from all rows first, for kernels that a shift of all rows does not
        change.
    share_, column_means_, mean_kernel_ : arrays and float
        Their weights, and the weighted means of the kernel that centre it (zeros if it is not).

    Notes
    -----
    Time grows with the cube and memory with the square of the number of rows: from about 10,000
    rows on use `LowRankKernel`.  What does not fit into memory is refused before it is allocated.
    Eigenvalues below 1e-10 of the largest are left out: a kernel matrix is never inverted.  With
    `rank` time and memory grow with the square; only the leading eigenvalues are looked at, so that
    an indefinite kernel is noticed only if they include a negative one.

    Examples
    --------
    >>> import numpy as np
    >>> from marginfold import ExactKernel
    >>> X = np.array([[0.0], [1.0], [3.0]])
    >>> Z = ExactKernel("rbf", gamma=0.5).fit_transform(X)
    >>> gap = Z[0] - Z[1]
    >>> bool(np.isclose(gap @ gap, 2 - 2 * np.exp(-0.5)))  # squared distance in feature space
    True
    """

    def __init__(
        self,
        kernel: KernelName | KernelFunction = "rbf",
        *,
        gamma: float | Literal["scale", "auto"] = "scale",
        degree: int = 3,
        coef0: float = 1.0,
        rank: int | None = None,
        center: bool = True,
    ) -> None:
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.rank = rank
        self.center = center

    def _fit(self, X: Any, weights: Array) -> Array | None:
        """Fit and return the coordinates of the rows, None if some of them have no weight."""
        check_kernel(self)
        check_parameters(self, PARAMETERS)
        kept = np.flatnonzero(weights)
        self._require_memory(len(kept))
        self.share_ = weights[kept] / weights.sum()
        self.gamma_ = resolve_gamma(self.gamma, self.kernel, X, weights)
        K = self._training_kernel(X, kept)
        kernel = CentredKernel(K, self.share_, center=self.center)
        self.column_means_, self.mean_kernel_ = kernel.column_means, kernel.mean
        self.trace_ = kernel.trace
        self.eigenvalues_, self.dual_basis_, scores = kernel_coordinates(
            kernel, self.rank, shown(self.kernel)
        )
        return scores if len(scores) == X.shape[0] else None

    def _require_memory(self, n: int) -> None:
        """Refuse a kernel matrix that does not fit, before anything of its size exists."""
        if self.rank is None:
            copies = ALL_COPIES
        else:
            copies = FEW_COPIES if self.rank <= LARGE_SHARE * n else MANY_COPIES
        require_memory(
            8.0 * copies * n * n + BLOCK_BYTES,
            f"An exact kernel of {n} rows",
            f"kernel=LowRankKernel({shown_function(self.kernel)}, gamma={self.gamma!r}, "
            f"degree={self.degree}, coef0={self.coef0}, rank={LOW_RANK}, center={self.center}), "
            "whose memory grows with rows times rank.",
        )

    def _training_kernel(self, X: Any, kept: Array) -> Array:
        """Store the training rows and return the kernel among them."""
        if self._precomputed:
            self.training_rows_ = kept
            K = square_kernel(X)[np.ix_(kept, kept)]
            return K if self.rank is None else symmetrised(K)
        self.origin_ = self._choose_origin(X[kept])
        self.training_rows_ = self._moved(X[kept])
        if self.rank is None and not callable(self.kernel):
            return self._kernel_matrix(X[kept])
        return self._function.symmetric(self.training_rows_)


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
