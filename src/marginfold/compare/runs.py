"""What a comparison computes: every method on every fold of one table."""

from __future__ import annotations

import contextlib
import hashlib
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone

from marginfold._version import __version__
from marginfold.compare.methods import METHODS, Candidates, Size, suitable
from marginfold.compare.plan import fold_seconds, planned_rows
from marginfold.data.reading import AS_FOUND, Reading
from marginfold.data.target import listed
from marginfold.errors import InvalidInputError, InvalidParameterError
from marginfold.estimators.paths import MarginEstimator, fit_members
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

RARE, SAMPLE_SEED = 10, 0
"""Rows that a sample keeps of every class if there are so many, and the seed of its draw."""

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
        if budget is not None:
            size = _size(rows, n_folds)
            planned, _ = suitable(size, methods)
            n = len(rows.labels)
            n_taken = planned_rows(planned, n, size.n_columns, size.n_classes, budget)
            if n_taken < n:
                source = replace(source, n_taken=n_taken)
                rows = source.read()
        usable, notes = _usable_folds(rows.labels, n_folds)
        names, left_out = suitable(_size(rows, usable), methods)
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
        size = _size(self.source.read(), self.n_folds)
        return fold_seconds(method, self.n_rows, size.n_columns, size.n_classes)

    @property
    def options(self) -> dict[str, Any]:
        """The options of all tasks."""
        data = self.source.read().hash
        return {
            "data": data,
            "folds": self.n_folds,
            "inner_folds": INNER_FOLDS,
            "heads": list(HEADS),
            "version": __version__,
        }

    def tasks(self) -> list[Task]:
        """Return all tasks: those of the folds and those of the pictures."""
        return self.fold_tasks() + self.picture_tasks()

    def fold_tasks(self) -> list[Task]:
        """Return one task for each method, repeat and fold."""
        rows, options = self.source.read(), self.options
        work = partial(evaluate, source=self.source)
        return [
            Task(STUDY, rows.name, method, self.protocol, seed, fold, options, work=work)
            for seed in range(self.n_repeats)
            for fold in range(self.n_folds)
            for method in self.methods
        ]

    def picture_tasks(self) -> list[Task]:
        """Return one task for each method that has a picture."""
        rows, options = self.source.read(), self.options
        work = partial(draw, source=self.source)
        return [
            Task(STUDY, rows.name, method, "picture", 0, 0, options, work=work)
            for method in self.methods
            if method in PICTURES
        ]

    def sent(self) -> Comparison:
        """Return the same comparison for machines that do not see the file.

        Its tasks take the rows along instead of reading them; their records are the same.
        """
        return replace(self, source=self.source.sent())


def _size(rows: LabelledTable, n_folds: int) -> Size:
    """Return what the methods of a fold are made for."""
    n_train = len(rows.labels) - len(rows.labels) // n_folds
    return Size(n_train, rows.n_encoded, len(np.unique(rows.labels)))


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
def evaluate(task: Task, *, source: Source) -> list[Result]:
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


def _prepared(task: Task, source: Source) -> tuple[Fold, EmbeddingMethod | Candidates]:
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
            Result("error", error, params)
            for error, params in zip(
                _errors(candidates.estimators, fold), candidates.params, strict=True
            )
        ]
    chosen = 0
    if len(candidates.estimators) > 1:
        errors = [_errors(candidates.estimators, part) for part in fold.inner(n_folds, seed)]
        chosen = int(np.mean(errors, axis=0).argmin())
    (error,) = _errors([candidates.estimators[chosen]], fold)
    return [Result("error", error, candidates.params[chosen])]


def _errors(estimators: Sequence[Any], fold: Fold) -> list[float]:
    """Return the error of each; those of one margin problem share its graph and its metric."""
    fitted = [clone(estimator) for estimator in estimators]
    if all(isinstance(estimator, MarginEstimator) for estimator in fitted):
        fit_members(fitted, fold.X, fold.y, None)
    else:
        fitted = [estimator.fit(fold.X, fold.y) for estimator in fitted]
    return [float(np.mean(one.predict(fold.X_test) != fold.y_test)) for one in fitted]


@_many_classes()
def draw(task: Task, *, source: Source) -> list[Result]:
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
    """Where the table comes from, the user's or a bundled set: another process can read it too.

    Attributes
    ----------
    path, target : str
    drop, categorical : tuple of str
    drop_missing, bundled : bool
    reading : Reading
        How the file is to be read.
    n_taken : int or None
        Rows of the sample that is compared on; None takes all.
    rows : LabelledTable or None
        The table itself, where no file is to be read.
    """

    path: str
    target: str
    drop: tuple[str, ...] = ()
    categorical: tuple[str, ...] = ()
    drop_missing: bool = False
    bundled: bool = False
    reading: Reading = AS_FOUND
    n_taken: int | None = None
    rows: LabelledTable | None = field(default=None, compare=False, repr=False)

    def read(self) -> LabelledTable:
        """Read, check and split the table into features and labels; take a sample if asked for."""
        if self.rows is not None:
            return self.rows
        return _read(self, _state(Path(self.path)))

    def sent(self) -> Source:
        """Return the same with the rows in it, for machines that do not see the file."""
        return replace(self, rows=self.read())


@dataclass(frozen=True, eq=False)
class LabelledTable:
    """A table that was read: features with their kinds, labels, and a hash of both.

    ``n_read`` is the number of rows in the file, of which these may be a sample.
    """

    name: str
    frame: pd.DataFrame
    labels: Array
    columns: Columns
    n_read: int

    @cached_property
    def n_encoded(self) -> int:
        """Columns of numbers that the methods are given."""
        every = np.arange(len(self.labels))
        return self.encoded(every, every[:1])[0].shape[1]

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

    reading = source.reading
    features, labels = read_labelled(
        *(source.path, source.target),
        drop=source.drop,
        drop_missing=source.drop_missing,
        reading=reading,
    )
    columns = inspect_columns(features, categorical=source.categorical, reading=reading)
    arranged = arrange(features, columns.numbers, columns.levels, columns.written)
    n = len(labels)
    if source.n_taken is not None:
        taken = sample_rows(labels, source.n_taken)
        arranged, labels = arranged.iloc[taken], labels[taken]
    return LabelledTable(Path(source.path).name, arranged, labels, columns, n)


def sample_rows(labels: Array, n_rows: int) -> Array:
    """Return the numbers of rows drawn in the proportions of the classes, in their order.

    The same labels give the same rows.  Of a rare class `RARE` rows are kept, or all it has.

    Examples
    --------
    >>> import numpy as np
    >>> from marginfold.compare.runs import sample_rows
    >>> labels = np.repeat(["a", "b", "c"], [900, 95, 5])
    >>> np.unique(labels[sample_rows(labels, 100)], return_counts=True)[1].tolist()
    [90, 10, 5]
    """
    codes = np.unique(labels, return_inverse=True)[1]
    counts = np.bincount(codes)
    wanted = np.maximum(np.round(counts * n_rows / len(labels)).astype(int), RARE)
    rng = np.random.default_rng(SAMPLE_SEED)
    parts = [
        rng.permutation(np.flatnonzero(codes == code))[:count] for code, count in enumerate(wanted)
    ]
    return np.sort(np.concatenate(parts))
