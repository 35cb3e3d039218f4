"""Approximate neighbors from faiss, an optional package: a navigable small-world graph (HNSW)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from marginfold.errors import GraphError
from marginfold.graphs.exact_search import (
    SPARE_CANDIDATES,
    nearest,
    pair_distances,
    share_found,
    watched,
)
from marginfold.graphs.laplacian import FloatArray, IntArray
from marginfold.runtime.extras import require

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


def faiss_pairs(points: Any, count: int) -> tuple[IntArray, IntArray]:
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
