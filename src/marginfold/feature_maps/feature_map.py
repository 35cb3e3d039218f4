"""What a feature map is: coordinates in which every method is linear.

A map has two doors.  Users go through `fit`, `transform`, `project` and `jacobian`, which validate
rows as every estimator does; estimators, whose rows are valid, through `fit_coordinates`,
`coordinates`, `images` and `derivatives`, which trust them and return arrays whatever output is
configured.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Literal, Protocol, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from marginfold.errors import InvalidInputError
from marginfold.linalg.tall import Array
from marginfold.runtime.threads import SizedCalls
from marginfold.validation.parameters import atomic_fit
from marginfold.validation.rows import check_weights, read_entries, refuse_lazy
from marginfold.validation.types import Rows, Weights

FIT_INSTEAD = "give it as the kernel of an estimator, which fits it on the cluster if it can"
"""What to do with a dask collection that a map is to be fitted on."""

MAP_INSTEAD = "go chunk by chunk with X.map_blocks(map.transform)"
"""What to do with a dask collection that is to be mapped."""


class FeatureMap(Protocol):
    """What estimators ask of a feature map; rows are arrays or CSR matrices that are valid."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by their names."""

    def set_params(self, **params: Any) -> Self:
        """Set parameters by their names."""

    def fit_coordinates(self, X: Any, *, sample_weight: Array | None = None) -> Array:
        """Fit and return the coordinates of the same rows."""

    def coordinates(self, X: Any) -> Array:
        """Return the coordinates of rows, shape (n_samples, rank)."""

    def images(self, X: Any, W: Array) -> Array:
        """Return ``coordinates(X) @ W``, without the coordinates in between if that is cheaper."""

    def derivatives(self, X: Any, W: Array) -> Array:
        """Return the derivatives of ``images(x, W)`` at rows x, shape (rows, k, features)."""

    def offsets(self, W: Array) -> Array:
        """Return what centring adds to ``images(X, W)``."""


class Transformer(Protocol):
    """A scikit-learn transformer, whose output can serve as coordinates."""

    def fit(self, X: Any, y: Any = None, /) -> Any:
        """Learn from rows."""

    def transform(self, X: Any, /) -> Any:
        """Return a row of coordinates for each row."""


KernelFunction = Callable[[Any, Any], Any]
"""The kernel matrix between the rows of two matrices."""

KernelName = Literal["linear", "rbf", "poly", "sigmoid", "cosine", "laplacian", "precomputed"]
"""The names of `marginfold.feature_maps.kernel_values.KERNELS`, for annotations."""

KernelLike = KernelName | KernelFunction | FeatureMap | Transformer
"""What an estimator takes as its kernel: a shorthand, a function, a feature map, a transformer."""


class CheckedMap(SizedCalls, TransformerMixin, BaseEstimator, ABC):
    """The public methods of a feature map: they validate, then call those that trust their rows."""

    def fit(self, X: Rows, y: object = None, *, sample_weight: Weights | None = None) -> Self:
        """Learn the coordinates; rows with weight 0 are ignored."""
        with atomic_fit(self):
            self._fit(*self._read_training(X, sample_weight))
        return self

    def fit_transform(
        self, X: Rows, y: object = None, *, sample_weight: Weights | None = None
    ) -> Array:
        """Fit and return the coordinates of the same rows, as `transform` does."""
        with atomic_fit(self):
            rows, weights = self._read_training(X, sample_weight)
            found = self._fit(rows, weights)
            return self.coordinates(rows) if found is None else found

    def fit_coordinates(self, X: Any, *, sample_weight: Array | None = None) -> Array:
        """Do what `fit_transform` does with rows and weights that are valid."""
        with atomic_fit(self):
            self.n_features_in_ = X.shape[1]
            found = self._fit(X, _weights(X, sample_weight))
            return self.coordinates(X) if found is None else found

    def transform(self, X: Rows) -> Array:
        """Return the coordinates of rows, shape (n_samples, rank)."""
        return self.coordinates(self._read_new(X))

    def project(self, X: Rows, W: Array) -> Array:
        """Return ``transform(X) @ W``, without the coordinates in between if that is cheaper."""
        return self.images(self._read_new(X), W)

    def jacobian(self, X: Rows, W: Array) -> Array:
        """Return the derivatives of ``project(x, W)`` at rows x, shape (rows, k, features).

        There is a closed form for the linear map and the kernels linear, rbf, poly, sigmoid and
        cosine.
        """
        return self.derivatives(self._read_new(X), W)

    @abstractmethod
    def coordinates(self, X: Any) -> Array:
        """Do what `transform` does with rows that are valid."""

    @abstractmethod
    def images(self, X: Any, W: Array) -> Array:
        """Do what `project` does with rows that are valid."""

    @abstractmethod
    def derivatives(self, X: Any, W: Array) -> Array:
        """Do what `jacobian` does with rows that are valid."""

    @abstractmethod
    def _fit(self, X: Any, weights: Array) -> Array | None:
        """Check the parameters and fit; return the coordinates of the rows if they are known."""

    def _read_training(self, X: Any, sample_weight: Any) -> tuple[Any, Array]:
        refuse_lazy(X, self, FIT_INSTEAD)
        X = self._read(X, reset=True)
        return X, check_weights(sample_weight, X.shape[0])

    def _read_new(self, X: Any) -> Any:
        check_is_fitted(self)
        refuse_lazy(X, self, MAP_INSTEAD)
        return self._read(X, reset=False)

    def _read(self, X: Any, *, reset: bool) -> Any:
        """Return finite rows, dense or CSR, whose features are learned or (no reset) known."""
        return read_entries(self, X, reset=reset)


def finite_images(values: Array) -> Array:
    """Return the images of rows, if they are finite: valid rows may still be too far away."""
    if not np.isfinite(values).all():
        raise InvalidInputError(
            "The coordinates of a row overflow: the rows are too far from those of the fit for "
            "this kernel. Scale them as the training rows, or leave such rows out."
        )
    return values


def _weights(X: Any, sample_weight: Array | None) -> Array:
    return np.ones(X.shape[0]) if sample_weight is None else sample_weight
