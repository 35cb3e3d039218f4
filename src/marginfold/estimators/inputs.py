"""From validated rows to the solver: feature map, metric of the margin, one-vs-rest rows."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, Protocol, Self, cast, runtime_checkable

import numpy as np
from scipy.sparse import issparse

from marginfold.errors import InvalidParameterError
from marginfold.feature_maps import (
    FeatureMap,
    KernelLike,
    Linear,
    LowRankKernel,
    is_pairwise,
    rank_of_ours,
    resolve_feature_map,
)
from marginfold.geometry.metric import Metric, Penalty, rank_of, relative_scatter
from marginfold.geometry.moments import TotalScatter, label_variances, spread
from marginfold.geometry.one_vs_rest import LabelledRows, class_factors
from marginfold.graphs import GraphLike, GraphRows, Laplacian, laplacian_of
from marginfold.linalg.decompositions import product
from marginfold.linalg.tall import (
    Array,
    Block,
    LocalBlocks,
    RowBlocks,
    SharedRows,
    dense,
    gram,
    is_constant,
    rotated,
)
from marginfold.planner.check import check_memory
from marginfold.svm import Automatic, BlockRows, InteriorPoint, LibSVM, SVMSolver
from marginfold.validation.parameters import shown
from marginfold.validation.rows import UNLABELLED, LabelledInput, read_labelled


class WithFeatureMap:
    """An estimator whose rows go through a feature map."""

    feature_map_: Any

    @property
    def kernel_error_(self) -> float:
        """Share of the kernel's variance that a `LowRankKernel` loses; 0 for all other kernels."""
        return float(getattr(self.feature_map_, "relative_error_", 0.0))


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

    def labelled(self) -> Self:
        """Return the rows with a class, themselves if there are no others of positive weight."""
        known = (self.codes != UNLABELLED) | (self.weights == 0)
        if known.all():
            return self
        codes, weights = np.asarray(self.codes)[known], self.weights[known]
        return type(self)(
            self.feature_map, self.Z[known], None, None, self.points[known], codes, weights
        )

    def class_scatter(self, rule: GraphLike, code: int, factor: float) -> Array:
        """Return Z'LZ of `class_laplacian`."""
        laplacian = self.class_laplacian(rule, code, factor)
        return np.asarray(laplacian.scatter(self.Z[self._members(code)]))

    def class_laplacian(self, rule: GraphLike, code: int, factor: float) -> Laplacian:
        """Return the Laplacian of a graph on the rows of a class and on those without one.

        The weights of the class are multiplied; to the graph all are of one class.
        """
        members = self._members(code)
        one_class = np.zeros(len(members), dtype=np.intp)
        own = np.asarray(self.codes)[members] == code
        weights = np.where(own, factor, 1.0) * self.weights[members]
        return laplacian_of(rule, GraphRows.of(self.points[members], weights, one_class))

    def _members(self, code: int) -> Array:
        codes = np.asarray(self.codes)
        return np.flatnonzero(((codes == code) | (codes == UNLABELLED)) & (self.weights > 0))

    def solver_rows(self, metric: Metric) -> SharedRows:
        """Return the labelled rows in the eigenvectors of the metric."""
        codes = np.asarray(self.codes)
        everyone = bool(codes.min() != UNLABELLED)
        turns = [turn for turn in (self.axes, metric.Q) if turn is not None]
        rotation = product(*turns) if len(turns) == 2 else next(iter(turns), None)
        rows = self.rows if everyone else self.rows[codes != UNLABELLED]
        # a mean row with equal weights is that of all rows
        centred = self.origin is not None and everyone and is_constant(self.weights)
        return SharedRows(rows, rotation, origin=self.origin, centred=centred)


SolverLike = Literal["auto", "interior_point", "libsvm"] | SVMSolver
"""A name of `SOLVERS`, or an object that solves."""

SOLVERS: dict[str, Any] = {
    "auto": Automatic,
    "interior_point": InteriorPoint,
    "libsvm": LibSVM,
}
"""The solver of each shorthand."""

COPY = 1e-13
"""Squared distance, in units of the kernel, below which rows of a precomputed kernel are copies."""


@dataclass(frozen=True)
class Prepared:
    """Everything that does not depend on C or on the graph weight.

    The total scatter is there if the metric or the filling up with variance needs it.  ``scatter``
    is that of all rows in the eigenvectors of the metric, by its products, for estimators that
    deflate; None if it is that of ``rows``.
    """

    X: Any
    weights: Array
    classes: Array
    feature_map: FeatureMap
    metric: Metric
    total: Array | None
    rows: SharedRows | BlockRows
    labelled: LabelledRows
    scatter: TotalScatter | None = None

    @property
    def n_columns(self) -> int:
        """Number of coordinates."""
        return self.rows.n_columns

    def scales(self, penalties: Sequence[Penalty]) -> list[Array]:
        """Return what each penalty makes of the metric: a factor of each coordinate."""
        return [penalty.scale(self.metric) for penalty in penalties]

    @cached_property
    def variances(self) -> Array:
        """Weighted variances of the labelled rows along the eigenvectors of the metric."""
        labelled, rows = self.labelled, self.rows
        if isinstance(rows, BlockRows):
            return label_variances(rows.blocks, labelled.n_classes, rows.rotation)
        block = Block(rows.features, labelled.codes, labelled.weights)
        return label_variances(LocalBlocks([block]), labelled.n_classes)


def prepare(estimator: Any, X: Any, y: Any, sample_weight: Any, penalty: Penalty) -> Prepared:
    """Validate once, then compute coordinates Z, the metric and the rows of the solver.

    Rows without a label act through the feature map and the graph only.
    """
    read = read_classes(estimator, X, y, sample_weight, penalty)
    return prepare_rows(estimator, read, penalty, estimator.kernel)


def read_classes(
    estimator: Any, X: Any, y: Any, sample_weight: Any, penalty: Penalty
) -> LabelledInput:
    """Refuse what does not fit into memory, then validate rows, labels and weights."""
    check_memory(estimator, X)
    parts = (penalty.graph, penalty.against, resolve_solver(estimator.solver, estimator.tol))
    return read_labelled(estimator, X, y, sample_weight, estimator.unlabeled, parts)


def prepare_rows(
    estimator: Any, read: LabelledInput, penalty: Penalty, kernel: KernelLike
) -> Prepared:
    """Return coordinates for a kernel, the metric and the rows of the solver."""
    labelled = labelled_rows(estimator, read)
    c = coordinates(kernel, read.X, read.weights, read.codes)
    form = None if penalty.graph is None else c.form(penalty.graph).scatter
    if form is not None and penalty.against is not None:
        against = c.form(penalty.against).scatter
        form = relative_scatter(form, against, c.total, graph=penalty.against)
    wants_total = form is not None or getattr(estimator, "on_exhausted", None) == "pca"
    total = c.total if wants_total else None
    metric = Metric.euclidean(c.n_columns) if total is None else penalty.metric(form, total)
    rows = c.solver_rows(metric)
    # the rows of the solver tell what correlates, unless some rows have no label
    partly = isinstance(rows, SharedRows) and len(labelled.codes) < len(read.codes)
    scatter = (
        TotalScatter(c.blocks, metric.Q) if partly and hasattr(estimator, "deflation") else None
    )
    return Prepared(
        read.X, read.weights, read.classes, c.feature_map, metric, total, rows, labelled, scatter
    )


def labelled_rows(estimator: Any, read: LabelledInput) -> LabelledRows:
    """Return the rows with a label, and what errors on them cost."""
    balanced, factors = class_factors(estimator.class_weight, read.classes)
    codes, weights = read.codes, read.weights
    if codes.min() == UNLABELLED:
        known = codes != UNLABELLED
        codes, weights = codes[known], weights[known]
    return LabelledRows(codes, weights, len(read.classes), balanced, factors)


def coordinates(
    kernel: KernelLike, X: Any, weights: Array, codes: Array | None = None, **options: Any
) -> Coordinates:
    """Fit the feature map of a kernel, with the given options, and apply it.

    Without options all coordinates are needed: of many rows a named kernel then has a low rank.
    """
    if isinstance(X, RemoteRows):
        feature_map = resolve_feature_map(kernel).set_params(**options)
        return X.coordinates(feature_map, weights, codes)
    feature_map = resolve_feature_map(kernel, 0 if options else X.shape[0]).set_params(**options)
    with rank_of_ours() if isinstance(kernel, str) else nullcontext():
        found = _local_coordinates(feature_map, X, weights, codes)
    return replace(found, points=kernel_points(X, found.Z)) if is_pairwise(kernel) else found


def _local_coordinates(
    feature_map: FeatureMap, X: Any, weights: Array, codes: Array | None
) -> LocalCoordinates:
    """Fit a feature map on rows in memory; of what it can leave undone, nothing is done yet."""
    if isinstance(feature_map, LowRankKernel):
        rows, axes = feature_map.fit_factor(X, sample_weight=weights)
        total = feature_map.fitted_scatter(weights)
        return LocalCoordinates(feature_map, rows, axes, None, X, codes, weights, total)
    if isinstance(feature_map, Linear) and not issparse(X):
        if feature_map.fit_mean(X, sample_weight=weights):
            origin = feature_map.mean_ if feature_map.center else None
            return LocalCoordinates(feature_map, X, None, origin, X, codes, weights)
        rows = feature_map.coordinates(X)
    else:
        rows = feature_map.fit_coordinates(X, sample_weight=weights)
    return LocalCoordinates(feature_map, rows, None, None, X, codes, weights)


def kernel_points(K: Any, Z: Array) -> Array:
    """Return points whose distances are those of a precomputed kernel; copies are equal."""
    if not Z.shape[1]:
        return np.zeros((len(Z), 1))
    K = dense(K)
    sizes = np.diagonal(K)
    squared = sizes[:, None] + sizes - K - K.T
    first = (squared <= COPY * np.abs(sizes).max()).argmax(axis=1)
    first = np.minimum(first, np.arange(len(K)))
    return np.asarray(Z[first])


def uncertified_note(estimator: Any, gap: float) -> str:
    """Say how far a solution is certified when that is less than the solver promised."""
    return (
        f"{type(estimator).__name__}: certified to a relative duality gap of {gap:.1e} only, above "
        "the tolerance of the solver; scale the features, lower the cost, or allow the solver more "
        "iterations."
    )


def resolve_solver(solver: Any, tol: float) -> SVMSolver:
    """Return the solver for a shorthand, or the object itself."""
    if isinstance(solver, str) and solver in SOLVERS:
        return SOLVERS[solver](tol=tol)
    if hasattr(solver, "solve_batch") and not isinstance(solver, type):
        return cast(SVMSolver, solver)
    raise InvalidParameterError(
        "solver must be 'auto', 'interior_point', 'libsvm' or an object with solve_batch such as "
        f"InteriorPoint(max_iter=200); got {shown(solver)}."
    )
