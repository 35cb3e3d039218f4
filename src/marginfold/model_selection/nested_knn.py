"""Nearest neighbors on the first 1, 2, ... columns of rows, for several numbers of them at once.

One search for each number of columns finds enough neighbors for every k.  The one nearest neighbor
needs no search: columns are nested, so the squared distances of k columns are those of k - 1 plus
one column, and the least of each class decides.  Where rows of several classes are equally near,
sums of squared differences to all training rows decide, and then their order.
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

from marginfold.graphs.neighbor_search import chunks, nearest_points
from marginfold.linalg.tall import Array

EUCLIDEAN = ("euclidean", "l2")
"""Names of the Euclidean metric."""

CHUNK_ENTRIES = 200_000
"""Distances to all training rows held at once: few enough to stay in cache."""

ROUNDING = 2e-11
"""Differences of squared distances below this share of the squared norms may be rounding."""

SPARE = 4
"""Neighbors searched beyond k: rows as near as the k-th are mostly fewer, and then all found."""


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
    (votes,) = nested_votes(train, codes, rows, [n_neighbors], distinct)
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
    n_neighbors: Sequence[int],
    dimensions: Sequence[int] | None = None,
) -> list[Votes]:
    """Return the majority class of the nearest training rows, with the leading columns only.

    Parameters
    ----------
    train, test : arrays of shape (n, k)
    train_codes : array of int
        Class codes 0, 1, ... of the training rows, none left out.
    n_neighbors : sequence of int
        Each at most the number of training rows.
    dimensions : sequence of int, optional
        Numbers of leading columns, rising; by default 1, 2, ..., k.

    Returns
    -------
    list of Votes
        One for each number of neighbors.

    Examples
    --------
    >>> import numpy as np
    >>> from marginfold.model_selection.nested_knn import nested_votes
    >>> train, codes = np.array([[0.0, 0.0], [0.5, 4.0]]), np.array([0, 1])
    >>> nested_votes(train, codes, np.array([[0.1, 3.0]]), [1])[0].codes
    array([[0],
           [1]])
    """
    dimensions = range(1, train.shape[1] + 1) if dimensions is None else dimensions
    shape = (len(n_neighbors), len(dimensions), len(test))
    codes, close = np.zeros(shape, dtype=np.intp), np.zeros(shape, dtype=bool)
    votes = [Votes(*pair) for pair in zip(codes, close, strict=True)]
    if not train_codes.any():  # one class, and nothing to vote on
        return votes
    train, test = (np.asarray(rows, dtype=np.float64) for rows in (train, test))
    if list(n_neighbors) == [1]:
        _vote_of_the_nearest(train, train_codes, test, dimensions, votes[0])
        return votes
    for d, k in enumerate(dimensions):
        columns = np.ascontiguousarray(train[:, :k]), np.ascontiguousarray(test[:, :k])
        _vote(*columns, train_codes, n_neighbors, codes[:, d], close[:, d])
    return votes


def _vote(
    train: Array,
    test: Array,
    train_codes: Array,
    n_neighbors: Sequence[int],
    codes: Array,
    close: Array,
) -> None:
    """Write codes and flags, a row for each number of neighbors, with all columns given."""
    slack = _slack(train, test)
    found, squared = nearest_points(train, test, max(n_neighbors) + SPARE)
    missed = squared[:, -1:] - slack if found.shape[1] < len(train) else np.inf
    found_codes = train_codes[found]
    for i, k in enumerate(n_neighbors):
        last = squared[:, k - 1 : k]
        codes[i] = _majority(found_codes[:, :k])
        close[i] = _is_close(squared, found_codes, last, slack, k)
        again = np.flatnonzero((missed <= last + slack).ravel())
        for rows, distances in _all_distances(train, test, again):
            last = np.partition(distances, k - 1, axis=1)[:, k - 1 : k]
            codes[i, rows] = _first_votes(distances, train_codes, last, k)
            close[i, rows] = _is_close(distances, train_codes, last, slack[rows], k)


def _vote_of_the_nearest(
    train: Array, train_codes: Array, test: Array, dimensions: Sequence[int], votes: Votes
) -> None:
    """Write the class of the nearest row for each number of columns."""
    order = np.argsort(train_codes, kind="stable")  # rows of a class stand together
    rows, starts = train[order], np.searchsorted(train_codes[order], np.unique(train_codes))
    slack = [_slack(train[:, :k], test[:, :k])[:, 0] / 2 for k in dimensions]
    for part in chunks(len(test), len(train), CHUNK_ENTRIES):
        for d, halves in enumerate(_nested_halves(rows, test[part], dimensions)):
            nearest = np.minimum.reduceat(halves, starts, axis=1)
            two = np.partition(nearest, 1, axis=1)
            votes.codes[d, part] = nearest.argmin(axis=1)
            votes.close[d, part] = two[:, 1] - two[:, 0] <= slack[d][part]
    for d, k in enumerate(dimensions):
        again = np.flatnonzero(votes.close[d])
        for some, distances in _all_distances(train[:, :k], test[:, :k], again):
            votes.codes[d, some] = train_codes[distances.argmin(axis=1)]


def _slack(train: Array, test: Array) -> Array:
    """Return differences of squared distances that may be rounding, a column for the test rows."""
    sizes = (test**2).sum(axis=1) + (train**2).sum(axis=1).max()
    return np.asarray(ROUNDING * sizes)[:, None]


def _nested_halves(train: Array, test: Array, dimensions: Sequence[int]) -> Iterator[Array]:
    """Yield half the squared distances but for ``|x|^2 / 2``, by rising numbers of columns.

    With x a test row and t a training row they are ``|t|^2 / 2 - x't``, of shape (test rows,
    training rows); what is left out is the same for all training rows.
    """
    halves = np.zeros((len(train), len(test)), order="F")
    done = 0
    for k in dimensions:
        new = slice(done, k)
        left = np.column_stack([-train[:, new], (train[:, new] ** 2).sum(axis=1) / 2])
        right = np.vstack([test[:, new].T, np.ones(len(test))])
        halves = dgemm(1.0, left, right, beta=1.0, c=halves, overwrite_c=1)
        done = k
        yield halves.T


def _majority(codes: Array) -> Array:
    """Return the commonest code of each row, the lowest of several."""
    n_rows, n_codes = len(codes), int(codes.max()) + 1
    cells = codes + n_codes * np.arange(n_rows)[:, None]
    counts = np.bincount(cells.ravel(), minlength=n_rows * n_codes)
    return np.asarray(counts.reshape(n_rows, n_codes).argmax(axis=1))


def _is_close(squared: Array, codes: Array, last: Array, slack: Array, k: int) -> Array:
    """Return whether rows of several classes are as near as the last that counts, up to slack."""
    up_to = squared <= last + slack
    tied = up_to & (squared >= last - slack)
    largest = int(codes.max())
    low = np.where(tied, codes, largest + 1).min(axis=1)
    high = np.where(tied, codes, -1).max(axis=1)
    return np.asarray((low < high) & (np.count_nonzero(up_to, axis=1) > k))


def _all_distances(train: Array, test: Array, rows: Array) -> Iterator[tuple[Array, Array]]:
    """Yield some of these test rows, and sums of squared differences to all training rows."""
    for part in chunks(len(rows), len(train), CHUNK_ENTRIES):
        some = rows[part]
        squared = np.zeros((len(some), len(train)))
        for new, old in zip(test[some].T, train.T, strict=True):
            squared += (new[:, None] - old) ** 2
        yield some, squared


def _first_votes(squared: Array, codes: Array, last: Array, k: int) -> Array:
    """Return the majority of the nearest rows; of those as near as the last the earlier count."""
    nearer, equal = squared < last, squared == last
    vacant = k - np.count_nonzero(nearer, axis=1)[:, None]
    counted = nearer | (equal & (np.cumsum(equal, axis=1) <= vacant))
    return _majority(codes[np.nonzero(counted)[1].reshape(-1, k)])
