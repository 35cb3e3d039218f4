"""Items round a circle: those that belong together become neighbors."""

from __future__ import annotations

import numpy as np

from marginfold.linalg.tall import Array

EXACT_ITEMS = 10
"""Up to this many items the best of all orders is found; its cost doubles with every item."""

RESOLUTION = 1e-12
"""An exchange must gain this share of the largest affinity: less is rounding."""


def circular_order(affinity: Array) -> Array:
    """Return the items in the order round a circle in which neighbors have the largest affinity.

    The sum of the affinities of all neighbors is the largest possible for up to `EXACT_ITEMS`
    items; for more it is the largest that the exchange of two pairs of neighbors can reach from
    the order that joins the strongest pairs first.  Turned and mirrored orders are the same: the
    one that is returned starts with item 0, and the smaller of its two neighbors follows.

    Parameters
    ----------
    affinity : array of shape (n, n)
        Only ``affinity + affinity.T`` matters, without its diagonal.

    Returns
    -------
    array of shape (n,)

    Examples
    --------
    >>> import numpy as np
    >>> from marginfold.geometry.circle import circular_order
    >>> circular_order(np.array([[0, 1, 3, 2], [1, 0, 2, 3], [3, 2, 0, 1], [2, 3, 1, 0]]))
    array([0, 2, 1, 3])
    """
    affinity = affinity + affinity.T
    if len(affinity) <= 3:
        return np.arange(len(affinity))
    if len(affinity) <= EXACT_ITEMS:
        return _from_first(_best_order(affinity))
    return _from_first(_exchanged(affinity, _joined(affinity)))


def circle_points(order: Array) -> Array:
    """Return points on the unit circle, evenly spaced, counter-clockwise from (1, 0) in order."""
    n = len(order)
    points = np.empty((n, 2))
    angles = 2.0 * np.pi * np.arange(n) / n
    points[order] = np.column_stack([np.cos(angles), np.sin(angles)])
    points[np.abs(points) < np.finfo(float).eps] = 0.0
    return points


def _from_first(order: Array) -> Array:
    order = np.roll(order, -int(np.flatnonzero(order == 0)[0]))
    return order if order[1] < order[-1] else np.roll(order[::-1], 1)


def _best_order(affinity: Array) -> Array:
    """Build the best paths from item 0 through every set of items (Held and Karp).

    ``best[s, j]`` is the value of the best path from 0 through the set s that ends in its member
    j, and ``before[s, j]`` the member that comes before j; bits and members stand for items 1, 2...
    """
    n = len(affinity) - 1
    between = affinity[1:, 1:]
    bits = 1 << np.arange(n)
    best = np.full((1 << n, n), -np.inf)
    before = np.zeros((1 << n, n), dtype=np.intp)
    best[bits, np.arange(n)] = affinity[0, 1:]
    for members in range(1, (1 << n) - 1):
        free = np.flatnonzero(members & bits == 0)
        paths = best[members][:, None] + between[:, free]
        last = paths.argmax(axis=0)
        best[members | bits[free], free] = paths[last, np.arange(len(free))]
        before[members | bits[free], free] = last
    members = (1 << n) - 1
    end = int((best[members] + affinity[1:, 0]).argmax())
    order = []
    while members:
        order.append(end + 1)
        members, end = members ^ (1 << end), int(before[members, end])
    return np.array([0, *order])


def _joined(affinity: Array) -> Array:
    """Join the pairs of largest affinity first, each item to two others, into one path."""
    n = len(affinity)
    first, second = np.triu_indices(n, 1)
    neighbors: list[list[int]] = [[] for _ in range(n)]
    path = np.arange(n)
    for pair in np.argsort(-affinity[first, second], kind="stable"):
        a, b = int(first[pair]), int(second[pair])
        if len(neighbors[a]) < 2 and len(neighbors[b]) < 2 and path[a] != path[b]:
            neighbors[a].append(b)
            neighbors[b].append(a)
            path[path == path[b]] = path[a]
    order = [next(item for item in range(n) if len(neighbors[item]) == 1)]
    while len(order) < n:
        order.append(next(item for item in neighbors[order[-1]] if item not in order[-2:-1]))
    return np.array(order)


def _exchanged(affinity: Array, order: Array) -> Array:
    """Turn the part of the circle round that gains most, until none gains (2-opt)."""
    smallest = RESOLUTION * float(np.abs(affinity).max())
    while True:
        across = affinity[np.ix_(order, order)]
        following = np.roll(across, (-1, -1), axis=(0, 1))
        steps = affinity[order, np.roll(order, -1)]
        gain = np.triu(across + following - steps[:, None] - steps, 1)
        start, end = divmod(int(gain.argmax()), len(order))
        if gain[start, end] <= smallest:
            return order
        order = order.copy()
        order[start + 1 : end + 1] = order[start + 1 : end + 1][::-1]
