"""Base of the kernel maps: coordinates as kernel expansions over some training rows.

Pre-images are input rows whose image under the rbf kernel is closest to points in feature space:
Mika, Schölkopf, Smola, Müller, Scholz, Rätsch, Kernel PCA and de-noising in feature spaces
(NIPS 11, 1999), eq. (10).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.base import ClassNamePrefixFeaturesOutMixin
from sklearn.utils import check_array, check_consistent_length
from sklearn.utils.validation import check_is_fitted, validate_data

from marginfold.errors import InvalidInputError
from marginfold.feature_maps.feature_map import CheckedMap, finite_images
from marginfold.feature_maps.kernel_values import (
    GAMMA,
    TRANSLATION_FREE,
    KernelFunction,
    kernel_gradients,
    require_gradient,
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
    shown,
)
from marginfold.validation.types import Images

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

FINAL_STEP = 1e-9
"""A pre-image is final when its step is below this many kernel widths, 1 / sqrt(gamma)."""

MOST_STEPS = 500
"""Largest number of kernel evaluations for a point."""

GROWTH, SHRINKAGE = 1.25, 0.25
"""Factors of a step that succeeded and of one that failed."""

VANISHING = 1e-10
"""An overlap below this share of its terms has no reliable sign: the point stays where it is."""


class KernelMap(ClassNamePrefixFeaturesOutMixin, CheckedMap):
    """Coordinates ``z(x) = (k(x, T) - column_means_) dual_basis_`` with training rows T.

    A subclass has the parameters of a kernel and ``_fit``, which stores `gamma_`, `eigenvalues_`
    and the attributes below, and returns the coordinates of its rows if all of them count.

    Attributes
    ----------
    training_rows_ : array
        The rows T (their indices if the kernel is precomputed).
    origin_ : array or 0
        What is subtracted from all rows first, for kernels that a shift of all rows does not
        change.
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

    def preimages(self, U: Images, start: Images | None = None) -> Array:
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
        points, given = as_points(U, len(self.eigenvalues_)), None
        if start is not None:
            given = self._moved(validate_data(self, start, dtype=np.float64, reset=False))
            check_consistent_length(points, given)
        out = np.empty((len(points), self.n_features_in_))
        for block in self._blocks(len(points), BLOCK_BYTES):
            mixed = points[block] @ self.dual_basis_.T + (self.share_ if self.center else 0.0)
            first = self._closest_rows(mixed) if given is None else given[block]
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
    for _ in range(MOST_STEPS):
        overlap = terms.sum(axis=1)
        steps = _toward_fixed_point(terms, overlap, X[active], T)
        going = np.linalg.norm(steps, axis=1) * np.minimum(lengths, 1.0) > FINAL_STEP * width
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
