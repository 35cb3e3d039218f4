"""k-nearest-neighbor classification on the leading columns, all numbers of columns at once.

Columns are nested, so the squared distances of k columns are those of k - 1 plus one column.  With
x a new row and t a training row, half of them is ``|x|^2 / 2 + |t|^2 / 2 - x't``; the first term is
the same for all training rows and is left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from scipy.linalg.blas import dgemm
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.neighbors import KNeighborsClassifier

from marginfold.linalg.tall import Array

EUCLIDEAN = ("euclidean", "l2")
"""Names of the Euclidean metric."""

CHUNK_ENTRIES = 200_000
"""Distances held at once: few enough to stay in cache."""

ROUNDING = 1e-11
"""Differences of half squared distances below this share of the squared norms may be rounding."""


class PredictedKNN(ClassifierMixin, BaseEstimator):
    """A fitted KNeighborsClassifier whose predictions on one set of rows were computed before.

    scikit-learn's scorers ask a model for predictions; those on ``rows`` itself (the same array)
    are at hand, for any other rows the classifier is fitted and asked.
    """

    def __init__(
        self, classifier: Any, train: Array, labels: Array, rows: Array, predicted: Array | None
    ) -> None:
        self.classifier = classifier
        self.train = train
        self.labels = labels
        self.rows = rows
        self.predicted = predicted

    @property
    def classes_(self) -> Array:
        """The classes, sorted."""
        return np.unique(self.labels)

    def predict(self, X: Any) -> Array:
        """Return the class of each row."""
        if X is self.rows and self.predicted is not None:
            return self.predicted
        return np.asarray(self._fitted().predict(X))

    def predict_proba(self, X: Any) -> Array:
        """Return the shares of the votes."""
        return np.asarray(self._fitted().predict_proba(X))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy, without the checks that X and y have passed before."""
        right = self.predict(X) == y
        if sample_weight is None:
            return np.count_nonzero(right) / len(right)
        return float(np.average(right, weights=sample_weight))

    def _fitted(self) -> Any:
        return clone(self.classifier).fit(np.ascontiguousarray(self.train), self.labels)


def finds_nested(classifier: Any, n_train: int) -> bool:
    """Return whether `nested_knn` finds the neighbors that this classifier finds."""
    if type(classifier) is not KNeighborsClassifier:
        return False
    k, weights, metric = classifier.n_neighbors, classifier.weights, classifier.metric
    names = isinstance(weights, str) and isinstance(metric, str)
    euclidean = metric in EUCLIDEAN or (metric == "minkowski" and classifier.p == 2)
    countable = isinstance(k, Integral) and 1 <= int(k) <= n_train
    return bool(names and euclidean and countable and classifier.metric_params is None)


def nested_knn(
    classifier: Any, train: Array, labels: Array, rows: Array, dimensions: Sequence[int]
) -> list[PredictedKNN | None]:
    """Return the classifier with its predictions on rows, for each number of leading columns.

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
    list of PredictedKNN
        None where rounding decides which training rows are the nearest.
    """
    classes, codes = np.unique(labels, return_inverse=True)
    distinct = sorted(set(dimensions))
    n_neighbors = int(classifier.n_neighbors)
    votes = nested_votes(train, codes, rows, n_neighbors, distinct)
    by_count = classifier.weights == "uniform" or n_neighbors == 1
    models: dict[int, PredictedKNN | None] = {}
    for k, voted, close in zip(distinct, votes.codes, votes.close, strict=True):
        predicted = classes[voted] if by_count else None
        model = PredictedKNN(classifier, train[:, :k], labels, rows[:, :k], predicted)
        models[k] = None if close.any() else model
    return [models[k] for k in dimensions]


@dataclass(frozen=True)
class Votes:
    """The classes that the neighbors choose, for each number of columns.

    Attributes
    ----------
    codes : array of shape (n_dimensions, n_rows)
        Class codes; of equally near rows the earlier counts, of equal votes the lower code wins.
    close : array of shape (n_dimensions, n_rows)
        Whether rounding, or another rule for rows that are equally near, could change the code.
    """

    codes: Array
    close: Array


def nested_votes(
    train: Array,
    train_codes: Array,
    test: Array,
    n_neighbors: int,
    dimensions: Sequence[int] | None = None,
) -> Votes:
    """Return the majority class of the nearest training rows, with the leading columns only.

    Parameters
    ----------
    train, test : arrays of shape (n, k)
    train_codes : array of int
        Class codes 0, 1, ... of the training rows, none left out.
    n_neighbors : int
        At most the number of training rows.
    dimensions : sequence of int, optional
        Numbers of leading columns, rising; by default 1, 2, ..., k.

    Examples
    --------
    >>> import numpy as np
    >>> from marginfold.model_selection.nested_knn import nested_votes
    >>> train, codes = np.array([[0.0, 0.0], [0.5, 4.0]]), np.array([0, 1])
    >>> nested_votes(train, codes, np.array([[0.1, 3.0]]), 1).codes
    array([[0],
           [1]])
    """
    dimensions = range(1, train.shape[1] + 1) if dimensions is None else dimensions
    last = [k - 1 for k in dimensions]
    largest = np.cumsum(train**2, axis=1).max(axis=0)[last]
    sizes = np.cumsum(test**2, axis=1).T[last] + largest[:, None]
    order = np.argsort(train_codes, kind="stable")  # rows of a class stand together
    rows, starts = train[order], np.searchsorted(train_codes[order], np.unique(train_codes))
    codes, close = _by_chunks(rows, starts, test, n_neighbors, dimensions, ROUNDING * sizes)
    for d, k in enumerate(dimensions):
        again = np.flatnonzero(close[d])
        if not len(again):
            continue
        codes[d, again] = _exact(train[:, :k], train_codes, test[again, :k], n_neighbors)
    return Votes(codes, close)


def _by_chunks(
    train: Array, starts: Array, test: Array, k: int, dimensions: Sequence[int], slack: Array
) -> tuple[Array, Array]:
    """Return the winners for each number of columns, by as many rows as stay in the cache."""
    step = max(1, CHUNK_ENTRIES // len(train))
    codes = np.empty((len(dimensions), len(test)), dtype=np.intp)
    close = np.empty(codes.shape, dtype=bool)
    for start in range(0, len(test), step):
        chunk = slice(start, start + step)
        for d, halves in enumerate(_nested_halves(train, test[chunk], dimensions)):
            codes[d, chunk], close[d, chunk] = _winners(halves, starts, k, slack[d, chunk])
    return codes, close


def _nested_halves(train: Array, test: Array, dimensions: Sequence[int]) -> Iterator[Array]:
    """Yield ``|t|^2 / 2 - x't``, shape (test rows, training rows), for each number of columns."""
    halves = np.zeros((len(train), len(test)), order="F")
    done = 0
    for k in dimensions:
        new = slice(done, k)
        left = np.column_stack([-train[:, new], (train[:, new] ** 2).sum(axis=1) / 2])
        right = np.vstack([test[:, new].T, np.ones(len(test))])
        halves = dgemm(1.0, left, right, beta=1.0, c=halves, overwrite_c=1)
        done = k
        yield halves.T


def _winners(halves: Array, starts: Array, k: int, slack: Array) -> tuple[Array, Array]:
    """Return the class that wins each row, and whether differences below slack could change it."""
    if len(starts) == 1:
        return np.zeros(len(halves), dtype=np.intp), np.zeros(len(halves), dtype=bool)
    if k == 1:
        nearest = np.minimum.reduceat(halves, starts, axis=1)
        two = np.partition(nearest, 1, axis=1)
        return nearest.argmin(axis=1), two[:, 1] - two[:, 0] <= slack
    last = np.partition(halves, k - 1, axis=1)[:, k - 1]
    below = np.add.reduceat(halves < (last - slack)[:, None], starts, axis=1, dtype=np.intp)
    up_to = np.add.reduceat(halves <= (last + slack)[:, None], starts, axis=1, dtype=np.intp)
    vacant = k - below.sum(axis=1, keepdims=True)  # places for the rows as far as the last
    counts = below + np.minimum(up_to - below, vacant)
    tied = np.count_nonzero(up_to > below, axis=1) > 1
    return counts.argmax(axis=1), tied & (up_to.sum(axis=1) > k)


def _exact(train: Array, train_codes: Array, test: Array, n_neighbors: int) -> Array:
    """Return the votes by sums of squared differences; of equal ones the earlier row counts."""
    codes = np.empty(len(test), dtype=np.intp)
    for i, row in enumerate(test):
        squared = ((train - row) ** 2).sum(axis=1)
        nearest = np.argsort(squared, kind="stable")[:n_neighbors]
        codes[i] = np.bincount(train_codes[nearest]).argmax()
    return codes
