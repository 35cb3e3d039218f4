"""The linear feature map: centred rows, in a basis of their span when there are few of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse
from sklearn.base import ClassNamePrefixFeaturesOutMixin
from sklearn.utils.validation import check_is_fitted

from marginfold.feature_maps.feature_map import CheckedMap, finite_images
from marginfold.linalg.decompositions import qr
from marginfold.linalg.tall import Array, by_columns, column_signs, dense
from marginfold.validation.parameters import Flag, atomic_fit, check_parameters

SPAN_RESOLUTION = 1e-12
"""Relative size of a singular value that counts as zero in the span of the rows."""

GLANCE = 100
"""Rows that are looked at to find columns that may be constant."""


class Linear(ClassNamePrefixFeaturesOutMixin, CheckedMap):
    """Centre the rows; with more features than rows, work in an orthonormal basis of their span.

    ``Z = (X - mean) B`` with B the identity or, when n_features > n_samples, an orthonormal basis
    of the span of the centred training rows (their principal axes).  Nothing of size
    n_features x n_features is formed.

    Parameters
    ----------
    center : bool, default=True
        Whether the mean is subtracted; without it the basis of wide data spans the rows without
        centring.

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

    def coordinates(self, X: Any) -> Array:
        """Do what `transform` does with rows that are valid."""
        if self.basis_ is None:
            return dense(X) - self.mean_
        return self._times(X, self.basis_, np.matmul)

    def images(self, X: Any, W: Array) -> Array:
        """Do what `project` does with rows that are valid."""
        return self._times(X, self.in_input_units(W), by_columns)

    def offsets(self, W: Array) -> Array:
        """Return what is added to uncentred features: ``project(X, W) = X B W + offsets(W)``."""
        check_is_fitted(self)
        return np.asarray(-(self.mean_ @ self.in_input_units(W)))

    def derivatives(self, X: Any, W: Array) -> Array:
        """Return the derivatives, the same at every row, as a read-only view of one of them."""
        directions = self.in_input_units(W).T
        return np.broadcast_to(directions, (X.shape[0], *directions.shape))

    def in_input_units(self, W: Array) -> Array:
        """Return directions, given as columns in coordinates, as columns in input features."""
        return W if self.basis_ is None else by_columns(self.basis_, W)

    def fit_mean(self, X: Any, *, sample_weight: Array) -> bool:
        """Fit valid rows; return whether their coordinates are ``X - mean_``, with no basis."""
        with atomic_fit(self):
            self.n_features_in_ = X.shape[1]
            self._fit(X, sample_weight)
        return self.basis_ is None

    def _fit(self, X: Any, weights: Array) -> None:
        """Learn the mean and, for wide data, the basis."""
        check_parameters(self, {"center": Flag()})
        kept = np.flatnonzero(weights)
        if len(kept) < X.shape[0]:
            X, weights = X[kept], weights[kept]
        self.mean_ = _mean(X, weights) if self.center else np.zeros(X.shape[1])
        self.basis_ = None
        if len(kept) < X.shape[1]:
            self.basis_ = _principal_axes(X, self.mean_, weights)

    def _times(self, X: Any, B: Array, product: Callable[[Array, Array], Array]) -> Array:
        with np.errstate(over="ignore", invalid="ignore"):  # looked at by `finite_images`
            if scipy.sparse.issparse(X):
                return finite_images(np.asarray(X @ B) - product(self.mean_[None], B))
            return finite_images(product(X - self.mean_, B))

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
    first = dense(rows[:1])[0]
    # few rows tell that most columns vary, so that the others alone are looked at in full
    columns = np.flatnonzero((dense(rows[:: max(1, rows.shape[0] // GLANCE)]) == first).all(axis=0))
    if len(columns):
        some = rows[:, columns]
        low, high = (dense(bound).ravel() for bound in (some.min(axis=0), some.max(axis=0)))
        columns = columns[low == high]
        mean[columns] = first[columns]
    return mean


def _principal_axes(rows: Any, mean: Array, weights: Array) -> Array:
    """Return the principal axes of the rows by QR, then the SVD of the small factor.

    They do not depend on whether a row is repeated or has a weight; signs make the largest entry
    of each axis positive.
    """
    weighted = (dense(rows) - mean) * np.sqrt(weights)[:, None]
    Q, R = qr(weighted.T)
    U, sizes, _ = scipy.linalg.svd(R, check_finite=False)
    axes = Q @ U[:, sizes > SPAN_RESOLUTION * sizes[0]]
    return np.asarray(axes * column_signs(axes))
