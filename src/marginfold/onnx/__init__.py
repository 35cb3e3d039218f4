"""Fitted models as ONNX files, which run without Python (extra ``onnx``)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import is_classifier
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
        becomes an input with its name.
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
        from marginfold.onnx.tables import EncodedTable

        steps = [("columns", EncodedTable(model, dtype)), ("method", opened(model.method))]
        found = Pipeline(steps)
    else:
        check_is_fitted(model)
        found = opened(model)
    inputs = _inputs(model, X, dtype)
    options = {"zipmap": False} if is_classifier(found) else None
    try:
        return skl2onnx.to_onnx(found, initial_types=inputs, options=options)
    except MarginfoldError:
        raise
    except (RuntimeError, ValueError) as error:  # of a step that is not ours
        raise InvalidInputError(
            f"skl2onnx does not convert {shown(found)}: {str(error).splitlines()[0]} Replace the "
            "step that it names."
        ) from error


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


def _inputs(model: Any, X: Any, dtype: np.dtype[Any]) -> list[tuple[str, Any]]:
    """Return names and types of the inputs."""
    from skl2onnx.common.data_types import DoubleTensorType, FloatTensorType, StringTensorType

    numbers = FloatTensorType if dtype == np.float32 else DoubleTensorType
    if isinstance(model, TableModel):
        kinds = [*[numbers] * len(model.numbers), *[StringTensorType] * len(model.levels)]
        return [(name, kind([None, 1])) for name, kind in zip(model.columns, kinds, strict=True)]
    if hasattr(X, "columns"):
        return [
            (str(name), (numbers if X[name].dtype.kind in "biuf" else StringTensorType)([None, 1]))
            for name in X.columns
        ]
    n_features = getattr(model, "n_features_in_", None) if X is None else np.shape(X)[1]
    if n_features is None:
        raise InvalidInputError(
            f"{shown(model)} does not say how many columns it takes; give some rows: "
            "to_onnx(model, X)."
        )
    return [("X", numbers([None, n_features]))]
