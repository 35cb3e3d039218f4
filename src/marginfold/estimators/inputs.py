"""From validated rows to the solver: feature map, metric of the margin, one-vs-rest rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
from scipy.sparse import issparse

from marginfold.errors import InvalidParameterError
from marginfold.estimators.embedded_rows import Coordinates, LocalCoordinates, RemoteRows
from marginfold.feature_maps import (
    FeatureMap,
    Linear,
    LowRankKernel,
    is_pairwise,
    resolve_feature_map,
)
from marginfold.geometry.metric import Metric, Penalty
from marginfold.geometry.one_vs_rest import LabelledRows, class_factors
from marginfold.linalg.tall import Array, SharedRows, dense
from marginfold.planner.check import check_memory
from marginfold.svm import Automatic, BlockRows, InteriorPoint, LibSVM, SVMSolver
from marginfold.validation.labels import UNLABELLED
from marginfold.validation.parameters import shown
from marginfold.validation.rows import LabelledInput, read_labelled

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

    The total scatter is there if the metric or the filling up with variance needs it.
    """

    X: Any
    weights: Array
    classes: Array
    feature_map: FeatureMap
    metric: Metric
    total: Array | None
    rows: SharedRows | BlockRows
    labelled: LabelledRows


def prepare(estimator: Any, X: Any, y: Any, sample_weight: Any, penalty: Penalty) -> Prepared:
    """Validate once, then compute coordinates Z, the metric and the rows of the solver.

    Rows without a label act through the feature map and the graph only.
    """
    check_memory(estimator, X)
    parts = (penalty.graph, resolve_solver(estimator.solver, estimator.tol))
    read = read_labelled(estimator, X, y, sample_weight, estimator.unlabeled, parts)
    balanced, factors = class_factors(estimator.class_weight, read.classes)
    c = coordinates(estimator.kernel, read.X, read.weights, read.codes)
    scatter = None if penalty.graph is None else c.form(penalty.graph).scatter
    wants_total = scatter is not None or getattr(estimator, "on_exhausted", None) == "pca"
    total = c.total if wants_total else None
    metric = Metric.euclidean(c.n_columns) if total is None else penalty.metric(scatter, total)
    labelled = _labelled(read, balanced, factors)
    rows = c.solver_rows(metric)
    return Prepared(
        read.X, read.weights, read.classes, c.feature_map, metric, total, rows, labelled
    )


def _labelled(read: LabelledInput, balanced: bool, factors: Array) -> LabelledRows:
    codes, weights = read.codes, read.weights
    if codes.min() == UNLABELLED:
        known = codes != UNLABELLED
        codes, weights = codes[known], weights[known]
    return LabelledRows(codes, weights, len(read.classes), balanced, factors)


def coordinates(
    kernel: Any, X: Any, weights: Array, codes: Array | None = None, **options: Any
) -> Coordinates:
    """Fit the feature map of a kernel, with the given options, and apply it."""
    feature_map = resolve_feature_map(kernel).set_params(**options)
    if isinstance(X, RemoteRows):
        return X.coordinates(feature_map, weights, codes)
    found = _local_coordinates(feature_map, X, weights, codes)
    return replace(found, points=_kernel_points(X, found.Z)) if is_pairwise(kernel) else found


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


def _kernel_points(K: Any, Z: Array) -> Array:
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
