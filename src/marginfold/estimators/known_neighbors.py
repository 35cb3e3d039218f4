"""A nearest-neighbor classifier whose predictions on all leading columns are made at once."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.neighbors import KNeighborsClassifier

from marginfold.estimators.nested_neighbors import nested_votes
from marginfold.rows import Array


class KnownNeighbors(ClassifierMixin, BaseEstimator):
    """Stands for a fitted KNeighborsClassifier whose predictions on the rows at hand are known."""

    def __init__(self, classifier: Any, train: Array, labels: Array, predicted: Array) -> None:
        self.classifier = classifier
        self.train = train
        self.labels = labels
        self.predicted = predicted

    @property
    def classes_(self) -> Array:
        """The classes, sorted."""
        return np.unique(self.labels)

    def predict(self, X: Any) -> Array:
        """Return what is known; X is not looked at."""
        return self.predicted

    def predict_proba(self, X: Any) -> Array:
        """Return the shares of the votes, from scikit-learn's classifier itself."""
        fitted = clone(self.classifier).fit(self.train, self.labels)
        return np.asarray(fitted.predict_proba(X))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy, without the checks that X and y have passed before."""
        return float(np.average(self.predicted == y, weights=sample_weight))


def votes_nested(classifier: Any, n_train: int) -> bool:
    """Return whether `known_neighbors` predicts as this classifier does."""
    if type(classifier) is not KNeighborsClassifier:
        return False
    k, weights = classifier.n_neighbors, classifier.weights
    return (
        _is_euclidean(classifier)
        and isinstance(k, Integral)
        and 1 <= int(k) <= n_train
        and isinstance(weights, str)
        and (weights == "uniform" or (weights == "distance" and k == 1))
    )


def _is_euclidean(classifier: Any) -> bool:
    metric = classifier.metric
    named = isinstance(metric, str) and metric in ("euclidean", "l2", "minkowski")
    plain = metric != "minkowski" or classifier.p == 2
    return named and plain and classifier.metric_params is None


def known_neighbors(
    classifier: Any, train: Array, labels: Array, rows: Array, dimensions: Sequence[int]
) -> list[Any]:
    """Return a classifier with the predictions on rows for each number of leading columns.

    Where equally near training rows, or rounding, could decide otherwise than in scikit-learn, it
    is scikit-learn's own.

    Parameters
    ----------
    classifier : KNeighborsClassifier
        One that `votes_nested` accepts.
    train, rows : arrays of shape (n, k)
    labels : array
        Labels of the training rows.
    dimensions : sequence of int
        In any order.

    Returns
    -------
    list of fitted classifiers
    """
    classes, codes = np.unique(labels, return_inverse=True)
    distinct = sorted(set(dimensions))
    votes = nested_votes(train, codes, rows, int(classifier.n_neighbors), distinct)
    models: dict[int, Any] = {}
    for d, k in enumerate(distinct):
        leading = np.ascontiguousarray(train[:, :k])
        if votes.close[d].any():
            models[k] = clone(classifier).fit(leading, labels)
        else:
            models[k] = KnownNeighbors(classifier, leading, labels, classes[votes.codes[d]])
    return [models[k] for k in dimensions]
