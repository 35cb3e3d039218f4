"""The table of a comparison: where it is, and its rows."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from marginfold.linalg.tall import Array


@dataclass(frozen=True)
class Source:
    """Where the table comes from, the user's or a bundled set: another process can read it too."""

    path: str
    target: str
    drop: tuple[str, ...] = ()
    categorical: tuple[str, ...] = ()
    drop_missing: bool = False
    bundled: bool = False

    def read(self) -> Rows:
        """Read, check and split the table into features and labels."""
        return _read(self, _state(Path(self.path)))

    def sent(self) -> SentRows:
        """Return the table itself, for machines that do not see the file."""
        return SentRows(self.path, self.read())


@dataclass(frozen=True, eq=False)
class SentRows:
    """A table that travels with the work, once for all tasks."""

    path: str
    rows: Rows

    def read(self) -> Rows:
        """Return the rows as they were read where the comparison was begun."""
        return self.rows


@dataclass(frozen=True, eq=False)
class Rows:
    """A table that was read: features with their kinds, labels, and a hash of both."""

    name: str
    frame: Any
    labels: Array
    columns: Any

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
def _read(source: Source, state: tuple[Any, ...]) -> Rows:
    from marginfold.data import inspect_columns, read_labelled
    from marginfold.data.columns import arrange

    features, labels = read_labelled(
        source.path, source.target, drop=source.drop, drop_missing=source.drop_missing
    )
    columns = inspect_columns(features, categorical=source.categorical)
    arranged = arrange(features, columns.numbers, columns.levels)
    return Rows(Path(source.path).name, arranged, labels, columns)
