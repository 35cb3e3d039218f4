"""SubspaceSearchCV: costs, graph weights and numbers of components chosen by cross-validation."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from copy import copy, deepcopy
from functools import partial
from numbers import Real
from typing import Any, Self, TypeVar, cast

import numpy as np
from sklearn.base import (
    BaseEstimator,
    MetaEstimatorMixin,
    TransformerMixin,
    clone,
    is_classifier,
)
from sklearn.model_selection import check_cv
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from marginfold.errors import InvalidInputError, InvalidParameterError
from marginfold.estimators.margin_subspace import MarginSubspace
from marginfold.estimators.paths import Values, grid_of, listed, points_of
from marginfold.executors import run_calls
from marginfold.linalg.tall import Array
from marginfold.model_selection.folds import (
    FoldScores,
    SearchRows,
    Trial,
    fit_pipeline,
    score_fold,
)
from marginfold.model_selection.results import (
    SINGLE,
    check_failures,
    chosen_index,
    read_scorers,
    results_table,
)
from marginfold.planner.check import check_memory
from marginfold.runtime.progress import report
from marginfold.validation.parameters import Flag, atomic_fit, check_parameters, shown
from marginfold.validation.row_types import refuse_lazy
from marginfold.validation.sized_calls import SizedCalls

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


class BestPipeline(
    SizedCalls, MetaEstimatorMixin, TransformerMixin, BaseEstimator, ABC, auto_wrap_output_keys=None
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


class SubspaceSearchCV(BestPipeline):
    """Choose C, the graph weight and the number of components by cross-validation.

    The same choice as ``GridSearchCV`` over ``Pipeline([("subspace", estimator), ("classifier",
    classifier)])`` with the same grid, in a fraction of the time: each fold builds one graph,
    decomposes one metric and solves all costs and weights side by side (see `path`), and the first
    k components of one fit are the fit with ``n_components=k``.  (With ``tasks="auto"`` numbers of
    components below that of the classes share one fit, the others another.)

    Parameters
    ----------
    estimator : MMDA, LSVA or WSVDA
        Not changed; what is not in the grid is taken from it.
    C, graph_weight : float or sequence of float, optional
        Values to try; by default the estimator's own.  Only LSVA has a ``graph_weight``.
    n_components : int or sequence of int, optional
        Numbers of components to try; by default 1, 2, ..., ``estimator.n_components``.
    classifier : classifier, optional
        It is fitted to the components and scored; by default ``KNeighborsClassifier(1)``.  The
        neighbors in all numbers of components are found at once, other classifiers are fitted one
        by one.
    cv : int, splitter or iterable, optional
        As in GridSearchCV: 5 stratified folds by default.
    scoring : str, callable, list, tuple or dict, optional
        As in GridSearchCV, but a callable returns one number; the classifier's ``score`` by
        default.  For a callable that is not a scorer made by ``make_scorer`` every number of
        components is fitted by itself, because it may look at the whole pipeline.
    refit : bool, str or callable, default=True
        As in GridSearchCV: whether the best pipeline is fitted to all rows, by which of several
        metrics, or a function of ``cv_results_`` that returns the best index.
    n_jobs : int, optional
        Processes on this machine that share the folds.  They import the script that starts them:
        its work must stand below ``if __name__ == "__main__":``.
    client : distributed.Client or str, optional
        A Dask cluster that shares the folds, or its address.
    error_score : "raise" or number, default=np.nan
        The score of a fit that fails.
    return_train_score : bool, default=False

    Attributes
    ----------
    cv_results_, best_index_, best_params_, best_score_, n_splits_, scorer_, refit_time_,
    multimetric_
        As in GridSearchCV; parameters have the names of the estimator's, without the step.  The
        seconds of a shared fit are spread evenly over its candidates.
    best_estimator_ : Pipeline
        With the steps "subspace" and "classifier", fitted to all rows.
    classes_, n_features_in_, feature_names_in_
        Of the best estimator.

    Notes
    -----
    If ``estimator.unlabeled`` marks rows without a label, only labelled rows are split and scored;
    unlabelled rows take part in the fit of every subspace and never reach the classifier.
    (GridSearchCV would take the marker for a class.)

    Watch the folds with `marginfold.watch`; cancelling leaves the search as it was.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import scale
    >>> from marginfold import LSVA, SubspaceSearchCV
    >>> X, y = load_wine(return_X_y=True)
    >>> search = SubspaceSearchCV(LSVA(4), graph_weight=[0.1, 1, 10]).fit(scale(X), y)
    >>> search.best_params_
    {'graph_weight': 1, 'n_components': 3}
    >>> len(search.cv_results_["params"])
    12
    """

    def __init__(
        self,
        estimator: Any,
        *,
        C: Values = None,
        graph_weight: Values = None,
        n_components: Iterable[int] | int | None = None,
        classifier: Any = None,
        cv: Any = None,
        scoring: Any = None,
        refit: Any = True,
        n_jobs: int | None = None,
        client: Any = None,
        error_score: Any = np.nan,
        return_train_score: bool = False,
    ) -> None:
        self.estimator = estimator
        self.C = C
        self.graph_weight = graph_weight
        self.n_components = n_components
        self.classifier = classifier
        self.cv = cv
        self.scoring = scoring
        self.refit = refit
        self.n_jobs = n_jobs
        self.client = client
        self.error_score = error_score
        self.return_train_score = return_train_score

    def fit(self, X: Any, y: Any = None, *, groups: Any = None, sample_weight: Any = None) -> Self:
        """Score every point of the grid on every fold, and fit the best to all rows.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
        y : array of shape (n_samples,)
            Class labels of any type.
        groups : array of shape (n_samples,), optional
            For splitters that need them.
        sample_weight : array of shape (n_samples,), optional
            Given to the subspace, and to the classifier if it takes weights.  Scores are not
            weighted.

        Returns
        -------
        self
        """
        if y is None:
            raise InvalidInputError(
                f"{type(self).__name__} requires y to be passed, but the target y is None."
            )
        refuse_lazy(X, self, "choose on a sample of the rows and fit the best estimator to all")
        with atomic_fit(self):
            self._search(X, y, groups, sample_weight)
        return self

    def _search(self, X: Any, y: Any, groups: Any, sample_weight: Any) -> None:
        self._check()
        if self.refit:  # the fit to all rows is the largest: better refused before the folds
            check_memory(self.estimator, X)
        scorers = read_scorers(self._pipeline(), self.scoring, self.refit)
        trial = Trial(
            estimator=self.estimator,
            grid=grid_of(self.estimator, self.C, self.graph_weight),
            dimensions=tuple(self._dimensions()),
            classifier=self._head(),
            scorers=scorers.by_name,
            needs_pipeline=not scorers.see_predictions_only,
            error_score=self.error_score,
            return_train_score=bool(self.return_train_score),
        )
        rows = SearchRows.read(
            X,
            y,
            sample_weight,
            unlabeled=self.estimator.unlabeled,
            pairwise=get_tags(self.estimator).input_tags.pairwise,
        )
        cv = check_cv(self.cv, rows.labels[rows.known], classifier=is_classifier(trial.classifier))
        folds = list(rows.folds(cv, groups))
        points = points_of({**trial.grid, "n_components": list(trial.dimensions)})
        scores = self._score(trial, rows, folds)
        check_failures(scores, len(points), self.error_score)
        self.n_splits_ = len(folds)
        self.cv_results_ = results_table(points, scores)
        self.multimetric_ = scorers.several
        self.scorer_ = dict(scorers.by_name) if scorers.several else scorers.by_name[SINGLE]
        if self.refit or not self.multimetric_:
            self._choose()
        if self.refit:
            self._refit(rows, trial.classifier)

    def _score(
        self, trial: Trial, rows: SearchRows, folds: list[tuple[Array, Array]]
    ) -> list[FoldScores]:
        work = partial(score_fold, trial=trial, rows=rows)
        scores: dict[int, FoldScores] = {}
        report("folds", 0, len(folds))
        for position, result in run_calls(work, folds, n_jobs=self.n_jobs, client=self.client):
            scores[position] = result
            report("folds", len(scores), len(folds))
        return [scores[position] for position in range(len(folds))]

    def _choose(self) -> None:
        results = self.cv_results_
        metric = self.refit if self.multimetric_ else SINGLE
        if callable(self.refit):
            self.best_index_ = chosen_index(self.refit, results)
        else:
            self.best_index_ = int(results[f"rank_test_{metric}"].argmin())
            self.best_score_ = float(results[f"mean_test_{metric}"][self.best_index_])
        self.best_params_ = results["params"][self.best_index_]

    def _refit(self, rows: SearchRows, classifier: Any) -> None:
        begin = time.perf_counter()
        subspace = clone(self.estimator).set_params(**self.best_params_)
        self.best_estimator_ = fit_pipeline(subspace, clone(classifier), rows.whole())
        report("best fit", 1, 1)  # cancelled meanwhile, it has fewer components than the best
        self.refit_time_ = time.perf_counter() - begin
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(subspace, name):
                setattr(self, name, getattr(subspace, name))
        if hasattr(self.best_estimator_, "classes_"):
            self.classes_ = self.best_estimator_.classes_

    def _check(self) -> None:
        """Refuse parameters out of range before anything is fitted."""
        if not isinstance(self.estimator, MarginSubspace):
            raise InvalidParameterError(
                f"estimator must be an instance of MMDA, LSVA or WSVDA; got "
                f"{shown(self.estimator)}. For others use scikit-learn's GridSearchCV."
            )
        check_parameters(self, {"return_train_score": Flag()})
        if not isinstance(self.error_score, Real) and self.error_score != "raise":
            raise InvalidParameterError(
                f"error_score must be 'raise' or a number; got {shown(self.error_score)}."
            )
        for name in ("C", "graph_weight", "n_components"):
            if isinstance(getattr(self, name), Iterator):
                raise InvalidParameterError(
                    f"{name} is an iterator, which the first look at it uses up; give a list."
                )
        constraints = self.estimator._constraints()
        check_parameters(self.estimator, constraints)
        grid: dict[str, list[Any]] = dict(grid_of(self.estimator, self.C, self.graph_weight))
        grid["n_components"] = self._dimensions()
        for name, values in grid.items():
            if not values:
                raise InvalidParameterError(f"{name} has no value to try; give one, or None.")
            for value in values:
                member = copy(self.estimator)
                setattr(member, name, value)
                check_parameters(member, {name: constraints[name]})

    def _head(self) -> Any:
        return KNeighborsClassifier(1) if self.classifier is None else self.classifier

    def _pipeline(self) -> Pipeline:
        return Pipeline([("subspace", self.estimator), ("classifier", self._head())])

    def _dimensions(self) -> list[Any]:
        if self.n_components is None:
            return list(range(1, int(self.estimator.n_components) + 1))
        return listed("n_components", self.n_components)

    def __sklearn_clone__(self) -> Self:
        """Return an unfitted copy that shares the client: a connection cannot be copied."""
        bare = copy(self)
        bare.client = None
        cloned: Self = super(SubspaceSearchCV, bare).__sklearn_clone__()
        cloned.client = self.client
        return cloned

    def __getstate__(self) -> dict[str, Any]:
        """Leave the connection behind; the address of a cluster is kept."""
        state: dict[str, Any] = dict(super().__getstate__())
        if not isinstance(self.client, str):
            state["client"] = None
        return state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        head, subspace = get_tags(self._head()), get_tags(self.estimator)
        tags.estimator_type = head.estimator_type
        tags.classifier_tags = deepcopy(head.classifier_tags)
        if tags.classifier_tags is not None:
            tags.classifier_tags.multi_label = False  # margins are those of classes
        tags.regressor_tags = deepcopy(head.regressor_tags)
        tags.transformer_tags = deepcopy(subspace.transformer_tags)
        tags.target_tags.required = True
        tags.input_tags.pairwise = subspace.input_tags.pairwise
        tags.input_tags.sparse = subspace.input_tags.sparse
        return tags
