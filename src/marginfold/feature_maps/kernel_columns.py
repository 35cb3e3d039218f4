"""A kernel matrix of many rows, of which only the diagonal and some columns are ever evaluated."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import scipy.sparse

from marginfold.feature_maps.kernel_values import KernelFunction
from marginfold.linalg.tall import Array, dense

TILE_ROWS = 64
"""Rows of which all pairs are evaluated when a kernel has no formula for its diagonal."""

KEY_SEED = 20240229
"""Seed of the direction along which rows are put in order."""


class KernelColumns(Protocol):
    """What a pivoted Cholesky decomposition needs to know of a kernel matrix."""

    def diagonal(self) -> Array:
        """Return the diagonal."""

    def columns(self, rows: Any, pivots: Array) -> Array:
        """Return the values between some rows (a slice or indices) and pivots (indices)."""

    def keys(self, share: Array) -> Array:
        """Return a number for each row that stays with it when rows change places.

        Equal rows have equal numbers, up to rounding; the shares are the weights of the rows.
        """


@dataclass(frozen=True)
class RowColumns:
    """The kernel among rows of features."""

    function: KernelFunction
    X: Any

    def diagonal(self) -> Array:
        return kernel_diagonal(self.function, self.X)

    def columns(self, rows: Any, pivots: Array) -> Array:
        return self.function(self.X[rows], self.X[pivots])

    def keys(self, share: Array) -> Array:
        direction = np.random.default_rng(KEY_SEED).standard_normal(self.X.shape[1])
        return np.asarray(self.X @ direction)


@dataclass(frozen=True)
class GivenColumns:
    """A kernel matrix that is given."""

    K: Array

    def diagonal(self) -> Array:
        return np.array(np.diagonal(self.K))

    def columns(self, rows: Any, pivots: Array) -> Array:
        return np.asarray(self.K[rows][:, pivots])

    def keys(self, share: Array) -> Array:
        return np.asarray(self.K @ share)


def kernel_diagonal(function: KernelFunction, X: Any) -> Array:
    """Return the kernel of every row with itself."""
    if callable(function.kernel):
        return _tiled(function, X)
    if function.kernel in ("rbf", "laplacian"):
        return np.ones(X.shape[0])
    squares = _squared_norms(X)
    if function.kernel == "cosine":
        return (squares > 0).astype(np.float64)
    if function.kernel == "linear":
        return squares
    inner = function.gamma * squares + function.coef0
    if function.kernel == "sigmoid":
        return np.asarray(np.tanh(inner))
    with np.errstate(over="ignore"):
        return np.asarray(inner**function.degree)


def _squared_norms(X: Any) -> Array:
    if scipy.sparse.issparse(X):
        return dense(X.multiply(X).sum(axis=1)).ravel()
    return np.asarray(np.einsum("ij,ij->i", X, X))


def _tiled(function: KernelFunction, X: Any) -> Array:
    out = np.empty(X.shape[0])
    for start in range(0, len(out), TILE_ROWS):
        tile = slice(start, start + TILE_ROWS)
        out[tile] = np.diagonal(function(X[tile], X[tile]))
    return out
