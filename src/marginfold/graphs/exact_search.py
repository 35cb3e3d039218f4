"""Exact nearest-neighbor search (k-d tree or brute force) among the distinct rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn import config_context
from sklearn.neighbors import NearestNeighbors

from marginfold.graphs.laplacian import ABSENT, FloatArray, IntArray
from marginfold.runtime.progress import report
from marginfold.runtime.threads import one_thread

TREE_MAX_COLUMNS = 8
"""Up to this many columns a k-d tree is faster than all distances, even on round clouds."""

SPARE_CANDIDATES = 4
"""Neighbors searched beyond k, so that exact distances decide among the last ones."""

TIE = 1e-12
"""Squared distances that differ by less, relatively, are equal."""

CHUNK_ENTRIES = 2**21
"""Numbers held at once while distances are computed in chunks (16 MB)."""

PAIRS_PER_STEP = 2**28
"""Pairs of rows compared between two reports of progress (a few seconds)."""

SMALL_SEARCH = 2**22
"""Pairs of rows up to which one thread is as fast as several: about 2,000 rows."""


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


def nearest(
    points: Any, n_neighbors: int, rows: IntArray | None = None
) -> tuple[IntArray, FloatArray]:
    """Nearest other points, nearest first, and their squared distances; both of shape (n, k).

    k is ``n_neighbors``, or the number of other points if that is less. Equal distances are
    ordered by index. ``rows`` are the numbers of the points to search for, by default all.
    """
    n = points.shape[0]
    k = min(n_neighbors, n - 1)
    rows = np.arange(n) if rows is None else rows
    if k < 1:
        return np.empty((len(rows), 0), dtype=np.intp), np.empty((len(rows), 0))
    X = points if len(rows) == n else points[rows]
    candidates = _candidates(points, X, min(k + 1 + SPARE_CANDIDATES, n))
    squared = _candidate_distances(points, X, candidates)
    squared[candidates == rows[:, None]] = np.inf
    return _sorted(candidates, squared, k)


def nearest_points(points: Any, X: Any, n_neighbors: int) -> tuple[IntArray, FloatArray]:
    """As `nearest`, for rows X that are not among the points; k is at most all points."""
    n = points.shape[0]
    k = min(n_neighbors, n)
    candidates = _candidates(points, X, min(k + SPARE_CANDIDATES, n))
    return _sorted(candidates, _candidate_distances(points, X, candidates), k)


def pair_distances(points: Any, X: Any, i: IntArray, j: IntArray) -> FloatArray:
    """||x_i - p_j||^2 of pairs of rows, from the differences (no cancellation)."""
    squared = np.empty(len(i))
    for part in chunks(len(i), entries_per_row(points)):
        difference = X[i[part]] - points[j[part]]
        if sp.issparse(difference):
            squared[part] = difference.power(2).sum(axis=1)
        else:
            squared[part] = np.einsum("ij,ij->i", difference, difference)
    return squared


def share_found(squared: FloatArray, exact: FloatArray) -> float:
    """Share of found neighbors that are as near as the last true one, from squared distances."""
    return float(np.mean(squared <= exact[:, -1:] * (1.0 + TIE)))


def chunks(n: int, entries: int, size: int | None = None) -> Iterator[slice]:
    """Cut n items of so many entries each into slices of about ``CHUNK_ENTRIES`` (or ``size``)."""
    step = max(1, (size or CHUNK_ENTRIES) // entries)
    return (slice(start, min(start + step, n)) for start in range(0, n, step))


def watched(parts: Sequence[slice], n: int, stage: str) -> Iterator[slice]:
    """Yield the slices of n items; if there are several, each is reported before it begins."""
    for part in parts:
        if len(parts) > 1:
            report(stage, part.start, n)
        yield part


def entries_per_row(points: Any) -> int:
    """Numbers stored for one row (an average if sparse), at least 1."""
    return max(1, int(points.size // points.shape[0]))


def _candidates(points: Any, X: Any, count: int) -> IntArray:
    """Return the nearest points of each row, itself among them if it is one and there is room."""
    sparse = sp.issparse(points)
    tree = not sparse and points.shape[1] <= TREE_MAX_COLUMNS
    # all distances at once lose digits to an offset that the columns share
    centre = None if sparse or tree else points.mean(axis=0)
    search = NearestNeighbors(n_neighbors=count, algorithm="kd_tree" if tree else "brute")
    n, m = X.shape[0], points.shape[0]
    found = np.empty((n, count), dtype=np.intp)
    few = one_thread("openmp") if n * m <= SMALL_SEARCH else nullcontext()
    with few, config_context(assume_finite=True):  # the rows of a graph are valid
        search.fit(points if centre is None else points - centre)
        parts = list(chunks(n, m, CHUNK_ENTRIES if sparse else PAIRS_PER_STEP))
        for part in watched(parts, n, "neighbors"):
            rows = X[part] if centre is None else X[part] - centre
            found[part] = search.kneighbors(rows, return_distance=False)
    return found


def _candidate_distances(points: Any, X: Any, candidates: IntArray) -> FloatArray:
    n, count = candidates.shape
    i = np.repeat(np.arange(n), count)
    return pair_distances(points, X, i, candidates.ravel()).reshape(n, count)


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
