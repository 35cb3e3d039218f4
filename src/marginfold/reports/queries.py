"""Where a number comes from: the query that finds its records."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields
from numbers import Integral, Real
from typing import Any

from marginfold.protocols.record_layout import as_json
from marginfold.protocols.records import Record

COLUMNS = frozenset(field.name for field in fields(Record)) - {"versions"}
"""What records can be chosen by."""

SHOWN = "seed, fold, params, dimension, metric, value, status, reason"
"""The columns that a query returns."""


def query(source: Mapping[str, Any]) -> str:
    """Return the SQL that selects the records with these columns; what is no column is left out.

    Parameters
    ----------
    source : mapping
        Values by column.  A list stands for any of its values; a mapping, for the columns that
        hold JSON, for its entries, and as ``options`` for exactly these.

    Returns
    -------
    str

    Examples
    --------
    >>> from marginfold.reports.queries import query
    >>> query({"study": "lsva", "dataset": ["wine", "sonar"], "records": 300})
    "SELECT seed, fold, params, dimension, metric, value, status, reason FROM records
    WHERE study = 'lsva' AND dataset IN ('wine', 'sonar')"
    """
    terms = [
        term for name, value in source.items() if name in COLUMNS for term in _terms(name, value)
    ]
    return f"SELECT {SHOWN} FROM records" + (" WHERE " + " AND ".join(terms) if terms else "")


def counts(source: Mapping[str, Any]) -> str:
    """Return in words what a source says beside its columns: how many records, seeds, ...

    Examples
    --------
    >>> from marginfold.reports.queries import counts
    >>> counts({"study": "lsva", "records": 300, "seeds": 1})
    '300 records, 1 seed'
    """
    others = ((name, value) for name, value in source.items() if name not in COLUMNS)
    return ", ".join(f"{value} {_singular(name) if value == 1 else name}" for name, value in others)


def _terms(name: str, value: Any) -> Iterator[str]:
    if isinstance(value, Mapping) and name == "options":
        yield f"options = {_literal(as_json(value))}"
        return
    if isinstance(value, Mapping):
        for key, part in value.items():
            path = _literal(f'$."{key}"')
            yield from _terms(f"json_extract({name}, {path})", part)
        return
    values = _values(value)
    if values == [None]:
        yield f"{name} IS NULL"
    elif len(values) == 1:
        yield f"{name} = {_literal(values[0])}"
    else:
        yield f"{name} IN ({', '.join(_literal(v) for v in values)})"


def _values(value: Any) -> list[Any]:
    if isinstance(value, set | frozenset):
        return sorted(value, key=str)
    return list(value) if isinstance(value, list | tuple) else [value]


def _literal(value: Any) -> str:
    if isinstance(value, Integral):
        return str(int(value))
    if isinstance(value, Real):
        return repr(float(value))
    return "'" + str(value).replace("'", "''") + "'"


def _singular(name: str) -> str:
    return name.removesuffix("s")
