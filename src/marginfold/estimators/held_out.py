"""Margins of rows that a classifier has not seen, for any classifier and any split."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any

import numpy as np
from sklearn import config_context
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold, check_cv
from sklearn.utils import get_tags
from sklearn.utils.validation import has_fit_parameter

from marginfold.errors import InvalidInputError
from marginfold.estimators.multiclass import class_margins
from marginfold.linalg.tall import Array, dense
from marginfold.validation.parameters import shown
from marginfold.validation.rows import UNLABELLED

HALF_ROWS = 2000
"""Rows that each half has at most where one half of the rows is judged by the other."""

WEIGHTS = "sample_weight"
"""What scikit-learn calls them."""


@dataclass(frozen=True)
class TrainingRows:
    """What a classifier is fitted on; ``sample_weight`` is None where it is given none."""

    X: Any
    y: Array
    sample_weight: Array | None
    pairwise: bool = False

    def fitted(self, classifier: Any, rows: Array | None = None) -> Any:
        """Return a clone of the classifier fitted on some of the rows, or on all."""
        X, y, weights = self.X, self.y, self.sample_weight
        if rows is not None:
            X, y = self.taken(rows, rows), y[rows]
            weights = None if weights is None else weights[rows]
        if weights is None:
            return clone(classifier).fit(X, y)
        names = weight_names(classifier)
        if names == [WEIGHTS]:
            return clone(classifier).fit(X, y, sample_weight=weights)
        with config_context(enable_metadata_routing=False):  # names of steps are for no router
            return clone(classifier).fit(X, y, **dict.fromkeys(names, weights))

    def taken(self, rows: Array, columns: Array) -> Any:
        """Return some of the rows; of a kernel between rows also only some columns."""
        if hasattr(self.X, "iloc"):
            return self.X.iloc[rows, columns] if self.pairwise else self.X.iloc[rows]
        if hasattr(self.X, "num_rows") and not self.pairwise:
            return self.X.take(rows)  # a table of pyarrow
        if self.pairwise:
            return dense(self.X)[np.ix_(rows, columns)]
        return self.X[rows] if hasattr(self.X, "shape") else [self.X[row] for row in rows]


def weight_names(classifier: Any) -> list[str]:
    """Return the names of the weights in the fit of a classifier: those of a pipeline's steps."""
    steps = [step for step in getattr(classifier, "steps", []) if hasattr(step[1], "fit")]
    takers = [name for name, step in steps if has_fit_parameter(step, WEIGHTS)]
    if steps and takers[-1:] == [steps[-1][0]]:
        return [f"{name}__{WEIGHTS}" for name in takers]
    if not steps and has_fit_parameter(classifier, WEIGHTS):
        return [WEIGHTS]
    raise InvalidInputError(
        f"The fit of {shown(classifier)} takes no sample_weight; choose a classifier that takes "
        "weights, or leave them out."
    )


@dataclass(frozen=True)
class Side:
    """One side of a split: margins, classes and sample weights."""

    margins: Array
    codes: Array
    weights: Array

    @property
    def unit(self) -> float:
        """The mean distance of a row's largest margin from its second largest one."""
        second, first = np.partition(self.margins, -2, axis=1)[:, -2:].T
        return float(np.average(first - second, weights=self.weights)) or 1.0

    def scaled(self, unit: float) -> Side:
        """Return the same with margins in this unit."""
        return replace(self, margins=self.margins / unit)


@dataclass(frozen=True)
class Part:
    """One split, with margins in units of the rows seen."""

    seen: Side
    held_out: Side


def held_out_parts(
    classifier: Any, rows: TrainingRows, codes: Array, weights: Array, cv: Any
) -> list[Part]:
    """Fit once per split and return the margins of both sides.

    Rows without a class, and a row that is the only one of its class, are in every training part
    and in no held-out part.
    """
    known = codes != UNLABELLED
    counts = np.bincount(codes[known])
    n_classes = int(np.count_nonzero(counts))
    divided = known & (counts[codes] > 1)
    always = np.flatnonzero(~divided)
    parts = []
    for train, test in _splits(cv, codes, np.flatnonzero(divided)):
        train, test = np.union1d(always, train), test[divided[test]]
        some = train[known[train]]
        _check_split(codes[some], len(test), n_classes, cv)
        fitted = rows.fitted(classifier, train)
        seen, held_out = (
            Side(class_margins(fitted, rows.taken(side, train)), codes[side], weights[side])
            for side in (some, test)
        )
        parts.append(Part(seen.scaled(seen.unit), held_out.scaled(seen.unit)))
    return parts


def _splits(cv: Any, codes: Array, divided: Array) -> list[tuple[Array, Array]]:
    """Return pairs of training and held-out rows."""
    if not isinstance(cv, (Integral, str)):
        rows = np.arange(len(codes))
        splits = check_cv(cv).split(np.zeros((len(codes), 1)), codes)
        return [(rows[train], rows[test]) for train, test in splits]
    if not len(divided):
        raise InvalidInputError(
            "sharpness='auto' needs a class with at least 2 rows to hold one of them out; every "
            "class has 1. Give a number, such as sharpness=4."
        )
    labels = codes[divided]
    if isinstance(cv, str):
        some = evenly(labels, 2 * HALF_ROWS)
        second = ranks(labels[some]) % 2 == 1
        return [(divided[some[~second]], divided[some[second]])]
    folds = StratifiedKFold(min(int(cv), int(np.bincount(labels).max())))
    with warnings.catch_warnings():  # classes smaller than the number of folds do no harm here
        warnings.filterwarnings("ignore", "The least populated class", UserWarning)
        splits = list(folds.split(np.zeros((len(labels), 1)), labels))
    return [(divided[train], divided[test]) for train, test in splits]


def evenly(codes: Array, limit: int) -> Array:
    """Return rows with a class, about ``limit`` at most: of each class evenly spaced ones."""
    known = np.flatnonzero(codes != UNLABELLED)
    step = -(-len(known) // limit)
    return np.asarray(known[ranks(codes[known]) % step == 0])


def ranks(codes: Array) -> Array:
    """Return how many rows of its class come before each row."""
    order = np.argsort(codes, kind="stable")
    starts = np.searchsorted(codes[order], codes[order])
    found = np.empty(len(codes), dtype=np.intp)
    found[order] = np.arange(len(codes)) - starts
    return found


def _check_split(codes: Array, n_held_out: int, n_classes: int, cv: Any) -> None:
    if not n_held_out:
        raise InvalidInputError(
            f"A split of cv={shown(cv)} holds out no labelled row. Use stratified splits."
        )
    missing = n_classes - len(np.unique(codes))
    if missing:
        raise InvalidInputError(
            f"{missing} of {n_classes} classes have no row in a training part of cv={shown(cv)}; "
            "every part needs all classes. Use stratified splits, or a number for sharpness."
        )


def recognised(parts: Sequence[Part]) -> tuple[Array, Array]:
    """Return whether the largest margin of each held-out row is that of its class, and weights."""
    sides = [part.held_out for part in parts]
    right = np.concatenate([side.margins.argmax(axis=1) == side.codes for side in sides])
    return right, np.concatenate([side.weights for side in sides])


def is_better(right: Array, before: Array, weights: Array) -> bool:
    """Return whether more rows are right than before, by more than one standard error.

    Only rows that changed count: of m of them half would become right by chance, and the number
    that became right less that which became wrong has the standard deviation sqrt(m).
    """
    change = weights * (right.astype(np.float64) - before)
    return bool(change.sum() > np.sqrt(np.abs(change).sum()))


def codes_of(labels: Array, classes: Array) -> Array:
    """Return the place of each label among the classes, or UNLABELLED."""
    places = {label: place for place, label in enumerate(classes.tolist())}
    return np.array([places.get(label, UNLABELLED) for label in labels.tolist()], dtype=np.intp)


def is_pairwise(classifier: Any) -> bool:
    """Return whether the classifier takes a kernel between rows instead of rows."""
    if not hasattr(classifier, "__sklearn_tags__"):
        return False
    return bool(get_tags(classifier).input_tags.pairwise)
