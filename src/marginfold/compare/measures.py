"""What is recorded of a procedure on a fold: its error, other scores, its choice, wrong answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from scipy.stats import rankdata
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from marginfold.linalg.tall import Array
from marginfold.model_selection.search import SharedSearch
from marginfold.protocols.records import Result
from marginfold.protocols.splits import Fold

WRONG = "wrong rows"
"""The metric of the record that holds the wrong answers of a fold: its value is their number, and
its params are the numbers of the rows in the table (``rows``) and the numbers of the classes that
they were given (``said``).  Right answers need no mention, which keeps the record short."""

INSIDE = "error inside"
"""The metric of the error by which a procedure chose, that of its inner folds."""

BY_DIMENSION = "error by dimension"
"""The metric of the same for each number of components, with all else as it was chosen."""

BALANCED, AUC, LOG_LOSS = "balanced accuracy", "AUC", "log loss"
"""Further metrics: the mean share of right answers over classes; the area under the curve of each
class against the rest, in the mean; minus the mean logarithm of the true class's probability."""

NO_CHANCE = float(np.finfo(np.float64).eps)
"""A probability is at least this in the logarithm."""

Search = GridSearchCV | SharedSearch
"""Procedures that choose."""


def fit_parameters(made: Any, groups: Array | None) -> dict[str, Any]:
    """Return what the fit of a procedure is given beside rows and labels: groups, if it chooses."""
    return {"groups": groups} if groups is not None and isinstance(made, Search) else {}


def measure(
    made: Any, fold: Fold, test: Array, classes: Array, groups: Array | None = None
) -> list[Result]:
    """Fit a procedure to the training rows of a fold, and measure it on the test rows.

    Parameters
    ----------
    made : classifier
        Unfitted.
    fold : Fold
    test : array
        Numbers of the test rows in the table.
    classes : array
        All classes of the table, in order.
    groups : array, optional
        Groups of the training rows, which the folds inside keep together.
    """
    made.fit(fold.X, fold.y, **fit_parameters(made, groups))
    params, dimension = _chosen(getattr(made, "best_params_", {}))
    said = np.asarray(made.predict(fold.X_test))
    wrong = said != fold.y_test
    answers = {"rows": test[wrong].tolist(), "said": np.searchsorted(classes, said[wrong]).tolist()}
    return [
        Result("error", float(np.mean(wrong)), params, dimension),
        Result(WRONG, float(np.count_nonzero(wrong)), answers),
        *(Result(name, value) for name, value in _scores(made, fold, wrong)),
        *_inside(made),
    ]


def measure_all(made: Any, fold: Fold) -> list[Result]:
    """Return the error of every candidate on the test rows, from which the papers choose."""
    if not isinstance(made, Search):
        wrong = made.fit(fold.X, fold.y).predict(fold.X_test) != fold.y_test
        return [Result("error", float(np.mean(wrong)))]
    n = len(fold.y)
    numbers = np.arange(n + len(fold.y_test))
    X, y = np.vstack([fold.X, fold.X_test]), np.concatenate([fold.y, fold.y_test])
    search = clone(made).set_params(cv=[(numbers[:n], numbers[n:])], refit=False).fit(X, y)
    results = search.cv_results_
    return [
        Result("error", 1.0 - float(score), *_chosen(params))
        for params, score in zip(results["params"], results["mean_test_score"], strict=True)
    ]


def _chosen(params: Mapping[str, Any]) -> tuple[dict[str, Any], int | None]:
    """Return the chosen parameters, and the number of components apart from them."""
    others = {name: value for name, value in params.items() if name != "n_components"}
    dimension = params.get("n_components")
    return others, None if dimension is None else int(dimension)


def _scores(made: Any, fold: Fold, wrong: Array) -> Iterator[tuple[str, float]]:
    """Yield what else there is to say, as far as the procedure gives scores or probabilities."""
    there = np.unique(fold.y_test)
    yield BALANCED, float(np.mean([1.0 - wrong[fold.y_test == label].mean() for label in there]))
    by_class = None
    if hasattr(made, "predict_proba"):
        by_class = np.asarray(made.predict_proba(fold.X_test))
        yield LOG_LOSS, _log_loss(by_class, made.classes_, fold.y_test)
    elif hasattr(made, "decision_function"):
        values = np.asarray(made.decision_function(fold.X_test))
        by_class = np.column_stack([-values, values]) if values.ndim == 1 else values
    known = np.isin(made.classes_, there)
    if by_class is not None and known.any() and len(there) > 1:
        yield AUC, _area(by_class[:, known], fold.y_test[:, None] == made.classes_[known])


def _area(scores: Array, is_class: Array) -> float:
    """Return the area under the curve of each class against the rest, in the mean.

    It is the share of pairs, a row of the class and one of another, that the scores put in the
    right order; equal scores count half (Mann and Whitney).
    """
    inside = is_class.sum(axis=0)
    ranks = (rankdata(scores, axis=0) * is_class).sum(axis=0)
    pairs = inside * (len(scores) - inside)
    return float(np.mean((ranks - inside * (inside + 1) / 2) / pairs))


def _log_loss(probabilities: Array, classes: Array, labels: Array) -> float:
    """Return minus the mean logarithm; a class that was not trained on has no chance."""
    columns = np.searchsorted(classes, labels)
    known = np.isin(labels, classes)
    chances = np.zeros(len(labels))
    chances[known] = probabilities[np.flatnonzero(known), columns[known]]
    return float(-np.log(np.clip(chances, NO_CHANCE, None)).mean())


def _inside(made: Any) -> Iterator[Result]:
    """Yield the error of the inner folds, also for the other numbers of components."""
    if not isinstance(made, Search):
        return
    results = made.cv_results_
    params, dimension = _chosen(made.best_params_)
    yield Result(INSIDE, 1.0 - float(made.best_score_), params, dimension)
    if dimension is None:
        return
    for point, score in zip(results["params"], results["mean_test_score"], strict=True):
        others, k = _chosen(point)
        if others == params:
            yield Result(BY_DIMENSION, 1.0 - float(score), params, k)
