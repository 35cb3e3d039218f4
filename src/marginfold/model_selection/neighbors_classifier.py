"""NeighborsClassifier: the majority of the nearest rows, the same on every machine."""

from __future__ import annotations

from typing import Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from marginfold.graphs.neighbor_search import chunks, nearest_points
from marginfold.linalg.tall import Array
from marginfold.validation.parameters import Count, atomic_fit, check_parameters
from marginfold.validation.rows import check_entries, taken_as_classes
from marginfold.validation.types import Labels, Rows

SPARE = 4
"""Neighbors searched beyond k: rows as near as the k-th are mostly fewer, and then all found."""

ROUNDING = 2e-11
"""Differences of squared distances below this share of the squared norms may be rounding."""


class NeighborsClassifier(ClassifierMixin, BaseEstimator):
    """Predict the class of most of the nearest training rows, by Euclidean distance.

    As scikit-learn's ``KNeighborsClassifier``, but for rows that are equally near: of those the
    earlier training row counts, so that the answer depends neither on the number of threads nor on
    rounding.  (Images of rows on a margin are equal, and so are many rows of whole numbers.)

    Parameters
    ----------
    n_neighbors : int, default=5
        If there are fewer training rows than this, all of them vote.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from marginfold import NeighborsClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> NeighborsClassifier(5).fit(X, y).predict(X[:3])
    array([0, 0, 0])
    """

    def __init__(self, n_neighbors: int = 5) -> None:
        self.n_neighbors = n_neighbors

    def fit(self, X: Rows, y: Labels) -> Self:
        """Keep the rows and their classes.

        Parameters
        ----------
        X : array or data frame of shape (n_samples, n_features)
        y : array of shape (n_samples,)
            Class labels of any type.

        Returns
        -------
        self
        """
        self.check()
        with atomic_fit(self):
            rows, labels = validate_data(self, X, y, dtype=np.float64)
            check_entries(self, rows)
            with taken_as_classes():
                check_classification_targets(labels)
            self.classes_, self._codes = np.unique(labels, return_inverse=True)
            self._rows: Array = rows
        return self

    def check(self) -> None:
        """Refuse an invalid number of neighbors."""
        check_parameters(self, {"n_neighbors": Count(1)})

    def predict(self, X: Rows) -> Array:
        """Return the class that most neighbors have; of equal votes the one that sorts first."""
        shares = self.predict_proba(X)
        return np.asarray(self.classes_[shares.argmax(axis=1)])

    def predict_proba(self, X: Rows) -> Array:
        """Return the shares of the votes, of shape (n_samples, n_classes)."""
        check_is_fitted(self)
        rows = validate_data(self, X, dtype=np.float64, reset=False)
        check_entries(self, rows)
        k = min(int(self.n_neighbors), len(self._rows))
        codes = self._codes[nearest_rows(self._rows, rows, k)]
        n, n_classes = len(rows), len(self.classes_)
        cells = codes + n_classes * np.arange(n)[:, None]
        counts = np.bincount(cells.ravel(), minlength=n * n_classes)
        return np.asarray(counts.reshape(n, n_classes) / k)


def left_out_predictions(X: Array, y: Array, n_neighbors: int = 5) -> Array:
    """Return what the nearest other rows say of each row: its own label does not count.

    Examples
    --------
    >>> import numpy as np
    >>> from marginfold.model_selection.neighbors_classifier import left_out_predictions
    >>> left_out_predictions(np.array([[0.0], [0.1], [5.0]]), np.array(["a", "a", "b"]), 1)
    array(['a', 'a', 'a'], dtype='<U1')
    """
    classes, codes = np.unique(y, return_inverse=True)
    n, k = len(X), min(n_neighbors, len(X) - 1)
    found = nearest_rows(X, X, k + 1)
    is_other = found != np.arange(n)[:, None]
    is_other[is_other.all(axis=1), -1] = False  # equal rows before it: the last of them is too much
    others = found[is_other].reshape(n, k)
    cells = codes[others] + len(classes) * np.arange(n)[:, None]
    counts = np.bincount(cells.ravel(), minlength=n * len(classes)).reshape(n, -1)
    return np.asarray(classes[counts.argmax(axis=1)])


def nearest_rows(train: Array, rows: Array, k: int) -> Array:
    """Return the numbers of the k nearest training rows; of equally near ones the earlier count."""
    found, squared = nearest_points(train, rows, k + SPARE)
    if found.shape[1] < len(train):
        sizes = (rows**2).sum(axis=1) + (train**2).sum(axis=1).max()
        again = np.flatnonzero(squared[:, -1] - squared[:, k - 1] <= ROUNDING * sizes)
        for part in chunks(len(again), train.size):
            some = again[part]
            gaps = rows[some][:, None, :] - train[None, :, :]
            every = np.einsum("ijk,ijk->ij", gaps, gaps)
            found[some, :k] = np.argsort(every, axis=1, kind="stable")[:, :k]
    return found[:, :k]
