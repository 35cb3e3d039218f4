"""Anchor graph: rows joined through a few anchors, at a cost linear in the rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from marginfold.errors import GraphError
from marginfold.graphs.anchors import (
    Anchors,
    anchor_means,
    block_scatter,
    block_sums,
    choose_anchors,
)
from marginfold.graphs.laplacian import (
    ABSENT,
    FloatArray,
    IntArray,
    Laplacian,
    NodeGraph,
    value_range,
)
from marginfold.graphs.neighbors import UNDERFLOW
from marginfold.graphs.rule import GraphRows, GraphRule
from marginfold.linalg.blocks import Block, LocalBlocks, RowBlocks
from marginfold.validation.parameters import (
    Choice,
    Constraint,
    Count,
    Either,
    Number,
    check_parameters,
)

ROWS_PER_ANCHOR = 10
"""Rows for each anchor when their number is chosen."""

MOST_ANCHORS = 500
"""Largest number of anchors that is chosen: beyond it the time grows with the rows alone."""

CONSTRAINTS: dict[str, Constraint] = {
    "n_anchors": Either(Choice("auto"), Count(1)),
    "n_neighbors": Count(1),
    "random_state": Count(0),
    "weights": Choice("heat", "binary"),
    "width": Either(Choice("auto"), Number(0.0, inclusive=False)),
}


class AnchorGraph(GraphRule):
    """Joins rows through the anchors that they share: a neighbor graph for very many rows.

    A few hundred anchors are spread over the rows.  Each row has weights S, of sum 1, on its
    nearest anchors, and W = S Lambda^-1 S' with Lambda = diag(S'1) joins rows that share an
    anchor (Liu, He and Chang, "Large graph construction for scalable semi-supervised learning",
    ICML 2010).  All degrees are 1 and W has low rank: time and memory are linear in the rows.

    Parameters
    ----------
    n_anchors : "auto" or int, default="auto"
        "auto" is a tenth of the rows, at most 500. With fewer distinct rows, there are fewer.
    n_neighbors : int, default=5
        Nearest anchors of each row.
    random_state : int, default=0
        Seed of the choice of anchors, at least 0.
    weights : {"heat", "binary"}, default="heat"
        exp(-||x - u||^2 / width) of row x and anchor u, or equal; scaled to sum 1 for each row.
    width : "auto" or float, default="auto"
        "auto" is the mean squared distance of rows to their anchors, over the rows that the anchors
        are chosen from.

    Notes
    -----
    The first anchors are rows far from each other, drawn as in k-means++ from a sample of 20 rows
    for each anchor; five Lloyd steps on the sample and one on all rows move them to the means of
    the rows around them.
    The sample depends on the numbers of the rows: another order of the rows, or a copy instead of
    a weight, gives other anchors. Given the anchors, weight 2 is the row twice.

    The graph is described by the links between rows and anchors: ``n_edges`` and the range of the
    weights are those of S, and two rows are connected if a chain of shared anchors joins them.

    Examples
    --------
    >>> import numpy as np
    >>> from marginfold.graphs import AnchorGraph
    >>> X = np.random.default_rng(0).standard_normal((1000, 3))
    >>> laplacian = AnchorGraph(n_anchors=20).build(X)
    >>> laplacian.weights_to_anchors.shape
    (1000, 20)
    >>> bool(laplacian.scatter(X)[0, 0] < X[:, 0] @ X[:, 0])  # a share of the variance
    True
    """

    def __init__(
        self,
        n_anchors: int | str = "auto",
        n_neighbors: int = 5,
        *,
        random_state: int = 0,
        weights: str = "heat",
        width: float | str = "auto",
    ) -> None:
        self.n_anchors = n_anchors
        self.n_neighbors = n_neighbors
        self.random_state = random_state
        self.weights = weights
        self.width = width

    def build_on(self, rows: GraphRows) -> Laplacian:
        check_parameters(self, CONSTRAINTS)
        X, weights = rows.X, rows.weights
        codes = np.zeros(len(weights), dtype=np.intp)
        anchors = self.choose(LocalBlocks([Block(X, codes, weights)]), weights)
        return AnchorLaplacian(len(weights), anchors, anchors.weights(X), weights)

    def choose(self, blocks: RowBlocks, weights: FloatArray) -> Anchors:
        """Choose the anchors of rows in blocks.

        Parameters
        ----------
        blocks : RowBlocks
            The rows of X, as the Z of each block. They may live on other machines.
        weights : array of shape (n,)
            Sample weights of all rows.

        Returns
        -------
        Anchors
            The same, up to rounding, however the rows are cut.
        """
        check_parameters(self, CONSTRAINTS)
        n_anchors, width = self.n_anchors, self.width
        if isinstance(n_anchors, str):
            n_rows = int(np.count_nonzero(weights))
            n_anchors = min(MOST_ANCHORS, -(-n_rows // ROWS_PER_ANCHOR))
        if self.weights == "binary":
            width = 0.0
        return choose_anchors(
            blocks,
            weights,
            int(n_anchors),
            n_neighbors=int(self.n_neighbors),
            width=None if isinstance(width, str) else float(width),
            random_state=int(self.random_state),
        )


@dataclass(frozen=True, eq=False)
class AnchorLaplacian(Laplacian):
    """L = D - D S Lambda^-1 S'D with D = diag(weights) and Lambda = diag(S'D1).

    Edges, components and weights are those of S, between rows and anchors.
    """

    anchors: Anchors
    weights_to_anchors: sp.csr_array
    weights: FloatArray

    @property
    def degrees(self) -> FloatArray:
        return self.weights.copy()

    @property
    def components(self) -> IntArray:
        S = self._links
        size = sum(S.shape)
        links = sp.coo_array((np.ones(S.nnz), (S.row, S.shape[0] + S.col)), shape=(size, size))
        parts = connected_components(links, directed=False)[1][: self.n_rows]
        components = np.full(self.n_rows, ABSENT, dtype=np.intp)
        present = self.weights > 0
        components[present] = np.unique(parts[present], return_inverse=True)[1]
        return components

    @property
    def n_edges(self) -> int:
        return int(self._links.nnz)

    @property
    def weight_range(self) -> tuple[float, float]:
        return value_range(self._links.data)

    @property
    def n_underflowed(self) -> int:
        possible = int(np.count_nonzero(self.weights)) * self.anchors.n_neighbors
        return possible - int(np.count_nonzero(self._links.data >= UNDERFLOW))

    def on_nodes(self) -> NodeGraph:
        raise GraphError(
            "AnchorGraph has no sparse matrix: rows that share an anchor are all joined. Use "
            "NeighborGraph(), which searches neighbors of very many rows approximately."
        )

    @property
    def _links(self) -> sp.coo_array:
        """S on the rows of positive weight."""
        S = self.weights_to_anchors.tocoo()
        present = self.weights[S.row] > 0
        return sp.coo_array((S.data[present], (S.row[present], S.col[present])), shape=S.shape)

    def _quadratic(self, Z: FloatArray) -> FloatArray:
        S = self.weights_to_anchors
        means = anchor_means([block_sums(S, Z, self.weights)])
        return block_scatter(S, Z, self.weights, means)
