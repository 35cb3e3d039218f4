"""Nearest neighbors on the first 1, 2, ... columns of rows, for several numbers of them at once.

One search for each number of columns finds enough neighbors for every k.  The one nearest neighbor
mostly needs no search: columns are nested, so the squared distances of k columns are those of k - 1
plus one column, and the least of each class decides.  Where rows of several classes are equally
near, sums of squared differences decide, and then the order of the training rows.  Rows that are
equal in the columns at hand are searched once: a column of whole numbers has few values.
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

SPARE = 2
"""Neighbors searched beyond k: rows as near as the k-th are mostly fewer, and then all found."""

FURTHER = 8
"""Where they are more, so many times as many neighbors are searched, as long as that is a search
and not nearly a list of all rows."""

TREE_COLUMNS, TREE_PAIRS = 3, 2**24
"""For the one nearest neighbor a tree is faster than all distances up to so many columns, from so
many pairs of rows on (20,000 rows in two columns: a sixth of the time)."""


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
    votes = _no_votes(shape)
    if train_codes.any():  # else there is one class, and nothing to vote on
        train, test = (np.asarray(rows, dtype=np.float64) for rows in (train, test))
        undecided = np.ones(shape[1:], dtype=bool)
        if list(n_neighbors) == [1]:
            swept = [d for d, k in enumerate(dimensions) if _is_swept(train, test, k)]
            _sweep(train, train_codes, test, dimensions, swept, votes, undecided)
        _search(train, train_codes, test, n_neighbors, dimensions, votes, undecided)
    return [Votes(*pair) for pair in zip(votes.codes, votes.close, strict=True)]


def _no_votes(shape: tuple[int, ...]) -> Votes:
    return Votes(np.zeros(shape, dtype=np.intp), np.zeros(shape, dtype=bool))


def _search(
    train: Array,
    train_codes: Array,
    test: Array,
    n_neighbors: Sequence[int],
    dimensions: Sequence[int],
    votes: Votes,
    undecided: Array,
) -> None:
    """Write the votes of undecided rows; of rows that are equal in some columns one is asked."""
    equal, equal_test = _equal_rows(train, dimensions), _equal_rows(test, dimensions)
    for d, k in enumerate(dimensions):
        rows = np.flatnonzero(undecided[d])
        if len(rows):
            _, first, number = np.unique(
                equal_test[d][rows], return_index=True, return_inverse=True
            )
            kept = _that_count(equal[d], train_codes, max(n_neighbors) + 1)
            old = np.ascontiguousarray(train[kept, :k])
            new = np.ascontiguousarray(test[rows[first], :k])
            found = _vote(old, new, train_codes[kept], n_neighbors)
            votes.codes[:, d, rows] = found.codes[:, number]
            votes.close[:, d, rows] = found.close[:, number]


def _equal_rows(rows: Array, dimensions: Sequence[int]) -> list[Array]:
    """Return, for rising numbers of columns, numbers that are the same where rows are equal."""
    groups, n_groups, done, found = np.zeros(len(rows), dtype=np.intp), 1, 0, []
    for k in dimensions:
        for column in rows[:, done:k].T:
            if n_groups < len(rows):
                values, codes = np.unique(column, return_inverse=True)
                distinct, groups = np.unique(groups * len(values) + codes, return_inverse=True)
                n_groups = len(distinct)
        done = k
        found.append(groups)
    return found


def _that_count(groups: Array, codes: Array, n_first: int) -> Array:
    """Return the rows that can count: of equal rows the first, and the first of each class.

    The first of each class do not vote; they tell whether another order could change the vote.
    """
    sizes = np.bincount(groups)
    if sizes.max() <= n_first:
        return np.arange(len(groups))
    order = np.argsort(groups, kind="stable")
    rank = np.arange(len(groups)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    counts = np.zeros(len(groups), dtype=bool)
    counts[order[rank < n_first]] = True
    counts[np.unique(groups * (int(codes.max()) + 1) + codes, return_index=True)[1]] = True
    return np.flatnonzero(counts)


def _vote(train: Array, test: Array, train_codes: Array, n_neighbors: Sequence[int]) -> Votes:
    """Return codes and flags, a row for each number of neighbors, with all columns given.

    Where more rows are as near as the last that counts than were found, the search goes further.
    """
    votes = _no_votes((len(n_neighbors), len(test)))
    slack = _slack(train, test)
    rows, count = np.arange(len(test)), max(n_neighbors) + SPARE
    while len(rows) and FURTHER * count < max(len(train), FURTHER**2):
        found, squared = nearest_points(train, test[rows], count)
        found_codes = train_codes[found]
        for i, k in enumerate(n_neighbors):
            last = squared[:, k - 1 : k]
            votes.codes[i, rows] = _majority(found_codes[:, :k])
            votes.close[i, rows] = _is_close(squared, found_codes, last, slack[rows], k)
        as_near = squared[:, -1] <= squared[:, max(n_neighbors) - 1] + 2 * slack[rows, 0]
        rows = rows[as_near & (found.shape[1] < len(train))]
        count *= FURTHER
    for some, distances in _all_distances(train, test, rows):
        for i, k in enumerate(n_neighbors):
            last = np.partition(distances, k - 1, axis=1)[:, k - 1 : k]
            votes.codes[i, some] = _first_votes(distances, train_codes, last, k)
            votes.close[i, some] = _is_close(distances, train_codes, last, slack[some], k)
    return votes


def _is_swept(train: Array, test: Array, k: int) -> bool:
    """Return whether all distances with k columns are faster than a tree."""
    return k > TREE_COLUMNS or len(train) * len(test) < TREE_PAIRS


def _sweep(
    train: Array,
    train_codes: Array,
    test: Array,
    dimensions: Sequence[int],
    swept: Sequence[int],
    votes: Votes,
    undecided: Array,
) -> None:
    """Write the class of the nearest row for some of the numbers of columns.

    Rows to which several classes are equally near stay undecided.
    """
    order = np.argsort(train_codes, kind="stable")  # rows of a class stand together
    rows, starts = train[order], np.searchsorted(train_codes[order], np.unique(train_codes))
    columns = [dimensions[d] for d in swept]
    slack = [_slack(train[:, :k], test[:, :k])[:, 0] / 2 for k in columns]
    for part in chunks(len(test), len(train), CHUNK_ENTRIES):
        for i, halves in enumerate(_nested_halves(rows, test[part], columns)):
            nearest = np.minimum.reduceat(halves, starts, axis=1)
            two = np.partition(nearest, 1, axis=1)
            votes.codes[0, swept[i], part] = nearest.argmin(axis=1)
            undecided[swept[i], part] = two[:, 1] - two[:, 0] <= slack[i][part]


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
