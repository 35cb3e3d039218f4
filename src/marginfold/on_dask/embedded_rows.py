"""Rows in the coordinates of a feature map, in blocks on a cluster, and the graphs on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from dask.delayed import Delayed

from marginfold.errors import GraphError
from marginfold.estimators.inputs import GraphForm
from marginfold.feature_maps import FeatureMap, Linear
from marginfold.geometry.metric import Metric, rank_of
from marginfold.geometry.moments import class_means, scatter, spread, within_scatter
from marginfold.graphs import (
    AnchorGraph,
    BetweenClassGraph,
    GraphLike,
    ScaledGraph,
    SumGraph,
    TotalGraph,
    WithinClassGraph,
)
from marginfold.graphs.anchor_graph import Anchors, anchor_means, block_scatter, block_sums
from marginfold.graphs.rule import graph_name
from marginfold.linalg.tall import Array, Block, total
from marginfold.on_dask.blocks import DaskBlocks, kept, tasks
from marginfold.on_dask.feature_maps import fit_feature_map
from marginfold.svm import BlockRows
from marginfold.validation.rows import UNLABELLED

SUMS_ALONE = (AnchorGraph, BetweenClassGraph, TotalGraph, WithinClassGraph)
"""Rules whose forms are sums over rows."""


@dataclass(frozen=True, eq=False)
class RemoteCoordinates:
    """Rows of positive weight on a cluster.

    Attributes
    ----------
    feature_map : object
        Fitted.
    blocks : DaskBlocks
        Coordinates.
    points : DaskBlocks
        The rows that graphs are built on.
    codes : array of shape (n,) or None
    weights : array of shape (n,)
    total : array of shape (r, r)
        The weighted Z'Z.
    """

    feature_map: FeatureMap
    blocks: DaskBlocks
    points: DaskBlocks
    codes: Array | None
    weights: Array
    total: Array

    @property
    def Z(self) -> None:  # noqa: N802
        """None: the rows are elsewhere."""

    @property
    def n_columns(self) -> int:
        """Number of coordinates."""
        return self.blocks.n_columns

    @property
    def n_varying(self) -> int:
        """Features that are not constant (linear map), or the rank of the rows; at least 1."""
        if isinstance(self.feature_map, Linear):  # a constant feature has been centred to 0
            return max(int(np.count_nonzero(np.diagonal(self.total))), 1)
        return max(rank_of(self.total), 1)

    def form(self, rule: GraphLike) -> GraphForm:
        """Return the form of a graph whose sums need no neighbors."""
        codes = np.full(self.blocks.n_rows, UNLABELLED) if self.codes is None else self.codes
        return graph_form(rule, self.blocks, self.points, codes, self.weights)

    def spread(self, weights: Array) -> Array:
        """Return the scatter about the mean, both with the given weights."""
        same = np.array_equal(weights, self.weights)
        return spread(self.blocks if same else self.blocks.reweighted(weights))

    def class_scatter(self, rule: GraphLike, code: int, factor: float) -> Array:
        """Return Z'LZ of a graph on the rows of one class, their weights multiplied."""
        codes = np.asarray(self.codes)
        weights = factor * self.weights[codes == code]
        blocks, points = (
            _members(rows, codes, code, factor) for rows in (self.blocks, self.points)
        )
        return graph_form(rule, blocks, points, np.full(len(weights), code), weights).scatter

    def solver_rows(self, metric: Metric) -> BlockRows:
        """Return the labelled rows in the eigenvectors of the metric."""
        return BlockRows.of(self.blocks, metric.Q, int(np.max(np.asarray(self.codes))) + 1)


def fitted_coordinates(
    feature_map: FeatureMap,
    parts: Sequence[Delayed],
    lengths: Array,
    ranges: Array,
    weights: Array,
    codes: Array | None,
) -> RemoteCoordinates:
    """Fit a feature map on rows with the given ranges of features, and apply it.

    Rows of weight 0 are left out, as everywhere.
    """
    counted = weights > 0
    labels = np.full(len(weights), UNLABELLED) if codes is None else codes
    rows = _counted_rows(parts, lengths, labels, weights, ranges.shape[1])
    r = fit_feature_map(feature_map, rows, ranges if counted.all() else None)
    made = tasks(rows.parts, coordinates_of_rows, feature_map)
    blocks = DaskBlocks(kept(made, 8.0 * r * rows.n_rows), rows.lengths, r)
    return RemoteCoordinates(
        feature_map,
        blocks,
        _points(feature_map, rows, blocks),
        None if codes is None else codes[counted],
        weights[counted],
        scatter(blocks),
    )


def coordinates_of_rows(block: Block, feature_map: FeatureMap) -> Block:
    """Return a block in the coordinates of a feature map."""
    return Block(feature_map.coordinates(block.Z), block.codes, block.weights, block.start)


def counted_rows(X: Array, codes: Array, weights: Array, start: int) -> Block:
    """Return the rows of positive weight as a block; one weight, or one code, is that of all."""
    n = len(X)
    codes = np.broadcast_to(codes, n).astype(np.intp)
    weights = np.broadcast_to(weights, n).astype(np.float64)
    counted = weights > 0
    if counted.all():
        return Block(X, codes, weights, start)
    return Block(X[counted], codes[counted], weights[counted], start)


def members_of_class(block: Block, start: int, code: int, factor: float) -> Block:
    """Return the rows of one class, their weights multiplied."""
    members = np.flatnonzero(block.codes == code)
    return Block(block.Z[members], block.codes[members], factor * block.weights[members], start)


def uncentred(block: Block, mean: Array) -> Block:
    """Return the rows that were centred as they were."""
    return Block(block.Z + mean, block.codes, block.weights, block.start)


def _counted_rows(
    parts: Sequence[Delayed], lengths: Array, codes: Array, weights: Array, n_features: int
) -> DaskBlocks:
    """Return the rows of positive weight with what belongs to them; empty blocks are left out."""
    ends = np.cumsum(lengths)[:-1]
    sizes = [int(np.count_nonzero(part)) for part in np.split(weights, ends)]
    starts = np.cumsum([0, *sizes[:-1]])
    each = [
        (_short(own_codes), _short(own_weights), int(start))
        for own_codes, own_weights, start in zip(
            np.split(codes, ends), np.split(weights, ends), starts, strict=True
        )
    ]
    labelled = tasks(parts, counted_rows, each=each)
    some = [i for i, size in enumerate(sizes) if size]
    n_bytes = 8.0 * n_features * sum(sizes)
    return DaskBlocks(kept([labelled[i] for i in some], n_bytes), np.array(sizes)[some], n_features)


def _short(values: Array) -> Array:
    """Return numbers in the smallest form that keeps them, because they travel with a task."""
    if len(values) and (values == values[0]).all():
        return values[:1].copy()
    small = values.astype(np.int16) if values.dtype.kind == "i" else values
    return small if np.array_equal(small, values) else values


def _points(feature_map: FeatureMap, rows: DaskBlocks, blocks: DaskBlocks) -> DaskBlocks:
    """Return the rows as they were given; of centred ones, so that they are not kept twice."""
    if isinstance(feature_map, Linear):
        return DaskBlocks(
            tasks(blocks.parts, uncentred, feature_map.mean_), rows.lengths, rows.n_columns
        )
    return rows


def _members(rows: DaskBlocks, codes: Array, code: int, factor: float) -> DaskBlocks:
    sizes = [int(np.count_nonzero(part == code)) for part in rows.cut(codes)]
    starts = [(int(start),) for start in np.cumsum([0, *sizes[:-1]])]
    some = [i for i, size in enumerate(sizes) if size]
    members = tasks(rows.parts, members_of_class, code, factor, each=starts)
    return DaskBlocks([members[i] for i in some], np.array(sizes)[some], rows.n_columns)


def check_graph(rule: GraphLike | None) -> None:
    """Refuse a graph that needs all rows at one place; None is no graph."""
    if isinstance(rule, SumGraph):
        check_graph(rule.first)
        check_graph(rule.second)
    elif isinstance(rule, ScaledGraph):
        check_graph(rule.graph)
    elif rule is not None and not isinstance(rule, SUMS_ALONE):
        raise GraphError(
            f"{graph_name(rule)} needs all rows in this process, but got a dask collection; use "
            "graph=AnchorGraph(), which joins near rows through a few anchors, or 'within', "
            "'between' or 'total'."
        )


def graph_form(
    rule: GraphLike, blocks: DaskBlocks, points: DaskBlocks, codes: Array, weights: Array
) -> GraphForm:
    """Return the form, in coordinates, of a graph that is built on points.

    Codes and weights belong to the same rows.
    """
    if isinstance(rule, SumGraph):
        first, second = (
            graph_form(part, blocks, points, codes, weights) for part in (rule.first, rule.second)
        )
        return GraphForm(first.scatter + second.scatter, first.degrees + second.degrees)
    if isinstance(rule, ScaledGraph):
        form = graph_form(rule.graph, blocks, points, codes, weights)
        return GraphForm(rule.factor * form.scatter, rule.factor * form.degrees)
    if isinstance(rule, AnchorGraph):
        return GraphForm(_anchor_scatter(rule, blocks, points, weights), weights)
    if isinstance(rule, TotalGraph):
        return GraphForm(spread(blocks), weights)
    check_graph(rule)
    return _class_form(rule, blocks, codes, weights)


def _class_form(rule: GraphLike, blocks: DaskBlocks, codes: Array, weights: Array) -> GraphForm:
    n_classes = int(codes.max(initial=UNLABELLED)) + 1
    sizes, means = class_means(blocks, n_classes)
    if isinstance(rule, WithinClassGraph):
        degrees = np.where(codes == UNLABELLED, 0.0, weights)
        return GraphForm(within_scatter(blocks, means), degrees)
    centred = (means - sizes @ means / sizes.sum()) * np.sqrt(sizes)[:, None]
    return GraphForm(centred.T @ centred, np.zeros(len(codes)))


def _anchor_scatter(
    rule: AnchorGraph, blocks: DaskBlocks, points: DaskBlocks, weights: Array
) -> Array:
    anchors = rule.choose(points, weights)
    size = (8.0 + 4.0) * anchors.n_neighbors * blocks.n_rows
    links = kept(tasks(points.parts, anchor_weights, anchors), size)
    means = anchor_means(blocks.map_with(links, anchor_sums))
    return total(blocks.map_with(links, anchor_scatter, means))


def anchor_weights(points: Block, anchors: Anchors) -> sp.csr_array:
    """Return the weights of the rows of a block on the anchors."""
    return anchors.weights(points.Z)


def anchor_sums(block: Block, S: sp.csr_array) -> tuple[Array, Array]:
    """Return what the rows of a block add to the sums of the anchors."""
    return block_sums(S, block.Z, block.weights)


def anchor_scatter(block: Block, S: sp.csr_array, means: Array) -> Array:
    """Return what the rows of a block add to Z'LZ, given the means at all anchors."""
    return block_scatter(S, block.Z, block.weights, means)
