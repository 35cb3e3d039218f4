"""A graph written on its nodes, and how rows outside of it are joined to them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from marginfold.errors import GraphError
from marginfold.linalg.tall import Array


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
    degrees: Array
    rows: Array
    members: Array

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
    def gain(self, eigenvalues: Array) -> Array:
        """Return the factor between an eigenvector and its mean over the neighbors."""

    def restricted(self, nodes: Array) -> Self:
        """Return the same rule for some of the nodes."""
        return self


def row_weights(indices: Array, weights: Array, n_nodes: int) -> sp.csr_array:
    """Return a sparse matrix with the given weights in its rows, scaled to sum 1."""
    n, k = indices.shape
    weights = weights / weights.sum(axis=1, keepdims=True)
    indptr = np.arange(0, n * k + 1, k)
    return sp.csr_array((weights.ravel(), indices.ravel(), indptr), shape=(n, n_nodes))
