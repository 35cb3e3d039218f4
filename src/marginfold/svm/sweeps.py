"""Sweeps of dual coordinate descent, compiled by numba: see `coordinate_descent`."""

from __future__ import annotations

import numpy as np
from numba import njit

from marginfold.linalg.tall import Array
from marginfold.runtime.jit import OPTIONS

Problem = tuple[Array, Array, Array, Array, Array, Array]
"""Table of the rows, squared scale, coordinates along what is deflated; labels, costs, lengths."""

Point = tuple[Array, Array, Array, Array]
"""Multipliers, and of their sum of rows the plane, the part that is deflated, and the bias."""

kernel = njit(**OPTIONS)

MULTIPLIER = np.uint64(6364136223846793005)
"""Knuth's linear congruential generator: the order of the rows must not depend on anybody else.

Any odd number may be added, and the low half of its bits is dropped, which is not random."""


def first_call() -> None:
    """Compile what is called from outside, or load what was compiled before."""
    table, metric, T = np.array([[-1.0, 1.0], [1.0, 1.0]]), np.ones(1), np.zeros((2, 0))
    y, c, sizes = np.array([-1.0, 1.0]), np.ones(2), lengths(table, metric, T)
    state = np.zeros(2), np.zeros(1), np.zeros(0), np.zeros(1)
    seed = np.zeros(1, dtype=np.uint64)
    sweep((table, metric, T, y, c, sizes), 1.0, state, np.arange(2), 2, 1.0, seed)


@kernel
def lengths(table: Array, metric: Array, T: Array) -> Array:
    """Return the squared lengths of the rows in the metric, without what is deflated."""
    n, r, k = len(table), len(metric), T.shape[1]
    sizes = np.empty(n)
    for i in range(n):
        row, deflated, size = table[i], T[i], 0.0
        for j in range(r):
            size += metric[j] * row[j] * row[j]
        for h in range(k):
            size -= deflated[h] * deflated[h]
        sizes[i] = max(size, 0.0)
    return sizes


@kernel
def sweep(
    problem: Problem,
    bias_size: float,
    point: Point,
    order: Array,
    active: int,
    clear: float,
    seed: Array,
) -> tuple[int, float]:
    """Visit the first rows of ``order`` and set each multiplier to its best value.

    The point is changed in place.  Rows that are at their bounds by more than ``clear`` move behind
    the active ones.

    Returns how many rows are active now, and the largest violation that was met.
    """
    table, metric, T, y, c, sizes = problem
    a, plane, along, bias = point
    _shuffle(order, active, seed)
    r, n_deflated, worst, k = len(metric), T.shape[1], 0.0, 0
    while k < active:
        i = order[k]
        row, deflated, f = table[i], T[i], bias[0]
        for j in range(r):
            f += row[j] * plane[j]
        for h in range(n_deflated):
            f -= deflated[h] * along[h]
        excess = y[i] * f - 1.0
        at_lower, at_upper = a[i] <= 0.0, a[i] >= c[i]
        if (at_lower and excess > clear) or (at_upper and excess < -clear):
            active -= 1
            order[k], order[active] = order[active], i
            continue
        k += 1
        if (at_lower and excess >= 0.0) or (at_upper and excess <= 0.0):
            continue
        worst = max(worst, abs(excess))
        best = min(max(a[i] - excess / (sizes[i] + bias_size), 0.0), c[i])
        push = (best - a[i]) * y[i]
        a[i] = best
        for j in range(r):
            plane[j] += push * metric[j] * row[j]
        for h in range(n_deflated):
            along[h] += push * deflated[h]
        bias[0] += bias_size * push
    return active, worst


@kernel
def _shuffle(order: Array, count: int, seed: Array) -> None:
    """Bring the first entries into a random order (Fisher and Yates)."""
    for last in range(count - 1, 0, -1):
        seed[0] = seed[0] * MULTIPLIER + np.uint64(1)
        k = int((seed[0] >> np.uint64(33)) % np.uint64(last + 1))
        order[last], order[k] = order[k], order[last]
