"""Distinct rows, and the search for the nearest of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.neighbors import NearestNeighbors

from marginfold.graphs.laplacian import ABSENT, FloatArray, IntArray

TREE_MAX_COLUMNS = 8
"""Up to this many columns a k-d tree is faster than all distances, even on round clouds."""

SPARE_CANDIDATES = 4
"""Neighbors searched beyond k, so that exact distances decide among the last ones."""

CHUNK_ENTRIES = 2**21
"""Numbers held at once while distances are computed in chunks (16 MB)."""


@dataclass(frozen=True, eq=False)
class Nodes:
    """Rows that take part: their first row, their summed weight, the node of each row of X."""

    rows: IntArray
    mass: FloatArray
    members: IntArray


def distinct_rows(X: Any, weights: FloatArray, merge: bool = True) -> Nodes:
    """Merge equal rows of positive weight; nodes come in an order that only content decides."""
    present = np.flatnonzero(weights)
    members = np.full(len(weights), ABSENT, dtype=np.intp)
    if not merge:
        members[present] = np.arange(len(present))
        return Nodes(present, weights[present], members)
    _, first, inverse = np.unique(_row_keys(X[present]), return_index=True, return_inverse=True)
    members[present] = inverse
    mass = np.zeros(len(first))
    np.add.at(mass, inverse, weights[present])
    return Nodes(present[first], mass, members)


def matching_rows(points: Any, X: Any) -> IntArray:
    """For each row of X the one row of ``points`` that equals it, ``ABSENT`` if not just one does.

    Both are arrays or both are CSR matrices.
    """
    n = points.shape[0]
    keys = np.concatenate([_row_keys(points), _row_keys(X)])
    _, content = np.unique(keys, return_inverse=True)
    known = np.full(int(content.max(initial=0)) + 1, ABSENT, dtype=np.intp)
    known[content[:n]] = np.arange(n)
    known[np.bincount(content[:n], minlength=len(known)) > 1] = ABSENT
    return known[content[n:]]


def nearest(points: Any, n_neighbors: int) -> tuple[IntArray, FloatArray]:
    """Nearest other points, nearest first, and their squared distances; both of shape (n, k).

    k is ``n_neighbors``, or the number of other points if that is less. Equal distances are
    ordered by index.
    """
    n = points.shape[0]
    k = min(n_neighbors, n - 1)
    if k < 1:
        return np.empty((n, 0), dtype=np.intp), np.empty((n, 0))
    candidates = _candidates(points, points, min(k + 1 + SPARE_CANDIDATES, n))
    squared = _candidate_distances(points, points, candidates)
    squared[candidates == np.arange(n)[:, None]] = np.inf
    return _sorted(candidates, squared, k)


def nearest_points(points: Any, X: Any, n_neighbors: int) -> tuple[IntArray, FloatArray]:
    """As `nearest`, for rows X that are not among the points; k is at most all points."""
    n = points.shape[0]
    k = min(n_neighbors, n)
    candidates = _candidates(points, X, min(k + SPARE_CANDIDATES, n))
    return _sorted(candidates, _candidate_distances(points, X, candidates), k)


def chunks(n: int, entries: int) -> Iterator[slice]:
    """Cut n items of so many entries each into slices of about ``CHUNK_ENTRIES``."""
    step = max(1, CHUNK_ENTRIES // entries)
    return (slice(start, min(start + step, n)) for start in range(0, n, step))


def entries_per_row(points: Any) -> int:
    """Numbers stored for one row (an average if sparse), at least 1."""
    return max(1, int(points.size // points.shape[0]))


def _candidates(points: Any, X: Any, count: int) -> IntArray:
    """The nearest points of each row, itself among them if it is one and there is room."""
    n, d = points.shape
    if sp.issparse(points):
        search = NearestNeighbors(n_neighbors=count, algorithm="brute").fit(points)
        parts = [search.kneighbors(X[c], return_distance=False) for c in chunks(X.shape[0], n)]
        return np.concatenate(parts)
    tree = d <= TREE_MAX_COLUMNS
    # all distances at once lose digits to an offset that the columns share
    centre = 0.0 if tree else points.mean(axis=0)
    centred = points - centre
    search = NearestNeighbors(n_neighbors=count, algorithm="kd_tree" if tree else "brute")
    rows = centred if X is points else X - centre
    return np.asarray(search.fit(centred).kneighbors(rows, return_distance=False))


def _candidate_distances(points: Any, X: Any, candidates: IntArray) -> FloatArray:
    """||x - p||^2 of each row and its candidates, from the differences (no cancellation)."""
    n, count = candidates.shape
    i, j = np.repeat(np.arange(n), count), candidates.ravel()
    squared = np.empty(len(i))
    for part in chunks(len(i), entries_per_row(points)):
        difference = X[i[part]] - points[j[part]]
        if sp.issparse(difference):
            squared[part] = difference.power(2).sum(axis=1)
        else:
            squared[part] = np.einsum("ij,ij->i", difference, difference)
    return squared.reshape(n, count)


def _sorted(candidates: IntArray, squared: FloatArray, k: int) -> tuple[IntArray, FloatArray]:
    order = np.lexsort((candidates, squared))[:, :k]
    return np.take_along_axis(candidates, order, 1), np.take_along_axis(squared, order, 1)


def _row_keys(points: Any) -> Any:
    """One byte string for each row."""
    return _sparse_keys(points) if sp.issparse(points) else _dense_keys(points)


def _dense_keys(points: FloatArray) -> Any:
    """One byte string for each row; -0.0 counts as 0.0."""
    points = np.ascontiguousarray(points + 0.0)
    return points.view(np.dtype((np.void, points.itemsize * points.shape[1]))).ravel()


def _sparse_keys(points: Any) -> Any:
    """One byte string for each row of a canonical CSR matrix."""
    indptr, indices, data = points.indptr, points.indices.astype(np.int64), points.data
    keys = np.empty(points.shape[0], dtype=object)
    for row, (a, b) in enumerate(pairwise(indptr)):
        keys[row] = indices[a:b].tobytes() + data[a:b].tobytes()
    return keys
