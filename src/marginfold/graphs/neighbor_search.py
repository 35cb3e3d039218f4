"""Nearest-neighbor search: exact, approximate with faiss (HNSW), or by a transformer.

Whatever finds the pairs, their distances are computed here, in double precision and from the
differences.  A search that may miss neighbors is compared with the exact one on a sample.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn import config_context
from sklearn.base import clone
from sklearn.neighbors import NearestNeighbors

from marginfold.errors import GraphError, MarginfoldWarning, warn
from marginfold.graphs.laplacian import ABSENT, FloatArray, IntArray
from marginfold.runtime.extras import advice, require
from marginfold.runtime.progress import report
from marginfold.runtime.threads import one_thread, openmp_threads
from marginfold.validation.parameters import shown

TREE_MAX_COLUMNS = 8
"""Up to this many columns a k-d tree is faster than all distances, even on round clouds."""

SPARE_CANDIDATES = 4
"""Neighbors searched beyond k, so that exact distances decide among the last ones."""

TIE = 1e-12
"""Squared distances that differ by less, relatively, are equal."""

EPS = float(np.finfo(np.float64).eps)

DOUBT = 1e-9
"""Rounding below this share of the k-th squared distance does not decide who is a neighbor."""

CHUNK_ENTRIES = 2**21
"""Numbers held at once while distances are computed in chunks (16 MB)."""

PAIRS_PER_STEP = 2**28
"""Pairs of rows compared between two reports of progress (a few seconds)."""

SMALL_SEARCH = 2**22
"""Pairs of rows up to which one thread is as fast as several: about 2,000 rows."""

ROWS_PER_THREAD = 1024
"""With more rows for each thread scikit-learn gives threads rows, with fewer points to search."""


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
    contents, content = np.unique(keys, return_inverse=True)
    known = np.full(len(contents), ABSENT, dtype=np.intp)
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
    candidates, squared = _candidates(points, X, k + 1)
    squared[candidates == rows[:, None]] = np.inf
    return _sorted(candidates, squared, k)


def nearest_points(points: Any, X: Any, n_neighbors: int) -> tuple[IntArray, FloatArray]:
    """As `nearest`, for rows X that are not among the points; k is at most all points."""
    k = min(n_neighbors, points.shape[0])
    return _sorted(*_candidates(points, X, k), k)


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


def squared_norms(X: Any) -> FloatArray:
    """Return the squared norms of rows."""
    if sp.issparse(X):
        return np.asarray(X.multiply(X).sum(axis=1)).ravel()
    return np.asarray(np.einsum("ij,ij->i", X, X))


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


def _candidates(points: Any, X: Any, k: int) -> tuple[IntArray, FloatArray]:
    """Return points with the k nearest of each row among them, and their squared distances.

    A row that is one of the points is among them itself, if there is room.
    """
    sparse = sp.issparse(points)
    tree = not sparse and points.shape[1] <= TREE_MAX_COLUMNS
    # all distances at once lose digits to an offset that the columns share
    centre = None if sparse or tree else points.mean(axis=0)
    count = min(k + SPARE_CANDIDATES, points.shape[0])
    found = _searched(points, X, centre, count, tree=tree)
    i = np.repeat(np.arange(len(found)), count)
    squared = pair_distances(points, X, i, found.ravel()).reshape(found.shape)
    if not tree and len(found) and count < points.shape[0]:
        _search_again(points, X, centre, k, found, squared)
    return found, squared


def _searched(
    points: Any, X: Any, centre: FloatArray | None, count: int, *, tree: bool
) -> IntArray:
    """Return the nearest points of each row, by a tree or by all distances at once."""
    search = NearestNeighbors(n_neighbors=count, algorithm="kd_tree" if tree else "brute")
    n, m = X.shape[0], points.shape[0]
    found = np.empty((n, count), dtype=np.intp)
    few = one_thread("openmp") if n * m <= SMALL_SEARCH else nullcontext()
    with few, config_context(assume_finite=True):  # the rows of a graph are valid
        search.fit(_moved(points, centre))
        parts = list(chunks(n, m, CHUNK_ENTRIES if sp.issparse(points) else PAIRS_PER_STEP))
        for part in watched(parts, n, "neighbors"):
            rows = _moved(X[part], centre)
            # threads that share points instead of rows would decide which of equal distances count
            shared = centre is not None and m >= rows.shape[0]
            with openmp_threads(max(1, (rows.shape[0] - 1) // ROWS_PER_THREAD) if shared else m):
                found[part] = search.kneighbors(rows, return_distance=False)
    return found


def _search_again(
    points: Any, X: Any, centre: FloatArray | None, k: int, found: IntArray, squared: FloatArray
) -> None:
    """Search again, from the differences, for rows whose nearest points rounding may hide.

    |x|^2 - 2x'y + |y|^2 is off by a share of the sizes, which between far clusters exceeds all
    distances.  A point that is missing seemed as far as the last one found: if that is farther
    than the k-th by more than rounding, nothing is missing.
    """
    sizes = np.concatenate([squared_norms(_moved(X[part], centre)) for part in _row_parts(X)])
    kth, last = np.partition(squared, k - 1, axis=1)[:, k - 1], squared.max(axis=1)
    n_terms = max(_most_entries(points), _most_entries(X))
    rounding = 2.0 * EPS * n_terms * (2.0 * np.sqrt(sizes) + np.sqrt(last)) ** 2
    unsafe = (last - kth <= rounding) & (rounding > DOUBT * kth) & (kth > 0)
    rows = np.flatnonzero(unsafe)
    if not rows.size:
        return
    moved = _moved(points, centre)
    others = squared_norms(moved)
    for part in watched(list(chunks(len(rows), len(others))), len(rows), "neighbors"):
        some = rows[part]
        products = _moved(X[some], centre) @ moved.T
        products = products.toarray() if sp.issparse(products) else products
        computed = sizes[some, None] - 2.0 * products + others
        i, j = np.nonzero(computed <= (kth + rounding)[some, None])
        computed[:] = np.inf
        computed[i, j] = pair_distances(points, X[some], i, j)
        nearer = np.argpartition(computed, found.shape[1] - 1, axis=1)[:, : found.shape[1]]
        found[some], squared[some] = nearer, np.take_along_axis(computed, nearer, 1)


def _moved(X: Any, centre: FloatArray | None) -> Any:
    return X if centre is None else X - centre


def _row_parts(X: Any) -> Iterator[slice]:
    return chunks(X.shape[0], entries_per_row(X))


def _most_entries(X: Any) -> int:
    """Return the largest number of entries stored for a row."""
    return int(np.diff(X.indptr).max()) if sp.issparse(X) else int(X.shape[1])


def _sorted(candidates: IntArray, squared: FloatArray, k: int) -> tuple[IntArray, FloatArray]:
    order = np.lexsort((candidates, squared))[:, :k]
    return np.take_along_axis(candidates, order, 1), np.take_along_axis(squared, order, 1)


def _row_keys(points: Any) -> Any:
    """One byte string for each row of an array, where -0.0 counts as 0.0, or of a CSR matrix."""
    if not sp.issparse(points):
        points = np.ascontiguousarray(points + 0.0)
        return points.view(np.dtype((np.void, points.itemsize * points.shape[1]))).ravel()
    indptr, indices, data = points.indptr, points.indices.astype(np.int64), points.data
    keys = np.empty(points.shape[0], dtype=object)
    for row, (a, b) in enumerate(pairwise(indptr)):
        keys[row] = indices[a:b].tobytes() + data[a:b].tobytes()
    return keys


EXACT_MAX_ROWS = 50_000
"""Points up to which "auto" searches exactly, whatever their number of columns."""

LARGE_TREE_COLUMNS = 5
"""Up to this many columns a k-d tree is faster than faiss on 100,000 points."""

RECALL_ROWS = 200
"""Points on which an approximate search is compared with the exact one."""

LOWEST_RECALL = 0.95
"""Warn when a smaller share of the true neighbors was found."""

SHORT_SHARE = 0.5
"""A transformer that finds too few neighbors for more than this share of the points is refused."""

LINKS = 16
"""Links of a point in the index."""

BUILD_DEPTH = 80
"""Candidates looked at when a point is added to the index."""

SEARCH_DEPTHS = (64, 128, 256, 512)
"""Candidates looked at in a search: the first number that finds enough neighbors of a sample."""

ENOUGH = 0.98
"""Share of the true neighbors of the sample that is enough."""

SAMPLE_ROWS = 100
"""Points whose neighbors are searched exactly to choose the depth."""

ROWS_PER_STEP = 10_000
"""Points between two reports of progress; up to so many are searched on one thread."""

NAMES = ("auto", "exact", "faiss")


class NeighborSearch:
    """The constraint on ``search``: a name, or an object that returns a sparse graph."""

    def allows(self, value: Any) -> bool:
        """Return whether the value names a search or can do one."""
        if isinstance(value, (str, type)):
            return value in NAMES
        return callable(getattr(value, "fit", None)) and _finder(value) is not None

    def __str__(self) -> str:
        names = ", ".join(repr(name) for name in NAMES)
        return (
            f"one of {names}, or an object with fit_transform or kneighbors_graph that returns a "
            'sparse graph, such as KNeighborsTransformer(mode="distance")'
        )


@dataclass(frozen=True, eq=False)
class Neighbors:
    """Nearest other points, nearest first, and their squared distances, of shape (n, k).

    ``recall`` is the measured share of the true neighbors, None after an exact search.
    """

    indices: IntArray
    squared: FloatArray
    recall: float | None = None


def find_neighbors(points: Any, n_neighbors: int, search: Any) -> Neighbors:
    """Find the nearest other points of all points, with the search that is asked for."""
    n = points.shape[0]
    k = min(n_neighbors, n - 1)
    count = k + 1 + SPARE_CANDIDATES
    if k < 1 or n <= count:
        return Neighbors(*nearest(points, n_neighbors))
    method = _automatic(points) if isinstance(search, str) and search == "auto" else search
    if isinstance(method, str) and method == "exact":
        return Neighbors(*nearest(points, n_neighbors))
    if isinstance(method, str):
        i, j = _faiss_pairs(points, count)
    else:
        i, j = _transformer_pairs(method, points, count)
    indices, squared = _nearest_of_pairs(points, i, j, k)
    recall = _recall(points, squared)
    if recall < LOWEST_RECALL:
        warn(
            f"The search for neighbors found {recall:.1%} of the true ones on a sample of rows; "
            f"the graph needs at least {LOWEST_RECALL:.0%} to be near the exact one. Use "
            "search='exact', or a transformer that looks further (or is Euclidean).",
            MarginfoldWarning,
        )
    return Neighbors(indices, squared, recall)


def _automatic(points: Any) -> str:
    """Return the search that "auto" stands for; say so if it will be slow."""
    n, d = points.shape
    sparse = sp.issparse(points)
    if n <= EXACT_MAX_ROWS or (not sparse and d <= LARGE_TREE_COLUMNS):
        return "exact"
    if not sparse and find_spec("faiss") is not None:
        return "faiss"
    if sparse or d > TREE_MAX_COLUMNS:
        reason = "faiss does not take sparse rows" if sparse else advice(["faiss"])
        warn(
            f"Neighbors of {n} rows with {d} columns are searched exactly, which compares all "
            f"pairs and is slow: {reason}. Use AnchorGraph(), whose time grows with the rows "
            "alone, or give search= a transformer; search='exact' avoids this warning.",
            MarginfoldWarning,
        )
    return "exact"


def _finder(search: Any) -> str | None:
    """Name of the method that returns the graph."""
    names = ("fit_transform", "kneighbors_graph")
    return next((name for name in names if callable(getattr(search, name, None))), None)


def _transformer_pairs(search: Any, points: Any, count: int) -> tuple[IntArray, IntArray]:
    """Pairs that a copy of the transformer finds."""
    n = points.shape[0]
    searcher = clone(search, safe=False)
    if "n_neighbors" in getattr(searcher, "get_params", dict)():
        searcher.set_params(n_neighbors=count)
    if _finder(searcher) == "fit_transform":
        graph = searcher.fit_transform(points)
    else:
        graph = searcher.fit(points).kneighbors_graph()
    if not sp.issparse(graph) or graph.shape != (n, n):
        shape = getattr(graph, "shape", None)
        raise GraphError(
            f"search={shown(search)} returned a {type(graph).__name__} of shape {shape} for {n} "
            "distinct rows; it needs a sparse graph with a row and a column for each of them, as "
            'from KNeighborsTransformer(mode="distance").'
        )
    graph = sp.csr_array(graph)  # an entry of 0 is a pair too
    i = np.repeat(np.arange(n), np.diff(graph.indptr))
    j = graph.indices.astype(np.intp)
    found = np.bincount(i[i != j], minlength=n)
    needed = count - 1 - SPARE_CANDIDATES
    if np.mean(found < needed) > SHORT_SHARE:
        raise GraphError(
            f"search={shown(search)} found {np.median(found):g} other rows for each of {n} (the "
            f"median); the graph needs {needed}. Raise its number of neighbors, or lower "
            "n_neighbors of the graph."
        )
    return i, j


def _nearest_of_pairs(points: Any, i: IntArray, j: IntArray, k: int) -> tuple[IntArray, FloatArray]:
    """Return the k nearest of the points found for each; those with fewer are searched exactly."""
    n = points.shape[0]
    other = i != j
    i, j = i[other], j[other]
    squared = pair_distances(points, points, i, j)
    order = np.lexsort((j, squared, i))
    i, j, squared = i[order], j[order], squared[order]
    counts = np.bincount(i, minlength=n)
    rank = np.arange(len(i)) - (np.cumsum(counts) - counts)[i]
    kept = rank < k
    indices, nearest_squared = np.full((n, k), ABSENT, dtype=np.intp), np.full((n, k), np.inf)
    indices[i[kept], rank[kept]] = j[kept]
    nearest_squared[i[kept], rank[kept]] = squared[kept]
    short = np.flatnonzero(counts < k)
    if short.size:
        indices[short], nearest_squared[short] = nearest(points, k, short)
    return indices, nearest_squared


def _recall(points: Any, squared: FloatArray) -> float:
    """Share of the neighbors of a sample of points that are true ones."""
    n, k = squared.shape
    rows = np.unique(np.linspace(0, n - 1, RECALL_ROWS).astype(np.intp))
    return share_found(squared[rows], nearest(points, k, rows)[1])


def _faiss_pairs(points: Any, count: int) -> tuple[IntArray, IntArray]:
    """Return pairs (i, j) of each point and about ``count`` points near it, itself among them.

    faiss works in single precision: the points are centred and scaled first, so that neither an
    offset nor the unit costs digits.  The index is built on one thread, or the result would
    change from run to run.  Points without structure need a deeper search than others, so the
    depth is chosen on a sample.
    """
    if sp.issparse(points):
        raise GraphError(
            "search='faiss' got sparse rows; it needs dense ones. Use search='exact' or "
            "AnchorGraph(), or reduce the columns first, as TruncatedSVD does."
        )
    require("faiss")
    import faiss

    X = _single_precision(points)
    n, d = X.shape
    index = faiss.IndexHNSWFlat(d, LINKS)
    index.hnsw.efConstruction = BUILD_DEPTH
    found = np.empty((n, count), dtype=np.intp)
    steps = [slice(start, start + ROWS_PER_STEP) for start in range(0, n, ROWS_PER_STEP)]
    with _one_thread(faiss):
        for part in watched(steps, n, "neighbor index"):
            index.add(X[part])
        _choose_depth(index, points, X, count)
    with _one_thread(faiss) if len(steps) == 1 else nullcontext():
        for part in watched(steps, n, "neighbors"):
            found[part] = index.search(X[part], count)[1]
    i = np.repeat(np.arange(n), count)
    known = found.ravel() >= 0  # -1: nothing more was found
    return i[known], found.ravel()[known]


def _choose_depth(index: Any, points: FloatArray, X: NDArray[np.float32], count: int) -> None:
    """Let the index look as far as it must to find the neighbors of a sample of points."""
    n, k = len(X), count - 1 - SPARE_CANDIDATES
    rows = np.unique(((np.arange(SAMPLE_ROWS) + 0.5) * n / SAMPLE_ROWS).astype(np.intp))
    _, exact = nearest(points, k, rows)
    i = np.repeat(rows, count)
    for depth in SEARCH_DEPTHS:
        index.hnsw.efSearch = max(depth, 2 * count)
        j = index.search(X[rows], count)[1].ravel()
        squared = np.where((j < 0) | (j == i), np.inf, pair_distances(points, points, i, j))
        found = np.sort(squared.reshape(-1, count), axis=1)[:, :k]
        if share_found(found, exact) >= ENOUGH:
            break


def _single_precision(points: FloatArray) -> NDArray[np.float32]:
    X = points - points.mean(axis=0)
    size = float(np.abs(X).max())
    return np.ascontiguousarray(X / size if size > 0 else X, dtype=np.float32)


@contextmanager
def _one_thread(faiss: Any) -> Iterator[None]:
    """One thread for faiss inside the block; the former number is restored afterwards."""
    threads = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)
    try:
        yield
    finally:
        faiss.omp_set_num_threads(threads)
