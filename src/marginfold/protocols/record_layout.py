"""The table of records in SQL: its columns, and how values are written and asked for."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

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

CHOSEN_BY = (*READ, "part")
"""The columns that records can be chosen by."""


def where(columns: Mapping[str, Any]) -> tuple[str, list[Any]]:
    """Return the clause that chooses records by the values of columns, and its arguments."""
    terms, values = [], []
    for name, value in columns.items():
        if name not in CHOSEN_BY:
            raise ValueError(f"{name!r} is no column of the records; they have {CHOSEN_BY}")
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
