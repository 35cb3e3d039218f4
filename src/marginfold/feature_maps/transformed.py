"""Any scikit-learn transformer as a feature map."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.utils.validation import check_is_fitted

from marginfold.errors import InvalidInputError
from marginfold.feature_maps.feature_map import CheckedMap
from marginfold.feature_maps.kernel_values import missing_gradient
from marginfold.linalg.tall import Array, by_columns, dense
from marginfold.validation.parameters import Flag, check_parameters, shown


class Transformed(CheckedMap):
    """Centred output of a scikit-learn transformer (Nystroem, RBFSampler, a pipeline ...).

    Parameters
    ----------
    transformer : estimator
        It is cloned and fitted without labels and without sample weights, on the rows whose weight
        is positive.
    center : bool, default=True
        Whether the (weighted) mean of its output is subtracted.

    Attributes
    ----------
    transformer_ : estimator
        The fitted clone.
    mean_ : array of shape (n_outputs,)
        What is subtracted from its output, zeros with ``center=False``.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.preprocessing import PolynomialFeatures
    >>> from marginfold.feature_maps import Transformed
    >>> X = np.array([[0.0], [1.0], [2.0]])
    >>> bool(abs(Transformed(PolynomialFeatures(2)).fit_transform(X).mean(axis=0)).max() < 1e-12)
    True
    """

    def __init__(self, transformer: Any, *, center: bool = True) -> None:
        self.transformer = transformer
        self.center = center

    def coordinates(self, X: Any) -> Array:
        """Do what `transform` does with rows that are valid."""
        return self._output(X) - self.mean_

    def images(self, X: Any, W: Array) -> Array:
        """Do what `project` does with rows that are valid."""
        return by_columns(self.coordinates(X), W)

    def offsets(self, W: Array) -> Array:
        """Return what is added to uncentred outputs: ``project(X, W) = output W + offsets(W)``."""
        check_is_fitted(self)
        return np.asarray(-(self.mean_ @ W))

    def derivatives(self, X: Any, W: Array) -> NoReturn:
        """Raise `InvalidInputError`: the derivative of a transformer is not known."""
        raise missing_gradient(f"The transformer {shown(self.transformer)}")

    def _fit(self, X: Any, weights: Array) -> Array:
        """Fit a clone of the transformer and the mean of its output; return the coordinates."""
        check_parameters(self, {"center": Flag()})
        kept = np.flatnonzero(weights)
        self.transformer_ = clone(self.transformer)
        try:
            self._fit_transformer(X if len(kept) == X.shape[0] else _rows(X, kept))
        except TypeError as error:
            raise InvalidInputError(
                f"The transformer {self.transformer!r} cannot be fitted on rows alone "
                f"({error}); use one that needs no labels as a kernel."
            ) from error
        output = self._output(X)
        mean = weights @ output / weights.sum()
        self.mean_ = mean if self.center else np.zeros_like(mean)
        return np.asarray(output - self.mean_)

    def _read(self, X: Any, *, reset: bool) -> Any:
        """Return rows as they are: the transformer knows what it takes."""
        return X if hasattr(X, "shape") else np.asarray(X)

    def _fit_transformer(self, X: Any) -> None:
        """Fit the clone on rows alone; a frozen one, which is fitted, wants to see labels."""
        if isinstance(self.transformer_, FrozenEstimator):
            self.transformer_.fit(X, None)
        else:
            self.transformer_.fit(X)

    def _output(self, X: Any) -> Array:
        Z = self.transformer_.transform(X)
        Z = dense(Z).astype(np.float64)
        if Z.ndim != 2 or len(Z) != X.shape[0] or not np.isfinite(Z).all():
            raise InvalidInputError(
                f"The transformer {self.transformer!r} returned an array of shape {Z.shape} for "
                f"{X.shape[0]} rows; it needs finite coordinates, one row for each row."
            )
        return Z


def _rows(X: Any, kept: Array) -> Any:
    """Return some rows of an array, sparse matrix or data frame."""
    return X.iloc[kept] if hasattr(X, "iloc") else X[kept]
