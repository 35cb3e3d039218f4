"""The rows of a search and of its folds, with those that have no label kept apart."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.model_selection import PredefinedSplit, check_cv
from sklearn.utils import column_or_1d, indexable

from marginfold.errors import InvalidInputError
from marginfold.linalg.tall import Array
from marginfold.validation.rows import check_weights, is_missing, is_unlabelled, unique_labels

MARK_MISSING = "Leave these rows out, or let unlabeled=np.nan of the estimator mark them."
"""What to do with rows whose label is missing."""

GIVEN = (PredefinedSplit, type(check_cv([])))
"""Splitters that repeat what they were given: numbers of rows among all rows."""


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

    @property
    def n_classes(self) -> int:
        """The number of classes in a fit, for which a weight of 0 is like no row."""
        weights = self.known_weights
        return len(np.unique(self.labels if weights is None else self.labels[weights > 0]))


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
        X, y = indexable(X, y)
        y = column_or_1d(y, warn=True)
        if pairwise:
            _require_square(X)
        known = ~is_unlabelled(y, unlabeled)
        if not known.any():
            raise InvalidInputError(
                f"All {len(y)} rows are unlabelled (y is {unlabeled!r}); a search needs labelled "
                "rows to score on."
            )
        weights = None if sample_weight is None else check_weights(sample_weight, len(y))
        labels = _labels(y, known)
        _require_classes(labels[known])
        return cls(X, y, labels, known, weights, pairwise)

    def folds(self, cv: Any, groups: Any) -> Iterator[tuple[Array, Array]]:
        """Yield row numbers to fit and to score on.

        Only labelled rows are split; unlabelled rows are fitted on in every fold.
        """
        if self.known.all():
            yield from cv.split(self.X, self.y, groups)
            return
        unlabelled = np.flatnonzero(~self.known)
        for train, test in self._labelled_folds(cv, groups):
            yield np.concatenate([train, unlabelled]), test

    def _labelled_folds(self, cv: Any, groups: Any) -> Iterator[tuple[Array, Array]]:
        """Yield the numbers of labelled rows to fit and to score on."""
        if isinstance(cv, GIVEN):
            rows = np.arange(len(self.y))
            for train, test in ((rows[train], rows[test]) for train, test in cv.split()):
                yield train[self.known[train]], test[self.known[test]]
            return
        labelled = np.flatnonzero(self.known)
        X = take(self.X, labelled, labelled if self.pairwise else None)
        groups = None if groups is None else take(groups, labelled)
        for train, test in cv.split(X, self.labels[labelled], groups):
            yield labelled[train], labelled[test]

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


def take(X: Any, rows: Array, columns: Array | None = None) -> Any:
    """Return some rows (and columns) of an array, sparse matrix or table."""
    if hasattr(X, "iloc"):
        return X.iloc[rows] if columns is None else X.iloc[rows, columns]
    if hasattr(X, "num_rows"):  # a table of pyarrow, which takes columns by a number only
        return X.take(rows) if columns is None else X.take(rows).select(columns.tolist())
    if scipy.sparse.issparse(X):
        X = scipy.sparse.csr_array(X)
    if not hasattr(X, "shape"):
        lines = [X[row] for row in rows]  # an estimator explains lists that are no matrix
        return lines if columns is None else np.asarray(lines)[:, columns]
    part = X[rows]
    return part if columns is None else part[:, columns]


def _require_square(X: Any) -> None:
    shape = np.shape(X)
    if len(shape) != 2 or shape[0] != shape[1]:
        raise InvalidInputError(
            f"A precomputed kernel must be square in fit; got shape {shape}. Give the kernel "
            "between all training rows."
        )


def _require_classes(labels: Array) -> None:
    """Refuse labels that are missing, not finite or do not compare: folds could not be made."""
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        what = "NaN" if np.isnan(labels).any() else "infinity"
        raise InvalidInputError(f"y contains {what}; every row needs a class. {MARK_MISSING}")
    if labels.dtype.kind == "O":
        if any(is_missing(label) for label in labels):
            raise InvalidInputError(f"y contains None, NaN or NA among its labels. {MARK_MISSING}")
        unique_labels(labels)


def _labels(y: Array, known: Array) -> Array:
    """Return labels of one type: a marker such as NaN may have made them objects."""
    if known.all():
        return y
    some = np.array(y[known].tolist())
    labels = np.full(len(y), some[0])
    labels[known] = some
    return labels
