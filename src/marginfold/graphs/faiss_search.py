"""Approximate neighbors from faiss, an optional package: a navigable small-world graph (HNSW)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from marginfold.errors import GraphError
from marginfold.extras import require
from marginfold.graphs.laplacian import FloatArray, IntArray
from marginfold.graphs.search import watched

LINKS = 16
"""Links of a point in the index."""

BUILD_DEPTH = 80
"""Candidates looked at when a point is added to the index."""

SEARCH_DEPTH = 64
"""Candidates looked at in a search, or twice the neighbors if these are more."""

ROWS_PER_STEP = 10_000
"""Points between two reports of progress; up to so many are searched on one thread."""


def faiss_pairs(points: Any, count: int) -> tuple[IntArray, IntArray]:
    """Return pairs (i, j) of each point and about ``count`` points near it, itself among them.

    faiss works in single precision: the points are centred and scaled first, so that neither an
    offset nor the unit costs digits.  The index is built on one thread, or the result would
    change from run to run.
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
    index.hnsw.efSearch = max(SEARCH_DEPTH, 2 * count)
    found = np.empty((n, count), dtype=np.intp)
    steps = [slice(start, start + ROWS_PER_STEP) for start in range(0, n, ROWS_PER_STEP)]
    with _one_thread(faiss):
        for part in watched(steps, n, "neighbor index"):
            index.add(X[part])
    with _one_thread(faiss) if len(steps) == 1 else nullcontext():
        for part in watched(steps, n, "neighbors"):
            found[part] = index.search(X[part], count)[1]
    i = np.repeat(np.arange(n), count)
    known = found.ravel() >= 0  # -1: nothing more was found
    return i[known], found.ravel()[known]


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
