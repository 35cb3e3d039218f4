"""Records: every result is one row of evidence in a SQLite file that survives a kill."""

from __future__ import annotations

import contextlib
import json
import platform
import shutil
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, Self

import numpy as np

from marginfold._version import __version__
from marginfold.errors import InvalidInputError
from marginfold.protocols.studies import Task
from marginfold.validation.parameters import shown

FILE_NAME = "records.sqlite"
"""The file in a run folder."""

WAIT_SECONDS = 60.0
"""How long to wait for another process that writes."""

SCHEMA = 1
"""Number of the layout below; stored as SQLite's user_version."""

LAYOUT = f"""
BEGIN IMMEDIATE;
CREATE TABLE IF NOT EXISTS environments (id INTEGER PRIMARY KEY, versions TEXT NOT NULL UNIQUE);
CREATE TABLE IF NOT EXISTS records (
    task TEXT NOT NULL,
    part INTEGER NOT NULL,
    study TEXT NOT NULL,
    dataset TEXT NOT NULL,
    method TEXT NOT NULL,
    protocol TEXT NOT NULL,
    seed INTEGER NOT NULL,
    fold INTEGER NOT NULL,
    options TEXT NOT NULL,
    params TEXT NOT NULL,
    dimension INTEGER,
    metric TEXT NOT NULL,
    value REAL,
    seconds REAL NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('done', 'skipped', 'failed')),
    reason TEXT NOT NULL,
    environment INTEGER NOT NULL REFERENCES environments (id),
    PRIMARY KEY (task, part)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS cells ON records (study, dataset, method, protocol, metric);
PRAGMA user_version = {SCHEMA};
COMMIT;
"""

WRITTEN = (
    *("task", "study", "dataset", "method", "protocol", "seed", "fold", "options", "part"),
    *("params", "dimension", "metric", "value", "reason", "seconds", "status", "environment"),
)
"""The columns as they are written."""

READ = (
    *("study", "dataset", "method", "protocol", "seed", "fold", "options", "params"),
    *("dimension", "metric", "value", "seconds", "status", "reason", "task", "versions"),
)
"""The columns of a `Record`, in its order."""

MAPPINGS = frozenset({"options", "params"})
"""Columns that hold a mapping as JSON."""

KINDS: dict[str, Any] = {
    **dict.fromkeys(("seed", "fold"), int),
    **dict.fromkeys(MAPPINGS, dict),
    "dimension": int | None,
    "value": float | None,
    "seconds": float,
}
"""What columns hold that do not hold text."""

PRIMARY_CODE = 0xFF
"""The bits of SQLite's code of an error that name its kind."""

LEAST_FREE = 1 << 20
"""Free bytes of a disk below which a failed input or output is put down to it."""

_NOT_WRITTEN = "give another folder, or get the right to write there"

ADVICE = {
    sqlite3.SQLITE_FULL: "the disk is full: make room and give the same command again, the records "
    "are sound and it goes on from there; or give another folder",
    sqlite3.SQLITE_READONLY: f"it is there to be read only: {_NOT_WRITTEN}",
    sqlite3.SQLITE_PERM: f"access is denied: {_NOT_WRITTEN}",
    sqlite3.SQLITE_CANTOPEN: f"it cannot be opened or made: {_NOT_WRITTEN}",
    **dict.fromkeys(
        (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL),
        "another process writes to it: the records are sound, wait for that one to end and give "
        "the same command again, or give another folder",
    ),
    sqlite3.SQLITE_IOERR: "the disk did not answer as it should: check it, or give another folder "
    "on another one",
    sqlite3.SQLITE_NOMEM: "the memory ran out: end other programs and give the same command again; "
    "the folder is sound",
}
"""What to do, by the kind of SQLite's error; everything else is damage."""

COMPUTES_WITH = ("numpy", "scipy", "scikit-learn")
"""The packages whose numbers enter ours."""


@dataclass(frozen=True, slots=True)
class Result:
    """One measured value; what it was measured on stands in the task.

    Attributes
    ----------
    metric : str
        "error" (a share between 0 and 1), "coordinate", "seconds", ...
    value : float or None
        None if there is none, for a reason.
    params : mapping
        What was chosen or varied within the task, JSON-ready: graph weight, row, ...
    dimension : int or None
        Number of leading components used, or the component's number.
    reason : str
        Why there is no value, or what to know of it.
    """

    metric: str
    value: float | None
    params: Mapping[str, Any] = field(default_factory=dict)
    dimension: int | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Record:
    """One row of evidence: the task, one of its results, and how it came about.

    Attributes
    ----------
    study, dataset, method, protocol, seed, fold, options
        The task.
    params, dimension, metric, value, reason
        The result.
    seconds : float
        CPU time of the whole task that the row came from.
    status : {"done", "skipped", "failed"}
    task : str
        Key of the task.
    versions : str
        Versions of marginfold and of what it computes with.
    """

    study: str
    dataset: str
    method: str
    protocol: str
    seed: int
    fold: int
    options: dict[str, Any]
    params: dict[str, Any]
    dimension: int | None
    metric: str
    value: float | None
    seconds: float
    status: str
    reason: str
    task: str
    versions: str


class RecordStore:
    """The records of a run folder.

    A task's rows are written in one transaction, so that a task is there as a whole or not at all.
    Any number of processes may read while one writes.

    Parameters
    ----------
    folder : path
        Made if absent, unless ``read_only``.
    read_only : bool, default=False
        Refuse a folder without records, and every attempt to write.

    Examples
    --------
    >>> import tempfile
    >>> from marginfold.protocols.records import RecordStore, Result
    >>> from marginfold.protocols.studies import Task
    >>> task = Task("demo", "wine", "1-NN", work=print)
    >>> with tempfile.TemporaryDirectory() as folder, RecordStore(folder) as store:
    ...     store.write(task, [Result("error", 0.05)], seconds=0.1)
    ...     [record.value for record in store.read(dataset="wine")]
    [0.05]
    """

    def __init__(self, folder: str | Path, *, read_only: bool = False) -> None:
        self.folder = Path(folder)
        self.path = self.folder / FILE_NAME
        if read_only and not self.path.is_file():
            raise InvalidInputError(
                f"{self.folder} contains no {FILE_NAME}; give the folder of a run, or start one "
                "with `marginfold reproduce ... --run DIR`."
            )
        if not read_only:
            _make_folder(self.folder)
        with self._explained(), ExitStack() as stack:
            self._connection = self._connect(read_only)
            stack.callback(self._connection.close)
            is_new = self._is_new()
            if not read_only:
                self._connection.execute("PRAGMA synchronous = FULL")
                if is_new:
                    self._connection.execute("PRAGMA journal_mode = WAL")
                    self._connection.executescript(LAYOUT)
                with self._transaction() as connection:  # before hours are spent on what is lost
                    self._environment_id(connection)
            stack.pop_all()

    def _connect(self, read_only: bool) -> sqlite3.Connection:
        mode = "ro" if read_only else "rwc"
        uri = f"{self.path.absolute().as_uri()}?mode={mode}"
        return sqlite3.connect(uri, uri=True, timeout=WAIT_SECONDS, isolation_level=None)

    def _is_new(self) -> bool:
        """Return whether the file is empty; refuse what is not ours before anything is changed."""
        found = self._connection.execute("PRAGMA user_version").fetchone()[0]
        if found > SCHEMA:
            raise InvalidInputError(
                f"{self.path} was written by a newer marginfold (layout {found}, this one "
                f"knows {SCHEMA}); use that version or another folder."
            )
        tables = {name for (name,) in self._connection.execute("SELECT name FROM sqlite_master")}
        columns = {row[1] for row in self._connection.execute("PRAGMA table_info(records)")}
        if tables and not set(WRITTEN) <= columns:
            raise InvalidInputError(
                f"{self.path} is a database of something else: {', '.join(sorted(tables))}; give "
                "another folder."
            )
        return not tables

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        """Turn what SQLite says of a file into an error that names it and says what to do."""
        try:
            yield
        except sqlite3.IntegrityError:
            raise
        except sqlite3.DatabaseError as error:
            code = getattr(error, "sqlite_errorcode", 0) & PRIMARY_CODE
            if code == sqlite3.SQLITE_IOERR and _is_full(self.folder):
                code = sqlite3.SQLITE_FULL
            advice = ADVICE.get(code, "it is damaged: move it away, or give another folder")
            raise InvalidInputError(
                f"{self.path} cannot be used as a database of records ({error}); {advice}."
            ) from error

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._explained():
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise

    def write(
        self, task: Task, results: Iterable[Result], *, seconds: float, status: str = "done"
    ) -> None:
        """Write all rows of a task at once, in place of what an earlier attempt left."""
        identity = (
            *(task.key, task.study, task.dataset, task.method, task.protocol),
            *(task.seed, task.fold, as_json(task.options)),
        )
        rows = [
            (*identity, part, *as_row(result), seconds, status)
            for part, result in enumerate(results)
        ]
        if not rows:
            raise ValueError(f"{task} has no result; a task without one says why by Skip")
        marks = ", ".join("?" * len(WRITTEN))
        with self._transaction() as connection:
            environment = self._environment_id(connection)
            connection.execute("DELETE FROM records WHERE task = ?", (task.key,))
            connection.executemany(
                f"INSERT INTO records ({', '.join(WRITTEN)}) VALUES ({marks})",
                [(*row, environment) for row in rows],
            )

    def _environment_id(self, connection: sqlite3.Connection) -> int:
        connection.execute(
            "INSERT OR IGNORE INTO environments (versions) VALUES (?)", (installed_versions(),)
        )
        query = "SELECT id FROM environments WHERE versions = ?"
        return int(connection.execute(query, (installed_versions(),)).fetchone()[0])

    def finished(self) -> set[str]:
        """Return the keys of the tasks that are done; what was skipped may be possible by now."""
        query = "SELECT DISTINCT task FROM records WHERE part = 0 AND status = 'done'"
        with self._explained():
            return {self._text(key) for (key,) in self._connection.execute(query)}

    def versions(self) -> list[str]:
        """Return the versions that the records were computed with: more than one are a mixture."""
        query = "SELECT versions FROM environments WHERE id IN (SELECT environment FROM records)"
        with self._explained():
            return sorted(self._text(text) for (text,) in self._connection.execute(query))

    def _text(self, cell: Any) -> str:
        if not isinstance(cell, str):
            raise InvalidInputError(_damaged(self.path, "a name", cell))
        return cell

    def read(self, **columns: Any) -> list[Record]:
        """Return the records whose columns have the given values, in a fixed order.

        A list, a range or another collection of values stands for any of them, a mapping for the
        whole of a column that holds one.
        """
        order = "study, dataset, method, protocol, seed, fold, task, part"
        clause, values = where(columns)
        tables = "records JOIN environments ON environment = id"
        query = f"SELECT {', '.join(READ)} FROM {tables} {clause} ORDER BY {order}"
        with self._explained():
            return [self._record(row) for row in self._connection.execute(query, values)]

    def _record(self, row: tuple[Any, ...]) -> Record:
        """Return the record of a row; refuse cells that hold what was never written."""
        cells = []
        for name, cell in zip(READ, row, strict=True):
            value = _mapping(cell) if name in MAPPINGS else cell
            if not isinstance(value, KINDS.get(name, str)):
                task = f"task {row[READ.index('task')]!r}, column {name}"
                raise InvalidInputError(_damaged(self.path, task, cell))
            cells.append(value)
        return Record(*cells)


def as_row(result: Result) -> tuple[Any, ...]:
    """Return what is stored of a result; refuse what a record cannot hold."""
    row = (as_json(result.params), result.dimension, result.metric, result.value, result.reason)
    stored = tuple(plain(value) for value in row)
    for value in stored:
        if isinstance(value, str):
            value.encode()
        elif not isinstance(value, int | float | None):
            raise TypeError(f"a record holds text and numbers, not {value!r}")
    return stored


def _mapping(cell: Any) -> Any:
    """Return the mapping that a cell holds as text; None if it holds none."""
    try:
        return json.loads(cell)
    except (TypeError, ValueError):
        return None


def _damaged(path: Path, place: str, cell: Any) -> str:
    return (
        f"{path} has a damaged record: {place} is {shown(cell)}. Move the file away, or give "
        "another folder; its results are then computed again."
    )


def _is_full(folder: Path) -> bool:
    """Return whether the disk has no place for what a transaction needs beside the rows."""
    try:
        return shutil.disk_usage(folder).free < LEAST_FREE
    except OSError:
        return False


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInputError(
            f"The run folder {folder} cannot be created ({error.strerror}); give another one."
        ) from error


def where(columns: Mapping[str, Any]) -> tuple[str, list[Any]]:
    """Return the clause that chooses records by the values of columns, and its arguments."""
    terms, values = [], []
    for name, value in columns.items():
        if name not in (*READ, "part"):
            raise ValueError(f"{name!r} is no column of the records; they have {(*READ, 'part')}")
        if isinstance(value, Mapping):
            value = as_json(value)
        several = [value] if isinstance(value, str) or not isinstance(value, Iterable) else value
        wanted = [plain(one) for one in several]
        known = [one for one in wanted if one is not None]
        either = [f"{name} IN ({', '.join('?' * len(known))})"] if known or not wanted else []
        either += [f"{name} IS NULL"] if None in wanted else []
        terms.append(f"({' OR '.join(either)})")
        values += known
    return ("WHERE " + " AND ".join(terms) if terms else ""), values


def plain(value: Any) -> Any:
    """Return a number of Python for one of NumPy, and everything else as it is."""
    return value.item() if isinstance(value, np.generic) else value


def as_json(value: Mapping[str, Any]) -> str:
    """Return a mapping as text that is the same for equal mappings."""
    return json.dumps(dict(value), sort_keys=True, separators=(",", ":"), default=_number)


def _number(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"a record holds text, numbers and lists of them, not {value!r}")


@cache
def installed_versions() -> str:
    """Return the versions of marginfold, Python and what is computed with, in one line."""
    parts = [f"marginfold {__version__}", f"Python {platform.python_version()}"]
    return ", ".join(parts + [f"{name} {version(name)}" for name in COMPUTES_WITH])
