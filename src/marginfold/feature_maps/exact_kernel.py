"""Exact kernel coordinates: Z Z' is the centred kernel of the training rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Self

import numpy as np
import scipy.linalg
import scipy.sparse
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.utils.validation import check_is_fitted, validate_data

from marginfold.atomic import atomic_fit
from marginfold.errors import InvalidInputError, InvalidParameterError, MarginfoldWarning, warn
from marginfold.parameters import Choice, Count, Either, Number, check_parameters, shown
from marginfold.rows import Array, column_signs, dense
from marginfold.weights import check_weights

KERNELS = ("linear", "rbf", "poly", "sigmoid", "cosine", "laplacian", "precomputed")
"""Kernel names that `ExactKernel` takes."""

GAMMA_KERNELS = ("rbf", "poly", "sigmoid", "laplacian")
"""Kernels with a parameter gamma."""

TRANSLATION_FREE = ("rbf", "laplacian")
"""Kernels of the difference between rows."""

RANK_RESOLUTION = 1e-10
"""Eigenvalues below this share of the largest one are cut."""

INDEFINITE = 1e-6
"""A negative eigenvalue above this share of the largest one is worth a warning."""

ASYMMETRY = 1e-8
"""Largest asymmetry of a precomputed kernel, relative to its largest entry."""

GAMMA = Either(Choice("scale", "auto"), Number(0.0, inclusive=False))

BLOCK_BYTES = 32 << 20
"""Largest kernel block that is formed when new rows are mapped."""


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

    Attributes
    ----------
    gamma_ : float
        The coefficient used.
    eigenvalues_ : array of shape (rank,)
        The positive eigenvalues of the centred kernel.
    dual_basis_ : array of shape (n_training_rows, rank)
        ``U S^(-1/2)``: coordinates are centred kernel values times this.
    training_rows_ : array
        The training rows (their indices if the kernel is precomputed), without those of weight 0.
    origin_ : array or 0
        What is subtracted from all rows first, for kernels that do not notice it.
    share_, column_means_, mean_kernel_ : arrays and float
        Their weights, and the weighted means of the kernel that centre it.

    Notes
    -----
    Time grows with the cube and memory with the square of the number of rows.  Eigenvalues below
    1e-10 of the largest are cut: a kernel matrix is never inverted.

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
    ) -> None:
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0

    def fit(self, X: Any, y: Any = None, *, sample_weight: Any = None) -> Self:
        """Learn the coordinates; rows with weight 0 are ignored."""
        self._fit(X, sample_weight)
        return self

    def fit_transform(self, X: Any, y: Any = None, *, sample_weight: Any = None) -> Array:
        """Fit and return the coordinates of the same rows, as `transform` does."""
        return self._fit(X, sample_weight).coordinates(X)

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

    def _fit(self, X: Any, sample_weight: Any) -> Self:
        with atomic_fit(self):
            self._check()
            X = validate_data(self, X, accept_sparse="csr", dtype=np.float64)
            weights = check_weights(sample_weight, X.shape[0])
            kept = np.flatnonzero(weights)
            self.share_ = weights[kept] / weights.sum()
            self.gamma_ = self._resolve_gamma(X, weights)
            if isinstance(self.kernel, str) and self.kernel == "precomputed":
                self.training_rows_ = kept
                K = _square(X)[np.ix_(kept, kept)]
            else:
                self.origin_ = self._choose_origin(X[kept])
                self.training_rows_ = self._moved(X[kept])
                K = self._kernel_matrix(X[kept])
            self.column_means_ = self.share_ @ K
            self.mean_kernel_ = float(self.column_means_ @ self.share_)
            self._decompose(K)
        return self

    def _choose_origin(self, X: Any) -> Any:
        """Return a point among the rows: distances between remote rows would lose digits."""
        remote = self.kernel in TRANSLATION_FREE and not scipy.sparse.issparse(X)
        return X.mean(axis=0) if remote else 0.0

    def _moved(self, X: Any) -> Any:
        return dense(X) - self.origin_ if np.ndim(self.origin_) else X

    def _decompose(self, K: Array) -> None:
        """Find the coordinates; eigenvalues at the rounding error of K are no coordinates."""
        centred = K - self.column_means_ - (K @ self.share_)[:, None] + self.mean_kernel_
        roots = np.sqrt(self.share_ * len(K))
        weighted = roots[:, None] * (0.5 * (centred + centred.T)) * roots
        S, U = scipy.linalg.eigh(weighted, check_finite=False)
        rounding = len(K) * np.finfo(float).eps * float(np.abs(K).max())
        if S[0] < -max(INDEFINITE * float(np.abs(S).max()), rounding):
            warn(
                f"The kernel {self.kernel!r} is not positive semi-definite (eigenvalue {S[0]:.3g} "
                f"beside {S[-1]:.3g}); its negative part is dropped.",
                MarginfoldWarning,
            )
        smallest = max(RANK_RESOLUTION * float(S[-1]), rounding)
        order = np.flatnonzero(S > smallest)[::-1]
        self.eigenvalues_ = S[order]
        basis = roots[:, None] * U[:, order] / np.sqrt(S[order])
        self.dual_basis_ = basis * column_signs(centred @ basis)

    def _times(self, X: Any, A: Array) -> Array:
        """Return the centred kernel rows times A, block by block."""
        X = validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=False)
        out = np.empty((X.shape[0], A.shape[1]))
        for block in self._blocks(X.shape[0]):
            K = self._kernel_matrix(X[block])
            K = K - (K @ self.share_)[:, None] - (self.column_means_ - self.mean_kernel_)
            out[block] = K @ A
        return out

    def _blocks(self, n_rows: int) -> Iterator[slice]:
        size = max(1, BLOCK_BYTES // (8 * len(self.share_)))
        return (slice(start, start + size) for start in range(0, n_rows, size))

    def _kernel_matrix(self, X: Any) -> Array:
        """Return the kernel between rows and the training rows."""
        if isinstance(self.kernel, str) and self.kernel == "precomputed":
            return dense(X)[:, self.training_rows_]
        X = self._moved(X)
        if not callable(self.kernel):
            parameters = {"gamma": self.gamma_, "degree": self.degree, "coef0": self.coef0}
            K = pairwise_kernels(
                X, self.training_rows_, metric=self.kernel, filter_params=True, **parameters
            )
            return np.asarray(K)
        K = np.asarray(self.kernel(X, self.training_rows_))
        shape = (X.shape[0], self.training_rows_.shape[0])
        if K.shape != shape or K.dtype.kind not in "biuf" or not np.isfinite(K).all():
            raise InvalidInputError(
                f"The kernel function returned {_kind(K)} of shape {K.shape} for {shape[0]} and "
                f"{shape[1]} rows; it must return one value per pair, a finite number."
            )
        return K.astype(np.float64)

    def _check(self) -> None:
        if not callable(self.kernel) and not Choice(*KERNELS).allows(self.kernel):
            raise InvalidParameterError(
                f"ExactKernel: kernel must be one of {', '.join(KERNELS)}, or a function of two "
                f"matrices; got {shown(self.kernel)}."
            )
        check_parameters(self, {"degree": Count(1), "coef0": Number(), "gamma": GAMMA})

    def _resolve_gamma(self, X: Any, weights: Array) -> float:
        if not isinstance(self.gamma, str):
            return float(self.gamma)
        if self.gamma == "scale" and self.kernel in GAMMA_KERNELS:
            variance = _variance(X, weights)
            return 1.0 / (X.shape[1] * variance) if variance > 0 else 1.0
        return 1.0 / X.shape[1]

    @property
    def _n_features_out(self) -> int:
        return len(self.eigenvalues_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = isinstance(self.kernel, str) and self.kernel == "precomputed"
        tags.transformer_tags.preserves_dtype = ["float64"]
        return tags


def _variance(X: Any, weights: Array) -> float:
    """Return the weighted variance of all entries of X."""
    entries = weights.sum() * X.shape[1]
    mean = float(np.asarray(weights @ X).sum() / entries)
    if scipy.sparse.issparse(X):
        return float(np.asarray(weights @ X.multiply(X)).sum() / entries) - mean**2
    return float((weights @ (X - mean) ** 2).sum() / entries)


def _kind(K: Array) -> str:
    """Say what kind of values an array holds."""
    if K.dtype.kind not in "biuf":
        return f"{K.dtype} values"
    return "numbers" if np.isfinite(K).all() else "NaN or infinite numbers"


def _square(K: Any) -> Array:
    """Return a precomputed kernel as an array, if it is square and symmetric."""
    K = dense(K)
    if K.shape[0] != K.shape[1]:
        raise InvalidInputError(
            f"A precomputed kernel must be square in fit; got shape {K.shape}. "
            "Give the kernel between all training rows."
        )
    difference = float(np.abs(K - K.T).max())
    if difference > ASYMMETRY * float(np.abs(K).max()):
        raise InvalidInputError(
            f"A precomputed kernel must be symmetric in fit; entries differ by {difference:.3g} "
            "from their mirror images. Use (K + K.T) / 2 if that is what you mean."
        )
    return K
