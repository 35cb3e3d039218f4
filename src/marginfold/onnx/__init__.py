"""Fitted models as ONNX files, which run without Python (extra ``onnx``)."""

from __future__ import annotations

from textwrap import shorten
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from marginfold.data.table_model import TableModel
from marginfold.errors import InvalidInputError, InvalidParameterError, MarginfoldError
from marginfold.onnx.steps import opened
from marginfold.runtime.extras import require
from marginfold.validation.parameters import shown

if TYPE_CHECKING:
    from onnx import ModelProto

__all__ = ["register_converters", "to_onnx"]

REASON_CHARACTERS = 80
"""Of the message of another package: its attributes may be long arrays."""


def to_onnx(model: Any, X: Any = None, *, dtype: Any = np.float32) -> ModelProto:
    """Return a fitted estimator, or a pipeline with some, as an ONNX model.

    Transformers have the output ``variable``: what `transform` returns.  Classifiers have
    ``label`` (`predict`) and ``scores`` (`decision_function`, a vector for two classes), those
    with planes also ``distances``; `NeighborsClassifier` has ``label`` and ``probabilities``.

    Parameters
    ----------
    model : estimator, Pipeline or TableModel
        Fitted.  All estimators with the linear kernel, and with the kernels rbf, poly and linear of
        `ExactKernel` and `LowRankKernel`; `MarginMap` with a classifier of this package or
        `SVC`.  Of a search the best estimator is taken; other steps of a pipeline are left to
        skl2onnx.  Each column of a `TableModel` is an input; a missing word is empty.
    X : array or data frame, optional
        Some rows, if the inputs cannot be told from the model: each column of a data frame
        becomes an input with its name.  Columns are those of the fit, in their order.
    dtype : {np.float32, np.float64}, default=np.float32
        Type of numbers that go in and come out.  Nodes of marginfold compute in float64 in either
        case, those of other steps in this type.

    Returns
    -------
    onnx.ModelProto
        ``model.SerializeToString()`` is what a file holds.

    Notes
    -----
    The model does not check its rows: NaN gives NaN.  ``skl2onnx.to_onnx`` converts the same
    estimators after `register_converters`.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from marginfold import GESVC, to_onnx
    >>> X, y = load_wine(return_X_y=True)
    >>> model = make_pipeline(StandardScaler(), GESVC(kernel="rbf")).fit(X, y)
    >>> exported = to_onnx(model, dtype=np.float64)
    >>> [output.name for output in exported.graph.output]
    ['label', 'scores']
    """
    register_converters()
    if dtype not in (np.float32, np.float64):
        raise InvalidParameterError(f"dtype must be np.float32 or np.float64; got {shown(dtype)}.")
    import skl2onnx

    dtype = np.dtype(dtype)
    if isinstance(model, TableModel):
        from marginfold.onnx.answers import EncodedTable

        steps = [("columns", EncodedTable(model, dtype)), ("method", opened(model.method))]
        found = Pipeline(steps)
    else:
        check_is_fitted(model)
        found = opened(model)
    inputs = _inputs(model, X, dtype)
    options = {"zipmap": False} if is_classifier(found) else None
    try:
        exported = skl2onnx.to_onnx(found, initial_types=inputs, options=options)
    except MarginfoldError:
        raise
    except (RuntimeError, ValueError) as error:  # of a step that is not ours
        raise InvalidInputError(
            f"skl2onnx does not convert {shown(found)}: {_reason(error)} Replace the step that it "
            "names, or keep another method."
        ) from error
    _check_types(exported, found)
    return exported


def register_converters() -> None:
    """Teach skl2onnx the estimators of this package, for ``skl2onnx.to_onnx``.

    Examples
    --------
    >>> from marginfold.onnx import register_converters
    >>> register_converters()
    """
    require("onnx", "skl2onnx")
    from marginfold.onnx.converters import register

    register()


def _reason(error: BaseException) -> str:
    """Return the first line of an error in short, and what it came from."""
    short = shorten(str(error).partition("\n")[0], REASON_CHARACTERS, placeholder=" ...")
    source, before = error, error.__context__
    while before is not None:
        source, before = before, before.__context__
    return short if source is error else f"{short} ({source})"


def _check_types(exported: ModelProto, found: Any) -> None:
    """Refuse a model that no runtime loads: steps that are not ours may mix types of numbers."""
    from onnx.shape_inference import InferenceError, infer_shapes

    try:
        infer_shapes(exported, check_type=True, strict_mode=True)
    except InferenceError as error:
        raise InvalidInputError(
            f"skl2onnx converts {shown(found)} to nodes whose types differ: "
            f"{str(error).splitlines()[-1]}. Try the other dtype, or replace the step before."
        ) from error


def _inputs(model: Any, X: Any, dtype: np.dtype[Any]) -> list[tuple[str, Any]]:
    """Return names and types of the inputs."""
    from skl2onnx.common.data_types import DoubleTensorType, FloatTensorType, StringTensorType

    numbers = FloatTensorType if dtype == np.float32 else DoubleTensorType
    if isinstance(model, TableModel):
        kinds = [*[numbers] * len(model.numbers), *[StringTensorType] * len(model.levels)]
        return [(name, kind([None, 1])) for name, kind in zip(model.columns, kinds, strict=True)]
    if hasattr(X, "columns"):
        columns = list(getattr(X, "column_names", X.columns))
        _check_names(model, columns)
        return [
            (str(name), (numbers if _is_number(X[name]) else StringTensorType)([None, 1]))
            for name in columns
        ]
    return [("X", numbers([None, _n_columns(model, X)]))]


def _is_number(column: Any) -> bool:
    """Return whether a column of pandas, polars or pyarrow has numbers."""
    kind = getattr(getattr(column, "dtype", None), "kind", None)  # others than pandas have none
    return (kind or np.asarray(column).dtype.kind) in "biuf"


def _check_names(model: Any, names: list[Any]) -> None:
    """Refuse columns whose order is not that of the fit: the model would take one for another."""
    if len(set(names)) < len(names):
        raise InvalidInputError(f"X has columns of equal names, {shown(names)}; rename them.")
    if _selects(model):
        return
    fitted = getattr(model, "feature_names_in_", None)
    if fitted is not None and list(fitted) != names:
        raise InvalidInputError(
            f"X has the columns {shown(names)}; the model was fitted to {shown(list(fitted))}. "
            "Give these, in this order."
        )
    _check_number(model, len(names))


def _selects(model: Any) -> bool:
    """Return whether the first step looks for its columns by their names."""
    if isinstance(model, Pipeline):
        return _selects(model.steps[0][1])
    return isinstance(model, ColumnTransformer)


def _n_columns(model: Any, X: Any) -> int:
    if X is None:
        known = getattr(model, "n_features_in_", None)
        if known is None:
            raise InvalidInputError(
                f"{shown(model)} does not say how many columns it takes; give some rows: "
                "to_onnx(model, X)."
            )
        return int(known)
    shape = np.shape(X)
    if len(shape) != 2:
        raise InvalidInputError(f"X must have rows and columns; got an array of shape {shape}.")
    _check_number(model, shape[1])
    return int(shape[1])


def _check_number(model: Any, n_columns: int) -> None:
    fitted = getattr(model, "n_features_in_", n_columns)
    if n_columns != fitted:
        raise InvalidInputError(
            f"X has {n_columns} columns; the model was fitted to {fitted}. Give some of those rows."
        )
