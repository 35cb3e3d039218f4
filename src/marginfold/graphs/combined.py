"""Sums and multiples of graphs."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from marginfold.graphs.laplacian import ABSENT, FloatArray, IntArray, Laplacian
from marginfold.graphs.node_graph import Link, NodeGraph


@dataclass(frozen=True, eq=False)
class SumLaplacian(Laplacian):
    """L of the first graph plus L of the second."""

    first: Laplacian
    second: Laplacian

    @property
    def degrees(self) -> FloatArray:
        return self.first.degrees + self.second.degrees

    @property
    def components(self) -> IntArray:
        """Parts that are joined by either graph: components linked by the rows they share."""
        a, b = self.first.components, self.second.components
        n_a, n_b = int(a.max()) + 1, int(b.max()) + 1
        both = (a != ABSENT) & (b != ABSENT)
        links = sp.coo_array(
            (np.ones(int(both.sum())), (a[both], n_a + b[both])), shape=(n_a + n_b, n_a + n_b)
        )
        labels = connected_components(links, directed=False)[1]
        result = np.full(self.n_rows, ABSENT, dtype=np.intp)
        result[b != ABSENT] = labels[n_a + b[b != ABSENT]]
        result[a != ABSENT] = labels[a[a != ABSENT]]
        return result

    @property
    def n_edges(self) -> int:
        return self.first.n_edges + self.second.n_edges

    @property
    def weight_range(self) -> tuple[float, float]:
        (low_a, high_a), (low_b, high_b) = self.first.weight_range, self.second.weight_range
        return float(np.fmin(low_a, low_b)), float(np.fmax(high_a, high_b))

    @property
    def n_underflowed(self) -> int:
        return self.first.n_underflowed + self.second.n_underflowed

    @property
    def recall(self) -> float | None:
        """The lower one of the two."""
        known = [r for r in (self.first.recall, self.second.recall) if r is not None]
        return min(known, default=None)

    def on_nodes(self) -> NodeGraph:
        return self.first.on_nodes() + self.second.on_nodes()

    def _quadratic(self, Z: FloatArray) -> FloatArray:
        return self.first.scatter(Z) + self.second.scatter(Z)


@dataclass(frozen=True, eq=False)
class ScaledLaplacian(Laplacian):
    """A graph whose weights are all multiplied by a factor >= 0."""

    graph: Laplacian
    factor: float

    @property
    def degrees(self) -> FloatArray:
        return self.factor * self.graph.degrees

    @property
    def components(self) -> IntArray:
        return self.graph.components

    @property
    def n_edges(self) -> int:
        return self.graph.n_edges

    @property
    def weight_range(self) -> tuple[float, float]:
        low, high = self.graph.weight_range
        return self.factor * low, self.factor * high

    @property
    def n_underflowed(self) -> int:
        return self.graph.n_underflowed

    @property
    def recall(self) -> float | None:
        return self.graph.recall

    @property
    def link(self) -> Link | None:
        return self.graph.link

    def on_nodes(self) -> NodeGraph:
        nodes = self.graph.on_nodes()
        return replace(nodes, L=self.factor * nodes.L, degrees=self.factor * nodes.degrees)

    def _quadratic(self, Z: FloatArray) -> FloatArray:
        return self.factor * self.graph.scatter(Z)
