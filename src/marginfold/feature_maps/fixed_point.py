"""Pre-images: input rows whose image under the rbf kernel is closest to points in feature space.

Mika, Schölkopf, Smola, Müller, Scholz, Rätsch: Kernel PCA and de-noising in feature spaces
(NIPS 11, 1999), eq. (10).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import check_array

from marginfold.errors import InvalidInputError
from marginfold.feature_maps.kernel_values import KernelFunction
from marginfold.linalg.tall import Array, dense
from marginfold.validation.parameters import shown

TOLERANCE = 1e-9
"""A point is final when its step is below this many kernel widths, 1 / sqrt(gamma)."""

ITERATIONS = 500
"""Largest number of kernel evaluations for a point."""

GROWTH, SHRINKAGE = 1.25, 0.25
"""Factors of a step that succeeded and of one that failed."""

VANISHING = 1e-10
"""An overlap below this share of its terms has no reliable sign: the point stays where it is."""


def require_preimages(kernel: Any) -> None:
    """Raise `InvalidInputError` for a kernel other than rbf."""
    if not (isinstance(kernel, str) and kernel == "rbf"):
        raise InvalidInputError(
            f"Pre-images by fixed points exist for the rbf kernel; got {shown(kernel)}. Learn the "
            "way back instead: fit the method with reconstruct='kernel_ridge'."
        )


def as_points(U: Any, rank: int) -> Array:
    """Return coordinates of points as an array, if each point has as many as the kernel."""
    U = check_array(U, dtype=np.float64, ensure_min_features=0, input_name="U")
    if U.shape[1] != rank:
        raise InvalidInputError(
            f"U has {U.shape[1]} columns; a point needs {rank} coordinates, as transform returns "
            "them."
        )
    return np.asarray(U)


def fixed_points(function: KernelFunction, T: Any, C: Array, start: Array) -> Array:
    """Return points x that maximise ``sum_i c_i k(x, t_i)``, one for each row c of C.

    The image of x is then closest to ``sum_i c_i phi(t_i)``, because all images have norm one.
    The plain iteration is ``x <- sum_i c_i k(x, t_i) t_i / sum_i c_i k(x, t_i)`` (eq. 10), a step
    along the gradient while the sum is positive.  With coefficients of both signs it may overshoot,
    so that the length of the step is adapted and only better points are taken.

    Parameters
    ----------
    function : KernelFunction
        With the kernel "rbf".
    T : array or sparse matrix of shape (n, features)
    C : array of shape (rows, n)
    start : array of shape (rows, features)
    """
    X = start.copy()
    width = 1.0 / np.sqrt(function.gamma)
    active = np.arange(len(X))
    terms = C * function(X, T)
    lengths = np.ones(len(X))
    for _ in range(ITERATIONS):
        overlap = terms.sum(axis=1)
        steps = _toward_fixed_point(terms, overlap, X[active], T)
        going = np.linalg.norm(steps, axis=1) * np.minimum(lengths, 1.0) > TOLERANCE * width
        if not going.any():
            break
        active, terms, overlap = active[going], terms[going], overlap[going]
        steps, lengths = steps[going], lengths[going]
        trial = X[active] + lengths[:, None] * steps
        moved = C[active] * function(trial, T)
        better = moved.sum(axis=1) > overlap
        X[active[better]] = trial[better]
        terms[better] = moved[better]
        lengths *= np.where(better, GROWTH, SHRINKAGE)
    return X


def _toward_fixed_point(terms: Array, overlap: Array, X: Array, T: Any) -> Array:
    """Return the full steps of eq. (10), zero where the denominator vanishes."""
    usable = overlap > VANISHING * np.abs(terms).sum(axis=1)
    means = dense(terms @ T) / np.where(usable, overlap, 1.0)[:, None]
    return np.where(usable[:, None], means - X, 0.0)
