"""A table that is looked at: its target, its split, and its rows as numbers.

Columns, missing values and categories are treated as `marginfold.compare` does it.  Everything that
is learnt of rows (medians, scales, levels) is learnt of training rows.
"""

from __future__ import annotations

import contextlib
import gzip
import os
import zlib
from collections.abc import Collection
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.pipeline import Pipeline

from marginfold.compare.table import Size, sample_rows
from marginfold.data import Columns, TableModel, inspect_columns, read_table, split_target
from marginfold.data.columns import arrange, encoder, feature_columns
from marginfold.data.csv_files import DECIMAL
from marginfold.data.reading import AS_FOUND, Reading
from marginfold.data.tables import is_set
from marginfold.data.target import check_columns
from marginfold.errors import InvalidInputError, MarginfoldError
from marginfold.explorer.calls import MOST_BYTES, MOST_ROWS
from marginfold.linalg.tall import Array
from marginfold.protocols.splits import hold_out

if TYPE_CHECKING:
    import pandas as pd

MOST_CELLS = 50_000_000
"""Numbers of a table that a session holds, rows times columns: 400 MB."""

PIECE = 1 << 20
"""Bytes that are unpacked at a time."""

MOST_CLASSES = 1000
"""Classes that a map can show."""

SEARCHED = 100
"""Columns at either end of a table among which the target is looked for."""

USUAL = ("label", "target", "class", "species", "outcome", "diagnosis", "y")
"""Names that a target often has, likeliest first."""

HELD_OUT = 0.3
"""Share of the rows that no fit sees."""


@dataclass(frozen=True, eq=False)
class Opened:
    """A table as it was read.

    Attributes
    ----------
    name : str
        What it is called: a set, or the name of a file without its folder.
    frame : pandas.DataFrame
    path : str
        What a script reads it from.
    reading : Reading
    held_out : array of bool or None
        Which rows no fit may see, if that is not to be drawn.
    """

    name: str
    frame: pd.DataFrame
    path: str
    reading: Reading = AS_FOUND
    held_out: Array | None = None

    @cached_property
    def targets(self) -> list[str]:
        """Columns that can be the target, as they stand in the table."""
        names = list(map(str, self.frame.columns))
        near = names if len(names) <= 2 * SEARCHED else names[:SEARCHED] + names[-SEARCHED:]
        return [name for name in near if self._holds_classes(name)]

    @cached_property
    def likely_target(self) -> str:
        """The target if nobody says which: a usual name, else the last column that can be it."""
        if not self.targets:
            raise InvalidInputError(
                f"no column of {self.name} holds classes: a target has at least two values, each "
                "in at least two rows. Add such a column."
            )
        plain = {name.strip().lower(): name for name in self.targets}
        return next((plain[name] for name in USUAL if name in plain), self.targets[-1])

    def _holds_classes(self, name: str) -> bool:
        column = self.frame[name]
        if not 2 <= column.nunique() <= min(MOST_CLASSES, len(column) // 2):
            return False
        try:
            split_target(self.frame[[name]].assign(**{f"{name} ": 0}), name, drop_missing=True)
        except InvalidInputError:
            return False
        return True


def open_table(path: str | os.PathLike[str], reading: Reading = AS_FOUND) -> Opened:
    """Read a file, or a data set by its name."""
    frame = read_table(path, reading=reading)
    name = str(path) if is_set(path) else Path(path).name
    return Opened(name, frame, str(path), reading)


def array_table(X: Any, y: Any, held_out: Any = None, seed: int = 0) -> Table:
    """Return rows and labels that are in memory as a table to look at.

    Parameters
    ----------
    X, y : array-like
        Rows, with names of columns if they have some, and labels.
    held_out : tuple (X, y), optional
        More of them, that no fit sees; by default a part of X is held out.
    seed : int, default=0
        Of that draw.

    Examples
    --------
    >>> from marginfold.explorer.table import array_table
    >>> table = array_table([[0.0, 1.0], [1.0, 0.0]] * 10, ["a", "b"] * 10)
    >>> table.target, table.held_out.sum()
    ('label', np.int64(6))
    """
    import pandas

    parts = [(X, y)] if held_out is None else [(X, y), held_out]
    frames = []
    for rows, labels in parts:
        frame = _framed(rows)
        if len(frame) != len(labels):
            raise InvalidInputError(f"{len(frame)} rows have {len(labels)} labels; give as many.")
        target = str(getattr(y, "name", None) or "label")
        while target in frame.columns:
            target += "_"
        frames.append(frame.assign(**{target: np.asarray(labels)}))
    if any(list(frame.columns) != list(frames[0].columns) for frame in frames):
        raise InvalidInputError("X and the rows of held_out have other columns; give the same.")
    whole = pandas.concat(frames, ignore_index=True)
    if whole[target].isna().any():
        raise InvalidInputError("labels are missing; give those rows only that have one.")
    mask = None if held_out is None else np.arange(len(whole)) >= len(frames[0])
    return Table.of(Opened("rows", whole, "", held_out=mask), target, seed=seed)


def _framed(X: Any) -> pd.DataFrame:
    """Return rows as a pandas table; columns without names are called x1, x2 ..."""
    import pandas

    if hasattr(X, "to_pandas"):  # polars, pyarrow
        X = X.to_pandas()
    if isinstance(X, pandas.DataFrame):
        return X.rename(columns=str).reset_index(drop=True)
    rows = np.asarray(X.toarray() if hasattr(X, "toarray") else X)
    if rows.ndim != 2:
        raise InvalidInputError(f"X has rows and columns; got an array of shape {rows.shape}.")
    return pandas.DataFrame(rows, columns=[f"x{k + 1}" for k in range(rows.shape[1])])


def open_sent(path: str, name: str) -> Table:
    """Read a file that somebody sent and take its likeliest target; ``name`` is what they call it.

    What is packed must not unpack to more than may be sent.
    """
    _check_unpacked(path)
    try:
        opened = Opened(name, open_table(path).frame, name)
        return prepared_table(opened, opened.likely_target, (), 0, HELD_OUT)
    except MarginfoldError as error:
        raise type(error)(str(error).replace(path, name)) from None


def prepared_table(
    opened: Opened, target: str, ignored: Collection[str], seed: int, share: float
) -> Table:
    """Return a table whose rows are numbers already; refuse what cannot become numbers."""
    table = Table.of(opened, target, ignored, seed, share)
    _ = table.size
    return table


def _check_unpacked(path: str) -> None:
    """Refuse a packed file that grows beyond `MOST_BYTES`; its reader tells of damage."""
    with contextlib.suppress(OSError, EOFError, zlib.error), gzip.open(path) as file:
        size = 0
        while piece := file.read(PIECE):
            size += len(piece)
            if size > MOST_BYTES:
                raise InvalidInputError(
                    f"the file unpacks to more than {MOST_BYTES // 10**6} MB; unpack it, and open "
                    "it by 'marginfold explore FILE'."
                )


@dataclass(frozen=True, eq=False)
class Table:
    """Rows to look at: features with their kinds, labels, and which rows are held out.

    Attributes
    ----------
    opened : Opened
    target : str
    ignored : tuple of str
        Columns that were left out by hand.
    seed : int
        Of the split.
    share : float
        Of the rows that are held out.
    frame : pandas.DataFrame
        The used columns of the rows that are shown, as `arrange` gives them; indexed by the rows of
        the file.
    labels : array
    held_out : array of bool
    columns : Columns
    left_out : dict
        Why columns are not used that the treatment of columns refuses.
    notes : tuple of str
    sampled : str or None
        What to know if not all rows are shown.
    """

    opened: Opened
    target: str
    ignored: tuple[str, ...]
    seed: int
    share: float
    frame: pd.DataFrame
    labels: Array
    held_out: Array
    columns: Columns
    left_out: dict[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    sampled: str | None = None

    @classmethod
    def of(
        cls,
        opened: Opened,
        target: str | None = None,
        ignored: Collection[str] = (),
        seed: int = 0,
        share: float = HELD_OUT,
        held_out: Array | None = None,
    ) -> Table:
        """Part a table into features and labels and hold rows out.

        ``held_out`` says which rows of the table no fit sees; by default they are drawn by class.
        """
        target = opened.likely_target if target is None else target
        check_columns(opened.frame, [target, *ignored], "column")
        if target in ignored:
            raise InvalidInputError(f"column {target!r} is the target and ignored; choose one.")
        kept = opened.frame.drop(columns=list(ignored))
        kept.attrs = dict(opened.frame.attrs)
        features, labels = split_target(kept, target, drop_missing=True)
        n_classes = len(np.unique(labels))
        if n_classes > MOST_CLASSES:
            raise InvalidInputError(
                f"target {target!r} has {n_classes} classes; a map shows up to {MOST_CLASSES}."
            )
        notes = []
        if len(labels) < len(kept):
            notes.append(f"{len(kept) - len(labels)} rows have no {target!r} and are left out")
        columns, left_out = _usable(features, opened.reading)
        n, most = len(labels), most_rows(opened, ignored)
        sampled = None
        held_out = opened.held_out if held_out is None else held_out
        if held_out is not None:
            held_out = np.asarray(held_out, dtype=bool)[np.asarray(features.index)]
        elif n > most:
            taken = sample_rows(labels, most)
            features, labels = features.iloc[taken], labels[taken]
            sampled = f"{len(taken)} of {n} rows are shown, drawn in the proportions of the classes"
        frame = arrange(features, columns.numbers, columns.levels, columns.written)
        if held_out is None:
            held_out = hold_out(labels, share, seed)
        said = (*columns.notes, *notes)
        return cls(
            *(opened, target, tuple(ignored), seed, share, frame, labels, held_out, columns),
            *(left_out, said, sampled),
        )

    @cached_property
    def classes(self) -> Array:
        """The classes in their order."""
        return np.unique(self.labels)

    @cached_property
    def codes(self) -> Array:
        """The place of each row's class among the classes."""
        return np.searchsorted(self.classes, self.labels)

    @property
    def row_numbers(self) -> Array:
        """The number of each row in the file; 1 is the first below the heading."""
        return np.asarray(self.frame.index) + 1

    @cached_property
    def encoder(self) -> Any:
        """What makes numbers of rows, learnt of the training rows."""
        return encoder(self.columns, "standard").fit(self.frame[~self.held_out])

    @cached_property
    def encoded(self) -> Array:
        """All rows as numbers."""
        return np.asarray(self.encoder.transform(self.frame), dtype=np.float64)

    @cached_property
    def size(self) -> Size:
        """What methods are made for: the training rows."""
        return Size.of(self.codes[~self.held_out], self.encoded.shape[1])

    @cached_property
    def feature_names(self) -> list[str]:
        """The column of the table that each column of `encoded` comes from."""
        return feature_columns(self.encoder)

    def model(self, fitted: Any, name: str) -> TableModel:
        """Return a fitted method with its treatment of columns, as it is saved."""
        columns = self.columns
        return TableModel(
            pipeline=Pipeline([("columns", self.encoder), ("method", fitted)]),
            numbers=columns.numbers,
            levels=columns.levels,
            target=self.target,
            classes=tuple(self.classes.tolist()),
            written=columns.written,
            reading=columns.reading,
            name=name,
        )

    def listed_columns(self) -> list[dict[str, Any]]:
        """Return each column with its kind, and why it is not used."""
        kinds = dict.fromkeys(self.columns.numbers, "number")
        kinds |= dict.fromkeys(self.columns.levels, "category") | {self.target: "target"}
        return [
            {"name": name, "kind": kinds.get(name, "left out"), "why": self._why(name, kinds)}
            for name in map(str, self.opened.frame.columns)
        ]

    def _why(self, name: str, kinds: dict[str, str]) -> str | None:
        if name in kinds:
            return None
        if name in self.ignored:
            return "ignored by you"
        if name in self.left_out:
            return self.left_out[name]
        begin = f"column {name!r}"
        return next(
            (
                note.removeprefix(begin).lstrip(" :").removeprefix("is ").removesuffix(": dropped")
                for note in self.columns.notes
                if note.startswith(begin)
            ),
            "says nothing",
        )

    def cells(self, ids: Array, digits: int = 15) -> list[list[str]]:
        """Return the rows as they stand in the table, as texts."""
        part = self.opened.frame.iloc[np.asarray(self.frame.index)[ids]]
        texts = [[_text(value, digits) for value in part[name].tolist()] for name in part.columns]
        return [list(row) for row in zip(*texts, strict=True)]

    def row_values(self, row: int) -> dict[str, str]:
        """Return the cells of a row by the names of their columns."""
        names = [str(name) for name in self.opened.frame.columns]
        return dict(zip(names, self.cells(np.array([row]))[0], strict=True))


def most_rows(opened: Opened, ignored: Collection[str] = ()) -> int:
    """Return how many rows of a table are shown; some more where rare classes keep theirs."""
    return min(MOST_ROWS, MOST_CELLS // max(opened.frame.shape[1] - len(ignored), 1))


def _usable(features: pd.DataFrame, reading: Reading) -> tuple[Columns, dict[str, str]]:
    """Return what the columns are; one that cannot be used is left out, with the reason."""
    try:
        return inspect_columns(features, reading=reading), {}
    except InvalidInputError as error:
        faults = _faults(features, reading)
        rest = [name for name in features.columns if name not in faults]
        if not faults or not rest:
            raise error
    kept = features[rest]
    kept.attrs = dict(features.attrs)
    return inspect_columns(kept, reading=reading), faults


def _faults(features: pd.DataFrame, reading: Reading) -> dict[str, str]:
    """Return what is wrong with each column that cannot be used beside a plain one."""
    found = {}
    for name in features.columns:
        plain = "0" if name != "0" else "1"
        beside = features[[name]].assign(**{plain: np.arange(len(features)) % 2 + 0.5})
        beside.attrs = {DECIMAL: features.attrs.get(DECIMAL)}
        try:
            inspect_columns(beside, reading=reading)
        except InvalidInputError as error:
            found[name] = str(error)
    return found


def _text(value: Any, digits: int) -> str:
    """Return a cell as a person writes it; nothing where nothing is."""
    if value is None or str(value) in ("nan", "NaT", "<NA>"):
        return ""
    return f"{value:.{digits}g}" if isinstance(value, float) else str(value)
