"""The value that a graph rule builds: a positive semi-definite Laplacian L = D - W.

The quadratic form Z'LZ, the degrees and, for neighbor graphs, sparse matrices of nodes are asked
for, so no kind of graph stores a dense n x n array. The class-structured kinds live in
``classes``, the factored ones in ``reconstruction`` and ``anchor_graph``, sums and multiples in
``rule``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

from marginfold.errors import GraphError
from marginfold.linalg.decompositions import product

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

ABSENT = -1
"""Component number of a row that is not a node: weight 0, or a copy that was merged."""

CANCELLED = 1e-6
"""A column whose Z'LZ is below this share of its squares, by degree, is computed from the edges."""

EDGE_ENTRIES = 2**20
"""Numbers held at once while it is (8 MB)."""


@dataclass(frozen=True)
class GraphDescription:
    """What a graph looks like: counts that tell a useful graph from a broken one.

    Attributes
    ----------
    name : str
        The graph.
    n_rows, n_nodes : int
        Rows of X, and rows that take part (copies merged, rows of weight 0 left out).
    n_edges : int
        Pairs of nodes that are joined. A sum of graphs counts a pair once for each term.
    n_components, n_isolated : int
        Connected parts, and those of them that are a single node.
    n_underflowed : int
        Heat weights below the floating-point resolution: these edges have no effect.
    smallest_weight, largest_weight : float
        Range of the edge weights (NaN without edges).
    recall : float or None
        Share of the true neighbors that an approximate search found, measured on a sample of the
        nodes; None if the search was exact or there was none.
    """

    name: str
    n_rows: int
    n_nodes: int
    n_edges: int
    n_components: int
    n_isolated: int
    n_underflowed: int
    smallest_weight: float
    largest_weight: float
    recall: float | None = None

    def __str__(self) -> str:
        text = (
            f"{self.name}: {self.n_rows} rows, {self.n_nodes} nodes, {self.n_edges} edges, "
            f"{self.n_components} components, {self.n_isolated} isolated"
        )
        if self.n_edges:
            text += f", weights {self.smallest_weight:.3g} to {self.largest_weight:.3g}"
        if self.n_underflowed:
            text += f", {self.n_underflowed} weights underflowed"
        if self.recall is not None:
            text += f", recall {self.recall:.3f}"
        return text


@dataclass(frozen=True, eq=False)
class NodeGraph:
    """The Laplacian as a sparse matrix; equal rows are one node, rows of weight 0 are none.

    Attributes
    ----------
    L : sparse matrix of shape (nodes, nodes)
    degrees : array of shape (nodes,)
    rows : array of shape (nodes,)
        The row that stands for each node.
    members : array of shape (n_rows,)
        The node of each row, -1 for rows that have none.
    """

    L: sp.csr_array
    degrees: FloatArray
    rows: IntArray
    members: IntArray

    def __add__(self, other: NodeGraph) -> NodeGraph:
        """Return the sum of two graphs on the same nodes, in the order of this one."""
        order, place = np.argsort(other.rows), np.argsort(np.argsort(self.rows))
        if not np.array_equal(np.sort(self.rows), other.rows[order]):
            raise GraphError(
                "A sum of graphs has a sparse matrix only if all of them have the same nodes; got "
                f"graphs on {len(self.rows)} and {len(other.rows)} nodes. Rows with the same "
                "numbers need the same label, and merge_duplicates the same value, in all of them."
            )
        same = order[place]  # the node of the other graph for each node of this one
        L = sp.csr_array(self.L + other.L[same][:, same])
        return NodeGraph(L, self.degrees + other.degrees[same], self.rows, self.members)


@dataclass(frozen=True, eq=False)
class Link(ABC):
    """How a row that is not in the graph depends on its nodes, with all widths resolved."""

    n_neighbors: int

    @abstractmethod
    def weights(self, points: Any, X: Any) -> sp.csr_array:
        """Return weights of sum 1 for each row of X on the points of the nodes."""

    @abstractmethod
    def gain(self, eigenvalues: FloatArray) -> FloatArray:
        """Return the factor between an eigenvector and its mean over the neighbors."""

    def restricted(self, nodes: IntArray) -> Self:
        """Return the same rule for some of the nodes."""
        return self


@dataclass(frozen=True, eq=False)
class Laplacian(ABC):
    """A symmetric positive semi-definite L = D - W on ``n_rows`` rows with L1 = 0."""

    n_rows: int

    @property
    @abstractmethod
    def degrees(self) -> FloatArray:
        """Row sums of W, shape (n_rows,). W is as defined by the rule, diagonal included."""

    @property
    @abstractmethod
    def components(self) -> IntArray:
        """Number of the connected component of each row, ``ABSENT`` for rows that are no node."""

    @property
    @abstractmethod
    def n_edges(self) -> int:
        """Pairs of nodes that are joined."""

    @property
    @abstractmethod
    def weight_range(self) -> tuple[float, float]:
        """Smallest and largest edge weight; NaN without edges."""

    @property
    def n_underflowed(self) -> int:
        """Edge weights that are too small to have an effect."""
        return 0

    @property
    def recall(self) -> float | None:
        """Share of the true neighbors that an approximate search found; None if exact."""
        return None

    @property
    def link(self) -> Link | None:
        """How rows outside of the graph are joined to its nodes; None if no rule says that."""
        return None

    def on_nodes(self) -> NodeGraph:
        """Return L as a sparse matrix, if the graph has one."""
        raise GraphError(
            f"{type(self).__name__} has no sparse matrix: it joins whole classes. Use "
            "NeighborGraph(), ReconstructionGraph() or PrecomputedGraph(), a multiple of one of "
            "them, or a sum of them."
        )

    @abstractmethod
    def _quadratic(self, Z: FloatArray) -> FloatArray:
        """Z'LZ, symmetric up to rounding."""

    def scatter(self, Z: FloatArray) -> FloatArray:
        """Return Z'LZ, shape (r, r), exactly symmetric, for Z of shape (n_rows, r)."""
        Z = np.asarray(Z, dtype=np.float64)
        if Z.ndim != 2 or Z.shape[0] != self.n_rows:
            raise GraphError(
                f"{type(self).__name__}.scatter got an array of shape {Z.shape}; it needs "
                f"{self.n_rows} rows. Pass the rows that the graph was built on, in their order."
            )
        S = self._quadratic(Z)
        return (S + S.T) / 2

    def scatter_with(self, Z: FloatArray, total: FloatArray) -> FloatArray:
        """Return the same, given Z'SZ with the weights S that the graph was built with.

        A graph that needs no further product of all rows does without it.
        """
        return self.scatter(Z)

    def describe(self, name: str) -> GraphDescription:
        """Count nodes, edges and components under the given name."""
        components = self.components
        sizes = np.bincount(components[components != ABSENT])
        smallest, largest = self.weight_range
        return GraphDescription(
            name=name,
            n_rows=self.n_rows,
            n_nodes=int(sizes.sum()),
            n_edges=self.n_edges,
            n_components=int(np.count_nonzero(sizes)),
            n_isolated=int(np.count_nonzero(sizes == 1)),
            n_underflowed=self.n_underflowed,
            smallest_weight=smallest,
            largest_weight=largest,
            recall=self.recall,
        )


@dataclass(frozen=True, eq=False)
class ChangedLaplacian(Laplacian):
    """A graph made of another one, which has the edges of that one."""

    graph: Laplacian

    @property
    def n_edges(self) -> int:
        return self.graph.n_edges

    @property
    def weight_range(self) -> tuple[float, float]:
        return self.graph.weight_range

    @property
    def n_underflowed(self) -> int:
        return self.graph.n_underflowed

    @property
    def recall(self) -> float | None:
        return self.graph.recall

    @property
    def link(self) -> Link | None:
        return self.graph.link


@dataclass(frozen=True, eq=False)
class EdgeLaplacian(Laplacian):
    """Sparse weights on nodes; ``rows[a]`` is the row that stands for node a.

    Rows that are no node have zero rows in L. For copies of a node this is the same quadratic
    form as spreading the weight over the copies, because copies have equal coordinates.
    ``members`` is the node of each row; None means that only the rows that stand for a node have
    one.
    """

    adjacency: sp.csr_array
    rows: IntArray
    n_underflowed: int = 0
    members: IntArray | None = None
    link: Link | None = None
    recall: float | None = None

    @property
    def degrees(self) -> FloatArray:
        degrees = np.zeros(self.n_rows)
        degrees[self.rows] = self.adjacency.sum(axis=1)
        return degrees

    @property
    def components(self) -> IntArray:
        components = np.full(self.n_rows, ABSENT, dtype=np.intp)
        components[self.rows] = connected_components(self.adjacency, directed=False)[1]
        return components

    @property
    def n_edges(self) -> int:
        return int(self.adjacency.nnz // 2)

    @property
    def weight_range(self) -> tuple[float, float]:
        return value_range(self.adjacency.data)

    def on_nodes(self) -> NodeGraph:
        degrees = self.adjacency.sum(axis=1)
        L = sp.csr_array(sp.diags_array(degrees) - self.adjacency)
        if self.members is not None:
            return NodeGraph(L, degrees, self.rows, self.members)
        members = np.full(self.n_rows, ABSENT, dtype=np.intp)
        members[self.rows] = np.arange(len(self.rows))
        return NodeGraph(L, degrees, self.rows, members)

    def _quadratic(self, Z: FloatArray) -> FloatArray:
        points = Z[self.rows]
        points -= points.mean(axis=0)  # L1 = 0: free, and an offset would cost digits
        S = product(points.T, self.on_nodes().L @ points)
        sizes = np.einsum("i,ij,ij->j", abs(self.adjacency).sum(axis=1), points, points)
        lost = np.flatnonzero(S.diagonal() < CANCELLED * sizes)
        if lost.size:
            S[lost] = self._from_differences(points, lost)
            S[:, lost] = S[lost].T
        return S

    def _from_differences(self, points: FloatArray, columns: IntArray) -> FloatArray:
        """Return some rows of Z'LZ, edge by edge: between far rows ``d z^2 - w z z'`` cancels."""
        edges = sp.triu(self.adjacency, k=1, format="coo")
        S = np.zeros((len(columns), points.shape[1]))
        step = max(1, EDGE_ENTRIES // max(1, points.shape[1]))
        for start in range(0, edges.nnz, step):
            part = slice(start, start + step)
            difference = points[edges.row[part]] - points[edges.col[part]]
            S += (difference[:, columns] * edges.data[part, None]).T @ difference
        return S


def joined_parts(left: IntArray, right: IntArray, n_left: int, n_right: int) -> IntArray:
    """Return the components of so many nodes on two sides, of which given pairs are joined."""
    size = n_left + n_right
    links = sp.coo_array((np.ones(len(left)), (left, n_left + right)), shape=(size, size))
    return np.asarray(connected_components(links)[1])


def value_range(values: FloatArray) -> tuple[float, float]:
    """Smallest and largest value, NaN when there is none."""
    if not values.size:
        return np.nan, np.nan
    return float(values.min()), float(values.max())


def row_weights(indices: IntArray, weights: FloatArray, n_nodes: int) -> sp.csr_array:
    """Return a sparse matrix with the given weights in its rows, scaled to sum 1."""
    n, k = indices.shape
    weights = weights / weights.sum(axis=1, keepdims=True)
    indptr = np.arange(0, n * k + 1, k)
    return sp.csr_array((weights.ravel(), indices.ravel(), indptr), shape=(n, n_nodes))
