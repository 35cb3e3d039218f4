"""A second coordinate for a map of two classes: what varies most beside the margin."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.pipeline import Pipeline

from marginfold.errors import ExhaustedWarning, MarginfoldError
from marginfold.estimators.svm_pca import SVMPCA
from marginfold.linalg.tall import Array, column_signs

COMPONENTS = 10
"""Principal components among which the axis is looked for."""

HEIGHT = 0.5
"""Largest size of the coordinate; the other one goes from -1 to 1.  Over five splits of six tables
(breast cancer, ionosphere, sonar, german, diabetes, spam) five neighbors are right in 0.850, 0.854,
0.859 and 0.858 of the held-out rows at 0.125, 0.25, 0.5 and 1, in 0.851 without it."""

WIDTH = 2.0
"""Standard deviations at which the coordinate has 0.7 of its largest size."""

NO_VARIANCE = 1e-12
"""Share of the variance of the rows below which nothing varies beside the margin."""


@dataclass(frozen=True)
class SecondAxis:
    """The direction of largest variance of what is uncorrelated with a first coordinate x.

    Of the residuals ``r = t - slopes (x - mean x)`` of the principal scores t of the training rows
    v is the first principal axis; the coordinate of a row is ``u / sqrt(4 + u^2) / 2`` of
    ``u = v'r / std(v'r)``, so that far rows stay in the picture.

    Attributes
    ----------
    mean, direction : arrays of shape (n_features,)
    slope, origin : float
        ``u = direction'(z - mean) - slope (x - origin)``.
    """

    mean: Array
    direction: Array
    slope: float
    origin: float

    def coordinates(self, Z: Any, x: Array) -> Array:
        """Return the second coordinate of rows whose first one is x; a missing entry is a mean."""
        if sp.issparse(Z):
            along = Z @ self.direction - self.mean @ self.direction
        else:
            along = np.where(np.isfinite(Z), Z - self.mean, 0.0) @ self.direction
        u = along - self.slope * (x - self.origin)
        return np.asarray(HEIGHT * u / np.hypot(WIDTH, u))


def second_axis(Z: Any, x: Array, weights: Array) -> SecondAxis | None:
    """Find the axis of rows Z with the first coordinate x.

    None if nothing varies beside x, or if principal components cannot be taken of the rows.
    """
    values = Z.data if sp.issparse(Z) else Z
    if not np.isfinite(values).all():
        return None
    size = min(COMPONENTS, *Z.shape)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExhaustedWarning)  # rows that vary in fewer directions
        try:
            pca = SVMPCA(size).fit(Z, sample_weight=weights)
        except MarginfoldError:  # constant rows, or entries too large to be squared
            return None
    t, share = pca.transform(Z), weights / weights.sum()
    origin = float(share @ x)
    centred = x - origin
    variance = float(share @ centred**2)
    slopes = (share * centred) @ t / variance if variance > 0 else np.zeros(t.shape[1])
    residuals = t - np.outer(centred, slopes)
    variances, axes = np.linalg.eigh(residuals.T @ (share[:, None] * residuals))
    if not variances[-1] > NO_VARIANCE * float(share @ (t**2).sum(axis=1)):
        return None
    v = axes[:, -1] / np.sqrt(variances[-1])
    direction = pca.components_.T @ v
    sign = column_signs(direction[:, None])[0]
    return SecondAxis(pca.mean_, sign * direction, sign * float(slopes @ v), origin)


def feature_rows(classifier: Any, X: Any) -> Any:
    """Return rows as the last step of a fitted classifier sees them; None if they are no numbers.

    Of a classifier that is no pipeline these are the rows themselves.
    """
    if isinstance(classifier, Pipeline) and len(classifier) > 1:
        X = classifier[:-1].transform(X)
    if sp.issparse(X):
        return sp.csr_array(X).astype(np.float64)
    try:
        rows = np.asarray(X, dtype=np.float64)
    except (TypeError, ValueError):
        return None
    return rows if rows.ndim == 2 else None
