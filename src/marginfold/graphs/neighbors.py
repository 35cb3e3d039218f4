"""Nearest-neighbor graphs, and the search for neighbors among distinct rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from sklearn.neighbors import NearestNeighbors

from marginfold.errors import GraphUnderflowWarning, warn
from marginfold.graphs.laplacian import ABSENT, EdgeLaplacian, FloatArray, IntArray, Laplacian
from marginfold.graphs.rule import GraphRule, graph_name, read_codes, read_rows
from marginfold.parameters import Choice, Constraint, Count, Either, Flag, Number, check_parameters

TREE_MAX_COLUMNS = 8
"""Up to this many columns a k-d tree is faster than all distances, even on round clouds."""

SPARE_CANDIDATES = 4
"""Neighbors searched beyond k, so that exact distances decide among the last ones."""

CHUNK_ENTRIES = 2**21
"""Numbers held at once while distances are computed in chunks (16 MB)."""

UNDERFLOW = float(np.finfo(np.float64).eps)
"""A heat weight below this has no effect beside weights near 1."""

UNDERFLOW_SHARE = 0.5
"""Warn when more than this share of the heat weights have underflowed."""

CONSTRAINTS: dict[str, Constraint] = {
    "n_neighbors": Count(1),
    "weights": Choice("heat", "binary"),
    "width": Either(Choice("auto"), Number(0.0, inclusive=False)),
    "mode": Choice("union", "mutual"),
    "within_class": Flag(),
    "merge_duplicates": Flag(),
}


class NeighborGraph(GraphRule):
    """Joins each row with its nearest rows.

    Parameters
    ----------
    n_neighbors : int, default=10
        Neighbors of each node. With fewer other nodes than that, all of them are used.
    weights : {"heat", "binary"}, default="heat"
        exp(-||xi - xj||^2 / width), or 1.
    width : "auto" or float, default="auto"
        "auto" is the mean squared distance to the neighbors: weights then do not depend on the
        scale or the number of the columns. A fixed width (the papers use 1 or 2) does.
    mode : {"union", "mutual"}, default="union"
        Joins i and j if one is among the neighbors of the other, or only if both are.
    within_class : bool, default=False
        Search neighbors among the rows of the same class only. Unlabelled rows are isolated.
    merge_duplicates : bool, default=True
        Equal rows are one node with summed weight, so that copies do not fill each other's
        neighbor lists. If False, every row is its own node and a sample weight is no longer the
        same as copies of the row.

    Notes
    -----
    The edge between nodes of weight m_i and m_j weighs m_i m_j W_ij, which is what all pairs of
    copies add up to. A node is represented by its first row in L; the other copies have zero
    rows there, which is valid because copies have equal coordinates.

    Rows at exactly the same distance compete for the last place in a neighbor list. Nodes are
    ordered by their content, so the choice does not depend on the order of the rows (unless
    ``merge_duplicates=False``).

    Examples
    --------
    >>> from marginfold.graphs import NeighborGraph
    >>> X = [[0.0], [1.0], [3.0], [3.0]]
    >>> laplacian = NeighborGraph(n_neighbors=1, weights="binary").build(X)
    >>> laplacian.degrees
    array([1., 3., 2., 0.])
    """

    def __init__(
        self,
        n_neighbors: int = 10,
        *,
        weights: str = "heat",
        width: float | str = "auto",
        mode: str = "union",
        within_class: bool = False,
        merge_duplicates: bool = True,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.weights = weights
        self.width = width
        self.mode = mode
        self.within_class = within_class
        self.merge_duplicates = merge_duplicates

    @property
    def uses_labels(self) -> bool:
        return bool(self.within_class)

    def build(
        self,
        X: Any,
        y: ArrayLike | None = None,
        *,
        unlabeled: Any = None,
        sample_weight: ArrayLike | None = None,
    ) -> Laplacian:
        check_parameters(self, CONSTRAINTS)
        X, weights = read_rows(self, X, y, sample_weight)
        codes = (
            read_codes(self, y, unlabeled)
            if self.within_class
            else np.zeros(len(weights), dtype=np.intp)
        )
        rows, mass, i, j, squared = self._neighbors(X, weights, codes)
        width = self._width(mass[i] * mass[j], squared)
        i, j, squared = _undirected(i, j, squared, len(rows), mutual=self.mode == "mutual")
        W, underflowed = self._edge_weights(squared, width)
        W *= mass[i] * mass[j]
        adjacency = sp.coo_array(
            (np.concatenate([W, W]), (np.concatenate([i, j]), np.concatenate([j, i]))),
            shape=(len(rows), len(rows)),
        ).tocsr()
        return EdgeLaplacian(len(weights), adjacency, rows, underflowed)

    def _neighbors(
        self, X: Any, weights: FloatArray, codes: IntArray
    ) -> tuple[IntArray, FloatArray, IntArray, IntArray, FloatArray]:
        """Nodes (row, mass) and their directed neighbor pairs (i, j, squared distance)."""
        parts, n_nodes = [], 0
        for code in np.unique(codes):
            nodes = distinct_rows(X, np.where(codes == code, weights, 0.0), self.merge_duplicates)
            k = 0 if code == ABSENT else self.n_neighbors
            indices, squared = nearest(nodes.points, k)
            i = np.repeat(np.arange(len(nodes.rows)), indices.shape[1])
            parts.append(
                (nodes.rows, nodes.mass, n_nodes + i, n_nodes + indices.ravel(), squared.ravel())
            )
            n_nodes += len(nodes.rows)
        rows, mass, i, j, squared = (np.concatenate(part) for part in zip(*parts, strict=True))
        return rows, mass, i, j, squared

    def _width(self, mass: FloatArray, squared: FloatArray) -> float:
        if not isinstance(self.width, str):
            return float(self.width)
        return float(np.average(squared, weights=mass)) if squared.size else 0.0

    def _edge_weights(self, squared: FloatArray, width: float) -> tuple[FloatArray, int]:
        """Edge weights before masses, and how many of them underflowed."""
        if self.weights == "binary" or width == 0:  # 0: all squared distances underflowed
            return np.ones_like(squared), 0
        W = np.exp(-squared / width)
        n_underflowed = int(np.count_nonzero(W < UNDERFLOW))
        if n_underflowed > UNDERFLOW_SHARE * W.size:
            warn(
                f"{n_underflowed} of {W.size} heat weights of {graph_name(self)} are below "
                f"{UNDERFLOW:.1e}: width={width:g}, but the median squared distance of neighbors "
                f"is {np.median(squared):g}. The graph has next to no effect; use width='auto'.",
                GraphUnderflowWarning,
            )
        return W, n_underflowed


@dataclass(frozen=True, eq=False)
class Nodes:
    """Rows that take part: their first row, their summed weight, their coordinates."""

    rows: IntArray
    mass: FloatArray
    points: Any


def distinct_rows(X: Any, weights: FloatArray, merge: bool = True) -> Nodes:
    """Merge equal rows of positive weight; nodes come in an order that only content decides."""
    present = np.flatnonzero(weights)
    points = X[present]
    if not merge:
        return Nodes(present, weights[present], points)
    keys = _sparse_keys(points) if sp.issparse(points) else _dense_keys(points)
    _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    mass = np.zeros(len(first))
    np.add.at(mass, inverse, weights[present])
    return Nodes(present[first], mass, points[first])


def nearest(points: Any, n_neighbors: int) -> tuple[IntArray, FloatArray]:
    """Nearest other points, nearest first, and their squared distances; both of shape (n, k).

    k is ``n_neighbors``, or the number of other points if that is less. Equal distances are
    ordered by index.
    """
    n = points.shape[0]
    k = min(n_neighbors, n - 1)
    if k < 1:
        return np.empty((n, 0), dtype=np.intp), np.empty((n, 0))
    candidates = _candidates(points, min(k + 1 + SPARE_CANDIDATES, n))
    own = np.arange(n)[:, None]
    i = np.broadcast_to(own, candidates.shape).ravel()
    squared = squared_distances(points, i, candidates.ravel()).reshape(candidates.shape)
    squared[candidates == own] = np.inf
    order = np.lexsort((candidates, squared))[:, :k]
    return np.take_along_axis(candidates, order, 1), np.take_along_axis(squared, order, 1)


def squared_distances(points: Any, i: IntArray, j: IntArray) -> FloatArray:
    """||x_i - x_j||^2 for the given pairs, from the differences (no cancellation)."""
    squared = np.empty(len(i))
    for part in chunks(len(i), entries_per_row(points)):
        difference = points[i[part]] - points[j[part]]
        if sp.issparse(difference):
            squared[part] = difference.power(2).sum(axis=1)
        else:
            squared[part] = np.einsum("ij,ij->i", difference, difference)
    return squared


def chunks(n: int, entries: int) -> Iterator[slice]:
    """Cut n items of so many entries each into slices of about ``CHUNK_ENTRIES``."""
    step = max(1, CHUNK_ENTRIES // entries)
    return (slice(start, min(start + step, n)) for start in range(0, n, step))


def entries_per_row(points: Any) -> int:
    """Numbers stored for one row (an average if sparse), at least 1."""
    return max(1, int(points.size // points.shape[0]))


def _candidates(points: Any, count: int) -> IntArray:
    """The nearest points of each point, itself among them if there is room."""
    n, d = points.shape
    if sp.issparse(points):
        search = NearestNeighbors(n_neighbors=count, algorithm="brute").fit(points)
        parts = [search.kneighbors(points[c], return_distance=False) for c in chunks(n, n)]
        return np.concatenate(parts)
    tree = d <= TREE_MAX_COLUMNS
    # all distances at once lose digits to an offset that the columns share
    points = points if tree else points - points.mean(axis=0)
    search = NearestNeighbors(n_neighbors=count, algorithm="kd_tree" if tree else "brute")
    return np.asarray(search.fit(points).kneighbors(points, return_distance=False))


def _undirected(
    i: IntArray, j: IntArray, squared: FloatArray, n_nodes: int, *, mutual: bool
) -> tuple[IntArray, IntArray, FloatArray]:
    """Each unordered pair once; ``mutual`` keeps those that were found from both ends."""
    pair = np.minimum(i, j) * n_nodes + np.maximum(i, j)
    pair, first, count = np.unique(pair, return_index=True, return_counts=True)
    keep = count == 2 if mutual else slice(None)
    i, j = np.divmod(pair[keep], n_nodes)
    return i, j, squared[first[keep]]


def _dense_keys(points: FloatArray) -> Any:
    """One byte string for each row; -0.0 counts as 0.0."""
    points = np.ascontiguousarray(points + 0.0)
    return points.view(np.dtype((np.void, points.itemsize * points.shape[1]))).ravel()


def _sparse_keys(points: Any) -> Any:
    """One byte string for each row of a canonical CSR matrix."""
    indptr, indices, data = points.indptr, points.indices, points.data
    keys = np.empty(points.shape[0], dtype=object)
    for row, (a, b) in enumerate(pairwise(indptr)):
        keys[row] = indices[a:b].tobytes() + data[a:b].tobytes()
    return keys
