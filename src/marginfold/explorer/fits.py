"""What a worker computes for a session: functions of arrays and estimators, which keep nothing.

They report progress (`marginfold.runtime.progress`) and can be cancelled there; a worker that does
not hear is ended (`marginfold.explorer.jobs`).
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from marginfold.compare.methods import METHODS
from marginfold.compare.table import Size
from marginfold.errors import CancelledError, CancelledWarning, MarginfoldWarning
from marginfold.estimators.held_out import evenly
from marginfold.estimators.paths import path
from marginfold.graphs import PermutedGraph, resolve_graph
from marginfold.linalg.tall import Array
from marginfold.model_selection.neighbors_classifier import (
    NeighborsClassifier,
    left_out_predictions,
)
from marginfold.protocols.permutation import PermutationResult, graph_permutation_test
from marginfold.protocols.splits import folds
from marginfold.protocols.statistics import Share
from marginfold.runtime.jit import without_compiling
from marginfold.runtime.progress import report

NEIGHBORS = 5
"""Neighbors by which a map is judged."""

JUDGES, JUDGED = 10_000, 5_000
"""Training rows and held-out rows, at most, by which a map is judged."""

PATH_JUDGES, PATH_JUDGED = 4_000, 2_000
"""The same for each step of a path."""

TESTED_ROWS, PERMUTATIONS, TEST_FOLDS = 1_500, 19, 3
"""Rows on which a graph is tested, permutations (the fewest that can tell) and folds."""

SUSPECT_FOLDS = 5
"""Folds by which suspects are found."""

REGION_ROWS = 2_000
"""Training rows, at most, that the classifier of regions learns from."""

REGION_MARGIN = 0.05
"""Share of the extent by which regions go beyond the rows."""

REGIONS = {"GESVC": "GESVC", "GEPSVC": "GEPSVC", "TwinSVC": "TwinSVC", "SVC": "SVC rbf"}
"""Classifiers of regions, and their names in the comparison."""

VOTERS = 15
"""Neighbors that vote on a row: enough to tell a clear majority from a chance one."""


@dataclass(frozen=True, eq=False)
class Rows:
    """All rows as numbers, their labels, and which of them no fit may see."""

    X: Array
    labels: Array
    held_out: Array

    @property
    def training(self) -> Array:
        """The numbers of the training rows."""
        return np.flatnonzero(~self.held_out)


@dataclass(frozen=True)
class Errors:
    """The errors of neighbors on held-out rows, and on the training rows that the fit has seen."""

    held_out: Share
    training: Share


@dataclass(frozen=True, eq=False)
class Fitted:
    """A fitted map: the images of all rows, its errors on its first two axes and on all."""

    estimator: Any
    coordinates: Array
    drawn: Errors
    whole: Errors
    seconds: float
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True, eq=False)
class Path:
    """Fits over graph weights, the first two coordinates of all rows, and held-out errors there."""

    estimators: list[Any]
    weights: list[float]
    coordinates: Array
    errors: list[Share]
    seconds: float


def promptly(function: Callable[..., Any], *args: Any) -> Any:
    """Call a function that does not compile what it runs.

    Short fits add up in a worker until compiling would pay, and then somebody waits for it who has
    moved a slider: a path of 1.1 s took 30 s on a busy machine.
    """
    with without_compiling():
        return function(*args)


def fit_map(estimator: Any, rows: Rows) -> Fitted:
    """Fit a map to the training rows and place all rows."""
    begun = time.perf_counter()
    train = rows.training
    with _noted() as notes:
        report("fit", 0, 3)
        fitted = clone(estimator).fit(rows.X[train], rows.labels[train])
    placed = place(fitted, rows)
    return replace(placed, seconds=time.perf_counter() - begun, notes=notes)


def place(fitted: Any, rows: Rows) -> Fitted:
    """Place all rows by a fitted map and count its errors."""
    begun = time.perf_counter()
    report("rows", 1, 3)
    Z = np.asarray(fitted.transform(rows.X), dtype=np.float64)
    report("error", 2, 3)
    drawn = count_errors(Z[:, :2], rows)
    whole = count_errors(Z, rows) if Z.shape[1] > 2 else drawn
    return Fitted(fitted, Z, drawn, whole, time.perf_counter() - begun)


def count_errors(Z: Array, rows: Rows) -> Errors:
    """Return the errors of neighbors in these coordinates."""
    return Errors(held_out_error(Z, rows), training_error(Z, rows))


def fit_path(estimator: Any, rows: Rows, weights: Sequence[float]) -> Path:
    """Fit a map for each graph weight and place all rows; signs follow the step before."""
    begun = time.perf_counter()
    train = rows.training
    with _noted():
        fits = path(estimator, rows.X[train], rows.labels[train], graph_weight=list(weights))
        shown: list[Array] = []
        errors: list[Share] = []
        for done, fitted in enumerate(fits):
            report("steps of the path", done, len(fits))
            Z = np.asarray(fitted.transform(rows.X), dtype=np.float64)
            errors.append(held_out_error(Z[:, :2], rows, PATH_JUDGES, PATH_JUDGED))
            shown.append(following(two_axes(Z), shown[-1] if shown else None))
    return Path(fits, list(weights), np.stack(shown), errors, time.perf_counter() - begun)


def two_axes(Z: Array) -> Array:
    """Return the first two coordinates; the second is 0 where there is none."""
    return Z[:, :2] if Z.shape[1] > 1 else np.column_stack([Z, np.zeros(len(Z))])


def following(Z: Array, before: Array | None) -> Array:
    """Return coordinates with the signs that they had in the step before."""
    if before is None:
        return Z
    return Z * np.where((Z * before).sum(axis=0) < 0, -1.0, 1.0)


def held_out_error(Z: Array, rows: Rows, judges: int = JUDGES, judged: int = JUDGED) -> Share:
    """Return the error of nearest training rows on held-out rows."""
    train = _some(rows, rows.training, judges)
    test = _some(rows, np.flatnonzero(rows.held_out), judged)
    judge = NeighborsClassifier(NEIGHBORS).fit(Z[train], rows.labels[train])
    wrong = judge.predict(Z[test]) != rows.labels[test]
    return Share.of(int(wrong.sum()), len(test))


def training_error(Z: Array, rows: Rows) -> Share:
    """Return the error of nearest other training rows on training rows."""
    train = _some(rows, rows.training, JUDGED)
    wrong = left_out_predictions(Z[train], rows.labels[train], NEIGHBORS) != rows.labels[train]
    return Share.of(int(wrong.sum()), len(train))


def control_map(estimator: Any, rows: Rows) -> tuple[PermutationResult, Array]:
    """Test the graph of a map on training rows, and place all rows by one permuted graph."""
    train = rows.training
    some = _some(rows, train, TESTED_ROWS)
    n_folds = min(TEST_FOLDS, int(np.unique(rows.labels[some], return_counts=True)[1].max()))
    with _noted():
        permuted = PermutedGraph(resolve_graph(estimator.graph), 0)
        ghost = clone(estimator).set_params(graph=permuted)
        ghost.fit(rows.X[train], rows.labels[train])
        found = graph_permutation_test(
            *(estimator, rows.X[some], rows.labels[some]),
            cv=n_folds,
            n_permutations=PERMUTATIONS,
            scoring=f"{NEIGHBORS}-nn",
        )
    return found, np.asarray(ghost.transform(rows.X), dtype=np.float64)


def find_suspects(estimator: Any, rows: Rows) -> Suspects:
    """Return training rows that speak against their label when they are held out."""
    train = rows.training
    labels = rows.labels[train]
    n_folds = min(SUSPECT_FOLDS, int(np.unique(labels, return_counts=True)[1].max()))
    with _noted():
        found = suspect_rows(estimator, rows.X[train], labels, folds(labels, n_folds, seed=0))
    return Suspects(train[found.rows], found.suggested, found.margins)


@dataclass(frozen=True, eq=False)
class Regions:
    """Answers of a classifier on a grid of two axes, top row first, and its held-out error."""

    extent: tuple[float, float, float, float]
    grid: Array
    error: Share


def draw_regions(name: str, Z: Array, rows: Rows, size: int) -> Regions:
    """Fit a classifier to two coordinates of training rows and ask it on a grid over all rows."""
    train = _some(rows, rows.training, REGION_ROWS)
    test = _some(rows, np.flatnonzero(rows.held_out), JUDGED)
    low, high = Z.min(axis=0), Z.max(axis=0)
    margin = REGION_MARGIN * np.where(high > low, high - low, 1.0)
    low, high = low - margin, high + margin
    report("classifier", 0, 2)
    made = METHODS[REGIONS[name]].make(Size.of(rows.labels[train], 2))
    with _noted():
        classifier = make_pipeline(StandardScaler(), made).fit(Z[train], rows.labels[train])
        report("grid", 1, 2)
        x, y = (np.linspace(low[k], high[k], size) for k in (0, 1))
        grid = np.stack(np.meshgrid(x, y[::-1]), axis=-1).reshape(-1, 2)
        answers = classifier.predict(grid).reshape(size, size)
        wrong = classifier.predict(Z[test]) != rows.labels[test]
    extent = float(low[0]), float(high[0]), float(low[1]), float(high[1])
    return Regions(extent, answers, Share.of(int(wrong.sum()), len(test)))


def _some(rows: Rows, among: Array, most: int) -> Array:
    """Return rows, at most so many: of each class evenly spaced ones."""
    if len(among) <= most:
        return among
    codes = np.unique(rows.labels[among], return_inverse=True)[1]
    return among[evenly(codes, most)]


@contextmanager
def _noted() -> Iterator[list[str]]:
    """Collect what the library warns of; a fit that was cancelled is none."""
    notes: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield notes
    if any(issubclass(w.category, CancelledWarning) for w in caught):
        raise CancelledError("cancelled; nothing of this work is kept.")
    said = [str(w.message) for w in caught if issubclass(w.category, MarginfoldWarning)]
    notes += dict.fromkeys(said)


@dataclass(frozen=True, eq=False)
class Suspects:
    """Rows that speak against their label, the clearest first.

    Attributes
    ----------
    rows : array of int
    suggested : array
        The class that most neighbors have.
    margins : array
        Share of votes for that class, less the share for the row's own.
    """

    rows: Array
    suggested: Array
    margins: Array


def suspect_rows(
    transformer: Any,
    X: Array,
    y: Array,
    splits: Sequence[tuple[Array, Array]],
    n_neighbors: int = VOTERS,
) -> Suspects:
    """Fit a map without some rows, place them, and let their neighbors vote on their class.

    A row is judged by fits alone that have seen neither it nor its label.

    Parameters
    ----------
    transformer : estimator
        Not changed; a clone is fitted in each split.
    X : array of shape (n_samples, n_features)
    y : array of shape (n_samples,)
    splits : sequence of pairs
        Training and held-out rows; a row that is held out in none is never a suspect.
    n_neighbors : int, default=15

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_iris
    >>> from marginfold import LDA
    >>> from marginfold.explorer.fits import suspect_rows
    >>> from marginfold.protocols.splits import folds
    >>> X, y = load_iris(return_X_y=True)
    >>> y[7] = 2  # a setosa that somebody calls virginica
    >>> suspects = suspect_rows(LDA(2), X, y, folds(y, 5, seed=0))
    >>> int(suspects.rows[0]), int(suspects.suggested[0])
    (7, 0)
    """
    classes, codes = np.unique(y, return_inverse=True)
    votes = np.full((len(y), len(classes)), np.nan)
    for done, (train, test) in enumerate(splits):
        report("folds", done, len(splits))
        fitted = clone(transformer).fit(X[train], y[train])
        judge = NeighborsClassifier(n_neighbors).fit(fitted.transform(X[train]), y[train])
        votes[test] = 0.0
        known = np.searchsorted(classes, judge.classes_)
        votes[np.ix_(test, known)] = judge.predict_proba(fitted.transform(X[test]))
    report("folds", len(splits), len(splits))
    best = np.where(np.isnan(votes), -1.0, votes).argmax(axis=1)
    every = np.arange(len(y))
    margins = np.nan_to_num(votes[every, best] - votes[every, codes])
    rows = np.flatnonzero(margins > 0)
    rows = rows[np.argsort(-margins[rows], kind="stable")]
    return Suspects(rows, classes[best[rows]], margins[rows])
