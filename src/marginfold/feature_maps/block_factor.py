"""A kernel factor of rows in blocks: passes over the rows, of which only the pivots are kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular

from marginfold.feature_maps.factor_rows import NewColumns
from marginfold.feature_maps.kernel_columns import RowColumns
from marginfold.feature_maps.kernel_values import KernelFunction
from marginfold.linalg.blocks import Block, RowBlocks, total
from marginfold.linalg.tall import Array, dense, gram, row_blocks


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
