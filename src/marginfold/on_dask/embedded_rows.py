"""Feature maps fitted on rows in blocks on a cluster, the rows in their coordinates, and graphs.

The maps are the same as for an array of these rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import scipy.sparse as sp
from dask.delayed import Delayed
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.kernel_approximation import (
    AdditiveChi2Sampler,
    Nystroem,
    PolynomialCountSketch,
    RBFSampler,
    SkewedChi2Sampler,
)
from sklearn.preprocessing import PolynomialFeatures
from sklearn.utils import check_random_state

from marginfold.errors import GraphError, InvalidInputError
from marginfold.estimators.inputs import GraphForm
from marginfold.feature_maps import ExactKernel, FeatureMap, Linear, LowRankKernel, Transformed
from marginfold.geometry.metric import Metric, rank_of
from marginfold.geometry.moments import class_means, row_sums, scatter, spread, within_scatter
from marginfold.graphs import (
    AnchorGraph,
    BetweenClassGraph,
    GraphLike,
    ScaledGraph,
    SumGraph,
    TotalGraph,
    WithinClassGraph,
)
from marginfold.graphs.anchor_graph import (
    Anchors,
    anchor_means,
    block_scatter,
    block_sums,
    picked_rows,
)
from marginfold.graphs.rule import graph_name
from marginfold.linalg.tall import Array, Block, total
from marginfold.on_dask.blocks import DaskBlocks, kept, tasks
from marginfold.svm import BlockRows
from marginfold.validation.parameters import shown
from marginfold.validation.rows import UNLABELLED

SUMS_ALONE = (AnchorGraph, BetweenClassGraph, TotalGraph, WithinClassGraph)
"""Rules whose forms are sums over rows."""

NEEDS_NO_ROWS = (
    AdditiveChi2Sampler,
    PolynomialCountSketch,
    PolynomialFeatures,
    RBFSampler,
    SkewedChi2Sampler,
)
"""Transformers that learn nothing from the rows but the number of features."""


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


def check_feature_map(feature_map: FeatureMap) -> None:
    """Refuse feature maps that need all rows at one place."""
    if isinstance(feature_map, Transformed):
        transformer = feature_map.transformer
        if isinstance(transformer, (Nystroem, FrozenEstimator, *NEEDS_NO_ROWS)):
            return
        raise InvalidInputError(
            f"{shown(transformer)} learns from all rows, and those of a dask collection are not in "
            "this process; fit it on some of them first, "
            "kernel=FrozenEstimator(transformer.fit(sample)) of sklearn.frozen, or scale the "
            "features with dask and use Nystroem(...)."
        )
    if not isinstance(feature_map, Linear | LowRankKernel):
        what = shown(feature_map)
        if isinstance(feature_map, ExactKernel):
            what = f"kernel={shown(feature_map.kernel)}"
        raise InvalidInputError(
            f"{what} needs all rows in this process, but got a dask collection; use "
            "kernel='linear', kernel=LowRankKernel('rbf', rank=500), or a transformer such as "
            "kernel=Nystroem(gamma=0.1, n_components=500, random_state=0)."
        )


def fit_feature_map(feature_map: FeatureMap, rows: DaskBlocks, ranges: Array | None) -> int:
    """Fit a feature map in place on the rows that count; return the number of coordinates.

    ``ranges`` are the smallest and largest values of each feature, if these are known.
    """
    check_feature_map(feature_map)
    if isinstance(feature_map, LowRankKernel):
        return len(feature_map.fit_blocks(rows).eigenvalues_)
    if isinstance(feature_map, Transformed):
        return _fit_transformed(feature_map, rows)
    return _fit_linear(cast(Linear, feature_map), rows, ranges)


def _fit_linear(feature_map: Linear, rows: DaskBlocks, ranges: Array | None) -> int:
    """Set the mean row; of a constant feature exactly its value, so that it centres to 0."""
    n, d = rows.n_rows, rows.n_columns
    if n < d:
        raise InvalidInputError(
            f"The linear kernel got a dask collection of {n} rows and {d} features; with fewer "
            "rows than features it needs them in the memory of this process: give it X.compute()."
        )
    feature_map.n_features_in_ = d
    feature_map.basis_ = None
    feature_map.mean_ = np.zeros(d)
    if feature_map.center:
        low, high = _ranges(rows) if ranges is None else ranges
        feature_map.mean_ = np.where(low == high, low, weighted_mean(rows))
    return d


def weighted_mean(rows: DaskBlocks) -> Array:
    """Return the weighted mean row."""
    sums = total(rows.map(row_sums))
    return np.asarray(sums[:-1] / sums[-1])


def _ranges(rows: DaskBlocks) -> tuple[Array, Array]:
    found = np.stack(rows.map(column_ranges))
    return found[:, 0].min(axis=0), found[:, 1].max(axis=0)


def column_ranges(block: Block) -> Array:
    """Return the smallest and the largest value of each column."""
    return np.stack([block.Z.min(axis=0), block.Z.max(axis=0)])


def _fit_transformed(feature_map: Transformed, rows: DaskBlocks) -> int:
    """Fit the transformer as on an array of the rows, and the mean of its output."""
    feature_map.transformer_ = _fitted(feature_map.transformer, rows)
    feature_map.mean_ = np.zeros(1)
    sums = total(rows.map(coordinate_sums, feature_map))
    mean = sums[:-1] / sums[-1]
    feature_map.mean_ = mean if feature_map.center else np.zeros_like(mean)
    return len(mean)


def coordinate_sums(block: Block, feature_map: FeatureMap) -> Array:
    """Return the weighted sum of the coordinates of rows, and the weight as the last entry."""
    return row_sums(Block(feature_map.coordinates(block.Z), block.codes, block.weights))


def _fitted(transformer: Any, rows: DaskBlocks) -> Any:
    if isinstance(transformer, FrozenEstimator):
        return transformer
    if isinstance(transformer, Nystroem):
        return _fitted_nystroem(clone(transformer), rows)
    few = np.arange(min(2, rows.n_rows))  # it looks at their features alone
    return clone(transformer).fit(rows_at(rows, few))


def _fitted_nystroem(nystroem: Nystroem, rows: DaskBlocks) -> Nystroem:
    """Fit on the landmarks that Nystroem would draw of all rows, in its order.

    It takes the first rows of a random permutation, of all rows or of the landmarks alone; these
    are handed to it in the order that its second permutation undoes.
    """
    seed = check_random_state(nystroem.random_state).randint(np.iinfo(np.int32).max)
    if isinstance(nystroem.random_state, (int, np.integer)):
        seed = int(nystroem.random_state)
    n = min(int(nystroem.n_components), rows.n_rows)
    wanted = np.random.RandomState(seed).permutation(rows.n_rows)[:n]
    order = np.argsort(np.random.RandomState(seed).permutation(n))
    landmarks = rows_at(rows, wanted)
    nystroem.set_params(random_state=seed, n_components=n)
    return nystroem.fit(landmarks[order])


def rows_at(rows: DaskBlocks, numbers: Array) -> Array:
    """Return the rows with the given numbers, in the given order."""
    order = np.argsort(numbers)
    found = np.concatenate(rows.map(picked_rows, numbers[order]))
    placed = np.empty_like(found)
    placed[order] = found
    return placed
