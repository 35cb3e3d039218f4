"""From scores back to rows: what ``reconstruct=...`` of a transformer stands for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, Self

import numpy as np
import scipy.linalg
from sklearn.base import clone
from sklearn.kernel_ridge import KernelRidge

from marginfold.errors import InvalidInputError, InvalidParameterError
from marginfold.linalg.tall import Array, dense
from marginfold.validation.parameters import shown

RIDGE = 0.1
"""Ridge of the learned map, in units of a kernel whose largest value is 1."""

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
