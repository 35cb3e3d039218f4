"""What a search offers once its best pipeline is fitted to all rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, TypeVar, cast

from sklearn.base import BaseEstimator, MetaEstimatorMixin, TransformerMixin
from sklearn.pipeline import Pipeline
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from marginfold.errors import InvalidParameterError
from marginfold.linalg.tall import Array

Method = TypeVar("Method", bound=Callable[..., Any])


def _if_best_has(step: str, method: str) -> Callable[[Method], Method]:
    """Offer a method if a step of the best pipeline (before a fit: the given one) has it."""

    def check(search: Any) -> bool:
        if not search.refit:
            raise AttributeError(
                f"{type(search).__name__}.{method} needs the best model fitted to all rows; got "
                "refit=False. Use refit=True, or fit a pipeline with best_params_."
            )
        pipeline = getattr(search, "best_estimator_", None) or search._pipeline()
        owner = pipeline.named_steps[step]
        return getattr(owner, method) is not None  # its own error says why it is missing

    return cast(Callable[[Method], Method], available_if(check))


class BestPipeline(  # type: ignore[call-arg]
    MetaEstimatorMixin, TransformerMixin, BaseEstimator, ABC, auto_wrap_output_keys=None
):
    """The methods of the best pipeline's steps, "subspace" and "classifier".

    The output of `transform` is configured in the subspace, not here.
    """

    refit: Any
    best_estimator_: Pipeline
    scorer_: Any
    multimetric_: bool

    @abstractmethod
    def _pipeline(self) -> Pipeline:
        """Return the pipeline before it is fitted."""

    def _best(self) -> Any:
        check_is_fitted(self)
        return self.best_estimator_

    @_if_best_has("classifier", "predict")
    def predict(self, X: Any) -> Array:
        """Return the class of each row, by the best pipeline."""
        return self._best().predict(X)

    @_if_best_has("classifier", "predict_proba")
    def predict_proba(self, X: Any) -> Array:
        """Return the probabilities of the classes, by the best pipeline."""
        return self._best().predict_proba(X)

    @_if_best_has("classifier", "decision_function")
    def decision_function(self, X: Any) -> Array:
        """Return the decision values of the best pipeline's classifier."""
        return self._best().decision_function(X)

    @_if_best_has("subspace", "transform")
    def transform(self, X: Any) -> Any:
        """Return the rows in the best subspace."""
        return self._best().named_steps["subspace"].transform(X)

    @_if_best_has("subspace", "inverse_transform")
    def inverse_transform(self, X: Any) -> Array:
        """Return rows in input space for images in the best subspace."""
        return self._best().named_steps["subspace"].inverse_transform(X)

    @_if_best_has("subspace", "get_feature_names_out")
    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """Return the names of the best subspace's components."""
        return self._best().named_steps["subspace"].get_feature_names_out(input_features)

    @_if_best_has("classifier", "predict")
    def score(self, X: Any, y: Any) -> float:
        """Return the score of the best pipeline, by ``scoring`` (of several: by ``refit``)."""
        best = self._best()
        if self.multimetric_ and callable(self.refit):
            raise InvalidParameterError(
                f"{type(self).__name__}.score does not know which of {sorted(self.scorer_)} is "
                "meant: refit is a function. Call scorer_[name](best_estimator_, X, y)."
            )
        scorer: Any = self.scorer_[self.refit] if self.multimetric_ else self.scorer_
        return float(scorer(best, X, y))
