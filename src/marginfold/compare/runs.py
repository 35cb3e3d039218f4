"""What a comparison computes: every method on every fold of one table."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from shlex import quote
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import Pipeline

from marginfold._version import __version__
from marginfold.compare.importance import (
    IMPORTANCE,
    added_errors,
    held_out_rows,
    importance_results,
)
from marginfold.compare.measures import fit_parameters, measure, measure_all
from marginfold.compare.methods import METHODS, PERMUTED_GRAPH, procedure
from marginfold.compare.plan import fold_seconds, planned_rows, suitable, without_the_dearest
from marginfold.compare.table import LabelledTable, Source
from marginfold.data.target import listed
from marginfold.errors import InvalidInputError, InvalidParameterError, NoDirectionError
from marginfold.estimators.margin_map import MarginMap
from marginfold.linalg.tall import Array
from marginfold.protocols.records import Result
from marginfold.protocols.results import coordinate_results
from marginfold.protocols.splits import Fold
from marginfold.protocols.studies import Skip, Task

if TYPE_CHECKING:
    import pandas as pd


STUDY = "compare"

PROTOCOLS = {
    "nested": "weights, costs, dimensions and neighbors are chosen inside the training rows only",
    "paper": "weights, costs, dimensions and neighbors are the best on the test rows: optimistic",
}

TRAINED = 2
"""Training rows that two classes need: then both are in the training part of every inner fold."""

GROUP_VALUES, GROUP_ROWS = 3, 3
"""Values for each class, and rows for each value, in the mean, from which a column of words whose
values have one class each is taken for the names of persons or series."""

DRAWN_ROWS = 1_000
"""Held-out rows in a picture, at most."""

KEPT_FOLDS = 4
"""Folds that a process keeps encoded: many methods take the same one after the other, and to encode
it takes longer than the quick ones."""

ANCHOR = "anchor"
"""The metric of a record that holds one coordinate of the anchor of a class."""


@dataclass(frozen=True)
class Comparison:
    """The plan of a comparison.

    Attributes
    ----------
    source : Source
    methods : tuple of str
    left_out : mapping of str to str
        Methods that are not run, and why.
    protocol : {"nested", "paper"}
    n_folds, n_repeats : int
    notes : tuple of str
        What to know of the rows and folds.
    budget : float or None
        Seconds that it is planned for; None measures every method on every fold of all rows.
    """

    source: Source
    methods: tuple[str, ...]
    left_out: dict[str, str]
    protocol: str
    n_folds: int
    n_repeats: int
    notes: tuple[str, ...] = ()
    budget: float | None = None

    @classmethod
    def of(
        cls,
        source: Source,
        methods: Sequence[str] | None = None,
        *,
        protocol: str = "nested",
        n_folds: int = 5,
        n_repeats: int = 2,
        budget: float | None = None,
    ) -> Comparison:
        """Read the table and decide what is run on it, and on how many of its rows."""
        rows = source.read()
        dear: dict[str, str] = {}
        if budget is not None:
            size = rows.size
            planned, _ = suitable(size, methods)
            n = len(rows.labels)
            if methods is None:
                table = (n, size.n_columns, size.n_classes)
                planned, dear = without_the_dearest(planned, *table, budget)
            n_taken = planned_rows(planned, n, size.n_columns, size.n_classes, budget)
            if n_taken < n:
                source = replace(source, n_taken=n_taken)
                rows = source.read()
        usable, notes = _usable_folds(rows, n_folds)
        _check_groups(rows, usable, n_repeats)
        names, left_out = suitable(rows.size, methods)
        names, left_out = [name for name in names if name not in dear], {**left_out, **dear}
        if all(METHODS[name].control for name in names):
            reasons = "; ".join(f"{name}: {why}" for name, why in left_out.items())
            why = reasons or "only controls were named"
            raise InvalidParameterError(f"No method is left to run ({why}).")
        said = (*rows.columns.notes, *notes)
        return cls(source, tuple(names), left_out, protocol, usable, n_repeats, said, budget)

    @property
    def n_rows(self) -> int:
        """Rows that are compared on."""
        return len(self.source.read().labels)

    @property
    def n_measurements(self) -> int:
        """Folds of all repeats."""
        return self.n_folds * self.n_repeats

    @property
    def races(self) -> bool:
        """Whether methods that are behind are not refined; the papers' choice needs all folds."""
        return self.budget is not None and self.protocol == "nested"

    def fold_seconds(self, method: str) -> float:
        """Return about how long one fold of a method takes."""
        size = self.source.read().size
        return fold_seconds(method, self.n_rows, size.n_columns, size.n_classes)

    def procedure(self, method: str) -> Any:
        """Return what is measured of a method, unfitted: fitted to all rows it is what is kept."""
        return procedure(method, self.source.read().size)

    @cached_property
    def options(self) -> dict[str, dict[str, Any]]:
        """The options of the tasks of each method."""
        data = self.source.read().hash
        common = {"data": data, "folds": self.n_folds, "version": __version__}
        return {
            method: {**common, "procedure": " ".join(repr(self.procedure(method)).split())}
            for method in self.methods
        }

    def tasks(self) -> list[Task]:
        """Return all tasks: those of the folds and those of the pictures."""
        return self.fold_tasks() + self.picture_tasks()

    def fold_tasks(self) -> list[Task]:
        """Return one task for each method, repeat and fold."""
        rows, options = self.source.read(), self.options
        work = partial(evaluate, source=self.source)
        return [
            Task(STUDY, rows.name, method, self.protocol, seed, fold, options[method], work=work)
            for seed in range(self.n_repeats)
            for fold in range(self.n_folds)
            for method in self.methods
        ]

    def picture_tasks(self) -> list[Task]:
        """Return one task for each method that has a picture."""
        rows, options = self.source.read(), self.options
        work = partial(draw, source=self.source)
        return [
            Task(STUDY, rows.name, method, "picture", 0, 0, options[method], work=work)
            for method in self.methods
            if method in PICTURES
        ]

    def importance_tasks(self, method: str) -> list[Task]:
        """Return the task that finds which columns matter to a method."""
        rows, work = self.source.read(), partial(weigh_columns, source=self.source)
        options = self.options[method]
        return [Task(STUDY, rows.name, method, IMPORTANCE, 0, 0, options, work=work)]

    def sent(self) -> Comparison:
        """Return the same comparison for machines that do not see the file.

        Its tasks take the rows along instead of reading them; their records are the same.
        """
        return replace(self, source=self.source.sent())


def _usable_folds(rows: LabelledTable, wanted: int) -> tuple[int, list[str]]:
    """Return how many folds can be made, and what to know of rare classes and of groups."""
    classes, counts = np.unique(rows.labels, return_counts=True)
    usable = min(wanted, int(counts.max()), rows.n_groups)
    second = int(np.sort(counts)[-2])
    trained = second - -(-second // usable)
    if trained < TRAINED:
        advice = "Add rows, or use more folds." if second > TRAINED else "Add rows of it."
        raise InvalidInputError(
            f"two classes need {TRAINED} training rows or more in every fold, which is divided "
            f"into folds again; the second largest class has {second} rows in all, and {trained} "
            f"in some of {usable} folds. {advice}"
        )
    notes = []
    if usable < wanted:
        few = "no class has more rows" if rows.groups is None else "there are no more groups"
        notes.append(f"{usable} folds instead of {wanted}: {few}")
    rare = classes[counts < usable].tolist()
    if rare:
        notes.append(f"class {listed(rare)}: fewer rows than folds, so some folds test none of it")
    if rows.groups is None:
        notes += _hints_of_groups(rows)
    else:
        notes.append(
            f"folds keep the rows of each of {rows.n_groups} groups together: a row is never "
            "predicted from others of its group"
        )
        alone = [c for c in classes if len(np.unique(rows.groups[rows.labels == c])) == 1]
        if alone:
            notes.append(
                f"class {listed(alone)}: all its rows are in one group, so that it cannot be "
                "learnt where it is held out"
            )
    return usable, notes


def _hints_of_groups(rows: LabelledTable) -> list[str]:
    """Return which columns look like the names of those that rows were taken from."""
    notes = []
    for name in rows.columns.levels:
        pairs = rows.frame[[name]].assign(label=rows.labels).dropna().drop_duplicates()
        n_values, n_rows = rows.frame[name].nunique(), rows.frame[name].count()
        repeated = n_rows >= GROUP_ROWS * n_values
        if n_values == len(pairs) and n_values >= GROUP_VALUES * len(rows.classes) and repeated:
            notes.append(
                f"column {name!r}: all rows with one of its {n_values} values have the same class; "
                f"if it says whom or what they were taken from, --group {quote(name)} asks whether "
                "new ones can be predicted"
            )
    return notes


def _check_groups(rows: LabelledTable, n_folds: int, n_repeats: int) -> None:
    """Refuse groups that are too few, or too much alike, for folds inside folds."""
    if rows.groups is None:
        return
    for train, _ in (pair for seed in range(n_repeats) for pair in rows.folds(n_folds, seed)):
        labels, groups, inside = rows.labels[train], rows.groups[train], rows.size.folds
        if len(np.unique(groups)) >= inside.n_splits:
            parts = inside.split(np.zeros(len(train)), labels, groups)
            if all(len(np.unique(labels[part])) > 1 for part, _ in parts):
                continue
        raise InvalidInputError(
            f"--group makes {rows.n_groups} groups: too few for {n_folds} folds whose rows are "
            f"divided into {inside.n_splits} folds again, each with two classes or more. Collect "
            "more groups, or use more --folds."
        )


PICTURES = ("PCA", "LDA", "LPP", "MMDA", "LSVA", "WSVDA", "KPCA", "KDA", "KLSVA", "MarginMap")
"""Methods that have a picture."""


@contextlib.contextmanager
def _many_classes() -> Iterator[None]:
    """Take many classes of few rows as they are; a target of numbers was refused before.

    Nor is a rival's unfinished iteration told for every fold: its error says what came of it.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The number of unique classes is greater")
        warnings.filterwarnings("ignore", message="The least populated class")
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield


@_many_classes()
def evaluate(task: Task, *, source: Source) -> list[Result]:
    """Fit the procedure of a method to the training rows of a fold, and measure it on the others.

    By the papers' protocol every candidate is measured on the test rows.
    """
    rows, (train, test, fold), made = _prepared(task, source)
    try:
        if task.protocol == "paper":
            return measure_all(made, fold)
        return measure(made, fold, test, rows.classes, rows.groups_of(train))
    except NoDirectionError:
        return [Result("error", None, reason="no direction carries anything in some fold")]


def _prepared(task: Task, source: Source) -> tuple[LabelledTable, tuple[Array, Array, Fold], Any]:
    """Return the table, the fold with its rows' numbers, and the unfitted procedure."""
    rows = source.read()
    if rows.hash != task.options["data"]:
        raise InvalidInputError(f"{source.path} has changed while it was compared; start again.")
    fold = _encoded_fold(rows, task.options["folds"], task.seed, task.fold)
    size = rows.size
    if task.method == PERMUTED_GRAPH:  # a control of its own in every fold, and never kept
        size = replace(size, seed=task.seed * task.options["folds"] + task.fold)
    return rows, fold, procedure(task.method, size)


@lru_cache(maxsize=KEPT_FOLDS)
def _encoded_fold(
    rows: LabelledTable, n_folds: int, seed: int, number: int
) -> tuple[Array, Array, Fold]:
    """Return the numbers of the training and test rows, and the fold as methods take it."""
    train, test = rows.folds(n_folds, seed)[number]
    X, X_test = rows.encoded(train, test)
    return train, test, Fold(X, rows.labels[train], X_test, rows.labels[test])


@_many_classes()
def draw(task: Task, *, source: Source) -> list[Result]:
    """Return two coordinates of held-out rows, and those of the anchors of classes if there are."""
    rows, (_, test, fold), made = _prepared(task, source)
    untuned = made[:-1] if isinstance(made, Pipeline) else clone(made.estimator)
    transformer = untuned.fit(fold.X, fold.y)
    drawn = np.random.default_rng(task.seed).permutation(len(fold.X_test))[:DRAWN_ROWS]
    Z = transformer.transform(fold.X_test[drawn])
    if Z.shape[1] < 2:
        raise Skip(f"{task.method} finds one component only")
    numbers = rows.row_numbers[test[drawn]].tolist()
    results = coordinate_results(Z[:, :2], map(str, fold.y_test[drawn]), numbers)
    return results + _anchor_results(transformer)


def _anchor_results(transformer: Any) -> list[Result]:
    last = transformer[-1] if isinstance(transformer, Pipeline) else transformer
    if not isinstance(last, MarginMap):
        return []
    return [
        Result(ANCHOR, float(value), {"label": str(label)}, dimension=k)
        for label, place in zip(last.classes_, last.anchors_, strict=True)
        for k, value in enumerate(place, start=1)
    ]


@_many_classes()
def weigh_columns(task: Task, *, source: Source) -> list[Result]:
    """Return how many errors shuffling each column of held-out rows adds.

    The columns are those of the table, before anything is encoded.
    """
    rows, (train, test, fold), made = _prepared(task, source)
    n_rows = held_out_rows(len(test), rows.frame.shape[1])
    taken = np.sort(np.random.default_rng(task.seed).permutation(len(test))[:n_rows])
    encode = rows.encoder(train)
    made.fit(fold.X, fold.y, **fit_parameters(made, rows.groups_of(train)))

    def answer(frame: pd.DataFrame) -> Array:
        return np.asarray(made.predict(encode(frame)))

    held_out = rows.frame.iloc[test[taken]]
    added = added_errors(answer, held_out, fold.y_test[taken], task.seed)
    return importance_results(list(rows.frame.columns), added)
