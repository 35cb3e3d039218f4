"""The rows of a kernel factor F: what a decomposition asks of them, and a factor in memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.linalg import solve_triangular

from marginfold.feature_maps.kernel_columns import KernelColumns
from marginfold.linalg.tall import Array, row_blocks
from marginfold.runtime.memory import require_memory


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
