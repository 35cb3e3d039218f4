"""Rows in the coordinates of a feature map, and what the methods ask of them.

The methods ask for sums over rows only (scatters, moments, signs), so that the rows may be arrays
here or blocks on other machines.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, runtime_checkable

import numpy as np

from marginfold.feature_maps import FeatureMap, Linear
from marginfold.geometry.metric import Metric, rank_of
from marginfold.geometry.moments import spread
from marginfold.graphs import GraphLike, GraphRows, laplacian_of
from marginfold.linalg.blocks import Block, LocalBlocks, RowBlocks
from marginfold.linalg.tall import Array, SharedRows, dense, gram, is_constant, rotated
from marginfold.svm import BlockRows
from marginfold.validation.labels import UNLABELLED


@dataclass(frozen=True)
class GraphForm:
    """The quadratic form Z'LZ of a graph on the rows, and the degree of each row."""

    scatter: Array
    degrees: Array


class Coordinates(Protocol):
    """Rows z of shape (r,) with weights and class numbers, wherever they are."""

    @property
    def feature_map(self) -> FeatureMap:
        """The fitted feature map."""

    @property
    def Z(self) -> Array | None:  # noqa: N802
        """All rows, shape (n, r); None if they are not in the memory of this process."""

    @property
    def codes(self) -> Array | None:
        """Class numbers, UNLABELLED for rows without a class; None if the method reads none."""

    @property
    def weights(self) -> Array:
        """Sample weights."""

    @property
    def n_columns(self) -> int:
        """Number of coordinates."""

    @property
    def total(self) -> Array:
        """The weighted Z'Z."""

    @property
    def blocks(self) -> RowBlocks:
        """The rows of positive weight."""

    @property
    def n_varying(self) -> int:
        """Number of dimensions whose variance shrinkage counts."""

    def form(self, rule: GraphLike) -> GraphForm:
        """Build the graph of a rule on the rows."""

    def spread(self, weights: Array) -> Array:
        """Return the scatter about the mean, both with the given weights."""

    def class_scatter(self, rule: GraphLike, code: int, factor: float) -> Array:
        """Return Z'LZ of a graph on the rows of one class, their weights multiplied."""

    def solver_rows(self, metric: Metric) -> SharedRows | BlockRows:
        """Return the labelled rows in the eigenvectors of the metric, for the solvers."""


@runtime_checkable
class RemoteRows(Protocol):
    """Validated rows that are not in the memory of this process."""

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and features."""

    def coordinates(
        self, feature_map: FeatureMap, weights: Array, codes: Array | None
    ) -> Coordinates:
        """Fit a feature map on the rows and apply it."""


@dataclass
class LocalCoordinates:
    """Rows in the memory of this process.

    Attributes
    ----------
    feature_map : object
        Fitted.
    rows : array of shape (n, m)
        The coordinates are ``(rows - origin) @ axes``; they take the place of the rows when `Z` is
        asked for.
    axes : array of shape (m, r) or None
        Orthonormal columns; None stands for the identity.  With axes, the rows may be written to.
    origin : array of shape (m,) or None
        None stands for 0.
    points : array or sparse matrix
        The rows that graphs are built on.
    codes : array of shape (n,) or None
    weights : array of shape (n,)
    known_total : array of shape (r, r) or None
        The weighted Z'Z, if the feature map knows it.
    """

    feature_map: FeatureMap
    rows: Array
    axes: Array | None
    origin: Array | None
    points: Any
    codes: Array | None
    weights: Array
    known_total: Array | None = None

    @property
    def Z(self) -> Array:  # noqa: N802
        """The coordinates of all rows, shape (n, r)."""
        if self.origin is not None:
            self.rows, self.origin = self.rows - self.origin, None
        if self.axes is not None:
            self.rows, self.axes = rotated(self.rows, self.axes), None
        return self.rows

    @property
    def n_columns(self) -> int:
        """Number of coordinates."""
        return int((self.rows if self.axes is None else self.axes).shape[1])

    @cached_property
    def total(self) -> Array:
        """The weighted Z'Z."""
        return gram(self.Z, self.weights) if self.known_total is None else self.known_total

    @cached_property
    def blocks(self) -> LocalBlocks:
        """The rows of positive weight, as one block."""
        codes = np.full(len(self.Z), UNLABELLED) if self.codes is None else self.codes
        kept = np.flatnonzero(self.weights)
        if len(kept) == len(self.Z):
            return LocalBlocks([Block(self.Z, codes, self.weights)])
        return LocalBlocks([Block(self.Z[kept], codes[kept], self.weights[kept])])

    @property
    def n_varying(self) -> int:
        """Features that are not constant (linear map), or the rank of the rows; at least 1."""
        if not isinstance(self.feature_map, Linear):
            return max(rank_of(self.total), 1)
        X = self.points[self.weights > 0]
        low, high = (dense(bound).ravel() for bound in (X.min(axis=0), X.max(axis=0)))
        return max(int(np.count_nonzero(low < high)), 1)

    def form(self, rule: GraphLike) -> GraphForm:
        """Build the graph on the points."""
        laplacian = laplacian_of(rule, GraphRows.of(self.points, self.weights, self.codes))
        if self.axes is None:
            return GraphForm(laplacian.scatter(self.Z), laplacian.degrees)
        total = self.axes @ self.total @ self.axes.T
        scatter = self.axes.T @ laplacian.scatter_with(self.rows, total) @ self.axes
        return GraphForm(0.5 * (scatter + scatter.T), laplacian.degrees)

    def spread(self, weights: Array) -> Array:
        """Return the scatter about the mean, both with the given weights."""
        return spread(LocalBlocks([Block(self.Z, np.zeros(len(self.Z)), weights)]))

    def class_scatter(self, rule: GraphLike, code: int, factor: float) -> Array:
        """Return Z'LZ of a graph on the rows of one class, their weights multiplied."""
        members = np.flatnonzero((self.codes == code) & (self.weights > 0))
        one_class = np.zeros(len(members), dtype=np.intp)
        weights = factor * self.weights[members]
        laplacian = laplacian_of(rule, GraphRows.of(self.points[members], weights, one_class))
        return np.asarray(laplacian.scatter(self.Z[members]))

    def solver_rows(self, metric: Metric) -> SharedRows:
        """Return the labelled rows in the eigenvectors of the metric."""
        codes = np.asarray(self.codes)
        everyone = bool(codes.min() != UNLABELLED)
        turns = [turn for turn in (self.axes, metric.Q) if turn is not None]
        rotation = turns[0] @ turns[1] if len(turns) == 2 else next(iter(turns), None)
        rows = self.rows if everyone else self.rows[codes != UNLABELLED]
        # a mean row with equal weights is that of all rows
        centred = self.origin is not None and everyone and is_constant(self.weights)
        return SharedRows(rows, rotation, origin=self.origin, centred=centred)
