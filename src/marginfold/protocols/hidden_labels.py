"""Cross-validation for partly labelled data: test rows lose their labels, but stay."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from marginfold.errors import InvalidParameterError
from marginfold.linalg.tall import Array
from marginfold.protocols.held_out import (
    Scoring,
    Split,
    check_scored,
    held_out_score,
    parameters_named,
    read_partly_labelled,
)
from marginfold.protocols.splits import folds
from marginfold.validation.parameters import Count, check_parameters, shown
from marginfold.validation.rows import is_missing, is_unlabelled


@dataclass(frozen=True)
class HideLabels:
    """Stratified folds of the labelled rows; a fold's labels are hidden, its rows are kept.

    A semi-supervised method is meant to see all rows, so dropping the test rows would measure
    another method on fewer rows.  Graphs that belong to one set of rows (`PrecomputedGraph`) can
    be validated in this way only.

    Parameters
    ----------
    n_splits : int, default=5
        Folds, at least 2.
    unlabeled : object, default=-1
        The label of rows without one: a number, a text or NaN.  With text labels, -1 is "-1".
    random_state : int, default=0
        Seed of the folds.

    Examples
    --------
    >>> import numpy as np
    >>> from marginfold import LapSVC
    >>> from marginfold.protocols.hidden_labels import HideLabels
    >>> X = np.repeat([[0.0], [9.0]], 10, axis=0) + np.linspace(0, 1, 20)[:, None]
    >>> y = np.array(["a", "-1", "a", "a", "-1"] * 2 + ["b", "-1", "-1", "b", "b"] * 2)
    >>> for labels, test in HideLabels(3).split(X, y):
    ...     print(np.unique(labels).tolist(), len(labels), test)
    ['-1', 'a', 'b'] 20 [ 3  7 10 15]
    ['-1', 'a', 'b'] 20 [ 2  5 13 18]
    ['-1', 'a', 'b'] 20 [ 0  8 14 19]
    >>> HideLabels(3).scores(LapSVC(), X, y)
    array([1., 1., 1.])
    """

    n_splits: int = 5
    _: KW_ONLY
    unlabeled: Any = -1
    random_state: int = 0

    def get_n_splits(self) -> int:
        """Return the number of folds."""
        return self.n_splits

    def split(self, X: Any, y: Any) -> Iterator[tuple[Array, Array]]:
        """Yield, for each fold, all labels with those of the test rows hidden, and the test rows.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n, d)
        y : array of shape (n,)
            Labels; rows equal to ``unlabeled`` have none and are never tested.
        """
        for part in self.splits(X, y):
            yield part.labels, part.test

    def splits(self, X: Any, y: Any) -> list[Split]:
        """Return the folds as values that also say which labels are left."""
        check_parameters(self, {"n_splits": Count(2), "random_state": Count(0)})
        if self.unlabeled is None:
            raise InvalidParameterError(
                "HideLabels got unlabeled=None; it needs a label that marks rows without a class, "
                "such as -1 or np.nan."
            )
        labels, labelled = read_partly_labelled(X, y, self.unlabeled)
        known = np.flatnonzero(labelled)
        parts = folds(labels[known], int(self.n_splits), int(self.random_state))
        return [self._hidden(labels, labelled, np.sort(known[test])) for _, test in parts]

    def scores(self, estimator: Any, X: Any, y: Any, head: Scoring = None) -> Array:
        """Fit a clone for each fold, on all rows, and score it on the rows whose labels it lost.

        Parameters
        ----------
        estimator : classifier or transformer
            It, or one of its steps, needs a parameter ``unlabeled``; None is set to the marker.
        X, y
            As in `split`.
        head : str, callable or None, default=None
            What scores a transformer, "1-nn" if None: it sees the rows that have a label. For a
            classifier a scorer of scikit-learn; None is accuracy.

        Returns
        -------
        array of shape (n_splits,)
        """
        check_scored(estimator)
        marked = with_marker(estimator, self.unlabeled)
        labels = np.asarray(y)
        return np.array(
            [
                held_out_score(marked, X, labels, part, head, self.unlabeled)
                for part in self.splits(X, y)
            ]
        )

    def _hidden(self, labels: Array, labelled: Array, test: Array) -> Split:
        left = labelled.copy()
        left[test] = False
        return Split(np.arange(len(labels)), hide(labels, ~left, self.unlabeled), left, test)


def hide(labels: Array, rows: Array, marker: Any) -> Array:
    """Return labels with the marker at the given rows (a mask), in a type that can hold both.

    Examples
    --------
    >>> import numpy as np
    >>> from marginfold.protocols.hidden_labels import hide
    >>> hide(np.array(["a", "b"]), np.array([False, True]), "none")
    array(['a', 'none'], dtype='<U4')
    >>> hide(np.array([3, 4]), np.array([False, True]), np.nan)
    array([ 3., nan])
    >>> hide(np.array([3, 4], dtype=np.uint8), np.array([False, True]), -1)
    array([ 3, -1])
    """
    if labels.dtype.kind in "iufb":
        return _hidden_number(labels, rows, marker)
    words = labels.dtype.kind == "U" or all(isinstance(label, str) for label in labels[~rows])
    if words and not is_missing(marker):
        return np.where(rows, str(marker), labels)
    hidden = labels.astype(object)
    hidden[rows] = np.nan if is_missing(marker) else marker
    return hidden


def _hidden_number(labels: Array, rows: Array, marker: Any) -> Array:
    """Return numbers with the marker among them; refuse what a wide type would still change."""
    number = _as_number(marker)
    whole = labels.dtype.kind != "f" and (isinstance(number, int) or number.is_integer())
    hidden = labels.astype(np.int64 if whole else np.result_type(labels.dtype, np.float64))
    with np.errstate(invalid="ignore"):
        back = hidden.astype(labels.dtype)
    kept = all(np.array_equal(same, labels, equal_nan=True) for same in (hidden, back))
    try:
        hidden[rows] = int(number) if whole else number
    except OverflowError:
        kept = False
    if not kept or not is_unlabelled(hidden[rows], marker).all():
        raise InvalidParameterError(
            f"got the marker {marker!r} for labels of type {labels.dtype}; no type of NumPy holds "
            "both as they are, so that hidden labels could pass for a class. Use unlabeled=-1, or "
            "smaller numbers as labels."
        )
    return hidden


def _as_number(marker: Any) -> int | float:
    if is_missing(marker):
        return np.nan
    try:
        return int(marker) if isinstance(marker, (int, np.integer)) else float(marker)
    except (TypeError, ValueError):
        raise InvalidParameterError(
            f"The labels are numbers and the marker is {marker!r}; hidden labels need a number "
            "too. Use unlabeled=-1 or np.nan."
        ) from None


def with_marker(estimator: Any, marker: Any) -> Any:
    """Return a clone that takes rows with the marker as unlabelled; refuse one that cannot."""
    names = parameters_named(estimator, "unlabeled")
    if not names:
        raise InvalidParameterError(
            f"got {shown(estimator)}, which has no parameter unlabeled and would take {marker!r} "
            "for a class; it needs a method for partly labelled rows such as LapSVC or LSVA."
        )
    marked = clone(estimator)
    values = marked.get_params(deep=True)
    for name in names:
        value = values[name]
        if value is None:
            marked.set_params(**{name: marker})
        elif not is_unlabelled(np.array([value], dtype=object), marker)[0]:
            raise InvalidParameterError(
                f"got {name}={value!r} while labels are hidden as {marker!r}; they need the same "
                f"marker. Pass unlabeled={value!r} here, or set {name} to None."
            )
    return marked
