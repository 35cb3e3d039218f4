"""What the searches have in common: folds, scores, the choice, and a best model for all rows.

What they report is the table of scikit-learn's GridSearchCV.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import partial
from math import inf
from numbers import Integral, Real
from typing import Any, Self, TypeVar, cast

import numpy as np
from scipy.stats import rankdata
from sklearn.base import BaseEstimator, MetaEstimatorMixin, is_classifier
from sklearn.exceptions import FitFailedWarning
from sklearn.metrics import check_scoring, get_scorer
from sklearn.model_selection import check_cv
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from marginfold.errors import InvalidInputError, InvalidParameterError, MarginfoldWarning, warn
from marginfold.estimators.paths import points_of
from marginfold.executors import run_calls
from marginfold.linalg.tall import Array
from marginfold.model_selection.folds import FoldScores, Trial, score_fold
from marginfold.model_selection.rows import SearchRows
from marginfold.planner.check import check_memory
from marginfold.runtime.callbacks import FollowedFits
from marginfold.runtime.progress import report
from marginfold.runtime.threads import coordinates_of, shape_of
from marginfold.validation.parameters import Flag, atomic_fit, check_parameters, shown
from marginfold.validation.rows import refuse_lazy, taken_as_classes
from marginfold.validation.types import Labels, Rows, Weights

Method = TypeVar("Method", bound=Callable[..., Any])

SINGLE = "score"
"""The name of the only metric, as in GridSearchCV."""


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

    def fit(
        self,
        X: Rows,
        y: Labels | None = None,
        *,
        groups: Labels | None = None,
        sample_weight: Weights | None = None,
    ) -> Self:
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
            not weighted.  (From scikit-learn 1.7 on GridSearchCV gives weights that have no step's
            name to the scorer, too.)

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
                    f"{name} is an iterator, which can be read only once; give a list."
                )
        for name, values in self._candidates(rank).items():
            if not values:
                raise InvalidParameterError(
                    f"{name} has no value to try; give at least one, or None."
                )
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
    def score(self, X: Rows, y: Labels) -> float:
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


@dataclass(frozen=True)
class Scorers:
    """Scorers by name.

    Attributes
    ----------
    by_name : dict
        Callables of a fitted model, rows and labels.
    several : bool
        Whether they were given with names; else there is one, named `SINGLE`.
    see_predictions_only : bool
        Whether all of them depend on a model through its predictions (or its ``score``) only.
    """

    by_name: Mapping[str, Any]
    several: bool
    see_predictions_only: bool


def read_scorers(model: Any, scoring: Any, refit: Any) -> Scorers:
    """Return the scorers that ``scoring`` means for a model."""
    if isinstance(scoring, list | tuple | set):
        scoring = {name: name for name in scoring}
    if not isinstance(scoring, dict):
        if not (isinstance(refit, bool | np.bool_) or callable(refit)):
            raise InvalidParameterError(
                "With one metric refit must be True, False or a function of cv_results_; got "
                f"{shown(refit)}."
            )
        scorer = check_scoring(model, scoring)
        return Scorers({SINGLE: scorer}, False, _sees_predictions_only(scoring))
    if not scoring or not all(isinstance(name, str) for name in scoring):
        raise InvalidParameterError(
            f"scoring must name at least one metric, by text; got {shown(scoring)}."
        )
    if not (refit is False or callable(refit) or (isinstance(refit, str) and refit in scoring)):
        raise InvalidParameterError(
            f"With several metrics refit must be one of {sorted(scoring)}, a function of "
            f"cv_results_ or False; got {shown(refit)}."
        )
    by_name = {name: check_scoring(model, given) for name, given in scoring.items()}
    return Scorers(by_name, True, all(map(_sees_predictions_only, scoring.values())))


def chosen_index(refit: Any, results: Mapping[str, Any]) -> int:
    """Return the best index by a function of the results, checked."""
    index, n_points = refit(results), len(results["params"])
    if not isinstance(index, Integral) or not 0 <= int(index) < n_points:
        raise InvalidParameterError(
            f"The function refit must return an index from 0 to {n_points - 1}; got {shown(index)}."
        )
    return int(index)


def results_table(points: Sequence[dict[str, Any]], folds: Sequence[FoldScores]) -> dict[str, Any]:
    """Return the keys of ``GridSearchCV.cv_results_`` for points of the grid, in their order."""
    results: dict[str, Any] = {
        **_summary("fit_time", [fold.fit_seconds for fold in folds]),
        **_summary("score_time", [fold.score_seconds for fold in folds]),
    }
    for name in points[0]:
        values = np.array([point[name] for point in points])
        results[f"param_{name}"] = np.ma.MaskedArray(values, mask=np.zeros(len(values), dtype=bool))
    results["params"] = list(points)
    for name in folds[0].test:
        results |= _scores(f"test_{name}", [fold.test[name] for fold in folds])
        results[f"rank_test_{name}"] = _ranks(results[f"mean_test_{name}"])
        if folds[0].train:
            results |= _scores(f"train_{name}", [fold.train[name] for fold in folds])
    return results


def check_failures(folds: Sequence[FoldScores], n_points: int, error_score: Any) -> None:
    """Warn of fits that failed; raise if none succeeded."""
    errors = Counter(error for fold in folds for error in fold.errors)
    failed, tried = errors.total(), n_points * len(folds)
    if not failed:
        return
    texts = "\n".join(
        f"{count} fits failed with this error:\n{text}" for text, count in errors.items()
    )
    if failed == tried:
        raise InvalidInputError(
            f"All {tried} fits failed, so there is nothing to choose from. Correct what the errors "
            f"say; error_score='raise' stops at the first of them.\n{texts}"
        )
    warn(
        f"{failed} of {tried} fits failed; their score is set to {error_score}. "
        f"error_score='raise' stops at the first of them.\n{texts}",
        FitFailedWarning,
    )


def _scores(key: str, tables: Sequence[Array]) -> dict[str, Array]:
    splits = {f"split{i}_{key}": table.ravel() for i, table in enumerate(tables)}
    summary = _summary(key, tables)
    if not np.isfinite(summary[f"mean_{key}"]).all():
        shown = summary[f"mean_{key}"]
        warn(f"Some {key.split('_')[0]} scores are not finite: {shown}", MarginfoldWarning)
    return splits | summary


def _summary(key: str, tables: Sequence[Array]) -> dict[str, Array]:
    values = np.stack([table.ravel() for table in tables], axis=1)
    means = np.average(values, axis=1)
    spread = np.sqrt(np.average((values - means[:, None]) ** 2, axis=1))
    return {f"mean_{key}": means, f"std_{key}": spread}


def _ranks(means: Array) -> Array:
    """Return 1 for the largest mean; equal means share the better rank, NaN is last."""
    if np.isnan(means).all():
        return np.ones(len(means), dtype=np.int32)
    worst = np.nanmin(means) - 1.0
    return rankdata(-np.where(np.isnan(means), worst, means), method="min").astype(np.int32)


def _sees_predictions_only(scoring: Any) -> bool:
    return scoring is None or isinstance(scoring, (str, type(get_scorer("accuracy"))))
