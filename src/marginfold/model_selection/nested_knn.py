"""Votes of the nearest neighbors on the leading columns, all numbers of columns at once.

Columns are nested, so the squared distances of k columns are those of k - 1 plus one column.  With
x a new row and t a training row, half of them is ``|x|^2 / 2 + |t|^2 / 2 - x't``; the first term is
the same for all training rows and is left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg.blas import dgemm

from marginfold.linalg.tall import Array
from marginfold.runtime.jit import compiled_module

CHUNK_ENTRIES = 200_000
"""Distances held at once: few enough to stay in cache."""

ROUNDING = 1e-11
"""Differences of half squared distances below this share of the squared norms may be rounding."""

COMPILED_ENTRIES = 50_000
"""Distances above which a single neighbor is worth the compiled module, which must be loaded."""


@dataclass(frozen=True)
class Votes:
    """The classes that the neighbors choose, for each number of columns.

    Attributes
    ----------
    codes : array of shape (n_dimensions, n_rows)
        Class codes; of equally near rows the earlier counts, of equal votes the lower code wins.
    close : array of shape (n_dimensions, n_rows)
        Whether rounding, or another rule for rows that are equally near, could change the code.
    """

    codes: Array
    close: Array


def nested_votes(
    train: Array,
    train_codes: Array,
    test: Array,
    n_neighbors: int,
    dimensions: Sequence[int] | None = None,
) -> Votes:
    """Return the majority class of the nearest training rows, with the leading columns only.

    Parameters
    ----------
    train, test : arrays of shape (n, k)
    train_codes : array of int
        Class codes 0, 1, ... of the training rows, none left out.
    n_neighbors : int
        At most the number of training rows.
    dimensions : sequence of int, optional
        Numbers of leading columns, rising; by default 1, 2, ..., k.

    Examples
    --------
    >>> import numpy as np
    >>> from marginfold.model_selection.nested_knn import nested_votes
    >>> train, codes = np.array([[0.0, 0.0], [0.5, 4.0]]), np.array([0, 1])
    >>> nested_votes(train, codes, np.array([[0.1, 3.0]]), 1).codes
    array([[0],
           [1]])
    """
    dimensions = range(1, train.shape[1] + 1) if dimensions is None else dimensions
    last = [k - 1 for k in dimensions]
    largest = np.cumsum(train**2, axis=1).max(axis=0)[last]
    sizes = np.cumsum(test**2, axis=1).T[last] + largest[:, None]
    order = np.argsort(train_codes, kind="stable")  # rows of a class stand together
    rows, starts = train[order], np.searchsorted(train_codes[order], np.unique(train_codes))
    compiled = None
    if n_neighbors == 1 and len(train) * len(test) > COMPILED_ENTRIES:
        compiled = compiled_module("marginfold.model_selection.compiled_votes")
    if compiled is None:
        codes, close = _by_chunks(rows, starts, test, n_neighbors, dimensions, ROUNDING * sizes)
    else:
        arrays = np.ascontiguousarray(rows, float), starts, np.array(test, float, order="C")
        codes, gaps = compiled.nearest_classes(*arrays, np.array(dimensions, dtype=np.intp))
        close = gaps <= ROUNDING * sizes
    for d, k in enumerate(dimensions):
        again = np.flatnonzero(close[d])
        if not len(again):
            continue
        codes[d, again] = _exact(train[:, :k], train_codes, test[again, :k], n_neighbors)
    return Votes(codes, close)


def _by_chunks(
    train: Array, starts: Array, test: Array, k: int, dimensions: Sequence[int], slack: Array
) -> tuple[Array, Array]:
    """Return the winners for each number of columns, by as many rows as stay in the cache."""
    step = max(1, CHUNK_ENTRIES // len(train))
    codes = np.empty((len(dimensions), len(test)), dtype=np.intp)
    close = np.empty(codes.shape, dtype=bool)
    for start in range(0, len(test), step):
        chunk = slice(start, start + step)
        for d, halves in enumerate(_nested_halves(train, test[chunk], dimensions)):
            codes[d, chunk], close[d, chunk] = _winners(halves, starts, k, slack[d, chunk])
    return codes, close


def _nested_halves(train: Array, test: Array, dimensions: Sequence[int]) -> Iterator[Array]:
    """Yield ``|t|^2 / 2 - x't``, shape (test rows, training rows), for each number of columns."""
    halves = np.zeros((len(train), len(test)), order="F")
    done = 0
    for k in dimensions:
        new = slice(done, k)
        left = np.column_stack([-train[:, new], (train[:, new] ** 2).sum(axis=1) / 2])
        right = np.vstack([test[:, new].T, np.ones(len(test))])
        halves = dgemm(1.0, left, right, beta=1.0, c=halves, overwrite_c=1)
        done = k
        yield halves.T


def _winners(halves: Array, starts: Array, k: int, slack: Array) -> tuple[Array, Array]:
    """Return the class that wins each row, and whether differences below slack could change it."""
    if len(starts) == 1:
        return np.zeros(len(halves), dtype=np.intp), np.zeros(len(halves), dtype=bool)
    if k == 1:
        nearest = np.minimum.reduceat(halves, starts, axis=1)
        two = np.partition(nearest, 1, axis=1)
        return nearest.argmin(axis=1), two[:, 1] - two[:, 0] <= slack
    last = np.partition(halves, k - 1, axis=1)[:, k - 1]
    below = np.add.reduceat(halves < (last - slack)[:, None], starts, axis=1, dtype=np.intp)
    up_to = np.add.reduceat(halves <= (last + slack)[:, None], starts, axis=1, dtype=np.intp)
    vacant = k - below.sum(axis=1, keepdims=True)  # places for the rows as far as the last
    counts = below + np.minimum(up_to - below, vacant)
    tied = np.count_nonzero(up_to > below, axis=1) > 1
    return counts.argmax(axis=1), tied & (up_to.sum(axis=1) > k)


def _exact(train: Array, train_codes: Array, test: Array, n_neighbors: int) -> Array:
    """Return the votes by sums of squared differences; of equal ones the earlier row counts."""
    codes = np.empty(len(test), dtype=np.intp)
    for i, row in enumerate(test):
        squared = ((train - row) ** 2).sum(axis=1)
        nearest = np.argsort(squared, kind="stable")[:n_neighbors]
        codes[i] = np.bincount(train_codes[nearest]).argmax()
    return codes
