"""A fitted model as skl2onnx is given it: searches opened, scalers in float64, the rest checked."""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import StandardScaler

from marginfold.errors import InvalidInputError
from marginfold.linalg.tall import Array
from marginfold.model_selection.subspace_search import SubspaceSearchCV
from marginfold.validation.parameters import shown


class Standardised(BaseEstimator):
    """A fitted `StandardScaler` that computes in float64.

    That of skl2onnx rounds means to the type of the rows: a column of years, whose mean is hundreds
    of standard deviations from 0, would lose digits in float32.
    """

    def __init__(self, mean: Array, scale: Array) -> None:
        self.mean = mean
        self.scale = scale

    @classmethod
    def of(cls, scaler: StandardScaler) -> Standardised:
        """Return the scaler with its means and scales, 0 and 1 where it uses none."""
        n = scaler.n_features_in_
        mean = scaler.mean_ if scaler.with_mean else np.zeros(n)
        return cls(mean, scaler.scale_ if scaler.with_std else np.ones(n))


def opened(model: Any, *, last: bool = True) -> Any:
    """Return the model to convert; ``last`` says whether nothing follows it in a pipeline."""
    if isinstance(model, Pipeline):
        places = enumerate(model.steps, start=1)
        return Pipeline(
            [
                (name, opened(step, last=last and place == len(model.steps)))
                for place, (name, step) in places
                if step is not None and step != "passthrough"
            ]
        )
    if hasattr(model, "best_estimator_"):
        best = model.best_estimator_
        if isinstance(model, SubspaceSearchCV) and not last:
            best = best.named_steps["subspace"]
        return opened(best, last=last)
    if type(model) is StandardScaler:
        return Standardised.of(model)
    if isinstance(model, CalibratedClassifierCV):
        return _opened_calibration(model)
    if not _is_ours(model) and not isinstance(model, (ColumnTransformer, FeatureUnion)):
        _check_parts(model)
    return model


def _opened_calibration(model: CalibratedClassifierCV) -> CalibratedClassifierCV:
    """Return a calibration of the best estimators, if it is of searches.

    Those that skl2onnx does not convert, or converts to something else, are refused.
    """
    if model.method != "sigmoid":
        raise InvalidInputError(
            f"ONNX export of CalibratedClassifierCV knows method='sigmoid'; got {model.method!r}, "
            "which ONNX would only approximate."
        )
    found = copy(model)
    found.calibrated_classifiers_ = [copy(part) for part in model.calibrated_classifiers_]
    for part in found.calibrated_classifiers_:
        part.estimator = opened(part.estimator)
        if isinstance(part.estimator, Pipeline):
            raise InvalidInputError(
                "ONNX export of CalibratedClassifierCV needs a classifier alone, not a pipeline; "
                "put its first steps before: make_pipeline(StandardScaler(), "
                "CalibratedClassifierCV(...))."
            )
    return found


def _check_parts(model: Any) -> None:
    """Refuse estimators of this package inside of others whose conversion is not known to work."""
    parts = model.get_params().values() if hasattr(model, "get_params") else ()
    if any(map(_is_ours, parts)):
        raise InvalidInputError(
            f"ONNX export of marginfold's estimators inside {shown(model)} is not possible; they "
            "convert alone, in Pipeline, ColumnTransformer, FeatureUnion, CalibratedClassifierCV "
            "and as the best estimator of a search."
        )


def _is_ours(model: Any) -> bool:
    return type(model).__module__.startswith("marginfold.")
