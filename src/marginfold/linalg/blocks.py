"""Map and reduce over row blocks of a tall matrix, in this process or on a cluster.

Work on many rows is a pure function of one block and of small arguments; it returns something
small.  Nothing is remembered between two passes, so that a block which is lost can be read again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import numpy as np

from marginfold.linalg.tall import Array

T = TypeVar("T")


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
