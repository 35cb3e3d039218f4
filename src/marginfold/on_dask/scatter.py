"""The forms Z'LZ of graphs whose sums need no neighbors, over rows in blocks."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from marginfold.errors import GraphError
from marginfold.estimators.inputs import GraphForm
from marginfold.geometry.moments import class_means, spread, within_scatter
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
from marginfold.linalg.blocks import Block, total
from marginfold.linalg.tall import Array
from marginfold.on_dask.blocks import DaskBlocks, kept, tasks
from marginfold.validation.rows import UNLABELLED

SUMS_ALONE = (AnchorGraph, BetweenClassGraph, TotalGraph, WithinClassGraph)
"""Rules whose forms are sums over rows."""


def check_graph(rule: GraphLike | None) -> None:
    """Refuse a graph that needs all rows at one place; None is no graph."""
    if isinstance(rule, SumGraph):
        check_graph(rule.first)
        check_graph(rule.second)
    elif isinstance(rule, ScaledGraph):
        check_graph(rule.graph)
    elif rule is not None and not isinstance(rule, SUMS_ALONE):
        raise GraphError(
            f"{graph_name(rule)} needs all rows at one place, and got a dask collection; use "
            "graph=AnchorGraph(), which joins near rows through a few anchors, or 'within', "
            "'between' or 'total'."
        )


def graph_form(
    rule: GraphLike, blocks: DaskBlocks, points: DaskBlocks, codes: Array, weights: Array
) -> GraphForm:
    """Return the form of a graph on rows in blocks.

    Parameters
    ----------
    rule : graph rule
        A graph of classes, `AnchorGraph`, or sums and multiples of them.
    blocks, points : DaskBlocks
        Coordinates, and the rows that the graph is built on.
    codes, weights : arrays of shape (n,)
        Class numbers and weights of the same rows.
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
