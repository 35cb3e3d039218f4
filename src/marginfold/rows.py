"""The few operations on a tall matrix that the solver and the metrics need.

Everything that touches all rows goes through here, so that another kind of row storage needs only
these functions.  Row blocks keep the temporaries in cache: memory stays linear in the rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

Array = NDArray[np.float64]

BLOCK_BYTES = 1 << 20
"""Target size of one row block."""

PAIR_BYTES = 64 << 20
"""Largest table of column products that `WeightedGrams` keeps."""

PAIR_BATCH = 4
"""Smallest number of weight vectors for which the table of column products pays."""


def row_blocks(n_rows: int, n_columns: int) -> Iterator[slice]:
    """Yield slices that cut ``n_rows`` into blocks of about `BLOCK_BYTES`."""
    size = max(64, BLOCK_BYTES // (8 * max(n_columns, 1)))
    for start in range(0, n_rows, size):
        yield slice(start, min(start + size, n_rows))


def gram(Z: Array, weights: Array | None = None) -> Array:
    """Return ``Z' diag(weights) Z`` for non-negative weights without a weighted copy of Z."""
    if weights is None:
        return np.asarray(Z.T @ Z)
    total = np.zeros((Z.shape[1], Z.shape[1]))
    roots = np.sqrt(weights)
    for block in row_blocks(*Z.shape):
        part = Z[block] * roots[block, None]
        total += part.T @ part
    return total


class WeightedGrams:
    """``Z' diag(d_b) Z`` for a stack of non-negative weight vectors ``d_b``, again and again.

    For several small problems the products of all column pairs are tabulated once; each call is
    then a single matrix product for the whole stack.
    """

    def __init__(self, Z: Array, n_problems: int) -> None:
        self._Z = Z
        self._pairs: Array | None = None
        n, r = Z.shape
        if n_problems >= PAIR_BATCH and 4 * n * r * (r + 1) <= PAIR_BYTES:
            self._upper = np.triu_indices(r)
            self._pairs = Z[:, self._upper[0]] * Z[:, self._upper[1]]

    def __call__(self, d: Array) -> Array:
        """Return the Gram matrices, shape (n_problems, r, r), for weights (n_problems, n)."""
        r = self._Z.shape[1]
        if self._pairs is None:
            return np.stack([gram(self._Z, weights) for weights in d])
        packed = d @ self._pairs
        grams = np.empty((len(d), r, r))
        grams[:, self._upper[0], self._upper[1]] = packed
        grams[:, self._upper[1], self._upper[0]] = packed
        return grams


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Run many small matrix products on one thread; the former limit is restored afterwards."""
    with _controller().limit(limits=1, user_api="blas"):
        yield
