"""The graph of locally linear embedding: each row as a mean of its neighbors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from marginfold.graphs.laplacian import (
    ABSENT,
    FloatArray,
    IntArray,
    Laplacian,
    Link,
    NodeGraph,
    row_weights,
    value_range,
)
from marginfold.graphs.neighbor_search import (
    NeighborSearch,
    chunks,
    distinct_rows,
    entries_per_row,
    find_neighbors,
    nearest_points,
)
from marginfold.graphs.rule import GraphRows, GraphRule
from marginfold.linalg.tall import gram
from marginfold.validation.parameters import (
    POSITIVE_FACTOR,
    Constraint,
    Count,
    check_parameters,
)
from marginfold.validation.types import SearchLike

CONSTRAINTS: dict[str, Constraint] = {
    "n_neighbors": Count(1),
    "reg": POSITIVE_FACTOR,
    "search": NeighborSearch(),
}


class ReconstructionGraph(GraphRule):
    """Locally linear embedding: w'Z'LZw is the squared error of rebuilding rows from neighbors.

    Row i of M holds the weights, with sum 1, that best rebuild node i from its nearest nodes, and
    L = (I - M)' diag(m) (I - M) for nodes of weight m. The published M + M' + M'M has a wrong
    sign that can make L indefinite; W = M + M' - M'M is used, with row sums 1.

    Parameters
    ----------
    n_neighbors : int, default=10
        Neighbors of each node. With fewer other nodes than that, all of them are used.
    reg : float, default=1e-3
        Ridge on the local Gram matrix, as a share of its trace.
    search : {"auto", "exact", "faiss"} or transformer, default="auto"
        How neighbors are searched; see :class:`NeighborGraph`.

    Notes
    -----
    Equal rows are one node of summed weight; see :class:`NeighborGraph`. A single node has
    nothing to be rebuilt from and L = 0.

    Examples
    --------
    >>> from marginfold.graphs import ReconstructionGraph
    >>> X = [[0.0], [1.0], [2.0]]
    >>> laplacian = ReconstructionGraph(n_neighbors=2, reg=1e-9).build(X)
    >>> bool(laplacian.scatter(X)[0, 0] < 1e-9)  # a line rebuilds itself
    True
    """

    def __init__(
        self, n_neighbors: int = 10, *, reg: float = 1e-3, search: SearchLike = "auto"
    ) -> None:
        self.n_neighbors = n_neighbors
        self.reg = reg
        self.search = search

    def build_on(self, rows: GraphRows) -> Laplacian:
        check_parameters(self, CONSTRAINTS)
        nodes = distinct_rows(rows.X, rows.weights)
        points = rows.X[nodes.rows]
        found = find_neighbors(points, self.n_neighbors, self.search)
        n, k = found.indices.shape
        if k == 0:
            M = sp.eye_array(n, format="csr")
        else:
            rebuilding = _barycentric(points, points, found.indices, float(self.reg))
            M = row_weights(found.indices, rebuilding, n)
        link = BarycentricLink(int(self.n_neighbors), float(self.reg))
        return FactoredLaplacian(
            len(rows.weights), M, nodes.mass, nodes.rows, nodes.members, link, found.recall
        )


@dataclass(frozen=True, eq=False)
class FactoredLaplacian(Laplacian):
    """L = F'F with F = diag(mass)^(1/2) (I - M) on nodes; M1 = 1, so D = diag(mass).

    Edges, components and weights are those of M: i and j are joined if one rebuilds the other.
    """

    M: sp.csr_array
    mass: FloatArray
    rows: IntArray
    members: IntArray
    link: Link | None = None
    recall: float | None = None

    @property
    def degrees(self) -> FloatArray:
        degrees = np.zeros(self.n_rows)
        degrees[self.rows] = self.mass
        return degrees

    @property
    def components(self) -> IntArray:
        components = np.full(self.n_rows, ABSENT, dtype=np.intp)
        components[self.rows] = connected_components(self.M, directed=False)[1]
        return components

    @property
    def n_edges(self) -> int:
        i, j = self.M.nonzero()
        pairs = np.minimum(i, j).astype(np.int64) * len(self.rows) + np.maximum(i, j)
        return int(np.unique(pairs[i != j]).size)

    @property
    def weight_range(self) -> tuple[float, float]:
        return value_range(self.M.data if self.n_edges else np.empty(0))

    @property
    def n_closed(self) -> int:
        """Groups of nodes that are rebuilt from each other alone: L has as many zero vectors.

        There can be more of them than components: nodes between two groups may be rebuilt from
        both without being used by any.
        """
        n_groups, group = connected_components(self.M, directed=True, connection="strong")
        i, j = self.M.nonzero()
        leaving = np.unique(group[i[group[i] != group[j]]])
        return int(n_groups - leaving.size)

    def on_nodes(self) -> NodeGraph:
        F = sp.diags_array(np.sqrt(self.mass)) @ (sp.eye_array(len(self.rows)) - self.M)
        return NodeGraph(sp.csr_array(F.T @ F), self.mass, self.rows, self.members)

    def _quadratic(self, Z: FloatArray) -> FloatArray:
        points = Z[self.rows]
        points -= self.M @ points
        points *= np.sqrt(self.mass)[:, None]
        return gram(points)


@dataclass(frozen=True, eq=False)
class BarycentricLink(Link):
    """A new row is rebuilt from its nearest nodes, as the nodes are from each other."""

    reg: float

    def weights(self, points: Any, X: Any) -> sp.csr_array:
        indices, _ = nearest_points(points, X, self.n_neighbors)
        return row_weights(indices, _barycentric(points, X, indices, self.reg), points.shape[0])

    def gain(self, eigenvalues: FloatArray) -> FloatArray:
        return np.ones_like(eigenvalues)


def _barycentric(points: Any, X: Any, indices: IntArray, reg: float) -> FloatArray:
    """Weights that best rebuild each row of X from its neighbors, up to scale, shape (n, k)."""
    n, k = indices.shape
    weights = np.empty((n, k))
    ridge = reg * np.eye(k)
    for part in chunks(n, k * k * entries_per_row(points)):
        gram = _local_gram(points, X[part], indices[part])
        trace = np.trace(gram, axis1=1, axis2=2)[:, None, None]
        gram /= np.where(trace > 0, trace, 1.0)
        weights[part] = np.linalg.solve(gram + ridge, np.ones((len(gram), k, 1)))[:, :, 0]
    return weights


def _local_gram(points: Any, X: Any, indices: IntArray) -> FloatArray:
    """Inner products of the differences to the neighbors, shape (len(X), k, k)."""
    n, k = indices.shape
    difference = points[indices.ravel()] - X[np.repeat(np.arange(n), k)]
    if not sp.issparse(difference):
        difference = difference.reshape(n, k, points.shape[1])
        return np.asarray(difference @ difference.transpose(0, 2, 1))
    a = np.repeat(np.arange(n * k), k)
    b = np.repeat(np.arange(n * k).reshape(n, k), k, axis=0).ravel()
    return np.asarray(difference[a].multiply(difference[b]).sum(axis=1)).reshape(n, k, k)
