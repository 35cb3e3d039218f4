"""Anchor graph: rows joined through a few anchors, at a cost linear in the rows.

Rows are joined to their nearest anchors by S, whose rows have sum 1 (Liu, He and Chang, "Large
graph construction for scalable semi-supervised learning", ICML 2010).  With sample weights
D = diag(s) and Lambda = diag(S'D1) the graph is W = D S Lambda^-1 S'D (theirs has D = I), of
degrees s.

Everything that looks at many rows is a pure function of one block and of small arguments, and what
the blocks return is added up: rows on other machines give the same graph up to rounding, however
they are cut.  With ``M = Lambda^-1 S'DZ``, the mean of Z at each anchor,

    Z'LZ = Z'DZ - M'Lambda M = (Z - SM)'D(Z - SM) + M'(Lambda - S'DS)M,

two terms that are positive semi-definite and do not cancel.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp

from marginfold.errors import GraphError
from marginfold.graphs.laplacian import (
    ABSENT,
    FloatArray,
    IntArray,
    Laplacian,
    NodeGraph,
    joined_parts,
    value_range,
)
from marginfold.graphs.neighbor_search import chunks, nearest_points, watched
from marginfold.graphs.neighbors import UNDERFLOW, HeatLink
from marginfold.graphs.rule import GraphRows, GraphRule
from marginfold.linalg.tall import Block, LocalBlocks, RowBlocks, dense, gram, total
from marginfold.validation.parameters import (
    POSITIVE_FACTOR,
    Choice,
    Constraint,
    Count,
    Either,
    check_parameters,
)

ROWS_PER_ANCHOR = 10
"""Rows for each anchor when their number is chosen."""

MOST_ANCHORS = 500
"""Largest number of anchors that is chosen: beyond it the time grows with the rows alone."""

SAMPLE_PER_ANCHOR = 20
"""Rows drawn for each anchor to choose the first anchors from, and the width."""

SAMPLE_STEPS = 5
"""Lloyd steps on the sample: each anchor moves to the mean of the rows nearest to it."""

LLOYD_STEPS = 1
"""Lloyd steps on all rows after that; more change next to nothing."""

CANCELLED = 1e-6
"""A squared distance below this share of the squared norms is computed from the difference."""

CONSTRAINTS: dict[str, Constraint] = {
    "n_anchors": Either(Choice("auto"), Count(1)),
    "n_neighbors": Count(1),
    "random_state": Count(0),
    "weights": Choice("heat", "binary"),
    "width": Either(Choice("auto"), POSITIVE_FACTOR),
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
        n_anchors: int | Literal["auto"] = "auto",
        n_neighbors: int = 5,
        *,
        random_state: int = 0,
        weights: Literal["heat", "binary"] = "heat",
        width: float | Literal["auto"] = "auto",
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
        """Choose the anchors of rows, as the Z of blocks that may live on other machines.

        They are the same, up to rounding, however the rows are cut.
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
        parts = joined_parts(S.row, S.col, *S.shape)[: self.n_rows]
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


@dataclass(frozen=True, eq=False)
class Anchors:
    """Points between the rows, and how a row is joined to the nearest of them.

    Attributes
    ----------
    points : array of shape (m, d)
    n_neighbors : int
        Anchors of each row.
    width : float
        Of the heat weights exp(-||x - u||^2 / width); 0 for equal weights.
    """

    points: FloatArray
    n_neighbors: int
    width: float

    def weights(self, X: Any) -> sp.csr_array:
        """Return S of shape (n, m): weights of sum 1 of each row on its nearest anchors."""
        link = HeatLink(self.n_neighbors, np.ones(len(self.points)), self.width)
        steps = watched(list(chunks(*X.shape)), X.shape[0], "weights on anchors")
        parts = [link.weights(self.points, dense(X[part])) for part in steps]
        none = sp.csr_array((0, len(self.points)))
        S = sp.csr_array(sp.vstack([none, *parts], format="csr"))
        S.eliminate_zeros()
        return S


def choose_anchors(
    blocks: RowBlocks,
    weights: FloatArray,
    n_anchors: int,
    *,
    n_neighbors: int,
    width: float | None,
    random_state: int,
) -> Anchors:
    """Choose anchors from a sample of the rows, then move them to the means of all rows.

    The first are drawn from a sample that depends on the numbers of the rows only, not on the
    blocks; fewer than ``n_anchors`` if it has fewer distinct rows.  A width of None is the mean
    squared distance of the sample to its anchors.

    Examples
    --------
    >>> import numpy as np
    >>> from marginfold.linalg.tall import LocalBlocks
    >>> from marginfold.graphs.anchor_graph import choose_anchors
    >>> X, weights = np.array([[0.0], [1.0], [8.0], [9.0]]), np.ones(4)
    >>> blocks = LocalBlocks.cut(X, np.zeros(4), weights, n_rows=2)
    >>> anchors = choose_anchors(blocks, weights, 2, n_neighbors=1, width=1.0, random_state=0)
    >>> np.sort(anchors.points, axis=0)
    array([[0.5],
           [8.5]])
    """
    rng = np.random.default_rng(random_state)
    rows = sample_rows(weights, SAMPLE_PER_ANCHOR * n_anchors, rng)
    sample = np.concatenate(blocks.map(picked_rows, rows))
    points = sample[_spread_rows(sample, weights[rows], n_anchors, rng)]
    drawn = LocalBlocks([Block(sample, rows, weights[rows])])
    for some, steps in ((drawn, SAMPLE_STEPS), (blocks, LLOYD_STEPS)):
        for _ in range(steps):
            points = moved_anchors(points, some.map(assigned_sums, points))
    k = min(n_neighbors, len(points))
    if width is None:
        _, squared = nearest_points(points, sample, k)
        width = float(np.average(squared.mean(axis=1), weights=weights[rows]))
    return Anchors(points, k, width)


def sample_rows(weights: FloatArray, size: int, rng: np.random.Generator) -> IntArray:
    """Return the numbers of so many different rows of positive weight, in order."""
    present = np.flatnonzero(weights)
    if len(present) <= size:
        return present
    return np.sort(rng.choice(present, size, replace=False))


def picked_rows(block: Block, rows: IntArray) -> FloatArray:
    """Return those of the numbered rows that are in the block."""
    mine = rows[(rows >= block.start) & (rows < block.start + block.Z.shape[0])]
    return dense(block.Z[mine - block.start])


def assigned_sums(block: Block, points: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return, for each anchor, the weight of the rows nearest to it and their summed deviation."""
    mass, deviation = np.zeros(len(points)), np.zeros_like(points)
    for part in watched(list(chunks(*block.Z.shape)), block.Z.shape[0], "anchors"):
        X, weights = dense(block.Z[part]), block.weights[part]
        anchor = nearest_points(points, X, 1)[0][:, 0]
        n = len(anchor)
        member = sp.csr_array((weights, (anchor, np.arange(n))), shape=(len(points), n))
        mass += member.sum(axis=1)
        deviation += member @ (X - points[anchor])
    return mass, deviation


def moved_anchors(points: FloatArray, parts: Sequence[tuple[FloatArray, FloatArray]]) -> FloatArray:
    """Return the means of the rows of each anchor; one without rows stays where it is."""
    mass, deviation = (total(part) for part in zip(*parts, strict=True))
    return np.asarray(points + deviation / np.where(mass > 0, mass, 1.0)[:, None])


def block_sums(
    S: sp.csr_array, Z: FloatArray, weights: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return what the rows of a block add to ``S'DZ``, shape (m, r), and to ``S'D1``."""
    weighted = sp.csr_array(S.T * weights)
    return weighted @ Z, weighted.sum(axis=1)


def anchor_means(parts: Sequence[tuple[FloatArray, FloatArray]]) -> FloatArray:
    """Return M, the mean of Z at each anchor, from the `block_sums`; 0 at one without rows."""
    sums, mass = (total(part) for part in zip(*parts, strict=True))
    return np.asarray(sums / np.where(mass > 0, mass, 1.0)[:, None])


def block_scatter(
    S: sp.csr_array, Z: FloatArray, weights: FloatArray, means: FloatArray
) -> FloatArray:
    """Return what the rows of a block add to Z'LZ, given the means of all blocks."""
    n, r = Z.shape
    scatter = np.zeros((r, r))
    for part in chunks(n, r):
        scatter += gram(Z[part] - S[part] @ means, weights[part])
    shared = sp.triu(sp.csr_array(S.T * weights) @ S, k=1, format="coo")
    for part in chunks(shared.nnz, r):  # M'(Lambda - S'DS)M, edge by edge
        difference = means[shared.row[part]] - means[shared.col[part]]
        scatter += gram(difference, shared.data[part])
    return scatter


def _spread_rows(
    sample: FloatArray, weights: FloatArray, count: int, rng: np.random.Generator
) -> list[int]:
    """Numbers of rows far from each other: drawn in turn, by squared distance times weight."""
    X = sample - sample.mean(axis=0)
    scale = max(float(np.abs(X).max()), np.finfo(np.float64).tiny)
    X /= scale
    norms = np.einsum("ij,ij->i", X, X)
    shares = weights / weights.max()
    chosen = [_drawn(shares, rng)]
    squared = np.full(len(X), np.inf)
    while len(chosen) < count:
        last = chosen[-1]
        distance = norms - 2.0 * (X @ X[last]) + norms[last]
        near = np.flatnonzero(distance <= CANCELLED * (norms + norms[last]))
        distance[near] = np.square((sample[near] - sample[last]) / scale).sum(axis=1)
        squared = np.minimum(squared, distance)
        odds = shares * squared
        if not odds.any():
            break
        chosen.append(_drawn(odds, rng))
    return chosen


def _drawn(odds: FloatArray, rng: np.random.Generator) -> int:
    """Draw an index with the given odds; one without any is never drawn."""
    possible = np.flatnonzero(odds)
    steps = np.cumsum(odds[possible])
    place = np.searchsorted(steps, rng.random() * steps[-1], side="right")
    return int(possible[min(int(place), len(possible) - 1)])
