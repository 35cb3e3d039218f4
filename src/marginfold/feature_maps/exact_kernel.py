"""Exact kernel coordinates: Z Z' is the centred kernel of the training rows."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from marginfold.feature_maps.centred_kernel import CentredKernel, kernel_coordinates
from marginfold.feature_maps.feature_map import KernelFunction, KernelName
from marginfold.feature_maps.kernel_map import BLOCK_BYTES, PARAMETERS, KernelMap
from marginfold.feature_maps.kernel_values import (
    check_kernel,
    resolve_gamma,
    shown_function,
    square_kernel,
    symmetrised,
)
from marginfold.linalg.leading import LARGE_SHARE
from marginfold.linalg.tall import Array
from marginfold.runtime.memory import require_memory
from marginfold.validation.parameters import check_parameters, shown

ALL_COPIES, MANY_COPIES, FEW_COPIES = 9, 6, 2
"""Measured: matrices of rows by rows that are held at the peak for all coordinates, for a large
share of them, and for few."""

LOW_RANK = 500
"""Rank of the kernel that is proposed instead of one that does not fit into memory."""


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
