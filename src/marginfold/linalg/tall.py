"""The few operations on a tall matrix that the solver and the metrics need.

Everything that touches all rows goes through here, so that another kind of row storage needs only
these functions.  Row blocks keep the temporaries in cache: memory stays linear in the rows.

Rows that need not be in this process are in `RowBlocks`: work on them is a pure function of one
block and of small arguments, and returns something small.  Nothing is remembered between two
passes, so that a block which is lost can be read again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, TypeVar

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

Array = NDArray[Any]

BLOCK_BYTES = 1 << 20
"""Target size of one row block."""

BLOCK_OPERATIONS, LEAST_ROWS = 2e10, 256
"""Floating-point operations of a block times a square of its columns, which Ctrl-C waits for: about
two thirds of a second on one core.  With fewer rows the sum over blocks would cost as much."""

COLUMNS = 8
"""Columns that `by_columns` multiplies at a time."""

TIE = 1e-9
"""Entries that differ by less, relatively, are of one size."""

T = TypeVar("T")


def row_blocks(n_rows: int, n_columns: int) -> Iterator[slice]:
    """Yield slices that cut ``n_rows`` into blocks of about `BLOCK_BYTES`, none of them flat.

    The product of a block with a square of its columns takes less than a second.
    """
    size = max(64, 4 * n_columns, BLOCK_BYTES // (8 * max(n_columns, 1)))
    size = min(size, max(LEAST_ROWS, int(BLOCK_OPERATIONS / (2.0 * max(n_columns, 1) ** 2))))
    for start in range(0, n_rows, size):
        yield slice(start, min(start + size, n_rows))


def dense(X: Any) -> Array:
    """Return an array, whether X is one or a sparse matrix."""
    return np.asarray(X.toarray() if scipy.sparse.issparse(X) else X)


def is_constant(values: Array) -> bool:
    """Return whether there are values and all of them are equal."""
    return bool(len(values)) and bool(values.min() == values.max())


def gram(Z: Array, weights: Array | None = None) -> Array:
    """Return ``Z' diag(weights) Z`` for non-negative weights without a weighted copy of Z."""
    if weights is None:
        return _square(Z)
    if is_constant(weights):
        return np.asarray(weights[0] * _square(Z))
    roots = np.sqrt(weights)[:, None]
    total: Array | None = None
    for block in row_blocks(*Z.shape):
        part = Z[block] * roots[block]
        square = part.T @ part
        total = square if total is None else np.add(total, square, out=total)
    return np.zeros((Z.shape[1], Z.shape[1])) if total is None else total


def _square(Z: Array) -> Array:
    """Return Z'Z, in blocks of rows only if it takes longer than a second."""
    if 2.0 * Z.size * Z.shape[1] <= BLOCK_OPERATIONS or Z.shape[1] < LEAST_ROWS:
        return np.asarray(Z.T @ Z)
    total = np.zeros((Z.shape[1], Z.shape[1]))
    for block in row_blocks(*Z.shape):
        total += Z[block].T @ Z[block]
    return total


def mean_about(Z: Array, origin: Array) -> Array:
    """Return the mean row of ``Z - origin`` without a copy of Z."""
    total = np.zeros(Z.shape[1])
    for block in row_blocks(*Z.shape):
        part = Z[block] - origin
        total += np.ones(len(part)) @ part
    return np.asarray(total / len(Z))


def by_columns(A: Array, B: Array) -> Array:
    """Return ``A @ B``, each column to the last bit whatever columns follow it.

    Rounding in a matrix product depends on its shape.  Rows on a margin have the same image, so it
    would decide which of them is nearest: k components must give the first k of more components.
    """
    out = np.empty((len(A), B.shape[1]))
    for first in range(0, B.shape[1], COLUMNS):
        columns = slice(first, first + COLUMNS)
        some = np.zeros((len(B), COLUMNS))
        some[:, : B[:, columns].shape[1]] = B[:, columns]
        for block in row_blocks(*A.shape):
            out[block, columns] = (A[block] @ some)[:, : out[:, columns].shape[1]]
    return out


def rotated(Z: Array, axes: Array) -> Array:
    """Return ``Z axes``, written over Z; there are no more axes than columns."""
    k = axes.shape[1]
    for block in row_blocks(*Z.shape):
        Z[block, :k] = Z[block] @ axes
    return Z if k == Z.shape[1] else np.ascontiguousarray(Z[:, :k])


def column_signs(vectors: Array) -> Array:
    """Return the sign of the entry of largest size in each column, to fix eigenvectors' signs.

    Entries of opposite signs that tie leave it to the sum of cubes, so that the order of the rows
    does not decide unless a column is symmetric altogether.
    """
    sizes = np.abs(vectors)
    largest = sizes.argmax(axis=0)
    signs = np.sign(vectors[largest, np.arange(vectors.shape[1])])
    top = np.sign(vectors) * (sizes >= (1.0 - TIE) * sizes.max(axis=0, initial=0.0))
    for column in np.flatnonzero(np.abs(top.sum(axis=0)) < np.abs(top).sum(axis=0)):
        unit = vectors[:, column] / sizes[largest[column], column]
        skew = float((unit**3).sum())
        if abs(skew) > TIE * len(unit):
            signs[column] = np.sign(skew)
    return np.asarray(signs)


def principal_rotation(points: Array) -> Array:
    """Return the proper rotation, shape (2, 2), that puts points on their principal axes.

    ``points @ rotation`` varies most along its first column, which grows with that of the points
    (or stands still with it and grows with the second); both columns are uncorrelated.
    """
    centred = points - points.mean(axis=0)
    (a, c), (_, b) = centred.T @ centred
    angle = 0.5 * np.arctan2(2.0 * c, a - b)  # from -90 to 90 degrees
    return np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])


class SharedRows:
    """Rows that many problems share: centred, with a column of ones for the bias.

    Parameters
    ----------
    Z : array of shape (n, r)
    rotation : array of shape (r, k), optional
        Orthonormal columns; the rows are those of ``Z @ rotation``, without a copy of them in
        between.
    origin : array of shape (r,), optional
        What is subtracted first: the rows are those of ``(Z - origin) @ rotation``.
    centred : bool, default=False
        Whether the mean row is known to be the origin, so that it is not looked for.

    Attributes
    ----------
    table : array of shape (n, r + 1)
        ``[Z - centre, 1]``; with a rotation k instead of r.
    features : view of shape (n, r)
        The centred rows.
    centre : array of shape (r,)
        The mean row.
    """

    def __init__(
        self,
        Z: Array,
        rotation: Array | None = None,
        *,
        origin: Array | None = None,
        centred: bool = False,
    ) -> None:
        n, r = len(Z), Z.shape[1] if rotation is None else rotation.shape[1]
        if centred:
            mean = np.zeros(Z.shape[1])
        else:
            mean = Z.mean(axis=0) if origin is None else mean_about(Z, origin)
        self.centre = mean if rotation is None else mean @ rotation
        self.table = np.empty((n, r + 1))
        self.features = self.table[:, :r]
        away = mean if origin is None else origin + mean
        for block in row_blocks(*Z.shape):
            self.table[block, r] = 1.0
            if rotation is None:
                np.subtract(Z[block], away, out=self.features[block])
            else:
                np.matmul(Z[block] - away, rotation, out=self.features[block])

    def part(self, rows: Array) -> SharedRows:
        """Return some of the rows, centred by themselves."""
        some = SharedRows(self.features[rows])
        some.centre = some.centre + self.centre
        return some

    @property
    def n_columns(self) -> int:
        """Number of features."""
        return self.features.shape[1]

    @cached_property
    def variances(self) -> Array:
        """The variance of each feature."""
        return np.asarray(np.einsum("ij,ij->j", self.features, self.features) / len(self.table))


@dataclass(frozen=True)
class Block:
    """Some rows with what belongs to each of them.

    Attributes
    ----------
    Z : array of shape (n, r)
        Coordinates.
    codes : array of shape (n,)
        Class numbers; UNLABELLED for rows without a class.
    weights : array of shape (n,)
        Sample weights.
    start : int
        Number of the first row in the whole matrix.
    """

    Z: Array
    codes: Array
    weights: Array
    start: int = 0

    def __len__(self) -> int:
        return len(self.Z)


class RowBlocks(Protocol):
    """Rows in blocks, on this machine or on others."""

    @property
    def n_rows(self) -> int:
        """Number of all rows."""

    @property
    def n_columns(self) -> int:
        """Number of coordinates."""

    def map(self, work: Callable[..., T], *args: Any) -> list[T]:
        """Return ``work(block, *args)`` for every block, in the order of the rows."""


@dataclass(frozen=True)
class LocalBlocks:
    """Blocks in the memory of this process."""

    blocks: Sequence[Block]

    @classmethod
    def cut(cls, Z: Array, codes: Array, weights: Array, n_rows: int) -> LocalBlocks:
        """Cut arrays into views of at most ``n_rows`` rows (at least one)."""
        n_rows = max(1, n_rows)
        starts = range(0, len(Z), n_rows)
        return cls(
            [
                Block(Z[i : i + n_rows], codes[i : i + n_rows], weights[i : i + n_rows], i)
                for i in starts
            ]
        )

    @property
    def n_rows(self) -> int:
        return sum(len(block) for block in self.blocks)

    @property
    def n_columns(self) -> int:
        return int(self.blocks[0].Z.shape[1])

    def map(self, work: Callable[..., T], *args: Any) -> list[T]:
        return [work(block, *args) for block in self.blocks]


def total(parts: Sequence[Array]) -> Array:
    """Return the sum of what the blocks returned."""
    return np.asarray(np.sum(np.stack(parts), axis=0)) if parts else np.zeros(0)
