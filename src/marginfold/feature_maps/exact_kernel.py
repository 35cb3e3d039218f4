"""Exact kernel coordinates: Z Z' is the centred kernel of the training rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Self

import numpy as np
import scipy.sparse
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_consistent_length
from sklearn.utils.validation import check_is_fitted, validate_data

from marginfold.atomic import atomic_fit
from marginfold.feature_maps.centred_kernel import CentredKernel, kernel_coordinates
from marginfold.feature_maps.fixed_point import as_points, fixed_points, require_preimages
from marginfold.feature_maps.kernel_gradients import kernel_gradients, require_gradient
from marginfold.feature_maps.kernel_values import (
    GAMMA,
    TRANSLATION_FREE,
    KernelFunction,
    check_kernel,
    resolve_gamma,
    square_kernel,
    symmetrised,
)
from marginfold.parameters import (
    Choice,
    Constraint,
    Count,
    Either,
    Flag,
    Number,
    check_parameters,
    shown,
)
from marginfold.rows import Array, dense
from marginfold.weights import check_weights

BLOCK_BYTES = 32 << 20
"""Largest kernel block that is formed when new rows are mapped."""

PARAMETERS: dict[str, Constraint] = {
    "degree": Count(1),
    "coef0": Number(),
    "gamma": GAMMA,
    "rank": Either(Choice(None), Count(1)),
    "center": Flag(),
}


class ExactKernel(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
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
        Number of leading coordinates to find, fewer if the kernel has no more; None for all.  A
        small rank saves the cube of the rows: see `leading_pairs`.
    center : bool, default=True
        Whether the kernel is centred.  Without, ``Z Z' = K``.

    Attributes
    ----------
    gamma_ : float
        The coefficient used.
    eigenvalues_ : array of shape (rank,)
        The positive eigenvalues of the centred (and weighted) kernel, the leading ones if `rank`
        is given.
    trace_ : float
        The sum of all its eigenvalues, also of those that are cut.
    dual_basis_ : array of shape (n_training_rows, rank)
        ``U S^(-1/2)``: coordinates are centred kernel values times this.
    training_rows_ : array
        The training rows (their indices if the kernel is precomputed), without those of weight 0.
    origin_ : array or 0
        What is subtracted from all rows first, for kernels that do not notice it.
    share_, column_means_, mean_kernel_ : arrays and float
        Their weights, and the weighted means of the kernel that centre it (zeros if it is not).

    Notes
    -----
    Time grows with the cube and memory with the square of the number of rows.  Eigenvalues below
    1e-10 of the largest are cut: a kernel matrix is never inverted.  With `rank` time and memory
    grow with the square; only the leading eigenvalues are looked at, so that an indefinite kernel
    is noticed only if they include a negative one.

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
        kernel: Any = "rbf",
        *,
        gamma: Any = "scale",
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

    def fit(self, X: Any, y: Any = None, *, sample_weight: Any = None) -> Self:
        """Learn the coordinates; rows with weight 0 are ignored."""
        self._fit(X, sample_weight)
        return self

    def fit_transform(self, X: Any, y: Any = None, *, sample_weight: Any = None) -> Array:
        """Fit and return the coordinates of the same rows, as `transform` does."""
        return self.fit_coordinates(X, sample_weight=sample_weight)

    def fit_coordinates(self, X: Any, *, sample_weight: Any = None) -> Array:
        """Return what `fit_transform` returns, as an array; `rank` spares it a second kernel."""
        scores = self._fit(X, sample_weight)
        known = self.rank is not None and len(scores) == np.shape(X)[0]
        return scores if known else self.coordinates(X)

    def transform(self, X: Any) -> Array:
        """Return the coordinates of rows, shape (n_samples, rank)."""
        return self.coordinates(X)

    def coordinates(self, X: Any) -> Array:
        """Return what `transform` returns, as an array whatever output is configured."""
        check_is_fitted(self)
        return self._times(X, self.dual_basis_)

    def project(self, X: Any, W: Array) -> Array:
        """Return ``transform(X) @ W`` through one (n_training_rows, k) matrix."""
        check_is_fitted(self)
        return self._times(X, self.dual_basis_ @ W)

    def offsets(self, W: Array) -> Array:
        """Return what centring adds: ``project(X, W) = <phi(x), v> + offsets(W)``, v = W's columns.

        phi is the feature map of the kernel and v the direction with the coordinates W.
        """
        check_is_fitted(self)
        return np.asarray((self.mean_kernel_ - self.column_means_) @ (self.dual_basis_ @ W))

    def jacobian(self, X: Any, W: Array) -> Array:
        """Return the derivatives of ``project(x, W)`` at rows x, shape (rows, k, features).

        There is a closed form for the kernels linear, rbf, poly, sigmoid and cosine.
        """
        check_is_fitted(self)
        require_gradient(self.kernel)
        X = validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=False)
        C = self._mixtures(W)
        out = np.empty((X.shape[0], C.shape[1], X.shape[1]))
        for block in self._blocks(X.shape[0]):
            rows = dense(self._moved(X[block]))
            out[block] = kernel_gradients(self._function, rows, self.training_rows_, C)
        return out

    def preimages(self, U: Any, start: Any = None) -> Array:
        """Return input rows whose images are closest to the points with coordinates U (rbf only).

        Parameters
        ----------
        U : array of shape (n_points, rank)
            Coordinates, for example ``transform(X)`` or what is left of it in a subspace.
        start : array of shape (n_points, n_features), optional
            Where the fixed-point iteration starts; None: the training row that is closest in
            feature space.  The result is never farther than that; it is a local optimum unless
            the iteration reaches its limit or the start has no overlap with the point.
        """
        check_is_fitted(self)
        require_preimages(self.kernel)
        U = as_points(U, len(self.eigenvalues_))
        if start is not None:
            start = self._moved(validate_data(self, start, dtype=np.float64, reset=False))
            check_consistent_length(U, start)
        C = self._mixtures(np.eye(len(self.eigenvalues_)))
        out = np.empty((len(U), self.n_features_in_))
        for block in self._blocks(len(U)):
            mixed = U[block] @ C.T + (self.share_ if self.center else 0.0)
            nearest = self._overlaps(U[block]).argmax(axis=1)
            first = dense(self.training_rows_[nearest]) if start is None else start[block]
            out[block] = fixed_points(self._function, self.training_rows_, mixed, first)
        return out + self.origin_

    def _overlaps(self, U: Array) -> Array:
        """Return inner products of points with the images of the training rows."""
        Z = self.dual_basis_ * self.eigenvalues_ / (len(self.share_) * self.share_)[:, None]
        return np.asarray(U @ (Z - self.offsets(np.eye(U.shape[1]))).T + self.column_means_)

    def _mixtures(self, W: Array) -> Array:
        """Return the coefficients C with ``project(X, W) = k(X, training rows) C + constant``."""
        A = self.dual_basis_ @ W
        return A - np.outer(self.share_, A.sum(axis=0)) if self.center else A

    def _fit(self, X: Any, sample_weight: Any) -> Array:
        """Fit and return the coordinates of the training rows."""
        with atomic_fit(self):
            check_kernel(self.kernel)
            check_parameters(self, PARAMETERS)
            X = validate_data(self, X, accept_sparse="csr", dtype=np.float64)
            weights = check_weights(sample_weight, X.shape[0])
            kept = np.flatnonzero(weights)
            self.share_ = weights[kept] / weights.sum()
            self.gamma_ = resolve_gamma(self.gamma, self.kernel, X, weights)
            K = self._training_kernel(X, kept)
            kernel = CentredKernel(K, self.share_, center=self.center)
            self.column_means_, self.mean_kernel_ = kernel.column_means, kernel.mean
            self.trace_ = kernel.trace
            self.eigenvalues_, self.dual_basis_, scores = kernel_coordinates(
                kernel, self.rank, shown(self.kernel)
            )
        return scores

    def _training_kernel(self, X: Any, kept: Array) -> Array:
        """Store the training rows and return the kernel among them."""
        if self._precomputed:
            self.training_rows_ = kept
            K = square_kernel(X)[np.ix_(kept, kept)]
            return K if self.rank is None else symmetrised(K)
        self.origin_ = self._choose_origin(X[kept])
        self.training_rows_ = self._moved(X[kept])
        if self.rank is None:
            return self._kernel_matrix(X[kept])
        return self._function.symmetric(self.training_rows_)

    def _choose_origin(self, X: Any) -> Any:
        """Return a point among the rows: distances between remote rows would lose digits."""
        remote = self.kernel in TRANSLATION_FREE and not scipy.sparse.issparse(X)
        return X.mean(axis=0) if remote else 0.0

    def _moved(self, X: Any) -> Any:
        return dense(X) - self.origin_ if np.ndim(self.origin_) else X

    def _times(self, X: Any, A: Array) -> Array:
        """Return the centred kernel rows times A, block by block."""
        X = validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=False)
        out = np.empty((X.shape[0], A.shape[1]))
        for block in self._blocks(X.shape[0]):
            K = self._kernel_matrix(X[block])
            if self.center:
                K = K - (K @ self.share_)[:, None] - (self.column_means_ - self.mean_kernel_)
            out[block] = K @ A
        return out

    def _blocks(self, n_rows: int) -> Iterator[slice]:
        size = max(1, BLOCK_BYTES // (8 * len(self.share_)))
        return (slice(start, start + size) for start in range(0, n_rows, size))

    def _kernel_matrix(self, X: Any) -> Array:
        """Return the kernel between rows and the training rows."""
        if self._precomputed:
            return dense(X)[:, self.training_rows_]
        return self._function(self._moved(X), self.training_rows_)

    @property
    def _function(self) -> KernelFunction:
        return KernelFunction(self.kernel, self.gamma_, self.degree, self.coef0)

    @property
    def _precomputed(self) -> bool:
        return isinstance(self.kernel, str) and self.kernel == "precomputed"

    @property
    def _n_features_out(self) -> int:
        return len(self.eigenvalues_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = self._precomputed
        tags.transformer_tags.preserves_dtype = ["float64"]
        return tags
