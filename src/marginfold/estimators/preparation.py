"""What every method of the max-margin family does first: rows, coordinates, metric."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from sklearn.utils.validation import validate_data

from marginfold.errors import InvalidParameterError
from marginfold.estimators.labels import UNLABELLED, encode_labels
from marginfold.feature_maps import check_weights, is_pairwise, resolve_feature_map
from marginfold.geometry.metric import Metric, Penalty
from marginfold.geometry.tasks import LabelledRows, class_factors
from marginfold.rows import Array, SharedRows, gram
from marginfold.solvers import InteriorPoint, LibSVM, SVMSolver


@dataclass(frozen=True)
class Prepared:
    """Everything that does not depend on C or on the graph weight."""

    classes: Array
    feature_map: Any
    metric: Metric
    total: Array
    rows: SharedRows
    labelled: LabelledRows


def prepare(estimator: Any, X: Any, y: Any, sample_weight: Any, penalty: Penalty) -> Prepared:
    """Validate once, then compute coordinates Z, the metric and the rows of the solver.

    Rows without a label act through the feature map and the graph only.
    """
    X, y = validate_data(
        estimator, X, y, accept_sparse="csr", dtype=np.float64, ensure_min_samples=2
    )
    weights = check_weights(sample_weight, X.shape[0])
    classes, codes = encode_labels(y, estimator.unlabeled, weights)
    balanced, factors = class_factors(estimator.class_weight, classes)
    feature_map = resolve_feature_map(estimator.kernel)
    feature_map.fit(X, sample_weight=weights)
    Z = feature_map.transform(X)
    total = gram(Z, weights)
    points = Z if is_pairwise(estimator.kernel) else X
    metric = penalty.metric(points, codes, weights, Z, total)
    known = codes != UNLABELLED
    rows = SharedRows(metric.rotate(Z if known.all() else Z[known]))
    labelled = LabelledRows(codes[known], weights[known], len(classes), balanced, factors)
    return Prepared(classes, feature_map, metric, total, rows, labelled)


def resolve_solver(solver: Any, tol: float) -> SVMSolver:
    """Return the solver for a shorthand, or the object itself."""
    if isinstance(solver, str) and solver == "interior_point":
        return InteriorPoint(tol=tol)
    if isinstance(solver, str) and solver == "libsvm":
        return LibSVM(tol=tol)
    if hasattr(solver, "solve_batch"):
        return cast(SVMSolver, solver)
    raise InvalidParameterError(
        f"solver must be 'interior_point', 'libsvm' or an object with solve_batch; got {solver!r}."
    )
