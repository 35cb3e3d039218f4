"""What every method does first: rows, labels, coordinates, and the metric of the margin."""

from __future__ import annotations

from dataclasses import dataclass, replace
from numbers import Number
from typing import Any, cast

import numpy as np
import scipy.sparse
from sklearn.utils.validation import validate_data

from marginfold.errors import InvalidInputError, InvalidParameterError
from marginfold.estimators.distribution import check_lazy_graphs, distributed
from marginfold.estimators.embedded_rows import Coordinates, LocalCoordinates, RemoteRows
from marginfold.feature_maps import LowRankKernel, is_pairwise, resolve_feature_map
from marginfold.geometry.metric import Metric, Penalty
from marginfold.geometry.one_vs_rest import LabelledRows, class_factors
from marginfold.graphs.rule import LARGEST_ENTRY
from marginfold.linalg.tall import Array, dense, gram
from marginfold.planner.memory_check import check_memory
from marginfold.svm import Automatic, InteriorPoint, LibSVM, SVMSolver
from marginfold.validation.dask_input import gathered, is_lazy
from marginfold.validation.labels import UNLABELLED, encode_labels, is_missing, is_unlabelled
from marginfold.validation.parameters import shown
from marginfold.validation.weights import check_weights

SOLVERS: dict[str, Any] = {
    "auto": Automatic,
    "interior_point": InteriorPoint,
    "libsvm": LibSVM,
}
"""The solver of each shorthand."""

COPY = 1e-13
"""Squared distance, in units of the kernel, below which rows of a precomputed kernel are copies."""


@dataclass(frozen=True)
class LabelledInput:
    """Validated rows with their weights and classes; unlabelled rows have the code UNLABELLED."""

    X: Any
    weights: Array
    classes: Array
    codes: Array


@dataclass(frozen=True)
class Prepared:
    """Everything that does not depend on C or on the graph weight."""

    X: Any
    weights: Array
    classes: Array
    feature_map: Any
    metric: Metric
    total: Array
    rows: Any
    labelled: LabelledRows


def prepare(estimator: Any, X: Any, y: Any, sample_weight: Any, penalty: Penalty) -> Prepared:
    """Validate once, then compute coordinates Z, the metric and the rows of the solver.

    Rows without a label act through the feature map and the graph only.
    """
    check_lazy_graphs(X, penalty.graph)
    if is_lazy(X):
        _check_lazy_solver(estimator)
    read = read_labelled(estimator, X, y, sample_weight, estimator.unlabeled)
    balanced, factors = class_factors(estimator.class_weight, read.classes)
    c = coordinates(estimator.kernel, read.X, read.weights, read.codes)
    scatter = None if penalty.graph is None else c.form(penalty.graph).scatter
    metric = penalty.metric(scatter, c.total)
    known = read.codes != UNLABELLED
    labelled = LabelledRows(
        read.codes[known], read.weights[known], len(read.classes), balanced, factors
    )
    rows = c.solver_rows(metric)
    return Prepared(
        read.X, read.weights, read.classes, c.feature_map, metric, c.total, rows, labelled
    )


def _check_lazy_solver(estimator: Any) -> None:
    """Refuse solvers that know rows in one place only."""
    solver = resolve_solver(estimator.solver, estimator.tol)
    if not isinstance(solver, Automatic | InteriorPoint):
        raise InvalidParameterError(
            f"{type(estimator).__name__}: solver={shown(estimator.solver)} needs all rows in the "
            "memory of this process; use solver='interior_point' for a dask collection."
        )


def read_labelled(
    estimator: Any, X: Any, y: Any, sample_weight: Any, unlabeled: Any = None
) -> LabelledInput:
    """Validate rows, labels and weights; rows whose label equals ``unlabeled`` have none."""
    y = gathered(y)
    marks_missing = unlabeled is not None and is_missing(unlabeled)
    y, missing = _without_missing(y) if marks_missing else (y, False)
    if is_lazy(X):
        X, y = distributed().read_labelled(estimator, X, y)
    else:
        check_memory(estimator, X)
        X, y = validate_data(
            estimator, X, y, accept_sparse="csr", dtype=np.float64, ensure_min_samples=2
        )
        _check_size(X)
    weights = check_weights(gathered(sample_weight), X.shape[0])
    unlabelled = is_unlabelled(y, unlabeled) | missing
    classes, codes = encode_labels(y, unlabelled, weights, unlabeled)
    return LabelledInput(X, weights, classes, codes)


def read_rows(estimator: Any, X: Any, sample_weight: Any) -> tuple[Any, Array]:
    """Validate rows and weights of a method that needs no labels."""
    if is_lazy(X):
        X = distributed().read_rows(estimator, X)
    else:
        check_memory(estimator, X)
        X = validate_data(estimator, X, accept_sparse="csr", dtype=np.float64, ensure_min_samples=2)
        _check_size(X)
    return X, check_weights(gathered(sample_weight), X.shape[0])


def coordinates(
    kernel: Any, X: Any, weights: Array, codes: Array | None = None, **options: Any
) -> Coordinates:
    """Fit the feature map of a kernel, with the given options, and apply it."""
    feature_map = resolve_feature_map(kernel).set_params(**options)
    if isinstance(X, RemoteRows):
        return X.coordinates(feature_map, weights, codes)
    if isinstance(feature_map, LowRankKernel):
        rows, axes = feature_map.fit_factor(X, sample_weight=weights)
        total = feature_map.fitted_scatter(weights)
    else:
        rows, axes = feature_map.fit_coordinates(X, sample_weight=weights), None
        total = gram(rows, weights)
    found = LocalCoordinates(feature_map, rows, axes, total, X, codes, weights)
    return replace(found, points=_kernel_points(X, found.Z)) if is_pairwise(kernel) else found


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


def _without_missing(y: Any) -> tuple[Any, Any]:
    """Return labels with missing values replaced by another label, and where they were."""
    labels = np.asarray(y)
    if labels.ndim != 1:
        return y, False
    missing = np.fromiter((is_missing(label) for label in labels), dtype=bool, count=len(labels))
    if not missing.any() or missing.all():
        return y, False
    filled = labels.copy()
    filled[missing] = labels[~missing][0]
    numbers = filled.dtype == object and all(isinstance(label, Number) for label in filled)
    return np.array(filled.tolist()) if numbers else filled, missing


def _check_size(X: Any) -> None:
    entries = X.data if scipy.sparse.issparse(X) else X
    largest = float(max(entries.max(initial=0.0), -entries.min(initial=0.0)))
    if largest > LARGEST_ENTRY:
        raise InvalidInputError(
            f"X has entries of size {largest:.3g}, whose squares overflow; it needs entries up to "
            f"{LARGEST_ENTRY:g}. Scale the features, for example with StandardScaler."
        )


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
