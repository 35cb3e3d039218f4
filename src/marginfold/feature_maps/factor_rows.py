"""The rows of a kernel factor F: the kernel's columns, a factor in memory and one in blocks.

Of a kernel matrix of many rows only the diagonal and the columns of some pivots are ever evaluated.
A factor in memory keeps its rows; one of rows in blocks makes them again in each pass.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from scipy.linalg import solve_triangular

from marginfold.feature_maps.kernel_values import KernelFunction
from marginfold.graphs.neighbor_search import squared_norms
from marginfold.linalg.tall import Array, Block, RowBlocks, dense, gram, row_blocks, total
from marginfold.runtime.memory import require_memory

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


@dataclass(frozen=True)
class NewColumns:
    """Sums over columns that were appended to a factor.

    Attributes
    ----------
    row_squares : array of shape (n,)
        Sum of the squares of each row.
    means, squares : arrays of shape (columns,)
        Weighted mean of each column, and of its squares.
    """

    row_squares: Array
    means: Array
    squares: Array


class FactorRows(Protocol):
    """The kernel of all rows and the columns of its factor so far, wherever they are."""

    def diagonal(self) -> Array:
        """Return the diagonal of the kernel."""

    def keys(self) -> Array:
        """Return a number for each row that stays with it when rows change places."""

    def residual_among(self, chosen: Array) -> Array:
        """Return ``K - F F'`` among some rows."""

    def append(self, pivots: Array, triangle: Array) -> NewColumns:
        """Append the columns of new pivots; ``triangle`` is the factor of their residual."""


class LocalFactor:
    """A factor in memory.

    Parameters
    ----------
    kernel : KernelColumns
    share : array of shape (n,)
        Weights with sum 1.
    columns : int
        Number of columns that there is space for at first.
    most : int
        Largest number of columns.
    """

    def __init__(self, kernel: KernelColumns, share: Array, columns: int, most: int) -> None:
        self.kernel, self.share, self.most = kernel, share, most
        self.used = 0
        self._space = self._new_space(min(columns, most))

    def diagonal(self) -> Array:
        return self.kernel.diagonal()

    def keys(self) -> Array:
        return self.kernel.keys(self.share)

    def residual_among(self, chosen: Array) -> Array:
        known = self._space[chosen, : self.used]
        return np.asarray(self.kernel.columns(chosen, chosen) - known @ known.T)

    def append(self, pivots: Array, triangle: Array) -> NewColumns:
        columns = slice(self.used, self.used + len(pivots))
        self._make_space(columns.stop)
        known = self._space[pivots, : self.used]
        row_squares = np.empty(len(self.share))
        means, squares = np.zeros((2, len(pivots)))
        for block in row_blocks(*self._space.shape):
            values = self.kernel.columns(block, pivots) - self._space[block, : self.used] @ known.T
            new = solve_triangular(
                triangle, values.T, lower=True, overwrite_b=True, check_finite=False
            ).T
            self._space[block, columns] = new
            row_squares[block] = np.einsum("ij,ij->i", new, new)
            means += self.share[block] @ new
            squares += self.share[block] @ new**2
        self.used = columns.stop
        return NewColumns(row_squares, means, squares)

    def first_columns(self, columns: int) -> Array:
        """Return the first columns of the factor, all of them without a copy."""
        whole = columns == self._space.shape[1]
        return self._space if whole else np.ascontiguousarray(self._space[:, :columns])

    def _make_space(self, columns: int) -> None:
        if columns > self._space.shape[1]:
            wider = self._new_space(min(self.most, max(columns, 2 * self._space.shape[1])))
            wider[:, : self.used] = self._space[:, : self.used]
            self._space = wider

    def _new_space(self, columns: int) -> Array:
        n = len(self.share)
        require_memory(
            8.0 * n * columns,
            f"A kernel of {n} rows and rank {columns}",
            "a smaller rank, LowRankKernel(..., rank=100), or a larger tol.",
        )
        return np.empty((n, columns))


@dataclass(frozen=True)
class RowMoments:
    """What is known of rows in blocks after two passes.

    Attributes
    ----------
    weights : array of shape (n,)
        The weights of the rows.
    mean : array of shape (n_features,)
        The mean of the rows, without weights.
    variance : float
        The weighted variance of all entries.
    """

    weights: Array
    mean: Array
    variance: float

    @classmethod
    def of(cls, blocks: RowBlocks) -> RowMoments:
        """Pass over the rows twice."""
        found = blocks.map(row_sums)
        weights = np.concatenate([part[0] for part in found])
        plain, weighted = total([part[1] for part in found])
        entries = float(weights.sum()) * blocks.n_columns
        about = float(weighted.sum()) / entries
        variance = sum(blocks.map(squares_about, about)) / entries
        return cls(weights, plain / len(weights), float(variance))


class BlockFactor:
    """A factor of rows in blocks: each pass makes its rows again, only the pivots are kept here.

    Parameters
    ----------
    blocks : RowBlocks
        Input rows; all weights are positive.
    function : KernelFunction
    origin : array or 0
        What is subtracted from all rows.
    weight : float
        The sum of the weights.
    """

    def __init__(
        self, blocks: RowBlocks, function: KernelFunction, origin: Any, weight: float
    ) -> None:
        self.blocks, self.function, self.origin = blocks, function, origin
        self.pivot_rows = np.zeros((0, blocks.n_columns))
        self.triangle = np.zeros((0, 0))
        self.weight = weight

    def diagonal(self) -> Array:
        return np.concatenate(self.blocks.map(kernel_diagonals, self.function, self.origin))

    def keys(self) -> Array:
        return np.concatenate(self.blocks.map(row_keys, self.function, self.origin))

    def residual_among(self, chosen: Array) -> Array:
        rows = self._rows(chosen)
        known = factor_rows(self.function, rows, self.pivot_rows, self.triangle)
        return np.asarray(self.function(rows, rows) - known @ known.T)

    def append(self, pivots: Array, triangle: Array) -> NewColumns:
        rows = self._rows(pivots)
        known = factor_rows(self.function, rows, self.pivot_rows, self.triangle)
        above = np.zeros((len(self.triangle), len(pivots)))
        self.triangle = np.block([[self.triangle, above], [known, triangle]])
        self.pivot_rows = np.concatenate([self.pivot_rows, rows])
        found = self.blocks.map(column_sums, *self._factor, len(pivots))
        means, squares = total([part[1] for part in found]) / self.weight
        return NewColumns(np.concatenate([part[0] for part in found]), means, squares)

    def scatter(self, columns: int, mean: Array) -> Array:
        """Return the weighted scatter of the first columns about a row, for weights of sum 1."""
        function, origin, T, L = self._factor
        T, L = T[:columns], L[:columns, :columns]
        return total(self.blocks.map(factor_scatter, function, origin, T, L, mean)) / self.weight

    @property
    def _factor(self) -> tuple[KernelFunction, Any, Array, Array]:
        return self.function, self.origin, self.pivot_rows, self.triangle

    def _rows(self, chosen: Array) -> Array:
        """Return some rows, less the origin, in the given order."""
        numbers, places = np.unique(chosen, return_inverse=True)
        rows = np.concatenate(self.blocks.map(chosen_rows, numbers))
        return np.asarray(rows[places] - self.origin)


def factor_rows(function: KernelFunction, X: Array, T: Array, L: Array) -> Array:
    """Return the rows of the factor, ``k(X, T) L^-T``."""
    if not len(T):
        return np.zeros((len(X), 0))
    return np.asarray(solve_triangular(L, function(X, T).T, lower=True, check_finite=False).T)


def kernel_diagonals(block: Block, function: KernelFunction, origin: Any) -> Array:
    """Return the kernel of each row of a block with itself."""
    return RowColumns(function, dense(block.Z) - origin).diagonal()


def row_keys(block: Block, function: KernelFunction, origin: Any) -> Array:
    """Return the numbers by which rows of a block are put in order."""
    return RowColumns(function, dense(block.Z) - origin).keys(block.weights)


def chosen_rows(block: Block, numbers: Array) -> Array:
    """Return those of the numbered rows that are in the block."""
    mine = numbers[(numbers >= block.start) & (numbers < block.start + len(block))]
    return dense(block.Z[mine - block.start])


def column_sums(
    block: Block, function: KernelFunction, origin: Any, T: Array, L: Array, last: int
) -> tuple[Array, Array]:
    """Return the sums of `NewColumns` over a block, for the last columns, not divided."""
    row_squares = np.empty(len(block))
    sums = np.zeros((2, last))
    for part in row_blocks(len(block), len(T)):
        new = factor_rows(function, dense(block.Z[part]) - origin, T, L)[:, -last:]
        weights = block.weights[part]
        row_squares[part] = np.einsum("ij,ij->i", new, new)
        sums += np.stack([weights @ new, weights @ new**2])
    return row_squares, sums


def factor_scatter(
    block: Block, function: KernelFunction, origin: Any, T: Array, L: Array, mean: Array
) -> Array:
    """Return the weighted scatter of the factor of a block about a row."""
    S = np.zeros((len(T), len(T)))
    for part in row_blocks(len(block), len(T)):
        rows = factor_rows(function, dense(block.Z[part]) - origin, T, L)
        S += gram(rows - mean, block.weights[part])
    return S


def row_sums(block: Block) -> tuple[Array, Array]:
    """Return the weights of a block, and the plain and the weighted sum of its rows."""
    Z = dense(block.Z)
    return block.weights, np.stack([Z.sum(axis=0), block.weights @ Z])


def squares_about(block: Block, mean: float) -> float:
    """Return the weighted sum of the squared deviations of all entries."""
    return float((block.weights @ (dense(block.Z) - mean) ** 2).sum())


def kernel_diagonal(function: KernelFunction, X: Any) -> Array:
    """Return the kernel of every row with itself."""
    if callable(function.kernel):
        return _tiled(function, X)
    if function.kernel in ("rbf", "laplacian"):
        return np.ones(X.shape[0])
    squares = squared_norms(X)
    if function.kernel == "cosine":
        return (squares > 0).astype(np.float64)
    if function.kernel == "linear":
        return squares
    inner = function.gamma * squares + function.coef0
    if function.kernel == "sigmoid":
        return np.asarray(np.tanh(inner))
    with np.errstate(over="ignore"):
        return np.asarray(inner**function.degree)


def _tiled(function: KernelFunction, X: Any) -> Array:
    out = np.empty(X.shape[0])
    for start in range(0, len(out), TILE_ROWS):
        tile = slice(start, start + TILE_ROWS)
        out[tile] = np.diagonal(function(X[tile], X[tile]))
    return out
