"""Rows and scores of one fold: fits that share what they can, then every candidate's score."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import partial
from numbers import Real
from traceback import format_exc
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from marginfold.errors import (
    CancelledError,
    ExhaustedWarning,
    InvalidParameterError,
    MarginfoldWarning,
    warn,
)
from marginfold.estimators.direct_embedding import DirectEmbedding
from marginfold.estimators.inputs import Prepared
from marginfold.estimators.margin_subspace import MarginSubspace
from marginfold.estimators.paths import MarginEstimator, fit_members, fit_prepared, members_of
from marginfold.estimators.projection import Projection
from marginfold.geometry.one_vs_rest import resolved_schedule
from marginfold.linalg.tall import Array
from marginfold.model_selection.nested_knn import (
    PredictedKNN,
    finds_nested,
    nested_knn,
    nested_votes,
)
from marginfold.model_selection.rows import FoldRows, SearchRows, take
from marginfold.validation.parameters import shown
from marginfold.validation.rows import read_new_rows, taken_as_classes

Scores = dict[str, Array]
"""By metric, the scores of all members with all numbers of components and all heads."""

Place = tuple[int, int, int]
"""A member, a number of components and a head, by their positions."""


@dataclass(frozen=True)
class Trial:
    """What is tried on every fold.

    Attributes
    ----------
    estimator : transformer, or a classifier that answers by itself
    grid : dict
        Values of C and of graph_weight.
    dimensions : tuple of int
        Numbers of components; none for a classifier.
    heads : tuple of classifiers
        What is fitted to the components; none for a classifier.
    by_votes : bool
        Whether the heads are `NeighborsClassifier`, whose votes are counted for all at once.
    scorers : dict
        Callables of a fitted model, rows and labels, by name.
    needs_pipeline : bool
        Whether a scorer may look at more than predictions: then every number of components is
        fitted by itself and scored as a pipeline.
    error_score : float or "raise"
    return_train_score : bool
    """

    estimator: Any
    grid: dict[str, list[float]]
    dimensions: tuple[int, ...]
    heads: tuple[Any, ...]
    by_votes: bool
    scorers: Mapping[str, Any]
    needs_pipeline: bool
    error_score: Any
    return_train_score: bool

    @property
    def shape(self) -> tuple[int, int, int]:
        """Numbers of members, of dimensions and of heads: the candidates in their order."""
        n_members = int(np.prod([len(values) for values in self.grid.values()]))
        return n_members, max(len(self.dimensions), 1), max(len(self.heads), 1)


@dataclass(frozen=True)
class FoldScores:
    """The scores of one fold and the seconds that they took; errors of fits that failed."""

    test: Scores
    train: Scores
    fit_seconds: Array
    score_seconds: Array
    errors: list[str]


@dataclass(frozen=True)
class _Model:
    """A model to score on rows to come and on its training rows, or why there is none."""

    seconds: float
    on_test: Any = None
    on_train: Any = None
    X_test: Any = None
    X_train: Any = None
    error: str | None = None


@dataclass(frozen=True)
class _Fit:
    """A member, what was prepared for all, and the images of its training and of its test rows."""

    member: Any
    shared: Prepared | None
    train: Array
    test: Array


def score_fold(fold: tuple[Array, Array], *, trial: Trial, rows: SearchRows) -> FoldScores:
    """Fit on the first rows of the fold and score on the second.

    Numbers of components that a fold does not have are tried all the same, and no news: the fit to
    all rows warns if the chosen number is not there.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExhaustedWarning)
        return _scored(rows.part(*fold), trial)


def _scored(part: FoldRows, trial: Trial) -> FoldScores:
    shape = trial.shape
    fit_seconds, score_seconds = np.zeros(shape), np.zeros(shape)
    test = {name: np.full(shape, np.nan) for name in trial.scorers}
    train = {name: np.full(shape, np.nan) for name in trial.scorers if trial.return_train_score}
    errors = []
    for at, model in _models(trial, part) if trial.heads else _classifiers(trial, part):
        begin = time.perf_counter()
        if model.error is not None:
            errors.append(model.error)
        for name, scorer in trial.scorers.items():
            score = partial(_score, scorer, trial.error_score, model.error)
            test[name][at] = score(model.on_test, model.X_test, part.labels_test)
            score_seconds[at] += time.perf_counter() - begin
            if train:
                train[name][at] = score(model.on_train, model.X_train, part.labels)
            begin = time.perf_counter()
        fit_seconds[at] = model.seconds
    return FoldScores(test, train, fit_seconds, score_seconds, errors)


def fit_pipeline(subspace: Any, classifier: Any, part: FoldRows) -> Pipeline:
    """Return the pipeline of a subspace, fitted here if it is not yet, and a classifier in it.

    The classifier is given the labelled rows only.
    """
    if not _is_fitted(subspace):
        fit_alone(subspace, part)
    fit_classifier(classifier, take(subspace.transform(part.X), np.flatnonzero(part.known)), part)
    return Pipeline([("subspace", subspace), ("classifier", classifier)])


def fit_alone(estimator: Any, part: FoldRows) -> Any:
    """Fit an estimator on the training rows, with their weights if there are any."""
    if part.weights is None:
        return estimator.fit(part.X, part.y)
    return estimator.fit(part.X, part.y, sample_weight=part.weights)


def _is_fitted(estimator: Any) -> bool:
    try:
        check_is_fitted(estimator)
    except NotFittedError:
        return False
    return True


def fit_classifier(classifier: Any, images: Any, part: FoldRows) -> Any:
    """Fit a classifier on images of the labelled rows, with weights if it takes any."""
    with taken_as_classes():
        if part.weights is not None and has_fit_parameter(classifier, "sample_weight"):
            return classifier.fit(images, part.labels, sample_weight=part.known_weights)
        return classifier.fit(images, part.labels)


def _classifiers(trial: Trial, part: FoldRows) -> Iterator[tuple[Place, _Model]]:
    """Yield every member, which is a classifier itself."""
    begin = time.perf_counter()
    members = members_of(trial.estimator, trial.grid)
    errors, _ = _fit(members, part, trial.error_score)
    seconds = (time.perf_counter() - begin) / len(members)
    known = np.flatnonzero(part.known)
    X_train = take(part.X, known) if trial.return_train_score else None
    for m, (member, error) in enumerate(zip(members, errors, strict=True)):
        yield (m, 0, 0), _Model(seconds, member, member, part.X_test, X_train, error)


def _models(trial: Trial, part: FoldRows) -> Iterator[tuple[Place, _Model]]:
    """Yield a model for every member, dimension and head, with its place in the tables."""
    for columns in _rounds(trial, part):
        begin = time.perf_counter()
        dimensions = [trial.dimensions[column] for column in columns]
        members = members_of(trial.estimator, {**trial.grid, "n_components": [max(dimensions)]})
        errors, shared = _fit(members, part, trial.error_score)
        fitted = [member for member, error in zip(members, errors, strict=True) if error is None]
        images = [] if trial.needs_pipeline else _images(fitted, part, trial.error_score)
        seconds = (time.perf_counter() - begin) / (len(members) * len(columns) * len(trial.heads))
        made = iter(images)
        places = [(c, h) for c in columns for h in range(len(trial.heads))]
        for m, (member, error) in enumerate(zip(members, errors, strict=True)):
            if error is not None:
                models = [_Model(seconds, error=error)] * len(places)
            elif not images:
                models = [
                    _pipeline_model(trial, part, _of_size(member, k), head, seconds)
                    for k in dimensions
                    for head in trial.heads
                ]
            else:
                fit = _Fit(member, shared, *next(made))
                models = _head_models(trial, part, fit, dimensions, seconds)
            yield from (((m, *place), one) for place, one in zip(places, models, strict=True))


def _rounds(trial: Trial, part: FoldRows) -> list[list[int]]:
    """Return the columns of the numbers of components that share a fit.

    Of our own transformers the first k components are those of a fit with k; margins of the same
    tasks only.
    """
    every = range(len(trial.dimensions))
    if trial.needs_pipeline or not isinstance(trial.estimator, Projection | DirectEmbedding):
        return [[column] for column in every]
    if not isinstance(trial.estimator, MarginSubspace):
        return [list(every)]
    rounds: dict[str, list[int]] = {}
    for column, k in enumerate(trial.dimensions):
        schedule = resolved_schedule(trial.estimator.tasks, part.n_classes, int(k))
        rounds.setdefault(schedule, []).append(column)
    return list(rounds.values())


def _fit(
    members: list[Any], part: FoldRows, error_score: Any
) -> tuple[list[str | None], Prepared | None]:
    """Fit members side by side; if one of them cannot be fitted, each by itself.

    Returns the error of each member, and what they share if they were fitted side by side.
    """
    if isinstance(members[0], MarginEstimator):
        try:
            return [None] * len(members), fit_members(members, part.X, part.y, part.weights)
        except CancelledError:
            raise
        except Exception:
            if len(members) == 1 and isinstance(error_score, str):
                raise
    fits = (partial(fit_alone, member, part) for member in members)
    return [_attempt(fit, error_score)[1] for fit in fits], None


def _attempt(work: Callable[[], Any], error_score: Any) -> tuple[Any, str | None]:
    """Return a result, or the text of the error if errors have a score."""
    try:
        return work(), None
    except CancelledError:
        raise
    except Exception:
        if isinstance(error_score, str):
            raise
        return None, format_exc()


def _images(members: Sequence[Any], part: FoldRows, error_score: Any) -> list[tuple[Array, Array]]:
    """Return the images of all members; none if rows to score on cannot be mapped.

    Then it is left to the scorers to fail, one pipeline after the other.
    """
    found, _ = _attempt(partial(_all_images, members, part), error_score)
    return found or []


def _of_size(member: Any, k: int) -> Any:
    """Return a member with so many components: itself, or one that is not fitted yet."""
    if int(member.n_components) == k:
        return member
    return clone(member).set_params(n_components=k)


def _all_images(members: Sequence[Any], part: FoldRows) -> list[tuple[Array, Array]]:
    """Return the images of the labelled training rows and of the test rows, for each member."""
    known = np.flatnonzero(part.known)
    if not isinstance(members[0], Projection):
        train = [take(member.transform(part.X), known) for member in members]
        return list(zip(train, [member.transform(part.X_test) for member in members], strict=True))
    pairs = []
    for shared in _by_feature_map(members):
        splits = np.cumsum([member.n_components_ for member in shared])[:-1]
        directions = np.hstack([member._scaled_directions() for member in shared])
        train, test = (
            shared[0].feature_map_.images(read_new_rows(shared[0], X), directions)
            for X in (part.X, part.X_test)
        )
        pairs += list(
            zip(np.split(train[known], splits, 1), np.split(test, splits, 1), strict=True)
        )
    return pairs


def _by_feature_map(members: Sequence[Any]) -> list[list[Any]]:
    """Return members that were fitted together in one list: one projection serves them all."""
    together: dict[int, list[Any]] = {}
    for member in members:
        together.setdefault(id(member.feature_map_), []).append(member)
    return list(together.values())


def _pipeline_model(trial: Trial, part: FoldRows, member: Any, head: Any, seconds: float) -> _Model:
    """Return the pipeline of a member, which is fitted first if it is not yet."""
    begin = time.perf_counter()
    fit = partial(fit_pipeline, member, clone(head), part)
    model, error = _attempt(fit, trial.error_score)
    seconds += time.perf_counter() - begin
    X_train = take(part.X, np.flatnonzero(part.known)) if trial.return_train_score else None
    return _Model(seconds, model, model, part.X_test, X_train, error)


def _head_models(
    trial: Trial, part: FoldRows, fit: _Fit, dimensions: Sequence[int], seconds: float
) -> list[_Model]:
    """Return the classifiers on the leading columns of images, for each number of them."""
    found = [min(k, fit.train.shape[1]) for k in dimensions]
    if trial.by_votes:
        return _vote_models(trial, part, fit, found, seconds)
    (head,) = trial.heads
    if not finds_nested(head, len(fit.train)):
        return [_classifier_model(trial, part, fit.train, fit.test, k, seconds) for k in found]
    begin = time.perf_counter()
    on_test = nested_knn(head, fit.train, part.labels, fit.test, found)
    seconds += (time.perf_counter() - begin) / len(found)
    on_train = on_test
    if trial.return_train_score:
        on_train = nested_knn(head, fit.train, part.labels, fit.train, found)
    models = []
    for wanted, new, old in zip(dimensions, on_test, on_train, strict=True):
        if new is None or old is None:
            models.append(_alone_model(trial, part, fit, wanted, seconds))
        else:
            models.append(_Model(seconds, new, old, new.rows, old.rows))
    return models


def _vote_models(
    trial: Trial, part: FoldRows, fit: _Fit, found: Sequence[int], seconds: float
) -> list[_Model]:
    """Return the votes of all numbers of neighbors, found by one search for each number of columns.

    Which of several rows that are equally near counts is a matter of their order, not of rounding,
    so that no fit has to be repeated.
    """
    begin = time.perf_counter()
    on_test = _votes(trial, part, fit.train, fit.test, found)
    seconds += (time.perf_counter() - begin) / len(on_test)
    on_train = on_test
    if trial.return_train_score:
        on_train = _votes(trial, part, fit.train, fit.train, found)
    return [
        _Model(seconds, new, old, new.rows, old.rows)
        for new, old in zip(on_test, on_train, strict=True)
    ]


def _votes(
    trial: Trial, part: FoldRows, train: Array, rows: Array, found: Sequence[int]
) -> list[PredictedKNN]:
    classes, codes = np.unique(part.labels, return_inverse=True)
    distinct = sorted(set(found))
    counts = [min(int(head.n_neighbors), len(train)) for head in trial.heads]
    votes = nested_votes(train, codes, rows, counts, distinct)
    return [
        PredictedKNN(head, train[:, :k], part.labels, rows[:, :k], classes[own.codes[row]])
        for k, row in ((k, distinct.index(k)) for k in found)
        for head, own in zip(trial.heads, votes, strict=True)
    ]


def _alone_model(trial: Trial, part: FoldRows, fit: _Fit, k: int, seconds: float) -> _Model:
    """Return the classifier after a fit of this member with k components and nothing beside it.

    Rows on a margin have equal images: which of them is nearest is decided by the rounding of that
    very fit.
    """
    begin = time.perf_counter()
    alone = copy(fit.member)
    alone.n_components = k
    if fit.shared is None:
        alone.fit(part.X, part.y, part.weights)
    else:
        fit_prepared([alone], fit.shared)
    train, test = _all_images([alone], part)[0]
    seconds += time.perf_counter() - begin
    return _classifier_model(trial, part, train, test, train.shape[1], seconds)


def _classifier_model(
    trial: Trial, part: FoldRows, train: Array, test: Array, k: int, seconds: float
) -> _Model:
    begin = time.perf_counter()
    train, test = (np.ascontiguousarray(images[:, :k]) for images in (train, test))
    fit = partial(fit_classifier, clone(trial.heads[0]), train, part)
    model, error = _attempt(fit, trial.error_score)
    return _Model(seconds + time.perf_counter() - begin, model, model, test, train, error)


def _score(
    scorer: Any, error_score: Any, error: str | None, model: Any, X: Any, labels: Array
) -> float:
    """Return what the scorer says, or the score of an error."""
    if error is not None:
        return float(error_score)
    score, failure = _attempt(partial(scorer, model, X, labels), error_score)
    if failure is not None:
        warn(
            f"Scoring failed; the score on this fold is set to {error_score}. The error:\n"
            f"{failure}",
            MarginfoldWarning,
        )
        return float(error_score)
    if isinstance(score, np.ndarray | np.generic) and np.size(score) == 1:
        score = score.item()
    if not isinstance(score, Real):
        raise InvalidParameterError(
            f"A scorer must return one number; got {shown(score)} from {shown(scorer)}. For "
            "several metrics give scoring a list of names or a dict of scorers."
        )
    return float(score)
