"""The permutation control of a graph: the same edges between other rows."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from marginfold.errors import GraphError, InvalidParameterError
from marginfold.graphs.laplacian import (
    ABSENT,
    ChangedLaplacian,
    FloatArray,
    IntArray,
    Laplacian,
    NodeGraph,
    joined_parts,
)
from marginfold.graphs.neighbor_search import distinct_rows
from marginfold.graphs.reconstruction import FactoredLaplacian
from marginfold.graphs.rule import (
    GraphLike,
    GraphName,
    GraphRows,
    GraphRule,
    laplacian_of,
    uses_labels,
)
from marginfold.validation.parameters import Count, check_parameters, shown


class PermutedGraph(GraphRule):
    """Another graph whose nodes are assigned to other rows at random: node i is row perm[i].

    The spectrum of L, the degrees and the number of edges stay; which rows are joined no longer
    has to do with the data.  What a method gains with this graph, it would gain with any graph.

    Parameters
    ----------
    graph : GraphRule
        The graph. A grid search reaches ``graph__n_neighbors``.
    random_state : int, default=0
        Seed of the permutation, at least 0.

    Notes
    -----
    The mean of P'LP over all permutations P is ``tr(L) / (n - 1)`` times the Laplacian of
    `TotalGraph`: what remains without the neighbors is a penalty on the variance.

    Labels move with their rows, so a class graph joins rows of different classes after that.

    Distinct rows are permuted, in an order that only their content decides: copies of a row stay
    together and a node keeps its weight when it moves.  So weight 2 is the row twice, weight 0
    is the row left out, and the order of the rows does not matter.

    Neighbors of permuted rows are far from each other, so Z'LZ is larger than that of the graph
    itself.  Methods with ``normalize_graph=True`` divide by its size; with a raw graph weight the
    permuted graph also weighs more.

    Examples
    --------
    >>> import numpy as np
    >>> from marginfold.graphs import NeighborGraph, PermutedGraph
    >>> X = np.arange(20.0)[:, None]
    >>> NeighborGraph(1, weights="binary").build(X).scatter(X)
    array([[18.]])
    >>> bool(PermutedGraph(NeighborGraph(1, weights="binary")).build(X).scatter(X)[0, 0] > 100)
    True
    """

    def __init__(self, graph: GraphName | GraphLike, random_state: int = 0) -> None:
        self.graph = graph
        self.random_state = random_state

    @property
    def uses_labels(self) -> bool:
        return uses_labels(self.graph)

    def build_on(self, rows: GraphRows) -> Laplacian:
        check_parameters(self, {"random_state": Count(0)})
        if isinstance(self.graph, (str, type)) or not hasattr(self.graph, "build"):
            raise InvalidParameterError(
                f"PermutedGraph got graph={shown(self.graph)}; it needs a graph rule such as "
                "NeighborGraph()."
            )
        laplacian = laplacian_of(self.graph, rows)
        nodes = distinct_rows(rows.X, rows.weights)
        order = np.random.default_rng(int(self.random_state)).permutation(len(nodes.rows))
        permuted = PermutedLaplacian(len(rows.weights), laplacian, nodes.rows, nodes.members, order)
        if isinstance(laplacian, FactoredLaplacian):  # its factor stays: only its nodes move
            moved = permuted.on_nodes()
            return replace(laplacian, rows=moved.rows, members=moved.members)
        return permuted


@dataclass(frozen=True, eq=False)
class PermutedLaplacian(ChangedLaplacian):
    """S'LS, where row i of S picks the row that stands at the place of row i in the graph.

    Attributes
    ----------
    rows, members : arrays of shape (n_distinct,) and (n_rows,)
        The first of equal rows, and the number of each row among the distinct ones.
    order : array of shape (n_distinct,)
        The distinct row that stands at the place of each.
    """

    rows: IntArray
    members: IntArray
    order: IntArray

    @property
    def degrees(self) -> FloatArray:
        degrees = np.zeros(self.n_rows)
        np.add.at(degrees, self._moved(self.order), self.graph.degrees)
        return degrees

    @property
    def components(self) -> IntArray:
        """Parts of the graph; they become one where their places are held by the same row."""
        parts = self.graph.components
        taking_part = parts != ABSENT
        parts, holders = parts[taking_part], self._moved(self.order)[taking_part]
        n_parts = int(parts.max(initial=ABSENT)) + 1
        components = np.full(self.n_rows, ABSENT, dtype=np.intp)
        components[holders] = joined_parts(parts, holders, n_parts, self.n_rows)[parts]
        return components

    def on_nodes(self) -> NodeGraph:
        nodes = self.graph.on_nodes()
        rows = self._moved(self.order)[nodes.rows]
        if len(np.unique(rows)) < len(rows):
            raise GraphError(
                "A permuted graph has a sparse matrix only if equal rows are one node; got "
                f"{len(rows)} nodes on {len(np.unique(rows))} distinct rows. Use "
                "merge_duplicates=True, and drop copies of rows from a PrecomputedGraph."
            )
        members = nodes.members[self._moved(np.argsort(self.order))]
        return NodeGraph(nodes.L, nodes.degrees, rows, members)

    def _quadratic(self, Z: FloatArray) -> FloatArray:
        return self.graph.scatter(Z[self._moved(self.order)])

    def _moved(self, order: IntArray) -> IntArray:
        """For each row the one that the order puts at its place; itself if it has no weight."""
        present = self.members != ABSENT
        moved = np.arange(self.n_rows)
        moved[present] = self.rows[order[self.members[present]]]
        return moved
