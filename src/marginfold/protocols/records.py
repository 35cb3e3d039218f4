"""Records: every result is one row of evidence in a SQLite file that survives a kill."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import numpy as np

from marginfold.errors import InvalidInputError
from marginfold.protocols.tasks import Task
from marginfold.protocols.versions import versions

FILE_NAME = "records.sqlite"
"""The file in a run folder."""

SCHEMA = 1
"""Number of the layout below; stored as SQLite's user_version."""

WAIT_SECONDS = 60.0
"""How long to wait for another process that writes."""

LAYOUT = """
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
"""


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
    >>> from marginfold.protocols.tasks import Task
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
                f"{self.folder} holds no {FILE_NAME}; give the folder of a run, "
                "or start one with `marginfold reproduce ... --run DIR`."
            )
        if not read_only:
            _make_folder(self.folder)
        self._connection = self._open(read_only)
        self._environment: int | None = None

    def _open(self, read_only: bool) -> sqlite3.Connection:
        mode = "ro" if read_only else "rwc"
        uri = f"{self.path.absolute().as_uri()}?mode={mode}"
        connection = sqlite3.connect(uri, uri=True, timeout=WAIT_SECONDS, isolation_level=None)
        try:
            found = connection.execute("PRAGMA user_version").fetchone()[0]
            if found > SCHEMA:
                raise InvalidInputError(
                    f"{self.path} was written by a newer marginfold (layout {found}, this one "
                    f"knows {SCHEMA}); use that version or another folder."
                )
            if not read_only:
                connection.execute("PRAGMA journal_mode = WAL")
                connection.execute("PRAGMA synchronous = FULL")
                connection.executescript(LAYOUT)
                connection.execute(f"PRAGMA user_version = {SCHEMA}")
        except sqlite3.DatabaseError as error:
            connection.close()
            raise InvalidInputError(
                f"{self.path} cannot be used as records ({error}); move it away or give another "
                "folder."
            ) from error
        except InvalidInputError:
            connection.close()
            raise
        return connection

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield self._connection
        except BaseException:
            self._connection.execute("ROLLBACK")
            raise
        self._connection.execute("COMMIT")

    def write(
        self,
        task: Task,
        results: Iterable[Result],
        *,
        seconds: float,
        status: str = "done",
    ) -> None:
        """Write all rows of a task at once, in place of what an earlier attempt left."""
        identity = (
            task.study,
            task.dataset,
            task.method,
            task.protocol,
            task.seed,
            task.fold,
            _json(task.options),
        )
        rows = [
            (
                *(task.key, part),
                *identity,
                *(_json(r.params), r.dimension, r.metric),
                *(r.value, seconds, status, r.reason),
            )
            for part, r in enumerate(results)
        ]
        if not rows:
            raise ValueError(f"{task} has no result; a task without one says why by Skip")
        marks = ", ".join("?" * (len(rows[0]) + 1))
        with self._transaction() as connection:
            environment = self._environment_id(connection)
            connection.execute("DELETE FROM records WHERE task = ?", (task.key,))
            connection.executemany(
                f"INSERT INTO records VALUES ({marks})", [(*row, environment) for row in rows]
            )

    def _environment_id(self, connection: sqlite3.Connection) -> int:
        connection.execute(
            "INSERT OR IGNORE INTO environments (versions) VALUES (?)", (versions(),)
        )
        query = "SELECT id FROM environments WHERE versions = ?"
        return int(connection.execute(query, (versions(),)).fetchone()[0])

    def finished(self) -> set[str]:
        """Return the keys of the tasks that need no further attempt: done or skipped."""
        rows = self._connection.execute(
            "SELECT DISTINCT task FROM records WHERE part = 0 AND status <> 'failed'"
        )
        return {key for (key,) in rows}

    def read(self, **columns: Any) -> list[Record]:
        """Return the records whose columns have the given values, in a fixed order.

        A list, tuple or set of values stands for any of them.
        """
        clause, values = _where(columns)
        rows = self._connection.execute(
            "SELECT study, dataset, method, protocol, seed, fold, options, params, dimension, "
            "metric, value, seconds, status, reason, task, versions "
            f"FROM records JOIN environments ON environment = id {clause} "
            "ORDER BY study, dataset, method, protocol, seed, fold, task, part",
            values,
        )
        return [_record(row) for row in rows]

    def count(self, **columns: Any) -> int:
        """Return the number of such records."""
        clause, values = _where(columns)
        query = f"SELECT COUNT(*) FROM records {clause}"
        return int(self._connection.execute(query, values).fetchone()[0])


def _record(row: tuple[Any, ...]) -> Record:
    options, params = json.loads(row[6]), json.loads(row[7])
    return Record(*row[:6], options, params, *row[8:])  # type: ignore[call-arg]


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInputError(
            f"The run folder {folder} cannot be made ({error.strerror}); give another one."
        ) from error


def _where(columns: Mapping[str, Any]) -> tuple[str, list[Any]]:
    terms, values = [], []
    for name, value in columns.items():
        if not name.isidentifier():
            raise ValueError(f"{name!r} is no column of the records")
        several = list(value) if isinstance(value, list | tuple | set | frozenset) else [value]
        terms.append(f"{name} IN ({', '.join('?' * len(several))})")
        values += [value.item() if isinstance(value, np.generic) else value for value in several]
    return ("WHERE " + " AND ".join(terms) if terms else ""), values


def _json(value: Mapping[str, Any]) -> str:
    return json.dumps(dict(value), sort_keys=True, separators=(",", ":"))
