"""Base of the transformers: projection on directions, reconstruction and loadings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeVar, cast

import numpy as np
import scipy.linalg
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin, clone
from sklearn.kernel_ridge import KernelRidge
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_array, check_is_fitted

from marginfold.errors import InvalidInputError, InvalidParameterError
from marginfold.estimators.inputs import WithFeatureMap
from marginfold.feature_maps import KernelLike, is_linear, is_pairwise
from marginfold.linalg.tall import Array, dense, row_blocks
from marginfold.runtime.callbacks import FollowedFits
from marginfold.runtime.threads import sized
from marginfold.validation.parameters import shown
from marginfold.validation.rows import read_new_rows, refuse_lazy, row_by_row
from marginfold.validation.types import Images, Labels, Reconstruct, Rows, Weights

RIDGE = 0.1
"""Ridge of the learned map, in units of a kernel whose largest value is 1."""

Method = TypeVar("Method", bound=Callable[..., Any])

NAMES = ("linear", "kernel_ridge", "fixed_point")
"""Reconstructions that have a name."""


class Reconstruction(Protocol):
    """A map from scores, shape (n, k), to rows."""

    def rebuild(self, scores: Array, components: Array) -> Array:
        """Return rows for the scores of the given components; the others are not known."""


@dataclass(frozen=True)
class AffineSubspace:
    """The point of ``mean + span(directions)`` that has the given scores, the nearest to the mean.

    Attributes
    ----------
    directions : array of shape (n_features, k)
        In input units, not necessarily orthonormal.
    mean : array of shape (n_features,)
    """

    directions: Array
    mean: Array

    def rebuild(self, scores: Array, components: Array) -> Array:
        """Return the points with these scores that are nearest to the mean."""
        return np.asarray(least_norm(self.directions[:, components], scores) + self.mean)


@dataclass(frozen=True)
class LeastSquares:
    """``x = V z + delta`` of least squared error on the training rows (004 eqs. (24) to (28)).

    Attributes
    ----------
    score_means, row_means : arrays of shape (k,) and (n_features,)
        The offset delta takes them to each other.
    moments, products : arrays of shape (k, k) and (k, n_features)
        ``Z'Z`` and ``Z'X`` of centred scores: any subset of components can be solved for.
    """

    score_means: Array
    row_means: Array
    moments: Array
    products: Array

    @classmethod
    def learn(cls, scores: Array, X: Any, weights: Array) -> Self:
        """Sum up what eq. (26) needs."""
        share = weights / weights.sum()
        score_means, row_means = share @ scores, np.asarray(share @ X).ravel()
        centred = (scores - score_means) * share[:, None]
        products = np.asarray((X.T @ centred).T) - np.outer(centred.sum(axis=0), row_means)
        return cls(score_means, row_means, centred.T @ (scores - score_means), products)

    def rebuild(self, scores: Array, components: Array) -> Array:
        """Return the least-squares rows for the scores of some components."""
        sizes = np.sqrt(np.diagonal(self.moments)[components])
        varying = components[sizes > 0]  # constant scores tell nothing (errata E51)
        units = np.sqrt(np.diagonal(self.moments)[varying])
        if not len(varying):
            return np.tile(self.row_means, (len(scores), 1))
        moments = self.moments[np.ix_(varying, varying)] / np.outer(units, units)
        V = scipy.linalg.lstsq(moments, self.products[varying] / units[:, None])[0]
        known = (scores[:, sizes > 0] - self.score_means[varying]) / units
        return np.asarray(known @ V + self.row_means)


@dataclass(frozen=True)
class Learned:
    """A regressor from scores to centred rows (004 eqs. (39) and (40)).

    A subset of components is learned anew at each call.  Without a template the regressor is a
    kernel ridge whose width is that of the scores.
    """

    template: Any
    fitted: Any
    scores: Array
    targets: Array
    mean: Array
    weights: Array

    @classmethod
    def learn(cls, template: Any, scores: Array, X: Any, weights: Array) -> Self:
        """Fit a clone of the regressor on the rows that count."""
        kept = weights > 0
        scores, rows, weights = scores[kept], dense(X)[kept], weights[kept]
        mean = weights @ rows / weights.sum()
        targets = rows - mean
        fitted = _fitted(template, scores, targets, weights)
        return cls(template, fitted, scores, targets, mean, weights)

    def rebuild(self, scores: Array, components: Array) -> Array:
        """Return what the regressor predicts, fitted anew for a subset of components."""
        whole = np.array_equal(components, np.arange(self.scores.shape[1]))
        regressor = self.fitted
        if not whole:
            part = self.scores[:, components]
            regressor = _fitted(self.template, part, self.targets, self.weights)
        rows = np.asarray(regressor.predict(scores), dtype=np.float64)
        return rows.reshape(len(scores), -1) + self.mean


def _fitted(template: Any, scores: Array, targets: Array, weights: Array) -> Any:
    regressor = _kernel_ridge(scores, weights) if template is None else clone(template)
    rows = targets[:, 0] if targets.shape[1] == 1 else targets
    plain = bool((weights == 1).all())
    try:
        return (
            regressor.fit(scores, rows)
            if plain
            else regressor.fit(scores, rows, sample_weight=weights)
        )
    except (TypeError, ValueError) as error:
        raise InvalidInputError(
            f"The regressor {shown(template)} cannot be fitted on scores and rows ({error}). It "
            "must take several targets (wrap it in MultiOutputRegressor) and, with weights of the "
            "rows, sample_weight."
        ) from error


@dataclass(frozen=True)
class FixedPoint:
    """The pre-image of the point of the feature space that has the given scores."""

    feature_map: Any
    directions: Array

    def rebuild(self, scores: Array, components: Array) -> Array:
        """Return the pre-images of the points with these scores."""
        U = least_norm(self.directions[:, components], scores)
        return np.asarray(self.feature_map.preimages(U))


def least_norm(directions: Array, scores: Array) -> Array:
    """Return the shortest points with the given scores along the directions (columns)."""
    if not directions.size:
        return np.zeros((len(scores), len(directions)))
    return np.asarray(scipy.linalg.lstsq(directions.T, scores.T, check_finite=False)[0].T)


def check_reconstruct(owner: str, reconstruct: Any, pairwise: bool) -> None:
    """Refuse what is neither a name nor a regressor, and input that has no rows to return to."""
    known = reconstruct is None or (isinstance(reconstruct, str) and reconstruct in NAMES)
    regressor = hasattr(reconstruct, "fit") and hasattr(reconstruct, "predict")
    if not known and (not regressor or isinstance(reconstruct, type)):
        raise InvalidParameterError(
            f"{owner}: reconstruct must be None, {', '.join(map(repr, NAMES))} or a regressor "
            f"such as KernelRidge(); got {shown(reconstruct)}."
        )
    if pairwise and reconstruct is not None:
        raise InvalidParameterError(
            f"{owner}: a precomputed kernel has no rows to reconstruct; use reconstruct=None, or "
            "the kernel by its name."
        )


def learn_reconstruction(
    reconstruct: Any, feature_map: Any, directions: Array, scores: Array, X: Any, weights: Array
) -> Reconstruction:
    """Return the reconstruction that a parameter stands for, learned on the training rows."""
    if not isinstance(reconstruct, str):
        return Learned.learn(reconstruct, scores, X, weights)
    if reconstruct == "linear":
        return LeastSquares.learn(scores, X, weights)
    if reconstruct == "kernel_ridge":
        return Learned.learn(None, scores, X, weights)
    if getattr(feature_map, "kernel", None) != "rbf":
        raise InvalidParameterError(
            "reconstruct='fixed_point' needs the rbf kernel; use reconstruct='kernel_ridge' with "
            f"{shown(feature_map)}."
        )
    return FixedPoint(feature_map, directions)


def _kernel_ridge(scores: Array, weights: Array) -> KernelRidge:
    """Return an rbf ridge regressor whose width is that of the scores."""
    variance = float(weights @ (scores**2).sum(axis=1)) / float(weights.sum())
    return KernelRidge(alpha=RIDGE, kernel="rbf", gamma=1.0 / variance if variance > 0 else 1.0)


def check_components(components: Sequence[int] | None, n_components: int) -> Array:
    """Return the indices of the chosen components, all of them for None."""
    if components is None:
        return np.arange(n_components)
    chosen = np.atleast_1d(np.asarray(components))
    whole = chosen.ndim == 1 and chosen.size and chosen.dtype.kind in "iu"
    if not whole or chosen.min() < 0 or chosen.max() >= n_components:
        raise InvalidInputError(
            f"components must be numbers of components, 0 to {n_components - 1}; got "
            f"{shown(components)}."
        )
    if len(np.unique(chosen)) < len(chosen):
        raise InvalidInputError(f"components must be distinct; got {shown(components)}.")
    return chosen


def _can_rebuild(estimator: Any) -> bool:
    if is_linear(estimator.kernel) or estimator.reconstruct is not None:
        return True
    raise AttributeError(
        f"{type(estimator).__name__} with kernel={estimator.kernel!r} needs a reconstruction to go "
        "back to input rows: fit it with reconstruct='kernel_ridge', 'linear', 'fixed_point' "
        "(rbf) or a regressor."
    )


def if_rebuilds(method: Method) -> Method:
    """Offer a method where rows can be rebuilt."""
    return cast(Method, available_if(_can_rebuild)(method))


class Projection(
    WithFeatureMap,
    FollowedFits,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    BaseEstimator,
):
    """Rows projected on directions in the coordinates of a feature map, and the way back."""

    kernel: KernelLike
    reconstruct: Reconstruct
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

    if TYPE_CHECKING:  # scikit-learn's, with its types

        def fit_transform(
            self, X: Rows, y: Labels | None = None, *, sample_weight: Weights | None = None
        ) -> Array:
            """Fit, and return the images of the same rows."""

    @row_by_row
    def transform(self, X: Rows) -> Array:
        """Return the rows in the subspace, shape (n_samples, n_components_).

        A row's image depends on that row alone.
        """
        return self._images(X)

    @if_rebuilds
    @sized
    def inverse_transform(self, X: Images, components: Sequence[int] | None = None) -> Array:
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

    @if_rebuilds
    @sized
    def denoise(self, X: Rows, components: Sequence[int] | None = None) -> Array:
        """Return the rows as rebuilt from their images, or from some components of them."""
        images = self._images(X)
        chosen = check_components(components, self.n_components_)
        return np.asarray(self.inverse_transform(images[:, chosen], components))

    @if_rebuilds
    @sized
    def reconstruction_error(self, X: Rows, components: Sequence[int] | None = None) -> float:
        """Return the mean squared distance between rows and what is rebuilt of them."""
        rows = dense(read_new_rows(self, X))
        rebuilt = self.denoise(X, components)
        return float(((rows - rebuilt) ** 2).sum(axis=1).mean())

    def loadings(self, X: Rows) -> Array:
        """Return the derivative of the map at each row, exact.

        Shape (n_samples, n_components_, n_features): how each component changes with each feature.
        For the linear kernel it is the same everywhere; rbf, polynomial, sigmoid and cosine
        kernels have a closed form.
        """
        rows = read_new_rows(self, X)
        return np.asarray(self.feature_map_.derivatives(rows, self._scaled_directions()))

    def feature_contributions(self, X: Rows) -> Array:
        """Return the mean size of the loadings over rows, shape (n_components_, n_features).

        Features in different units do not compare: standardise them first.  The mean with signs
        is ``loadings(X).mean(axis=0)``.
        """
        rows = read_new_rows(self, X)
        directions = self._scaled_directions()
        total = np.zeros((self.n_components_, rows.shape[1]))
        for block in row_blocks(rows.shape[0], total.size):
            total += np.abs(self.feature_map_.derivatives(rows[block], directions)).sum(axis=0)
        return total / rows.shape[0]

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
