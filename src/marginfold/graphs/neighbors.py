"""Nearest-neighbor graphs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal, Self

import numpy as np
import scipy.sparse as sp

from marginfold.errors import GraphUnderflowWarning, warn
from marginfold.graphs.laplacian import (
    ABSENT,
    EdgeLaplacian,
    FloatArray,
    IntArray,
    Laplacian,
    Link,
    row_weights,
)
from marginfold.graphs.neighbor_search import (
    NeighborSearch,
    Nodes,
    distinct_rows,
    find_neighbors,
    nearest_points,
)
from marginfold.graphs.rule import GraphRows, GraphRule, graph_name
from marginfold.validation.parameters import (
    POSITIVE_FACTOR,
    Choice,
    Constraint,
    Count,
    Either,
    Flag,
    check_parameters,
)
from marginfold.validation.types import SearchLike

UNDERFLOW = float(np.finfo(np.float64).eps)
"""A heat weight below this has no effect beside weights near 1."""

UNDERFLOW_SHARE = 0.5
"""Warn when more than this share of the heat weights have underflowed."""

NEAREST = 1e-3
"""Pairs closer than this, in roots of the width, count as so far apart: an inverse distance is at
most 1000, also between equal rows that are nodes of their own."""

LARGEST_GAIN = 2.0
"""A coordinate of a new row is at most this many times the mean over its neighbors."""

CONSTRAINTS: dict[str, Constraint] = {
    "n_neighbors": Count(1),
    "weights": Choice("heat", "distance", "binary"),
    "width": Either(Choice("auto"), POSITIVE_FACTOR),
    "mode": Choice("union", "mutual"),
    "within_class": Flag(),
    "merge_duplicates": Flag(),
    "search": NeighborSearch(),
}


class NeighborGraph(GraphRule):
    """Joins each row with its nearest rows.

    Parameters
    ----------
    n_neighbors : int, default=10
        Neighbors of each node. With fewer other nodes than that, all of them are used.
    weights : {"heat", "distance", "binary"}, default="heat"
        exp(-||xi - xj||^2 / width), or the inverse distance sqrt(width) / ||xi - xj|| (at most
        1000), or 1.  Inverse distances do as well as heat: errors differ by -0.5 +- 0.7 points
        (`LSVA`), -0.7 +- 0.6 (`LPP`), -0.2 +- 0.1 (`GESVC`, rbf) and -1.1 +- 0.8
        (`LaplacianEigenmaps`; eight tables, five partitions, one neighbor).
    width : "auto" or float, default="auto"
        "auto" is the mean squared distance to the neighbors: weights then do not depend on the
        scale or the number of the columns. A fixed width (the papers use 1 or 2) does.
    mode : {"union", "mutual"}, default="union"
        Joins i and j if one is among the neighbors of the other, or only if both are.
    within_class : bool, default=False
        Search neighbors among the rows of the same class only. Unlabelled rows have no edges.
    merge_duplicates : bool, default=True
        Equal rows are one node with summed weight, so that copies do not fill each other's
        neighbor lists. If False, every row is its own node and a sample weight is no longer the
        same as copies of the row.
    search : {"auto", "exact", "faiss"} or transformer, default="auto"
        How neighbors are searched. "exact" compares all rows, or uses a k-d tree for up to 8
        columns. "faiss" is an approximate search (``pip install "marginfold[faiss]"``). "auto" is
        exact up to 50,000 distinct rows (any number of rows for up to 5 columns) and faiss above,
        if it is installed. An object with ``fit_transform`` or ``kneighbors_graph`` that
        returns a sparse graph, such as scikit-learn's ``KNeighborsTransformer(mode="distance")``,
        is used for the search alone: its ``n_neighbors`` is set to what is needed, and distances
        are Euclidean whatever its metric.

    Notes
    -----
    A search that is not known to be exact is compared with an exact one on a sample of 200 nodes.
    The share of the true neighbors that it found is ``recall`` of the graph and of its description;
    there is a warning if it is below 0.95. For very many rows there is `AnchorGraph` too, whose
    time grows with the rows alone.

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
    >>> NeighborGraph(1, weights="distance", width=1.0).build(X).degrees  # 1 and 2 / 2
    array([1., 2., 1., 0.])
    """

    def __init__(
        self,
        n_neighbors: int = 10,
        *,
        weights: Literal["heat", "binary", "distance"] = "heat",
        width: float | Literal["auto"] = "auto",
        mode: Literal["union", "mutual"] = "union",
        within_class: bool = False,
        merge_duplicates: bool = True,
        search: SearchLike = "auto",
    ) -> None:
        self.n_neighbors = n_neighbors
        self.weights = weights
        self.width = width
        self.mode = mode
        self.within_class = within_class
        self.merge_duplicates = merge_duplicates
        self.search = search

    @property
    def uses_labels(self) -> bool:
        return bool(self.within_class)

    def build_on(self, rows: GraphRows) -> Laplacian:
        check_parameters(self, CONSTRAINTS)
        n = len(rows.weights)
        codes = rows.classes(self) if self.within_class else np.zeros(n, dtype=np.intp)
        nodes, pairs = self._neighbors(rows.X, rows.weights, codes)
        i, j, squared = pairs.i, pairs.j, pairs.squared
        width = self._width(nodes.mass[i] * nodes.mass[j], squared)
        kind = InverseDistanceLink if self.weights == "distance" else HeatLink
        link = kind(int(self.n_neighbors), nodes.mass, width)
        n_nodes = len(nodes.rows)
        i, j, squared = _undirected(i, j, squared, n_nodes, mutual=self.mode == "mutual")
        W, underflowed = self._edge_weights(squared, width)
        W *= nodes.mass[i] * nodes.mass[j]
        adjacency = sp.coo_array(
            (np.concatenate([W, W]), (np.concatenate([i, j]), np.concatenate([j, i]))),
            shape=(n_nodes, n_nodes),
        ).tocsr()
        return EdgeLaplacian(
            n, adjacency, nodes.rows, underflowed, nodes.members, link, pairs.recall
        )

    def _neighbors(self, X: Any, weights: FloatArray, codes: IntArray) -> tuple[Nodes, NodePairs]:
        """Nodes and their directed neighbor pairs, class by class."""
        groups, parts, n_nodes = [], [], 0
        members = np.full(len(weights), ABSENT, dtype=np.intp)
        for code in np.unique(codes):
            nodes = distinct_rows(X, np.where(codes == code, weights, 0.0), self.merge_duplicates)
            k = 0 if code == ABSENT else self.n_neighbors
            found = find_neighbors(X[nodes.rows], k, self.search)
            n, width = found.indices.shape
            i = n_nodes + np.repeat(np.arange(n), width)
            j = n_nodes + found.indices.ravel()
            groups.append(nodes)
            parts.append(NodePairs(i, j, found.squared.ravel(), found.recall))
            present = nodes.members != ABSENT
            members[present] = n_nodes + nodes.members[present]
            n_nodes += n
        rows = np.concatenate([nodes.rows for nodes in groups])
        mass = np.concatenate([nodes.mass for nodes in groups])
        return Nodes(rows, mass, members), _joined(parts)

    def _width(self, mass: FloatArray, squared: FloatArray) -> float:
        """Width of the weights, 0 for weights that do not depend on the distance."""
        if self.weights == "binary":
            return 0.0
        if not isinstance(self.width, str):
            return float(self.width)
        return float(np.average(squared, weights=mass)) if squared.size else 0.0

    def _edge_weights(self, squared: FloatArray, width: float) -> tuple[FloatArray, int]:
        """Edge weights before masses, and how many of them underflowed."""
        if width == 0:  # also if all squared distances underflowed
            return np.ones_like(squared), 0
        if self.weights == "distance":
            return inverse_distances(squared, width), 0
        with np.errstate(over="ignore"):  # an infinite distance, in widths, has weight 0
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
class NodePairs:
    """Directed pairs of a node and one of its neighbors, and the recall of their search."""

    i: IntArray
    j: IntArray
    squared: FloatArray
    recall: float | None


@dataclass(frozen=True, eq=False)
class HeatLink(Link):
    """A new row is joined to its nearest nodes, whatever their class, with the width of the graph.

    An eigenvector of L y = lambda D y is ``y_i = sum_j W_ij y_j / (d_i (1 - lambda))``, which is
    carried over to new rows.  One with lambda near 1 alternates between neighbors, so that the
    mean over them says next to nothing: it is not amplified more than `LARGEST_GAIN` times.
    """

    mass: FloatArray
    width: float

    def weights(self, points: Any, X: Any) -> sp.csr_array:
        indices, squared = nearest_points(points, X, self.n_neighbors)
        W = self.mass[indices]
        if self.width:
            with np.errstate(over="ignore"):  # an infinite distance, in widths, has weight 0
                W *= np.exp((squared[:, :1] - squared) / self.width)  # far away: the nearest counts
        return row_weights(indices, W, len(self.mass))

    def gain(self, eigenvalues: FloatArray) -> FloatArray:
        return 1.0 / np.maximum(1.0 - eigenvalues, 1.0 / LARGEST_GAIN)

    def restricted(self, nodes: IntArray) -> Self:
        return replace(self, mass=self.mass[nodes])


@dataclass(frozen=True, eq=False)
class InverseDistanceLink(HeatLink):
    """The same with inverse distances: next to a node a new row has its coordinates."""

    def weights(self, points: Any, X: Any) -> sp.csr_array:
        indices, squared = nearest_points(points, X, self.n_neighbors)
        W = self.mass[indices]
        if self.width:
            far = np.maximum(self.width, squared[:, :1])  # far away only ratios count
            W *= inverse_distances(squared, far)
        return row_weights(indices, W, len(self.mass))


def inverse_distances(squared: FloatArray, width: float | FloatArray) -> FloatArray:
    """Return ``sqrt(width / squared)``, cut at ``1 / NEAREST``."""
    with np.errstate(over="ignore"):  # an infinite distance, in widths, has weight 0
        return np.asarray(1.0 / np.maximum(np.sqrt(squared / width), NEAREST))


def _joined(parts: list[NodePairs]) -> NodePairs:
    """All pairs; the recall is the mean over them, or None if all were searched exactly."""
    i, j = (np.concatenate([getattr(part, name) for part in parts]) for name in ("i", "j"))
    squared = np.concatenate([part.squared for part in parts])
    if all(part.recall is None for part in parts):
        return NodePairs(i, j, squared, None)
    recall = [1.0 if part.recall is None else part.recall for part in parts]
    return NodePairs(i, j, squared, float(np.average(recall, weights=[len(p.i) for p in parts])))


def _undirected(
    i: IntArray, j: IntArray, squared: FloatArray, n_nodes: int, *, mutual: bool
) -> tuple[IntArray, IntArray, FloatArray]:
    """Each unordered pair once; ``mutual`` keeps those that were found from both ends."""
    pair = np.minimum(i, j) * n_nodes + np.maximum(i, j)
    pair, first, count = np.unique(pair, return_index=True, return_counts=True)
    keep = count == 2 if mutual else slice(None)
    i, j = np.divmod(pair[keep], n_nodes)
    return i, j, squared[first[keep]]
