"""Base of the transformers: projection on directions, reconstruction and loadings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_array, check_is_fitted

from marginfold.errors import InvalidInputError
from marginfold.estimators.reconstruction import (
    AffineSubspace,
    Reconstruction,
    check_components,
    check_reconstruct,
    learn_reconstruction,
)
from marginfold.feature_maps import is_linear, is_pairwise
from marginfold.linalg.tall import Array, dense, row_blocks
from marginfold.validation.row_types import refuse_lazy
from marginfold.validation.rows import read_new_rows, row_by_row


def _can_rebuild(estimator: Any) -> bool:
    if is_linear(estimator.kernel) or estimator.reconstruct is not None:
        return True
    raise AttributeError(
        f"{type(estimator).__name__} with kernel={estimator.kernel!r} needs a reconstruction to go "
        "back to input rows: fit it with reconstruct='kernel_ridge', 'linear', 'fixed_point' "
        "(rbf) or a regressor."
    )


class Projection(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Rows projected on directions in the coordinates of a feature map, and the way back."""

    kernel: Any
    reconstruct: Any
    feature_map_: Any
    directions_: Array
    n_components_: int
    components_: Array
    mean_: Array

    def _check_reconstruct(self) -> None:
        check_reconstruct(type(self).__name__, self.reconstruct, is_pairwise(self.kernel))

    def _store_directions(self, feature_map: Any, directions: Array) -> None:
        self.feature_map_ = feature_map
        self.directions_ = directions
        self.n_components_ = directions.shape[1]
        self.components_ = directions.T.copy()
        if is_linear(self.kernel):
            self.components_ = feature_map.in_input_units(directions).T.copy()
            self.mean_ = feature_map.mean_.copy()

    def _learn_reconstruction(self, X: Any, weights: Array) -> None:
        if self.reconstruct is not None:
            directions = self._scaled_directions()
            scores = self.feature_map_.images(X, directions)
            self.reconstruction_: Reconstruction = learn_reconstruction(
                self.reconstruct, self.feature_map_, directions, scores, X, weights
            )

    def _scaled_directions(self) -> Array:
        """Return the directions as `transform` applies them."""
        return self.directions_

    @row_by_row
    def transform(self, X: Any) -> Array:
        """Return the rows in the subspace, shape (n_samples, n_components_).

        A row's image depends on that row alone.
        """
        return self._images(X)

    @available_if(_can_rebuild)  # type: ignore[untyped-decorator]
    def inverse_transform(self, X: Any, components: Sequence[int] | None = None) -> Array:
        """Return rows in input space for images.

        Parameters
        ----------
        X : array of shape (n_samples, n_components_)
            Images; with ``components`` one column for each of them.
        components : sequence of int, optional
            The components that the columns belong to.

        Returns
        -------
        array of shape (n_samples, n_features)
            With ``reconstruct=None`` (linear kernel) the point of the affine subspace through the
            mean; otherwise what the reconstruction has learned.
        """
        check_is_fitted(self)
        refuse_lazy(X, self, "go chunk by chunk with X.map_blocks(model.inverse_transform)")
        scores = check_array(X, dtype=np.float64)
        chosen = check_components(components, self.n_components_)
        if scores.shape[1] != len(chosen):
            raise InvalidInputError(
                f"X has {scores.shape[1]} columns, but {type(self).__name__} has {len(chosen)} "
                f"{'components' if components is None else 'chosen components'}."
            )
        return self._reconstruction().rebuild(scores, chosen)

    @available_if(_can_rebuild)  # type: ignore[untyped-decorator]
    def denoise(self, X: Any, components: Sequence[int] | None = None) -> Array:
        """Return the rows as rebuilt from their images, or from some components of them."""
        images = self._images(X)
        chosen = check_components(components, self.n_components_)
        return np.asarray(self.inverse_transform(images[:, chosen], components))

    @available_if(_can_rebuild)  # type: ignore[untyped-decorator]
    def reconstruction_error(self, X: Any, components: Sequence[int] | None = None) -> float:
        """Return the mean squared distance between rows and what is rebuilt of them."""
        rows = dense(read_new_rows(self, X))
        rebuilt = self.denoise(X, components)
        return float(((rows - rebuilt) ** 2).sum(axis=1).mean())

    def loadings(self, X: Any) -> Array:
        """Return the derivative of the map at each row, exact.

        Shape (n_samples, n_components_, n_features): how each component changes with each feature.
        For the linear kernel it is the same everywhere; rbf, polynomial, sigmoid and cosine
        kernels have a closed form.
        """
        X = read_new_rows(self, X)
        return np.asarray(self.feature_map_.derivatives(X, self._scaled_directions()))

    def feature_contributions(self, X: Any) -> Array:
        """Return the mean size of the loadings over rows, shape (n_components_, n_features).

        Features in different units do not compare: standardise them first.  The mean with signs
        is ``loadings(X).mean(axis=0)``.
        """
        X = read_new_rows(self, X)
        directions = self._scaled_directions()
        total = np.zeros((self.n_components_, X.shape[1]))
        for block in row_blocks(X.shape[0], total.size):
            total += np.abs(self.feature_map_.derivatives(X[block], directions)).sum(axis=0)
        return total / X.shape[0]

    def _images(self, X: Any) -> Array:
        """Return what `transform` returns, as an array whatever output is configured."""
        X = read_new_rows(self, X)
        return np.asarray(self.feature_map_.images(X, self._scaled_directions()))

    def _reconstruction(self) -> Reconstruction:
        if self.reconstruct is not None:
            return self.reconstruction_
        directions = self.feature_map_.in_input_units(self._scaled_directions())
        return AffineSubspace(directions, self.feature_map_.mean_)

    @property
    def _n_features_out(self) -> int:
        return self.n_components_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = is_pairwise(self.kernel)
        tags.transformer_tags.preserves_dtype = ["float64"]
        return tags
