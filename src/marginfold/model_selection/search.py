"""What the searches have in common: folds, scores, the choice, and a best model for all rows."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from functools import partial
from math import inf
from numbers import Real
from typing import Any, Self, TypeVar, cast

import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin, is_classifier
from sklearn.model_selection import check_cv
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from marginfold.errors import InvalidInputError, InvalidParameterError
from marginfold.estimators.paths import points_of
from marginfold.executors import run_calls
from marginfold.linalg.tall import Array
from marginfold.model_selection.folds import FoldScores, Trial, score_fold
from marginfold.model_selection.results import (
    SINGLE,
    Scorers,
    check_failures,
    chosen_index,
    read_scorers,
    results_table,
)
from marginfold.model_selection.rows import SearchRows
from marginfold.planner.check import check_memory
from marginfold.runtime.callbacks import FollowedFits
from marginfold.runtime.progress import report
from marginfold.runtime.threads import coordinates_of, shape_of
from marginfold.validation.parameters import Flag, atomic_fit, check_parameters, shown
from marginfold.validation.rows import refuse_lazy, taken_as_classes

Method = TypeVar("Method", bound=Callable[..., Any])


def if_best_has(method: str, step: str | None = None) -> Callable[[Method], Method]:
    """Offer a method if the best model, or a step of it, has it (before a fit: the given one)."""

    def check(search: Any) -> bool:
        if not search.refit:
            raise AttributeError(
                f"{type(search).__name__}.{method} needs the best model fitted to all rows; got "
                "refit=False. Use refit=True, or fit a model with best_params_."
            )
        model = getattr(search, "best_estimator_", None) or search._model()
        owner = model if step is None else model.named_steps[step]
        return getattr(owner, method) is not None  # its own error says why it is missing

    return cast(Callable[[Method], Method], available_if(check))


class SharedSearch(FollowedFits, MetaEstimatorMixin, BaseEstimator, ABC):
    """A search whose candidates share their fits on every fold; a subclass says which they are."""

    estimator: Any
    cv: Any
    scoring: Any
    refit: Any
    n_jobs: int | None
    client: Any
    error_score: Any
    return_train_score: bool

    best_estimator_: Any
    scorer_: Any
    multimetric_: bool

    @abstractmethod
    def _check(self, rank: float) -> None:
        """Refuse parameters out of range before anything is fitted to rows of this rank."""

    @abstractmethod
    def _model(self) -> Any:
        """Return the model before it is fitted."""

    @abstractmethod
    def _trial(self, scorers: Scorers, rank: float) -> Trial:
        """Return what is tried on every fold."""

    @abstractmethod
    def _candidates(self, rank: float) -> dict[str, list[Any]]:
        """Return the values of every parameter that varies, by name."""

    @abstractmethod
    def _fit_best(self, rows: SearchRows) -> Any:
        """Return the best model, fitted to all rows."""

    def fit(self, X: Any, y: Any = None, *, groups: Any = None, sample_weight: Any = None) -> Self:
        """Score every point of the grid on every fold, and fit the best to all rows.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
        y : array of shape (n_samples,)
            Class labels of any type.
        groups : array of shape (n_samples,), optional
            For splitters that need them.
        sample_weight : array of shape (n_samples,) or float, optional
            Given to the estimator, and to a classifier after it if that takes weights.  Scores are
            not weighted.

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
        self._check_search()
        n, d = shape_of(X) if hasattr(X, "shape") else (np.asarray(y).size, inf)
        rank = coordinates_of(self.estimator, n, d)
        self._check(rank)
        if self.refit:  # the fit to all rows is the largest: better refused before the folds
            check_memory(self.estimator, X)
        scorers = read_scorers(self._model(), self.scoring, self.refit)
        trial = self._trial(scorers, rank)
        rows = SearchRows.read(
            X,
            y,
            sample_weight,
            unlabeled=getattr(self.estimator, "unlabeled", None),
            pairwise=get_tags(self.estimator).input_tags.pairwise,
        )
        with taken_as_classes():
            cv = check_cv(self.cv, rows.labels[rows.known], classifier=is_classifier(self))
            folds = list(rows.folds(cv, groups))
        points = points_of(self._candidates(rank))
        scores = self._score(trial, rows, folds)
        check_failures(scores, len(points), self.error_score)
        self.n_splits_ = len(folds)
        self.cv_results_ = results_table(points, scores)
        self.multimetric_ = scorers.several
        self.scorer_ = dict(scorers.by_name) if scorers.several else scorers.by_name[SINGLE]
        if self.refit or not self.multimetric_:
            self._choose()
        if self.refit:
            self._refit(rows)

    def _check_search(self) -> None:
        check_parameters(self, {"return_train_score": Flag()})
        if not isinstance(self.error_score, Real) and self.error_score != "raise":
            raise InvalidParameterError(
                f"error_score must be 'raise' or a number; got {shown(self.error_score)}."
            )

    def _check_grid(
        self, constraints: Mapping[str, Any], names: Sequence[str], rank: float
    ) -> None:
        """Refuse values that the estimator would refuse; constraints are its own."""
        for name in names:
            if isinstance(getattr(self, name), Iterator):
                raise InvalidParameterError(
                    f"{name} is an iterator, which the first look at it uses up; give a list."
                )
        for name, values in self._candidates(rank).items():
            if not values:
                raise InvalidParameterError(f"{name} has no value to try; give one, or None.")
            for value in values if name in constraints else ():
                member = copy(self.estimator)
                setattr(member, name, value)
                check_parameters(member, {name: constraints[name]})

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

    def _refit(self, rows: SearchRows) -> None:
        begin = time.perf_counter()
        self.best_estimator_ = self._fit_best(rows)
        report("best fit", 1, 1)  # cancelled meanwhile, it has fewer components than the best
        self.refit_time_ = time.perf_counter() - begin
        for name in ("n_features_in_", "feature_names_in_", "classes_"):
            if hasattr(self.best_estimator_, name):
                setattr(self, name, getattr(self.best_estimator_, name))

    def _best(self) -> Any:
        check_is_fitted(self)
        return self.best_estimator_

    @if_best_has("predict")
    def score(self, X: Any, y: Any) -> float:
        """Return the score of the best model, by ``scoring`` (of several: by ``refit``)."""
        best = self._best()
        if self.multimetric_ and callable(self.refit):
            raise InvalidParameterError(
                f"{type(self).__name__}.score does not know which of {sorted(self.scorer_)} is "
                "meant: refit is a function. Call scorer_[name](best_estimator_, X, y)."
            )
        scorer: Any = self.scorer_[self.refit] if self.multimetric_ else self.scorer_
        return float(scorer(best, X, y))

    def __sklearn_clone__(self) -> Self:
        """Return an unfitted copy that shares the client: a connection cannot be copied."""
        bare = copy(self)
        bare.client = None
        cloned: Self = super(SharedSearch, bare).__sklearn_clone__()
        cloned.client = self.client
        return cloned

    def __getstate__(self) -> dict[str, Any]:
        """Leave the connection behind; the address of a cluster is kept."""
        state: dict[str, Any] = dict(super().__getstate__())
        if not isinstance(self.client, str):
            state["client"] = None
        return state
