"""Base of the kernel maps: coordinates as kernel expansions over some training rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.base import ClassNamePrefixFeaturesOutMixin
from sklearn.utils import check_consistent_length
from sklearn.utils.validation import check_is_fitted, validate_data

from marginfold.feature_maps.feature_map import CheckedMap, finite_images
from marginfold.feature_maps.fixed_point import as_points, fixed_points, require_preimages
from marginfold.feature_maps.kernel_gradients import kernel_gradients, require_gradient
from marginfold.feature_maps.kernel_values import (
    GAMMA,
    TRANSLATION_FREE,
    KernelFunction,
)
from marginfold.linalg.tall import Array, by_columns, dense
from marginfold.validation.parameters import (
    LARGEST_FACTOR,
    Choice,
    Constraint,
    Count,
    Either,
    Flag,
    Number,
)

BLOCK_BYTES = 32 << 20
"""Largest kernel block that is formed when rows are mapped."""

PROJECT_BYTES = 2 << 20
"""The same when they are projected on directions, which are few: it stays in the cache."""

GLANCE = 100
"""Rows among which a kernel function must be symmetric."""

PARAMETERS: dict[str, Constraint] = {
    "degree": Count(1),
    "coef0": Number(-LARGEST_FACTOR, LARGEST_FACTOR),
    "gamma": GAMMA,
    "rank": Either(Choice(None), Count(1)),
    "center": Flag(),
}


class KernelMap(ClassNamePrefixFeaturesOutMixin, CheckedMap):
    """Coordinates ``z(x) = (k(x, T) - column_means_) dual_basis_`` with training rows T.

    A subclass has the parameters of a kernel and ``_fit``, which stores `gamma_`, `eigenvalues_`
    and the attributes below, and returns the coordinates of its rows if all of them count.

    Attributes
    ----------
    training_rows_ : array
        The rows T (their indices if the kernel is precomputed).
    origin_ : array or 0
        What is subtracted from all rows first, for kernels that do not notice it.
    dual_basis_ : array of shape (n_training_rows, rank)
        The directions, as mixtures of the images of T.
    column_means_ : array of shape (n_training_rows,)
        Weighted means of the kernel between all rows and T, zeros without centring.
    share_ : array of shape (n_training_rows,)
        The mean of all images as a mixture of those of T.
    """

    kernel: Any
    gamma: Any
    degree: int
    coef0: float
    center: bool
    gamma_: float
    eigenvalues_: Array
    training_rows_: Any
    origin_: Any
    dual_basis_: Array
    column_means_: Array
    share_: Array

    def coordinates(self, X: Any) -> Array:
        """Do what `transform` does with rows that are valid."""
        return self._times(X, self.dual_basis_, np.matmul)

    def images(self, X: Any, W: Array) -> Array:
        """Do what `project` does with rows that are valid: one (n_training_rows, k) matrix."""
        return self._times(X, self._mixtures(W), by_columns, PROJECT_BYTES)

    def offsets(self, W: Array) -> Array:
        """Return what centring adds: ``project(X, W) = <phi(x), v> + offsets(W)``, v = W's columns.

        phi is the feature map of the kernel and v the direction with the coordinates W.
        """
        check_is_fitted(self)
        return np.asarray(-self.column_means_ @ self._mixtures(W))

    def derivatives(self, X: Any, W: Array) -> Array:
        """Do what `jacobian` does with rows that are valid."""
        require_gradient(self.kernel)
        C = self._mixtures(W)
        out = np.empty((X.shape[0], C.shape[1], X.shape[1]))
        for block in self._blocks(X.shape[0], BLOCK_BYTES):
            rows = dense(self._moved(X[block]))
            with np.errstate(over="ignore", invalid="ignore"):  # looked at below
                out[block] = kernel_gradients(self._function, rows, self.training_rows_, C)
        return finite_images(out)

    def preimages(self, U: Any, start: Any = None) -> Array:
        """Return input rows whose images are closest to the points with coordinates U (rbf only).

        Parameters
        ----------
        U : array of shape (n_points, rank)
            Coordinates, for example ``transform(X)`` or what is left of it in a subspace.
        start : array of shape (n_points, n_features), optional
            Where the fixed-point iteration starts; None: the one of `training_rows_` that is
            closest in feature space.  The result is never farther than that; it is a local optimum
            unless the iteration reaches its limit or the start has no overlap with the point.
        """
        check_is_fitted(self)
        require_preimages(self.kernel)
        U = as_points(U, len(self.eigenvalues_))
        if start is not None:
            start = self._moved(validate_data(self, start, dtype=np.float64, reset=False))
            check_consistent_length(U, start)
        out = np.empty((len(U), self.n_features_in_))
        for block in self._blocks(len(U), BLOCK_BYTES):
            mixed = U[block] @ self.dual_basis_.T + (self.share_ if self.center else 0.0)
            first = self._closest_rows(mixed) if start is None else start[block]
            out[block] = fixed_points(self._function, self.training_rows_, mixed, first)
        return out + self.origin_

    def _mixtures(self, W: Array) -> Array:
        """Return directions with coordinates W as mixtures of the images of the training rows."""
        return by_columns(self.dual_basis_, W)

    def _closest_rows(self, mixed: Array) -> Array:
        """Return the training rows with the largest inner product with mixtures of their images."""
        best, largest = np.zeros(len(mixed), dtype=int), np.full(len(mixed), -np.inf)
        for block in self._blocks(len(self.share_), BLOCK_BYTES):
            overlaps = mixed @ self._function(self.training_rows_, self.training_rows_[block])
            candidate = overlaps.argmax(axis=1)
            value = overlaps[np.arange(len(mixed)), candidate]
            best = np.where(value > largest, candidate + block.start, best)
            largest = np.maximum(value, largest)
        return dense(self.training_rows_[best])

    def _glance(self, rows: Any) -> None:
        """Refuse a kernel function that is not symmetric, where the whole kernel is never seen."""
        if callable(self.kernel):
            self._function.symmetric(rows[:GLANCE])

    def _choose_origin(self, X: Any) -> Any:
        """Return a point among the rows: distances between remote rows would lose digits."""
        remote = self.kernel in TRANSLATION_FREE and not scipy.sparse.issparse(X)
        return X.mean(axis=0) if remote else 0.0

    def _moved(self, X: Any) -> Any:
        return dense(X) - self.origin_ if np.ndim(self.origin_) else X

    def _times(
        self,
        X: Any,
        A: Array,
        product: Callable[[Array, Array], Array],
        block_bytes: int | None = None,
    ) -> Array:
        """Return the centred kernel rows times A, block by block."""
        out = np.empty((X.shape[0], A.shape[1]))
        with np.errstate(over="ignore", invalid="ignore"):  # looked at below
            for block in self._blocks(X.shape[0], block_bytes or BLOCK_BYTES):
                K = self._kernel_matrix(X[block])
                out[block] = product(K - self.column_means_ if self.center else K, A)
        return finite_images(out)

    def _blocks(self, n_rows: int, block_bytes: int) -> Iterator[slice]:
        size = max(1, block_bytes // (8 * max(1, len(self.share_))))
        return (slice(start, start + size) for start in range(0, n_rows, size))

    def _kernel_matrix(self, X: Any) -> Array:
        """Return the kernel between rows and the training rows."""
        if self._precomputed:
            return dense(X[:, self.training_rows_])
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
