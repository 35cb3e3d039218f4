"""The linear feature map: centred rows, in a basis of their span when there are few of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np
import scipy.linalg
import scipy.sparse
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from marginfold.feature_maps.reading import read_rows
from marginfold.linalg.tall import Array, by_columns, column_signs, dense
from marginfold.validation.fitted_state import atomic_fit
from marginfold.validation.parameters import Flag, check_parameters
from marginfold.validation.weights import check_weights

SPAN_RESOLUTION = 1e-12
"""Relative size of a singular value that counts as zero in the span of the rows."""


class Linear(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Centre the rows; with more features than rows, work in an orthonormal basis of their span.

    ``Z = (X - mean) B`` with B the identity or, when n_features > n_samples, an orthonormal basis
    of the span of the centred training rows (their principal axes).  Nothing of size
    n_features x n_features is formed.

    Parameters
    ----------
    center : bool, default=True
        Whether the mean is subtracted; without it the basis of wide data spans the rows as they
        are.

    Attributes
    ----------
    mean_ : array of shape (n_features,)
        The (weighted) mean of the training rows, zeros with ``center=False``.
    basis_ : array of shape (n_features, rank) or None
        The basis B, None for the identity.

    Notes
    -----
    Sparse input is accepted.  The coordinates are dense: for sparse data with very many features
    use ``ExactKernel("linear")``, which keeps the rows sparse.

    Examples
    --------
    >>> import numpy as np
    >>> from marginfold import Linear
    >>> Linear().fit_transform(np.array([[0.0, 0.0], [2.0, 0.0], [1.0, 3.0]]))
    array([[-1., -1.],
           [ 1., -1.],
           [ 0.,  2.]])
    >>> wide = np.eye(3, 50)
    >>> Linear().fit(wide).transform(wide).shape
    (3, 2)
    """

    def __init__(self, *, center: bool = True) -> None:
        self.center = center

    def fit(self, X: Any, y: Any = None, *, sample_weight: Any = None) -> Self:
        """Learn the mean and, for wide data, the basis; rows with weight 0 are ignored."""
        with atomic_fit(self):
            check_parameters(self, {"center": Flag()})
            X = read_rows(self, X)
            weights = check_weights(sample_weight, X.shape[0])
            kept = np.flatnonzero(weights)
            rows = X if len(kept) == X.shape[0] else X[kept]
            self.mean_ = _mean(rows, weights[kept]) if self.center else np.zeros(X.shape[1])
            self.basis_ = None
            if len(kept) < X.shape[1]:
                self.basis_ = _principal_axes(rows, self.mean_, weights[kept])
        return self

    def fit_coordinates(self, X: Any, *, sample_weight: Any = None) -> Array:
        """Fit and return the coordinates of the same rows."""
        return self.fit(X, sample_weight=sample_weight).coordinates(X)

    def transform(self, X: Any) -> Array:
        """Return the coordinates, shape (n_samples, n_features or rank)."""
        return self.coordinates(X)

    def coordinates(self, X: Any) -> Array:
        """Return what `transform` returns, as an array whatever output is configured."""
        X = self._validated(X)
        if self.basis_ is None:
            return dense(X) - self.mean_
        return self._times(X, self.basis_, np.matmul)

    def project(self, X: Any, W: Array) -> Array:
        """Return ``transform(X) @ W`` without the coordinates in between."""
        return self._times(self._validated(X), self.in_input_units(W), by_columns)

    def offsets(self, W: Array) -> Array:
        """Return what is added to uncentred features: ``project(X, W) = X B W + offsets(W)``."""
        check_is_fitted(self)
        return np.asarray(-(self.mean_ @ self.in_input_units(W)))

    def jacobian(self, X: Any, W: Array) -> Array:
        """Return the derivatives of ``project(x, W)``, shape (rows, k, features).

        They are the same at every row; the array is a read-only view of one of them.
        """
        directions = self.in_input_units(W).T
        return np.broadcast_to(directions, (self._validated(X).shape[0], *directions.shape))

    def in_input_units(self, W: Array) -> Array:
        """Return directions, given as columns in coordinates, as columns in input features."""
        return W if self.basis_ is None else by_columns(self.basis_, W)

    def _times(self, X: Any, B: Array, product: Callable[[Array, Array], Array]) -> Array:
        if scipy.sparse.issparse(X):
            return np.asarray(X @ B) - product(self.mean_[None], B)
        return product(X - self.mean_, B)

    def _validated(self, X: Any) -> Any:
        check_is_fitted(self)
        return read_rows(self, X, reset=False)

    @property
    def _n_features_out(self) -> int:
        return len(self.mean_) if self.basis_ is None else int(self.basis_.shape[1])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64"]
        return tags


def _mean(rows: Any, weights: Array) -> Array:
    """Return the weighted mean; of a constant column exactly its value, so that it centres to 0."""
    mean = np.asarray(weights @ rows).ravel() / weights.sum()
    low, high = (dense(bound).ravel() for bound in (rows.min(axis=0), rows.max(axis=0)))
    return np.where(low == high, low, mean)


def _principal_axes(rows: Any, mean: Array, weights: Array) -> Array:
    """Return the principal axes of the rows by QR, then the SVD of the small factor.

    They do not depend on whether a row is repeated or has a weight; signs make the largest entry
    of each axis positive.
    """
    weighted = (dense(rows) - mean) * np.sqrt(weights)[:, None]
    Q, R = scipy.linalg.qr(weighted.T, mode="economic", check_finite=False)
    U, sizes, _ = scipy.linalg.svd(R, check_finite=False)
    axes = Q @ U[:, sizes > SPAN_RESOLUTION * sizes[0]]
    return np.asarray(axes * column_signs(axes))
