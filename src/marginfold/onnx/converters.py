"""What skl2onnx asks of an estimator: the names and types of its outputs, and its nodes."""

from __future__ import annotations

from typing import Any

import numpy as np
from skl2onnx import update_registered_converter
from skl2onnx.common.data_types import (
    BooleanTensorType,
    DoubleTensorType,
    FloatTensorType,
    Int64TensorType,
    StringTensorType,
)
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from marginfold.estimators.discriminant import KDA, LDA
from marginfold.estimators.eigenmaps import LaplacianEigenmaps
from marginfold.estimators.gesvm import GESVC, LapSVC
from marginfold.estimators.graph_embedding import GraphEmbedding
from marginfold.estimators.locally_linear import LocallyLinearEmbedding
from marginfold.estimators.lpp import LPP, NPE
from marginfold.estimators.lsva import LSVA
from marginfold.estimators.margin_map import MarginMap
from marginfold.estimators.mmda import MMDA
from marginfold.estimators.mrgepsvm import GEPSVC, MRGEPSVC
from marginfold.estimators.multiclass import OneVsRestClassifier
from marginfold.estimators.nearest_plane import NearestPlane
from marginfold.estimators.svm_pca import SVMPCA
from marginfold.estimators.twinsvm import TwinSVC
from marginfold.estimators.wsvda import WSVDA
from marginfold.feature_maps import ExactKernel, Linear, LowRankKernel
from marginfold.model_selection.neighbors_classifier import NeighborsClassifier
from marginfold.onnx.answers import (
    EncodedTable,
    answers,
    both_sides,
    check_model,
    class_labels,
    encoded,
)
from marginfold.onnx.nodes import Graph
from marginfold.onnx.steps import Standardised

ESTIMATORS = (
    *(GEPSVC, GESVC, KDA, LDA, LPP, LSVA, MMDA, MRGEPSVC, NPE, SVMPCA, WSVDA, GraphEmbedding),
    *(LapSVC, LaplacianEigenmaps, LocallyLinearEmbedding, MarginMap, TwinSVC),
    *(ExactKernel, Linear, LowRankKernel, NeighborsClassifier),
    *(EncodedTable, Standardised),
)
"""All that have converters; some of these only say why there can be none."""

LABEL_TYPES = {"i": Int64TensorType, "b": BooleanTensorType, "f": DoubleTensorType}
"""Types of classes by the kind of their array; all others are words."""

OPTIONS = {"zipmap": [False], "raw_scores": [True, False]}
"""What skl2onnx may ask of a classifier.  Its calibration asks for raw scores, and then wants two
columns for two classes."""


def register() -> None:
    """Tell skl2onnx the converters of all estimators."""
    for cls in ESTIMATORS:
        options = OPTIONS if issubclass(cls, ClassifierMixin) else None
        update_registered_converter(
            cls, _alias(cls), _set_types, _convert, parser=_parse, options=options
        )


def _alias(cls: type) -> str:
    return f"Marginfold{cls.__name__}"


def _parse(scope: Any, model: Any, inputs: list[Any], custom_parsers: Any = None) -> list[Any]:
    """Declare the operator of a model and its outputs."""
    if not isinstance(model, (EncodedTable, Standardised)):
        check_is_fitted(model)
    check_model(model)
    operator = scope.declare_local_operator(_alias(type(model)), model)
    operator.inputs = inputs
    for name, kind in _outputs(model, inputs, paired=_is_paired(scope, model)):
        operator.outputs.append(scope.declare_local_variable(name, kind))
    return operator.outputs


def _set_types(operator: Any) -> None:
    """Set the types of the outputs, of which a calibration or a vote may take fewer."""
    model = operator.raw_operator
    check_model(model)
    paired = _is_paired(operator.scope_inst, model)
    declared = _outputs(model, operator.inputs, paired=paired)
    for (_, kind), variable in zip(declared, operator.outputs, strict=False):
        variable.type = kind


def _convert(scope: Any, operator: Any, container: Any) -> None:
    """Add the nodes of a model."""
    graph, model = Graph(scope, container), operator.raw_operator
    if isinstance(model, EncodedTable):
        values = [encoded(graph, operator.inputs, model)]
    else:
        values = answers(graph.rows(operator.inputs), model)
    if _is_paired(container, model):
        values[1] = both_sides(values[1])
    for value, variable in zip(values, operator.outputs, strict=False):
        graph.end(value, variable)


def _is_paired(options: Any, model: Any) -> bool:
    """Return whether two classes are to have two scores."""
    if not isinstance(model, OneVsRestClassifier) or len(model.classes_) > 2:
        return False
    return bool(options.get_options(model, {"raw_scores": False})["raw_scores"])


def _outputs(model: Any, inputs: list[Any], *, paired: bool) -> list[tuple[str, Any]]:
    """Return names and types of the outputs, in the order of `answers`."""
    Numbers = DoubleTensorType if isinstance(inputs[0].type, DoubleTensorType) else FloatTensorType
    if isinstance(model, EncodedTable):
        Numbers = DoubleTensorType if model.dtype == np.float64 else FloatTensorType
        return [("variable", Numbers([None, model.n_columns]))]
    if isinstance(model, Standardised):
        return [("variable", Numbers([None, len(model.mean)]))]
    if not isinstance(model, ClassifierMixin):
        return [("variable", Numbers([None, model._n_features_out]))]
    label = LABEL_TYPES.get(class_labels(model).dtype.kind, StringTensorType)
    outputs = [("label", label([None]))]
    n_classes = len(model.classes_)
    if isinstance(model, NeighborsClassifier):
        return [*outputs, ("probabilities", Numbers([None, n_classes]))]
    alone = n_classes == 2 and not paired
    outputs.append(("scores", Numbers([None] if alone else [None, n_classes])))
    if isinstance(model, NearestPlane):
        outputs.append(("distances", Numbers([None, len(model.normals_)])))
    return outputs
