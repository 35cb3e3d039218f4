"""Graphs on the rows of X: ``rule.build(X, y) -> Laplacian`` with ``scatter(Z) = Z'LZ``.

A rule is a cloneable object with parameters; rules add and scale. Wherever a graph is asked for, a
string is short for a rule with its defaults: "knn", "within", "between", "total", "lle",
"anchors".
"""

from __future__ import annotations

from marginfold.errors import InvalidParameterError
from marginfold.graphs.anchor_graph import AnchorGraph
from marginfold.graphs.classes import BetweenClassGraph, TotalGraph, WithinClassGraph
from marginfold.graphs.laplacian import GraphDescription, Laplacian
from marginfold.graphs.neighbors import NeighborGraph
from marginfold.graphs.permuted import PermutedGraph
from marginfold.graphs.precomputed import PrecomputedGraph
from marginfold.graphs.reconstruction import ReconstructionGraph
from marginfold.graphs.rule import (
    GraphLike,
    GraphRows,
    GraphRule,
    ScaledGraph,
    SumGraph,
    laplacian_of,
    uses_labels,
)

__all__ = [
    "SHORTHANDS",
    "AnchorGraph",
    "BetweenClassGraph",
    "GraphDescription",
    "GraphLike",
    "GraphRows",
    "GraphRule",
    "Laplacian",
    "NeighborGraph",
    "PermutedGraph",
    "PrecomputedGraph",
    "ReconstructionGraph",
    "ScaledGraph",
    "SumGraph",
    "TotalGraph",
    "WithinClassGraph",
    "laplacian_of",
    "resolve_graph",
    "uses_labels",
]

SHORTHANDS: dict[str, type[GraphRule]] = {
    "knn": NeighborGraph,
    "within": WithinClassGraph,
    "between": BetweenClassGraph,
    "total": TotalGraph,
    "lle": ReconstructionGraph,
    "anchors": AnchorGraph,
}


def resolve_graph(graph: str | GraphLike) -> GraphLike:
    """Return the rule that one of `SHORTHANDS` stands for, or the object with ``build`` itself.

    Examples
    --------
    >>> from marginfold.graphs import resolve_graph
    >>> resolve_graph("within")
    WithinClassGraph()
    """
    if isinstance(graph, str) and graph in SHORTHANDS:
        return SHORTHANDS[graph]()
    if isinstance(graph, (str, type)) or not callable(getattr(graph, "build", None)):
        names = ", ".join(repr(name) for name in SHORTHANDS)
        raise InvalidParameterError(
            f"got graph={graph!r}; it needs one of {names}, or a graph rule such as "
            "NeighborGraph(n_neighbors=5). Where there is a graph_weight, 0 is no graph at all."
        )
    return graph
