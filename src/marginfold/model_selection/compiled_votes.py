"""The nearest neighbor of `nested_neighbors`, compiled by numba: many new rows at a time.

NumPy writes all distances to memory for each number of columns and reads them again for the least
ones.  Here those between two training rows and a block of new rows stay in the cache while column
after column is added, and the pass that adds a column also lowers the least distances of a class.
Every inner loop runs over neighbouring numbers, one for each new row, and has no branch.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit, types
from numba.extending import intrinsic

from marginfold.linalg.tall import Array
from marginfold.runtime.jit import OPTIONS

BLOCK = 256
"""New rows whose distances are held at once: with the least ones so far they stay in the cache."""

LANES = 16
"""New rows are filled up to a multiple of this, so that no loop ends with single numbers."""

TILE = 4
"""Columns that are added in one pass where no least distance is asked for in between."""

kernel = njit(**OPTIONS)


def first_call() -> None:
    """Compile what is called from outside, or load what was compiled before."""
    places = np.array([0, 1], dtype=np.intp)
    nearest_classes(np.zeros((2, 1)), places, np.zeros((1, 1)), places[1:])


@kernel
def nearest_classes(
    train: Array, starts: Array, test: Array, dimensions: Array
) -> tuple[Array, Array]:
    """Return the class of the nearest training row, and how much farther the next class is.

    Parameters
    ----------
    train : array of shape (n_train, k)
        Sorted by class.
    starts : array of int
        Where each class begins.
    test : array of shape (n_test, k)
    dimensions : array of int
        Numbers of leading columns, rising.

    Returns
    -------
    codes : array of shape (n_dimensions, n_test)
        The lowest code if classes are equally near.
    gaps : array of shape (n_dimensions, n_test)
        Differences of half squared distances; infinite if there is one class only.
    """
    n = len(test)
    columns = np.zeros((test.shape[1], LANES * ((n + LANES - 1) // LANES)))
    columns[:, :n] = test.T
    shape = len(dimensions), columns.shape[1]
    codes, best, second = np.zeros(shape, np.intp), np.full(shape, np.inf), np.full(shape, np.inf)
    for begin in range(0, shape[1], BLOCK):
        end = min(begin + BLOCK, shape[1])
        least = np.empty((len(dimensions), end - begin))
        for code in range(len(starts)):
            stop = starts[code + 1] if code + 1 < len(starts) else len(train)
            _find_least(train[starts[code] : stop], columns, begin, dimensions, least)
            for d in range(len(dimensions)):
                window = codes[d, begin:end], best[d, begin:end], second[d, begin:end]
                _compare(code, least[d], *window)
    return codes[:, :n], (second - best)[:, :n]


@kernel
def _find_least(train: Array, columns: Array, begin: int, dimensions: Array, least: Array) -> None:
    """Fill least with the least ``|t|^2 / 2 - x't`` over the training rows, which come in pairs."""
    end = begin + least.shape[1]
    halves, others = np.empty(least.shape[1]), np.empty(least.shape[1])
    least[:] = np.inf
    for i in range(0, len(train), 2):
        row, other = train[i], train[min(i + 1, len(train) - 1)]
        halves[:] = 0.0
        others[:] = 0.0
        done = 0
        for d in range(len(dimensions)):
            last = dimensions[d] - 1
            if done < last:
                _add(row, columns, begin, done, last, halves)
                _add(other, columns, begin, done, last, others)
            x = columns[last, begin:end]
            _add_and_lower(row[last], other[last], x, halves, others, least[d])
            done = last + 1


@kernel
def _add(row: Array, columns: Array, begin: int, done: int, last: int, halves: Array) -> None:
    """Add ``t^2 / 2 - x t`` of the columns from done to last, which is left out."""
    end = begin + len(halves)
    while last - done >= TILE:
        t0, t1, t2, t3 = row[done], row[done + 1], row[done + 2], row[done + 3]
        x0, x1 = columns[done, begin:end], columns[done + 1, begin:end]
        x2, x3 = columns[done + 2, begin:end], columns[done + 3, begin:end]
        half = 0.5 * (t0 * t0 + t1 * t1 + t2 * t2 + t3 * t3)
        for i in range(len(halves)):
            halves[i] += half - t0 * x0[i] - t1 * x1[i] - t2 * x2[i] - t3 * x3[i]
        done += TILE
    for j in range(done, last):
        t, x = row[j], columns[j, begin:end]
        half = 0.5 * t * t
        for i in range(len(halves)):
            halves[i] += half - t * x[i]


@kernel
def _add_and_lower(
    t: float, u: float, x: Array, halves: Array, others: Array, least: Array
) -> None:
    """Add one column of two training rows and lower the least sums so far."""
    half, other_half = 0.5 * t * t, 0.5 * u * u
    for i in range(len(least)):
        total, other, lowest = half - t * x[i], other_half - u * x[i], least[i]
        total += halves[i]
        other += others[i]
        halves[i] = total
        others[i] = other
        lower = _choose(total < other, total, other)
        least[i] = _choose(lower < lowest, lower, lowest)


@kernel
def _compare(code: int, least: Array, codes: Array, best: Array, second: Array) -> None:
    """Let a class compete with the lower codes for the first and the second place."""
    for i in range(len(least)):
        new, first, next_one, holder = least[i], best[i], second[i], codes[i]
        wins = new < first
        codes[i] = _choose(wins, code, holder)
        best[i] = _choose(wins, new, first)
        second[i] = _choose(wins, first, _choose(new < next_one, new, next_one))


@intrinsic
def _choose(context: Any, condition: Any, yes: Any, no: Any) -> Any:
    """Return one of two values without a branch, which would keep a loop from being vectorised."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return builder.select(*values)

    return yes(types.boolean, yes, yes), generate
