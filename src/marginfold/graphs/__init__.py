"""Graphs on the rows of X: ``rule.build(X, y) -> Laplacian`` with ``scatter(Z) = Z'LZ``.

A rule is a cloneable object with parameters; rules add and scale. Wherever a graph is asked for, a
string is short for a rule with its defaults: "knn", "within", "between", "total", "lle",
"anchors".
"""

from __future__ import annotations

from marginfold.graphs.anchor_graph import AnchorGraph
from marginfold.graphs.classes import BetweenClassGraph, TotalGraph, WithinClassGraph
from marginfold.graphs.laplacian import GraphDescription, Laplacian
from marginfold.graphs.neighbors import NeighborGraph
from marginfold.graphs.permuted import PermutedGraph
from marginfold.graphs.precomputed import PrecomputedGraph
from marginfold.graphs.reconstruction import ReconstructionGraph
from marginfold.graphs.rule import (
    SHORTHANDS,
    GraphLike,
    GraphRows,
    GraphRule,
    ScaledGraph,
    SumGraph,
    laplacian_of,
    resolve_graph,
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

SHORTHANDS.update(
    {
        "knn": NeighborGraph,
        "within": WithinClassGraph,
        "between": BetweenClassGraph,
        "total": TotalGraph,
        "lle": ReconstructionGraph,
        "anchors": AnchorGraph,
    }
)
