"""PathSearchCV: the cost and the graph weight of a margin classifier by cross-validation."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any, Literal

import numpy as np
from sklearn.base import ClassifierMixin, clone, is_classifier
from sklearn.utils import get_tags

from marginfold.errors import InvalidParameterError
from marginfold.estimators.gesvm import GESVC
from marginfold.estimators.paths import MarginEstimator, Values, grid_of
from marginfold.linalg.tall import Array
from marginfold.model_selection.folds import Trial, fit_alone
from marginfold.model_selection.rows import SearchRows
from marginfold.model_selection.search import Scorers, SharedSearch, if_best_has
from marginfold.validation.parameters import check_parameters, shown
from marginfold.validation.types import Folds, Labels, Rows, Scorings


class PathSearchCV(ClassifierMixin, SharedSearch):
    """Choose C and the graph weight of GESVC or LapSVC by cross-validation.

    The same choice as ``GridSearchCV`` with the same grid, in less time: each fold builds one graph
    and decomposes one metric for all costs and weights (see `path`).

    Parameters
    ----------
    estimator : GESVC or LapSVC
        It is not changed; parameters that are not in the grid keep its values.
    C, graph_weight : float or sequence of float, optional
        Values to try; by default the estimator's own.
    cv, scoring, refit, n_jobs, client, error_score, return_train_score
        As in `SubspaceSearchCV`.

    Attributes
    ----------
    cv_results_, best_index_, best_params_, best_score_, best_estimator_, n_splits_, scorer_,
    refit_time_, multimetric_, classes_, n_features_in_, feature_names_in_
        As in GridSearchCV.  The seconds of a shared fit are spread evenly over its candidates.

    Notes
    -----
    If ``estimator.unlabeled`` marks rows without a label, only labelled rows are split and scored;
    unlabelled rows take part in every fit, whatever splits say that are given as row numbers.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import scale
    >>> from marginfold import GESVC, PathSearchCV
    >>> X, y = load_wine(return_X_y=True)
    >>> search = PathSearchCV(GESVC(), C=[0.01, 1], graph_weight=[0.1, 10]).fit(scale(X), y)
    >>> len(search.cv_results_["params"])
    4
    """

    def __init__(
        self,
        estimator: GESVC,
        *,
        C: Values = None,
        graph_weight: Values = None,
        cv: Folds | None = None,
        scoring: Scorings = None,
        refit: bool | str | Callable[[dict[str, Any]], int] = True,
        n_jobs: int | None = None,
        client: object = None,
        error_score: float | Literal["raise"] = np.nan,
        return_train_score: bool = False,
    ) -> None:
        self.estimator = estimator
        self.C = C
        self.graph_weight = graph_weight
        self.cv = cv
        self.scoring = scoring
        self.refit = refit
        self.n_jobs = n_jobs
        self.client = client
        self.error_score = error_score
        self.return_train_score = return_train_score

    @if_best_has("predict")
    def predict(self, X: Rows) -> Array:
        """Return the class of each row, by the best classifier."""
        return self._best().predict(X)

    @if_best_has("predict_proba")
    def predict_proba(self, X: Rows) -> Array:
        """Return the probabilities of the classes, by the best classifier."""
        return self._best().predict_proba(X)

    @if_best_has("decision_function")
    def decision_function(self, X: Rows) -> Array:
        """Return the decision values of the best classifier."""
        return self._best().decision_function(X)

    @if_best_has("predict")
    def score(self, X: Rows, y: Labels) -> float:
        """Return the score of the best classifier, by ``scoring`` (of several: by ``refit``)."""
        return SharedSearch.score(self, X, y)

    def _check(self, rank: float) -> None:
        if not isinstance(self.estimator, MarginEstimator) or not is_classifier(self.estimator):
            raise InvalidParameterError(
                f"estimator must be an instance of GESVC or LapSVC; got {shown(self.estimator)}. "
                "For others use SubspaceSearchCV or scikit-learn's GridSearchCV."
            )
        constraints = self.estimator._constraints()
        check_parameters(self.estimator, constraints)
        self._check_grid(constraints, ("C", "graph_weight"), rank)

    def _trial(self, scorers: Scorers, rank: float) -> Trial:
        return Trial(
            estimator=self.estimator,
            grid=grid_of(self.estimator, self.C, self.graph_weight),
            dimensions=(),
            heads=(),
            by_votes=False,
            scorers=scorers.by_name,
            needs_pipeline=False,
            error_score=self.error_score,
            return_train_score=bool(self.return_train_score),
        )

    def _candidates(self, rank: float) -> dict[str, list[Any]]:
        return dict(grid_of(self.estimator, self.C, self.graph_weight))

    def _model(self) -> Any:
        return self.estimator

    def _fit_best(self, rows: SearchRows) -> Any:
        return fit_alone(clone(self.estimator).set_params(**self.best_params_), rows.whole())

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator)
        tags.classifier_tags = deepcopy(inner.classifier_tags)
        tags.target_tags.required = True
        tags.input_tags.pairwise = inner.input_tags.pairwise
        tags.input_tags.sparse = inner.input_tags.sparse
        return tags
