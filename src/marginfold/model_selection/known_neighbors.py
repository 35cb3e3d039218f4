"""A nearest-neighbor classifier whose predictions on all leading columns are made at once."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.neighbors import KNeighborsClassifier

from marginfold.linalg.tall import Array
from marginfold.model_selection.nested_knn import nested_votes

EUCLIDEAN = ("euclidean", "l2")
"""Names of the Euclidean metric."""


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
        fitted = clone(self.classifier).fit(np.ascontiguousarray(self.train), self.labels)
        return np.asarray(fitted.predict_proba(X))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy, without the checks that X and y have passed before."""
        right = self.predicted == y
        if sample_weight is None:
            return np.count_nonzero(right) / len(right)
        return float(np.average(right, weights=sample_weight))


def finds_nested(classifier: Any, n_train: int) -> bool:
    """Return whether `known_neighbors` finds the neighbors that this classifier finds."""
    if type(classifier) is not KNeighborsClassifier:
        return False
    k, weights, metric = classifier.n_neighbors, classifier.weights, classifier.metric
    names = isinstance(weights, str) and isinstance(metric, str)
    euclidean = metric in EUCLIDEAN or (metric == "minkowski" and classifier.p == 2)
    countable = isinstance(k, Integral) and 1 <= int(k) <= n_train
    return bool(names and euclidean and countable and classifier.metric_params is None)


def known_neighbors(
    classifier: Any, train: Array, labels: Array, rows: Array, dimensions: Sequence[int]
) -> list[Any]:
    """Return a classifier with the predictions on rows for each number of leading columns.

    Parameters
    ----------
    classifier : KNeighborsClassifier
        One that `finds_nested` accepts.
    train, rows : arrays of shape (n, k)
    labels : array
        Labels of the training rows.
    dimensions : sequence of int
        In any order.

    Returns
    -------
    list of fitted classifiers
        None where rounding decides which training rows are the nearest.
    """
    classes, codes = np.unique(labels, return_inverse=True)
    distinct = sorted(set(dimensions))
    n_neighbors = int(classifier.n_neighbors)
    votes = nested_votes(train, codes, rows, n_neighbors, distinct)
    counted = classifier.weights == "uniform" or n_neighbors == 1
    models: dict[int, Any] = {}
    for d, k in enumerate(distinct):
        leading = train[:, :k]
        if votes.close[d].any():
            models[k] = None
        elif counted:
            models[k] = KnownNeighbors(classifier, leading, labels, classes[votes.codes[d]])
        else:
            models[k] = clone(classifier).fit(np.ascontiguousarray(leading), labels)
    return [models[k] for k in dimensions]
