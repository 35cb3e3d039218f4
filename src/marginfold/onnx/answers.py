"""What each estimator answers about rows, as nodes: images, scores, classes, distances.

Before them stand the coordinates (the linear map, and kernels rbf, poly and linear, exact or of low
rank), and the rows of a table, which has an input for each column.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import scipy.sparse
from onnx import TensorProto
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.svm import SVC

from marginfold.data.table_model import TableModel
from marginfold.errors import InvalidInputError
from marginfold.estimators.direct_embedding import DirectEmbedding
from marginfold.estimators.gesvm import GESVC
from marginfold.estimators.margin_map import MarginMap
from marginfold.estimators.multiclass import OneVsRestClassifier, class_pairs
from marginfold.estimators.nearest_plane import NearestPlane
from marginfold.estimators.projection import Projection
from marginfold.estimators.second_axis import HEIGHT, WIDTH
from marginfold.estimators.twinsvm import TwinSVC
from marginfold.feature_maps import Linear, Transformed
from marginfold.feature_maps.feature_map import CheckedMap
from marginfold.feature_maps.kernel_expansion import KernelExpansion
from marginfold.feature_maps.kernel_map import KernelMap
from marginfold.linalg.tall import Array
from marginfold.model_selection.neighbors_classifier import NeighborsClassifier
from marginfold.onnx.nodes import Graph, Value
from marginfold.onnx.steps import Standardised
from marginfold.validation.parameters import shown

EXPORTED_KERNELS = ("linear", "rbf", "poly")
"""Kernels that have nodes."""

MISSING_WORD = ""
"""The word for a missing one: words of ONNX are never missing."""


def check_model(model: Any) -> None:
    """Refuse a fitted estimator whose answers have no nodes."""
    if isinstance(model, DirectEmbedding):
        raise InvalidInputError(
            f"ONNX export of {type(model).__name__} is not possible: it places new rows by a "
            "search for their neighbors. Use LPP or NPE, which have a formula for them."
        )
    if isinstance(model, (Projection, OneVsRestClassifier)):
        check_map(model.feature_map_)
    elif isinstance(model, CheckedMap):
        check_map(model)
    elif isinstance(model, MarginMap):
        _check_classifier(model.classifier_)


def _check_classifier(classifier: Any) -> None:
    """Refuse a classifier of a MarginMap that is neither of this package nor an `SVC`."""
    *before, last = _steps(classifier)
    if not isinstance(last, (OneVsRestClassifier, SVC)) or not all(
        isinstance(step, Projection) for step in before
    ):
        raise InvalidInputError(
            "ONNX export of MarginMap needs SVC or a classifier of marginfold, such as "
            f"GESVC(kernel='rbf'); got {shown(classifier)}. Put scalers and encoders into the "
            "pipeline before the map."
        )
    for step in before:
        check_model(step)
    if isinstance(last, SVC):
        check_map(_expansion(last))
    else:
        check_model(last)


def answers(x: Value, model: Any) -> list[Value]:
    """Return the outputs of a model for rows x: an image, or classes with what decides them."""
    if isinstance(model, Projection):
        return [images(x, model.feature_map_, model._scaled_directions())]
    if isinstance(model, Standardised):
        return [(x - model.mean) / model.scale]
    if isinstance(model, CheckedMap):
        return [coordinates(x, model)]
    if isinstance(model, MarginMap):
        return [_map_images(x, model)]
    if isinstance(model, NeighborsClassifier):
        shares = _votes(x, model)
        return [_classes(shares, model, alone=False), shares]
    alone = len(model.classes_) == 2
    if isinstance(model, NearestPlane):
        distances = _distances(x, model)
        scores = _nearness(distances, model)
        return [_classes(scores, model, alone=alone), scores, distances]
    scores = _machine_scores(x, model)
    return [_classes(scores, model, alone=alone), scores]


def _classes(scores: Value, model: Any, *, alone: bool) -> Value:
    """Return the class of the largest score; the sign decides if there is one score alone."""
    graph = scores.graph
    if alone:
        codes = graph.cast(graph.node("Greater", scores, 0.0), TensorProto.INT64)
    else:
        codes = graph.node("ArgMax", scores, axis=1, keepdims=0)
    return graph.node("Gather", class_labels(model), codes, axis=0)


def both_sides(score: Value) -> Value:
    """Return a score for each of two classes: the negative one, and the one that is given."""
    return score.graph.node("Unsqueeze", score, np.array([1])) * [[-1.0, 1.0]]


def class_labels(model: Any) -> Any:
    """Return the classes as ONNX has them: whole numbers, truth values, float64 or words."""
    classes = np.asarray(model.classes_)
    if classes.dtype.kind == "O" and all(isinstance(label, str) for label in classes):
        return classes
    if classes.dtype.kind in "iu" and (classes.astype(np.int64) == classes).all():
        return classes.astype(np.int64)
    if classes.dtype.kind in "bfU":
        return classes
    raise InvalidInputError(
        f"ONNX has no labels such as {shown(classes.tolist()[:3])} of type {classes.dtype}; fit "
        "the classifier with words, whole numbers or truth values."
    )


# Machines and planes -----------------------------------------------------------------------------


def _scores(x: Value, model: Any) -> Value:
    if isinstance(model, SVC):
        return _svc_scores(x, model)
    if isinstance(model, NearestPlane):
        return _nearness(_distances(x, model), model)
    return _machine_scores(x, model)


def _machine_scores(x: Value, model: GESVC) -> Value:
    values = images(x, model.feature_map_, model.directions_) + model.intercepts_
    if len(model.intercepts_) == 1:
        return values.column(0)
    if model.pairs_ is None:
        return values
    return _pair_scores(x.graph.node("Clip", values, -1.0, 1.0), len(model.classes_))


def _svc_scores(x: Value, model: SVC) -> Value:
    """Return ``decision_function`` of scikit-learn's SVC, one score per class."""
    expansion, n_classes = _expansion(model), len(model.classes_)
    if n_classes == 2:
        return (images(x, expansion, model.dual_coef_.T) + model.intercept_).column(0)
    pairs = class_pairs(n_classes)
    own = np.repeat(np.arange(n_classes), model.n_support_)
    W = np.zeros((len(own), len(pairs)))
    for column, (first, second) in enumerate(pairs):  # its weights for each other class in turn
        W[own == first, column] = -model.dual_coef_[second - 1, own == first]
        W[own == second, column] = -model.dual_coef_[first, own == second]
    return _pair_scores(images(x, expansion, W) - model.intercept_, n_classes)


def _expansion(model: SVC) -> KernelExpansion:
    """Return the kernel of an SVC with its support vectors."""
    expansion = KernelExpansion(
        model.kernel, gamma=model._gamma, degree=model.degree, coef0=model.coef0
    )
    rows = model.support_vectors_
    return expansion.fit(rows) if model.kernel in EXPORTED_KERNELS else expansion


def _pair_scores(margins: Value, n_classes: int) -> Value:
    """Return one score per class from the margins of all pairs, as `one_vs_one_values` does."""
    first, second = np.array(class_pairs(n_classes)).T
    winners = np.eye(n_classes)
    own = margins.of("Sign") * 0.5
    sums = margins @ (winners[second] - winners[first])
    votes = (own + 0.5) @ winners[second] + (-own + 0.5) @ winners[first]
    return votes + sums / ((abs(sums) + 1.0) * 3.0)


def _distances(x: Value, model: NearestPlane) -> Value:
    return abs(images(x, model.feature_map_, model.normals_.T) + model.offsets_)


def _nearness(distances: Value, model: NearestPlane) -> Value:
    """Return how much nearer the plane of a class is; of pairs, the votes."""
    heights = distances
    if isinstance(model, TwinSVC) and model.measure == "margin":
        heights = distances / model.margins_
    n_classes, n_planes = len(model.classes_), len(model.normals_)
    if n_planes == n_classes:
        return heights.column(0) - heights.column(1) if n_classes == 2 else -heights
    firsts = np.arange(0, n_planes, 2)
    margins = heights.columns(firsts) - heights.columns(firsts + 1)
    missing = np.logical_not(np.any(model.normals_, axis=1))
    if missing.any() and not missing.all():  # a pair that lacks a plane has no opinion
        margins = margins * np.where(missing[0::2] | missing[1::2], 0.0, 1.0)
    return _pair_scores(margins, n_classes)


# Neighbors and maps ------------------------------------------------------------------------------


def _votes(x: Value, model: NeighborsClassifier) -> Value:
    """Return the shares of the votes; of equally near rows the earlier ones count."""
    graph, k = x.graph, min(int(model.n_neighbors), len(model._rows))
    gaps = graph.node("Unsqueeze", x, np.array([1])) - model._rows[None]
    nearness = -(gaps * gaps).sum(2, keepdims=False)
    found = graph.largest(nearness, k)
    votes = graph.node("Gather", np.eye(len(model.classes_))[model._codes], found, axis=0)
    return votes.sum(1, keepdims=False) / float(k)


def _map_images(x: Value, model: MarginMap) -> Value:
    """Return the mean of the anchors, weighted by the margins of a row."""
    *before, classifier = _steps(model.classifier_)
    for step in before:
        (x,) = answers(x, step)
    graph, margins = x.graph, _scores(x, classifier)
    if len(model.classes_) == 2:
        margins = both_sides(margins)
    weights = graph.node("Softmax", margins / model.scale_ * model.sharpness_, axis=1)
    placed = weights @ model.anchors_
    if model.second_axis_ is None:
        return placed
    axis, first = model.second_axis_, placed.columns(np.array([0]))
    u = (x - axis.mean) @ axis.direction[:, None] - (first - axis.origin) * axis.slope
    second = u * HEIGHT / (u * u + WIDTH**2).of("Sqrt")
    return graph.node("Concat", first, second, axis=1)


def _steps(classifier: Any) -> list[Any]:
    return (
        [step for _, step in classifier.steps] if isinstance(classifier, Pipeline) else [classifier]
    )


def check_map(feature_map: Any) -> None:
    """Refuse a feature map that has no nodes."""
    if isinstance(feature_map, Linear):
        return
    if isinstance(feature_map, Transformed):
        raise InvalidInputError(
            f"ONNX export of a transformer as kernel, {shown(feature_map.transformer)}, is not "
            "possible. Put it into the pipeline as the step before, and fit the method with "
            "kernel='linear'; or fit it with 'rbf', 'poly' or LowRankKernel."
        )
    if not isinstance(feature_map, KernelMap):
        raise InvalidInputError(
            f"ONNX export of the feature map {shown(feature_map)} is not possible; fit with "
            "kernel='linear', 'rbf', 'poly', ExactKernel or LowRankKernel."
        )
    kernel = feature_map.kernel
    if not isinstance(kernel, str) or kernel not in EXPORTED_KERNELS:
        raise InvalidInputError(
            f"ONNX export knows the kernels {', '.join(EXPORTED_KERNELS)}, exact or by "
            f"LowRankKernel; got {shown(kernel)}. Fit the method with one of them."
        )
    if scipy.sparse.issparse(feature_map.training_rows_):
        raise InvalidInputError(
            "ONNX export of a kernel that was fitted to sparse rows is not possible: the model "
            "would hold them as dense ones. Fit it to X.toarray(), or with kernel='linear'."
        )


def images(x: Value, feature_map: Any, W: Array) -> Value:
    """Return ``feature_map.images(X, W)``."""
    if isinstance(feature_map, Linear):
        return (x - feature_map.mean_) @ feature_map.in_input_units(W)
    return _centred(x, feature_map) @ feature_map._mixtures(W)


def coordinates(x: Value, feature_map: Any) -> Value:
    """Return ``feature_map.coordinates(X)``."""
    if isinstance(feature_map, Linear):
        centred = x - feature_map.mean_
        return centred if feature_map.basis_ is None else centred @ feature_map.basis_
    centred = _centred(x, feature_map)
    is_expansion = isinstance(feature_map, KernelExpansion)
    return centred if is_expansion else centred @ feature_map.dual_basis_


def _centred(x: Value, feature_map: KernelMap) -> Value:
    """Return the kernel with the training rows, less its means."""
    K = _kernel(x, feature_map)
    return K - feature_map.column_means_ if feature_map.center else K


def _kernel(x: Value, feature_map: KernelMap) -> Value:
    T, gamma = feature_map.training_rows_, feature_map.gamma_
    if feature_map.kernel == "linear":
        return x @ T.T
    if feature_map.kernel == "poly":
        return (x @ (gamma * T.T) + float(feature_map.coef0)) ** feature_map.degree
    moved = x - feature_map.origin_ if np.ndim(feature_map.origin_) else x
    sizes = gamma * np.einsum("ij,ij->i", T, T)
    exponents = moved @ (2.0 * gamma * T.T) - moved.squares() * gamma - sizes
    return x.graph.node("Min", exponents, 0.0).of("Exp")


class EncodedTable(BaseEstimator):
    """The encoder of a fitted `TableModel`, as the first step of a pipeline.

    ``dtype`` is the type of the rows: columns of words do not tell it.
    """

    def __init__(self, model: TableModel, dtype: np.dtype[Any]) -> None:
        self.model = model
        self.dtype = dtype

    @property
    def n_columns(self) -> int:
        """The number of columns of the rows."""
        return len(self.model.pipeline["columns"].get_feature_names_out())


def encoded(graph: Graph, variables: list[Any], table: EncodedTable) -> Value:
    """Return the rows of a table, whose columns are the inputs."""
    columns = [Value(graph, variable.full_name) for variable in variables]
    parts = table.model.pipeline["columns"].named_transformers_
    n_numbers = len(table.model.numbers)
    found = []
    if n_numbers:
        found.append(_numbers(graph.rows(variables[:n_numbers]), parts["numbers"]))
    if table.model.levels:
        found.append(_words(graph, columns[n_numbers:], parts["levels"]))
    return found[0] if len(found) == 1 else graph.node("Concat", *found, axis=1)


def _numbers(x: Value, part: Any) -> Value:
    """Return numbers, the missing ones filled with medians, on their scale."""
    imputer, *scalers = (step for _, step in part.steps)
    x = x.graph.node("Where", x.of("IsNaN"), imputer.statistics_, x)
    for scaler in scalers:
        if isinstance(scaler, StandardScaler):
            plain = Standardised.of(scaler)
            x = (x - plain.mean) / plain.scale
        elif isinstance(scaler, MinMaxScaler):
            x = x * scaler.scale_ + scaler.min_
    return x


def _words(graph: Graph, columns: list[Value], part: Any) -> Value:
    """Return what the encoder makes of words: that of the first ones, and what others change."""
    categories = part[-1].categories_
    first = np.array([[words[0] for words in categories]], dtype=object)
    base = _encode(part, first)
    rows = None
    for place, (column, words) in enumerate(zip(columns, categories, strict=True)):
        known = [word for word in words if isinstance(word, str)]
        tried = np.repeat(first, len(known) + 2, axis=0)
        tried[:, place] = [*known, np.nan, "".join(known) + "?"]  # a missing and an unknown one
        numbers = graph.numbered(column, [*known, MISSING_WORD])
        changes = graph.node("Gather", _encode(part, tried) - base, numbers, axis=0)
        change = changes.sum(1, keepdims=False)
        rows = change + base if rows is None else rows + change
    assert rows is not None
    return rows


def _encode(part: Any, words: Array) -> Array:
    import pandas

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Found unknown categories")
        frame = pandas.DataFrame(words, columns=part.feature_names_in_, dtype=object)
        return np.asarray(part.transform(frame), dtype=np.float64)
