"""Rows and scores of one fold: one shared fit, then every number of components of every member."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import partial
from numbers import Real
from traceback import format_exc
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.utils import column_or_1d, indexable
from sklearn.utils.validation import has_fit_parameter

from marginfold.errors import (
    CancelledError,
    InvalidInputError,
    InvalidParameterError,
    MarginfoldWarning,
    warn,
)
from marginfold.estimators.inputs import Prepared
from marginfold.estimators.paths import fit_members, fit_prepared, members_of
from marginfold.geometry.one_vs_rest import resolved_schedule
from marginfold.linalg.tall import Array
from marginfold.model_selection.nested_knn import finds_nested, nested_knn
from marginfold.validation.parameters import shown
from marginfold.validation.rows import check_weights, is_unlabelled, read_new_rows

Scores = dict[str, Array]
"""By metric, the scores of all members (rows) with all numbers of components (columns)."""


@dataclass(frozen=True)
class FoldRows:
    """Rows to fit on and rows to score on.

    Attributes
    ----------
    X, y, weights
        Training rows as the subspace takes them, unlabelled ones included; weights may be None.
    known : array of bool
        Which training rows have a label: the classifier is given these.
    labels : array
        The labels of these rows.
    X_test, labels_test
        Rows to score on, all labelled.
    """

    X: Any
    y: Array
    weights: Array | None
    known: Array
    labels: Array
    X_test: Any
    labels_test: Array

    @property
    def known_weights(self) -> Array | None:
        """The weights of the labelled training rows."""
        return None if self.weights is None else self.weights[self.known]


@dataclass(frozen=True)
class SearchRows:
    """All rows of a search.

    Attributes
    ----------
    X : array, sparse matrix or data frame
        Rows, or for a precomputed kernel (``pairwise``) the square matrix.
    y : array
        Labels as the subspace takes them, with the marker of unlabelled rows.
    labels : array
        Labels as the classifier takes them; without meaning where a row has none.
    known : array of bool
        Which rows have a label.
    weights : array or None
    pairwise : bool
    """

    X: Any
    y: Array
    labels: Array
    known: Array
    weights: Array | None
    pairwise: bool

    @classmethod
    def read(
        cls, X: Any, y: Any, sample_weight: Any, *, unlabeled: Any, pairwise: bool
    ) -> SearchRows:
        """Check lengths and labels; what else rows need is checked by the fit of each fold."""
        X, y, sample_weight = indexable(X, y, sample_weight)
        y = column_or_1d(y, warn=True)
        known = ~is_unlabelled(y, unlabeled)
        if not known.any():
            raise InvalidInputError(
                f"All {len(y)} rows are unlabelled (y is {unlabeled!r}); a search needs labelled "
                "rows to score on."
            )
        weights = None if sample_weight is None else check_weights(sample_weight, len(y))
        return cls(X, y, _labels(y, known), known, weights, pairwise)

    def folds(self, cv: Any, groups: Any) -> Iterator[tuple[Array, Array]]:
        """Yield row numbers to fit and to score on.

        Only labelled rows are split; unlabelled rows are fitted on in every fold.
        """
        labelled, unlabelled = np.flatnonzero(self.known), np.flatnonzero(~self.known)
        if not len(unlabelled):
            yield from cv.split(self.X, self.y, groups)
            return
        X = take(self.X, labelled, labelled if self.pairwise else None)
        groups = None if groups is None else take(groups, labelled)
        for train, test in cv.split(X, self.labels[labelled], groups):
            yield np.concatenate([labelled[train], unlabelled]), labelled[test]

    def part(self, train: Array, test: Array) -> FoldRows:
        """Return the rows of one fold."""
        columns = train if self.pairwise else None
        return FoldRows(
            X=take(self.X, train, columns),
            y=self.y[train],
            weights=None if self.weights is None else self.weights[train],
            known=self.known[train],
            labels=self.labels[train][self.known[train]],
            X_test=take(self.X, test, columns),
            labels_test=self.labels[test],
        )

    def whole(self) -> FoldRows:
        """Return all rows to fit on, and none to score on."""
        none = np.zeros(0, dtype=np.intp)
        labels = self.labels[self.known]
        return FoldRows(self.X, self.y, self.weights, self.known, labels, None, labels[none])


@dataclass(frozen=True)
class Trial:
    """What is tried on every fold.

    Attributes
    ----------
    estimator : MMDA, LSVA or WSVDA
    grid : dict
        Values of C and of graph_weight.
    dimensions : tuple of int
        Numbers of components.
    classifier : object
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
    classifier: Any
    scorers: Mapping[str, Any]
    needs_pipeline: bool
    error_score: Any
    return_train_score: bool


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
    """Fit on the first rows of the fold and score on the second."""
    part = rows.part(*fold)
    n_members = int(np.prod([len(values) for values in trial.grid.values()]))
    shape = (n_members, len(trial.dimensions))
    fit_seconds, score_seconds = np.zeros(shape), np.zeros(shape)
    test = {name: np.full(shape, np.nan) for name in trial.scorers}
    train = {name: np.full(shape, np.nan) for name in trial.scorers if trial.return_train_score}
    errors = []
    for at, model in _models(trial, part):
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
    if not hasattr(subspace, "directions_"):
        subspace.fit(part.X, part.y, sample_weight=part.weights)
    fit_classifier(classifier, take(subspace.transform(part.X), np.flatnonzero(part.known)), part)
    return Pipeline([("subspace", subspace), ("classifier", classifier)])


def fit_classifier(classifier: Any, images: Any, part: FoldRows) -> Any:
    """Fit a classifier on images of the labelled rows, with weights if it takes any."""
    if part.weights is not None and has_fit_parameter(classifier, "sample_weight"):
        return classifier.fit(images, part.labels, sample_weight=part.known_weights)
    return classifier.fit(images, part.labels)


def _models(trial: Trial, part: FoldRows) -> Iterator[tuple[tuple[int, int], _Model]]:
    """Yield a model for every member and dimension, with its place in the tables."""
    for columns in _rounds(trial, part):
        begin = time.perf_counter()
        dimensions = [trial.dimensions[column] for column in columns]
        members = members_of(trial.estimator, {**trial.grid, "n_components": [max(dimensions)]})
        errors, shared = _fit(members, part, trial.error_score)
        fitted = [member for member, error in zip(members, errors, strict=True) if error is None]
        images = [] if trial.needs_pipeline else _images(fitted, part, trial.error_score)
        seconds = (time.perf_counter() - begin) / (len(members) * len(columns))
        made = iter(images)
        for m, (member, error) in enumerate(zip(members, errors, strict=True)):
            if error is not None:
                models = [_Model(seconds, error=error)] * len(columns)
            elif not images:
                sizes = [_of_size(member, k) for k in dimensions]
                models = [_pipeline_model(trial, part, alone, seconds) for alone in sizes]
            else:
                fit = _Fit(member, shared, *next(made))
                models = _head_models(trial, part, fit, dimensions, seconds)
            yield from (((m, c), model) for c, model in zip(columns, models, strict=True))


def _rounds(trial: Trial, part: FoldRows) -> list[list[int]]:
    """Return the columns of the numbers of components that share a fit: those of the same tasks."""
    if trial.needs_pipeline:
        return [[column] for column in range(len(trial.dimensions))]
    n_classes = len(np.unique(part.labels))
    rounds: dict[str, list[int]] = {}
    for column, k in enumerate(trial.dimensions):
        schedule = resolved_schedule(trial.estimator.tasks, n_classes, int(k))
        rounds.setdefault(schedule, []).append(column)
    return list(rounds.values())


def _fit(
    members: list[Any], part: FoldRows, error_score: Any
) -> tuple[list[str | None], Prepared | None]:
    """Fit members side by side; if one of them cannot be fitted, each by itself.

    Returns the error of each member, and what they share if they were fitted side by side.
    """
    try:
        return [None] * len(members), fit_members(members, part.X, part.y, part.weights)
    except CancelledError:
        raise
    except Exception:
        fits = (partial(member.fit, part.X, part.y, part.weights) for member in members)
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


def _pipeline_model(trial: Trial, part: FoldRows, member: Any, seconds: float) -> _Model:
    """Return the pipeline of a member, which is fitted first if it is not yet."""
    begin = time.perf_counter()
    fit = partial(fit_pipeline, member, clone(trial.classifier), part)
    model, error = _attempt(fit, trial.error_score)
    seconds += time.perf_counter() - begin
    X_train = take(part.X, np.flatnonzero(part.known)) if trial.return_train_score else None
    return _Model(seconds, model, model, part.X_test, X_train, error)


def _head_models(
    trial: Trial, part: FoldRows, fit: _Fit, dimensions: Sequence[int], seconds: float
) -> list[_Model]:
    """Return the classifier on the leading columns of images, for each number of them."""
    found = [min(k, fit.train.shape[1]) for k in dimensions]
    if not finds_nested(trial.classifier, len(fit.train)):
        return [_classifier_model(trial, part, fit.train, fit.test, k, seconds) for k in found]
    begin = time.perf_counter()
    on_test = nested_knn(trial.classifier, fit.train, part.labels, fit.test, found)
    seconds += (time.perf_counter() - begin) / len(found)
    on_train = on_test
    if trial.return_train_score:
        on_train = nested_knn(trial.classifier, fit.train, part.labels, fit.train, found)
    models = []
    for wanted, new, old in zip(dimensions, on_test, on_train, strict=True):
        if new is None or old is None:
            models.append(_alone_model(trial, part, fit, wanted, seconds))
        else:
            models.append(_Model(seconds, new, old, new.rows, old.rows))
    return models


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
    fit = partial(fit_classifier, clone(trial.classifier), train, part)
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


def take(X: Any, rows: Array, columns: Array | None = None) -> Any:
    """Return some rows (and columns) of an array, sparse matrix or data frame."""
    if hasattr(X, "iloc"):
        return X.iloc[rows] if columns is None else X.iloc[rows, columns]
    if scipy.sparse.issparse(X):
        X = scipy.sparse.csr_array(X)
    part = (X if hasattr(X, "shape") else np.asarray(X))[rows]
    return part if columns is None else part[:, columns]


def _labels(y: Array, known: Array) -> Array:
    """Return labels of one type: a marker such as NaN may have made them objects."""
    if known.all():
        return y
    some = np.array(y[known].tolist())
    labels = np.full(len(y), some[0])
    labels[known] = some
    return labels
