"""What a comparison computes: every method on every fold of one table."""

from __future__ import annotations

import contextlib
import hashlib
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone

from marginfold.compare.methods import METHODS, Candidates, Size, suitable
from marginfold.data.target import listed
from marginfold.errors import InvalidInputError, InvalidParameterError
from marginfold.linalg.tall import Array
from marginfold.protocols.embeddings import EmbeddingMethod, measure, measure_nested
from marginfold.protocols.records import Result
from marginfold.protocols.results import coordinate_results
from marginfold.protocols.splits import Fold, folds
from marginfold.protocols.studies import Skip, Task

if TYPE_CHECKING:
    import pandas as pd

    from marginfold.data import Columns

STUDY = "compare"

HEADS = ("1-nn", "5-nn", "15-nn")
"""The classifiers on embeddings; one is chosen with the other parameters."""

INNER_FOLDS = 3
"""Folds of the training rows by which parameters are chosen."""

PROTOCOLS = {
    "nested": "weights, costs, dimensions and neighbors are chosen inside the training rows only",
    "paper": "weights, costs, dimensions and neighbors are the best on the test rows: optimistic",
}

TRAINED = 2
"""Training rows that two classes need: then both are in the training part of every inner fold."""

DRAWN_ROWS = 1_000
"""Held-out rows in a picture, at most."""


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
    """

    source: Source
    methods: tuple[str, ...]
    left_out: dict[str, str]
    protocol: str
    n_folds: int
    n_repeats: int
    notes: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        source: Source,
        methods: Sequence[str] | None = None,
        *,
        protocol: str = "nested",
        n_folds: int = 5,
        n_repeats: int = 2,
    ) -> Comparison:
        """Read the table and decide what is run on it."""
        rows = source.read()
        usable, notes = _usable_folds(rows.labels, n_folds)
        train, _ = folds(rows.labels, usable, 0)[0]
        n_columns = rows.encoded(train, train[:1])[0].shape[1]
        size = Size(len(train), n_columns, len(np.unique(rows.labels)))
        names, left_out = suitable(size, methods)
        if all(METHODS[name].control for name in names):
            reasons = "; ".join(f"{name}: {why}" for name, why in left_out.items())
            why = reasons or "only controls were named"
            raise InvalidParameterError(f"No method is left to run ({why}).")
        said = (*rows.columns.notes, *notes)
        return cls(source, tuple(names), left_out, protocol, usable, n_repeats, said)

    @property
    def options(self) -> dict[str, Any]:
        """The options of all tasks."""
        data = self.source.read().hash
        return {
            "data": data,
            "folds": self.n_folds,
            "inner_folds": INNER_FOLDS,
            "heads": list(HEADS),
        }

    def tasks(self, *, send_rows: bool = False) -> list[Task]:
        """Return one task for each method, repeat and fold, and one for each picture.

        Tasks read the table from its file; those that are to send the rows take them along, so
        that machines can do the work which do not see the file.  The records are the same.
        """
        rows, options = self.source.read(), self.options
        source = self.source.sent() if send_rows else self.source
        work = partial(evaluate, source=source)
        tasks = [
            Task(STUDY, rows.name, method, self.protocol, seed, fold, options, work=work)
            for seed in range(self.n_repeats)
            for fold in range(self.n_folds)
            for method in self.methods
        ]
        picture = partial(draw, source=source)
        return tasks + [
            Task(STUDY, rows.name, method, "picture", 0, 0, options, work=picture)
            for method in self.methods
            if method in PICTURES
        ]


def _usable_folds(labels: Array, wanted: int) -> tuple[int, list[str]]:
    """Return how many folds can be made, and what to know of rare classes."""
    classes, counts = np.unique(labels, return_counts=True)
    usable = min(wanted, int(counts.max()))
    second = int(np.sort(counts)[-2])
    trained = second - -(-second // usable)
    if trained < TRAINED:
        raise InvalidInputError(
            f"two classes need {TRAINED} training rows or more in every fold, for folds inside "
            f"folds; the second largest class has {second} rows in all, and {trained} in some of "
            f"{usable} folds. Add rows, or use more folds."
        )
    notes = []
    if usable < wanted:
        notes.append(f"{usable} folds instead of {wanted}: no class has more rows")
    rare = classes[counts < usable].tolist()
    if rare:
        notes.append(f"class {listed(rare)}: fewer rows than folds, so some folds test none of it")
    return usable, notes


PICTURES = ("PCA", "LDA", "LPP", "MMDA", "LSVA", "WSVDA", "KPCA", "KDA", "KLSVA", "MarginMap")
"""Methods that have a picture."""


@contextlib.contextmanager
def _many_classes() -> Iterator[None]:
    """Take many classes of few rows as they are; a target of numbers was refused before."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The number of unique classes is greater")
        yield


@_many_classes()
def evaluate(task: Task, *, source: Source | SentTable) -> list[Result]:
    """Measure a method on one fold."""
    fold, made = _prepared(task, source)
    n_folds = min(INNER_FOLDS, int(np.unique(fold.y, return_counts=True)[1].max()))
    nested = task.protocol == "nested"
    if isinstance(made, Candidates):
        return _classified(made, fold, n_folds if nested else None, task.seed)
    if nested:
        return measure_nested(
            *(made, fold, HEADS),
            n_folds=n_folds,
            seed=task.seed,
            with_curve=True,
            choose_head=True,
        )
    return measure(made, fold, HEADS)


def _prepared(task: Task, source: Source | SentTable) -> tuple[Fold, EmbeddingMethod | Candidates]:
    rows = source.read()
    if rows.hash != task.options["data"]:
        raise InvalidInputError(f"{source.path} has changed while it was compared; start again.")
    train, test = folds(rows.labels, task.options["folds"], task.seed)[task.fold]
    X, X_test = rows.encoded(train, test)
    fold = Fold(X, rows.labels[train], X_test, rows.labels[test])
    draw = task.seed * task.options["folds"] + task.fold
    size = Size(X.shape[0], X.shape[1], len(np.unique(fold.y)), draw)
    return fold, METHODS[task.method].make(size)


def _classified(candidates: Candidates, fold: Fold, n_folds: int | None, seed: int) -> list[Result]:
    """Return the error of the candidate that folds of the training rows prefer, or of all."""
    if n_folds is None:
        return [
            Result("error", _error(estimator, fold), params)
            for estimator, params in zip(candidates.estimators, candidates.params, strict=True)
        ]
    chosen = 0
    if len(candidates.estimators) > 1:
        inner = fold.inner(n_folds, seed)
        errors = [np.mean([_error(e, part) for part in inner]) for e in candidates.estimators]
        chosen = int(np.argmin(errors))
    error = _error(candidates.estimators[chosen], fold)
    return [Result("error", error, candidates.params[chosen])]


def _error(estimator: Any, fold: Fold) -> float:
    return float(np.mean(clone(estimator).fit(fold.X, fold.y).predict(fold.X_test) != fold.y_test))


@_many_classes()
def draw(task: Task, *, source: Source | SentTable) -> list[Result]:
    """Return two coordinates of held-out rows."""
    fold, made = _prepared(task, source)
    if isinstance(made, Candidates):
        transformer = made.estimators[0][:-1].fit(fold.X, fold.y)
    else:
        transformer = clone(made.estimator).fit(fold.X, fold.y)
    drawn = np.random.default_rng(task.seed).permutation(len(fold.X_test))[:DRAWN_ROWS]
    Z = transformer.transform(fold.X_test[drawn])
    if Z.shape[1] < 2:
        raise Skip(f"{task.method} finds one component only")
    return coordinate_results(Z[:, :2], map(str, fold.y_test[drawn]))


@dataclass(frozen=True)
class Source:
    """Where the table comes from, the user's or a bundled set: another process can read it too."""

    path: str
    target: str
    drop: tuple[str, ...] = ()
    categorical: tuple[str, ...] = ()
    drop_missing: bool = False
    bundled: bool = False

    def read(self) -> LabelledTable:
        """Read, check and split the table into features and labels."""
        return _read(self, _state(Path(self.path)))

    def sent(self) -> SentTable:
        """Return the table itself, for machines that do not see the file."""
        return SentTable(self.path, self.read())


@dataclass(frozen=True, eq=False)
class SentTable:
    """A table that is sent with the work, once for all tasks."""

    path: str
    rows: LabelledTable

    def read(self) -> LabelledTable:
        """Return the rows as they were read where the comparison was begun."""
        return self.rows


@dataclass(frozen=True, eq=False)
class LabelledTable:
    """A table that was read: features with their kinds, labels, and a hash of both."""

    name: str
    frame: pd.DataFrame
    labels: Array
    columns: Columns

    @cached_property
    def hash(self) -> str:
        """Hash of the values that enter the comparison."""
        digest = hashlib.sha256()
        digest.update(repr((self.columns.numbers, self.columns.levels)).encode())
        digest.update(self.frame.to_csv(index=False).encode())
        digest.update("\n".join(map(str, self.labels.tolist())).encode())
        return digest.hexdigest()[:24]

    def encoded(self, train: Array, test: Array) -> tuple[Array, Array]:
        """Return rows as numbers; medians, scales and levels are those of the training rows."""
        from marginfold.data.columns import encoder

        fitted = encoder(self.columns, "standard").fit(self.frame.iloc[train])
        parts = (fitted.transform(self.frame.iloc[part]) for part in (train, test))
        rows, new = (np.asarray(part, dtype=np.float64) for part in parts)
        return rows, new


def _state(path: Path) -> tuple[Any, ...]:
    """Return what differs when another file is meant or the file has changed."""
    found = path.stat() if path.exists() else None
    return path.absolute(), found and (found.st_ino, found.st_size, found.st_mtime_ns)


@lru_cache(maxsize=2)
def _read(source: Source, state: tuple[Any, ...]) -> LabelledTable:
    from marginfold.data import inspect_columns, read_labelled
    from marginfold.data.columns import arrange

    features, labels = read_labelled(
        source.path, source.target, drop=source.drop, drop_missing=source.drop_missing
    )
    columns = inspect_columns(features, categorical=source.categorical)
    arranged = arrange(features, columns.numbers, columns.levels)
    return LabelledTable(Path(source.path).name, arranged, labels, columns)
