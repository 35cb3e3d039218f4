"""Feature maps fitted on rows in blocks: the same maps as for an array of these rows."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
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

from marginfold.errors import InvalidInputError
from marginfold.feature_maps import ExactKernel, FeatureMap, Linear, LowRankKernel, Transformed
from marginfold.geometry.moments import row_sums
from marginfold.graphs.anchor_graph import picked_rows
from marginfold.linalg.tall import Array, Block, total
from marginfold.on_dask.blocks import DaskBlocks
from marginfold.validation.parameters import shown

NEEDS_NO_ROWS = (
    AdditiveChi2Sampler,
    PolynomialCountSketch,
    PolynomialFeatures,
    RBFSampler,
    SkewedChi2Sampler,
)
"""Transformers that learn nothing from the rows but the number of features."""


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
