"""Kernel values with the training rows as coordinates: no kernel matrix is decomposed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NoReturn, Self

import numpy as np

from marginfold.errors import InvalidParameterError
from marginfold.feature_maps.exact_kernel import ExactKernel
from marginfold.feature_maps.feature_map import finite_images
from marginfold.feature_maps.kernel_map import PARAMETERS, PROJECT_BYTES, KernelMap
from marginfold.feature_maps.kernel_values import (
    KernelFunction,
    check_kernel,
    finite_peak,
    resolve_gamma,
    square_kernel,
    symmetrised,
)
from marginfold.linalg.tall import Array, dense
from marginfold.validation.parameters import atomic_fit, check_parameters

PART_ROWS, MOST_TAKEN = 128, 0.5
"""Training rows whose zero weights are skipped together, and the share of the others above which
nothing is skipped.  The margins of 15,000 rows by 325 pairs of 26 classes take a third of the time
of a product with all weights."""

EXPANSION_PARAMETERS = {name: PARAMETERS[name] for name in ("gamma", "degree", "coef0")}


class KernelExpansion(KernelMap):
    """Functions ``sum_j w_j k(x, t_j)`` of the training rows t, with their weights w as directions.

    What a kernel machine is after its fit.  The coordinates of a row are its kernel values with
    the training rows; unlike those of `ExactKernel` they cost no decomposition, and their inner
    products mean nothing.

    Parameters
    ----------
    kernel : str or callable, default="rbf"
        See `ExactKernel`.
    gamma : "scale", "auto" or float, default="scale"
        Kernel coefficient: "scale" is 1 / (n_features * variance of X), "auto" 1 / n_features.
    degree : int, default=3
        Degree of the polynomial kernel.
    coef0 : float, default=1.0
        Constant of the polynomial and sigmoid kernels.

    Attributes
    ----------
    gamma_ : float
        The coefficient used.
    training_rows_ : array
        The training rows (their indices if the kernel is precomputed), without those of weight 0.
    origin_ : array or 0
        What is subtracted from all rows first, for kernels that a shift of all rows does not
        change.

    Examples
    --------
    >>> import numpy as np
    >>> from marginfold.feature_maps.kernel_expansion import KernelExpansion
    >>> X = np.array([[0.0], [1.0], [3.0]])
    >>> K = KernelExpansion("rbf", gamma=0.5).fit(X).transform(X)
    >>> bool(np.isclose(K[0, 1], np.exp(-0.5)))
    True
    """

    def __init__(
        self,
        kernel: Any = "rbf",
        *,
        gamma: Any = "scale",
        degree: int = 3,
        coef0: float = 1.0,
    ) -> None:
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0

    center = False

    @classmethod
    def of(cls, exact: ExactKernel) -> Self:
        """Return the unfitted expansion with the kernel of an `ExactKernel`."""
        return cls(exact.kernel, gamma=exact.gamma, degree=exact.degree, coef0=exact.coef0)

    def fit_rows(self, X: Any, weights: Array) -> Array:
        """Fit valid rows; return which of them have a weight, and so are training rows."""
        with atomic_fit(self):
            self.n_features_in_ = X.shape[1]
            self._fit(X, weights)
        return np.flatnonzero(weights)

    def kernel_of(self, X: Any) -> Array:
        """Return the kernel among the training rows, which X holds; finite and symmetric."""
        if self._precomputed:
            K = symmetrised(square_kernel(X)[np.ix_(self.training_rows_, self.training_rows_)])
        else:
            K = self._function.symmetric(self.training_rows_)
        finite_peak(K)
        return K

    @property
    def function(self) -> KernelFunction:
        """The kernel with its parameters, for rows like those of `training_rows_`."""
        return self._function

    def images(self, X: Any, W: Array) -> Array:
        """Do what `project` does with rows that are valid."""
        parts = list(_parts(W))
        if len(parts) == 1:
            return self._times(X, W, np.matmul, PROJECT_BYTES)
        out = np.zeros((X.shape[0], W.shape[1]))
        size = PROJECT_BYTES // (8 * PART_ROWS)
        for block in (slice(start, start + size) for start in range(0, len(out), size)):
            values = np.zeros((len(out[block]), W.shape[1]))
            for own, columns, weights in parts:
                values[:, columns] += self._kernel_with(X[block], own) @ weights
            out[block] = values
        return out

    def _kernel_with(self, X: Any, own: slice) -> Array:
        """Return the kernel between rows and some of the training rows."""
        if self._precomputed:
            return dense(X[:, self.training_rows_[own]])
        return self._function(self._moved(X), self.training_rows_[own])

    def coordinates(self, X: Any) -> Array:
        """Do what `transform` does with rows that are valid."""
        return finite_images(self._kernel_matrix(X))

    def preimages(self, U: Any, start: Any = None) -> NoReturn:
        """Refuse: kernel values are no coordinates of points in feature space."""
        raise InvalidParameterError(
            "A KernelExpansion has no preimages, because kernel values are not coordinates in "
            "feature space; use ExactKernel or LowRankKernel."
        )

    def keep(self, rows: Array) -> None:
        """Forget the training rows beside some of them, given by their numbers."""
        self.training_rows_ = self.training_rows_[rows]
        self._count(len(rows))

    def _fit(self, X: Any, weights: Array) -> None:
        check_kernel(self)
        check_parameters(self, EXPANSION_PARAMETERS)
        kept = np.flatnonzero(weights)
        self.gamma_ = resolve_gamma(self.gamma, self.kernel, X, weights)
        if self._precomputed:
            square_kernel(X)
            self.training_rows_ = kept
        else:
            rows = X if len(kept) == X.shape[0] else X[kept]
            self.origin_ = self._choose_origin(rows)
            self.training_rows_ = self._moved(rows)
            self._glance(self.training_rows_)
        self._count(len(kept))

    def _count(self, n: int) -> None:
        self.share_, self.column_means_ = np.full(n, 1.0 / n), np.zeros(n)

    def _mixtures(self, W: Array) -> Array:
        return W

    @property
    def _n_features_out(self) -> int:
        return len(self.share_)


def _parts(W: Array) -> Iterator[tuple[slice, Any, Array]]:
    """Yield rows of weights, the columns in which they are not all zero, and the weights there.

    One against one, training rows have weights in the pairs of their class only.
    """
    starts = np.arange(0, len(W), PART_ROWS)
    taken = np.logical_or.reduceat(W != 0, starts, axis=0)
    if taken.mean() > MOST_TAKEN:
        yield slice(None), slice(None), W
        return
    for start, columns in zip(starts.tolist(), taken, strict=True):
        rows = slice(start, start + PART_ROWS)
        yield rows, np.flatnonzero(columns), np.ascontiguousarray(W[rows, columns])
