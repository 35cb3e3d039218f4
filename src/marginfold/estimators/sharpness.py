"""How sharp a map of classes should be, judged on rows that the classifier has not seen."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from scipy.special import softmax
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold, check_cv
from sklearn.neighbors import KNeighborsClassifier

from marginfold.errors import InvalidInputError
from marginfold.estimators.class_margins import class_margins
from marginfold.linalg.tall import Array, dense
from marginfold.validation.labels import UNLABELLED
from marginfold.validation.parameters import shown

SHARPNESS_GRID = 2.0 ** np.arange(0.0, 4.5, 0.5)
"""What "auto" chooses from: classes run together in smoother maps and are dots in sharper ones."""

ORDER_SHARPNESS = 2.0
"""Sharpness of the weights whose confusion orders the classes, whatever that of the map is."""

TOLERANCE = 0.01
"""Held-out accuracy that a smoother map may lack: the last hundredth is reached by dots only."""


class Splits:
    """Something that ``check_cv`` takes besides a number of folds."""

    def allows(self, value: Any) -> bool:
        """Return whether the value splits rows or is a sequence of splits."""
        if isinstance(value, (str, type)):
            return False
        return callable(getattr(value, "split", None)) or isinstance(value, (list, tuple))

    def __str__(self) -> str:
        return "an object with split such as StratifiedKFold(10) or a list of (train, test) indices"


@dataclass(frozen=True)
class TrainingRows:
    """What a classifier is fitted on; ``sample_weight`` is None where it is given none."""

    X: Any
    y: Array
    sample_weight: Array | None
    pairwise: bool

    def fitted(self, classifier: Any, rows: Array | None = None) -> Any:
        """Return a clone of the classifier fitted on some of the rows, or on all."""
        X, y, weights = self.X, self.y, self.sample_weight
        if rows is not None:
            X, y = self.taken(rows, rows), y[rows]
            weights = None if weights is None else weights[rows]
        given = {} if weights is None else {"sample_weight": weights}
        return clone(classifier).fit(X, y, **given)

    def taken(self, rows: Array, columns: Array) -> Any:
        """Return some of the rows; of a kernel between rows also only some columns."""
        if hasattr(self.X, "iloc"):
            return self.X.iloc[rows, columns] if self.pairwise else self.X.iloc[rows]
        if self.pairwise:
            return dense(self.X)[np.ix_(rows, columns)]
        return self.X[rows] if hasattr(self.X, "shape") else [self.X[row] for row in rows]


@dataclass(frozen=True)
class Side:
    """One side of a split: margins in units of the rows seen, classes and sample weights."""

    margins: Array
    codes: Array
    weights: Array


@dataclass(frozen=True)
class Part:
    """One split."""

    seen: Side
    held_out: Side


def memberships(margins: Array, sharpness: float) -> Array:
    """Return the weights of the classes, positive and with sum 1 in each row."""
    return np.asarray(softmax(sharpness * margins, axis=1))


def margin_unit(margins: Array, weights: Array) -> float:
    """Return the mean distance of a row's largest margin from its second largest one."""
    second, first = np.partition(margins, -2, axis=1)[:, -2:].T
    return float(np.average(first - second, weights=weights)) or 1.0


def held_out_parts(
    classifier: Any, rows: TrainingRows, codes: Array, weights: Array, cv: Any
) -> list[Part]:
    """Fit once per split and return the margins of both sides.

    Rows without a class, and a row that is the only one of its class, are in every training part
    and in no held-out part.
    """
    n_classes = int(codes.max()) + 1
    known = codes != UNLABELLED
    counts = np.bincount(codes[known], minlength=n_classes)
    divided = known & (counts[codes] > 1)
    always = np.flatnonzero(~divided)
    parts = []
    for train, test in _splits(cv, codes, np.flatnonzero(divided)):
        train, test = np.union1d(always, train), test[divided[test]]
        seen = train[known[train]]
        _check_split(codes[seen], len(test), n_classes, cv)
        fitted = rows.fitted(classifier, train)
        margins = class_margins(fitted, rows.taken(seen, train))
        unit = margin_unit(margins, weights[seen])
        held_out = class_margins(fitted, rows.taken(test, train))
        parts.append(
            Part(
                Side(margins / unit, codes[seen], weights[seen]),
                Side(held_out / unit, codes[test], weights[test]),
            )
        )
    return parts


def _splits(cv: Any, codes: Array, divided: Array) -> list[tuple[Array, Array]]:
    """Return pairs of training and held-out rows."""
    if not isinstance(cv, Integral):
        rows = np.arange(len(codes))
        splits = check_cv(cv).split(np.zeros((len(codes), 1)), codes)
        return [(rows[train], rows[test]) for train, test in splits]
    if not len(divided):
        raise InvalidInputError(
            "sharpness='auto' needs a class with at least 2 rows to hold one of them out; every "
            "class has 1. Give a number, such as sharpness=4."
        )
    labels = codes[divided]
    folds = StratifiedKFold(min(int(cv), int(np.bincount(labels).max())))
    with warnings.catch_warnings():  # classes smaller than the number of folds do no harm here
        warnings.filterwarnings("ignore", "The least populated class", UserWarning)
        splits = list(folds.split(np.zeros((len(labels), 1)), labels))
    return [(divided[train], divided[test]) for train, test in splits]


def _check_split(codes: Array, n_held_out: int, n_classes: int, cv: Any) -> None:
    if not n_held_out:
        raise InvalidInputError(f"A part of cv={shown(cv)} holds out no labelled row.")
    missing = n_classes - len(np.unique(codes))
    if missing:
        raise InvalidInputError(
            f"{missing} of {n_classes} classes have no row in a training part of cv={shown(cv)}; "
            "every part needs all classes. Use stratified splits, or a number for sharpness."
        )


def confusion(sides: Sequence[Side], n_classes: int) -> Array:
    """Return the mean weight of each class (column) in the rows of each class (row)."""
    total = np.zeros((n_classes, n_classes))
    count = np.zeros(n_classes)
    for side in sides:
        drawn = side.weights[:, None] * memberships(side.margins, ORDER_SHARPNESS)
        np.add.at(total, side.codes, drawn)
        np.add.at(count, side.codes, side.weights)
    return total / np.maximum(count, np.finfo(float).tiny)[:, None]


def accuracies(parts: Sequence[Part], anchors: Array) -> Array:
    """Return how often a held-out row is recognised by the nearest seen row of the map.

    A row for each part and a column for each sharpness of the grid.  One neighbor is as good a
    judge as five, and to it a row of weight 2 is the row twice.
    """
    return np.array(
        [[_accuracy(part, anchors, sharpness) for sharpness in SHARPNESS_GRID] for part in parts]
    )


def smoothest(accuracy: Array) -> float:
    """Return the smallest sharpness whose accuracy is the best up to `TOLERANCE`."""
    return float(SHARPNESS_GRID[(accuracy >= accuracy.max() - TOLERANCE).argmax()])


def _accuracy(part: Part, anchors: Array, sharpness: float) -> float:
    nearest = KNeighborsClassifier(1, algorithm="kd_tree")
    nearest.fit(memberships(part.seen.margins, sharpness) @ anchors, part.seen.codes)
    guesses = nearest.predict(memberships(part.held_out.margins, sharpness) @ anchors)
    return float(np.average(guesses == part.held_out.codes, weights=part.held_out.weights))
