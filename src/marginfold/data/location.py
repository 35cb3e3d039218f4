"""Where a data set is: in the package, in the user's folder, or nowhere yet."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from marginfold.data.catalogue import Entry, catalogue, lookup
from marginfold.errors import InvalidParameterError
from marginfold.validation.parameters import shown

DATA_HOME = "MARGINFOLD_DATA"
"""Environment variable with the folder of data sets that are not in the package."""

BUNDLED = "bundled"
"""A data set that comes with the package."""

IN_DATA_HOME = "in data_home"
"""A data set whose file is in the user's folder; it is verified when it is loaded."""

NOT_FOUND = "missing"
"""A data set that is in neither."""


def status(name: str, data_home: str | os.PathLike[str] | None = None) -> str:
    """Return "bundled", "in data_home" or "missing"; files are looked for, not opened.

    Examples
    --------
    >>> from marginfold.data import status
    >>> status("iris")
    'bundled'
    """
    entry = lookup(name)
    if entry.where == BUNDLED:
        return BUNDLED
    return IN_DATA_HOME if found_file(entry, folder(data_home)) else NOT_FOUND


def summary(data_home: str | os.PathLike[str] | None = None) -> list[dict[str, Any]]:
    """Return one row for each data set of the catalogue, ready for JSON.

    Examples
    --------
    >>> from marginfold.data import summary
    >>> row = next(row for row in summary() if row["name"] == "wine")
    >>> row["rows"], row["columns"], row["classes"], row["status"]
    (178, 13, 3, 'bundled')
    """
    return [
        {
            "name": entry.name,
            "title": entry.title,
            "rows": entry.rows,
            "columns": entry.columns,
            "classes": len(entry.class_counts),
            "class_counts": dict(entry.class_counts),
            "missing": entry.missing,
            "status": status(entry.name, data_home),
            "file": entry.file,
            "downloadable": entry.openml_id is not None,
            "license": entry.license,
            "citation": entry.citation,
        }
        for entry in catalogue().values()
    ]


def folder(data_home: str | os.PathLike[str] | None = None) -> Path:
    """Return the user's folder: the argument, else MARGINFOLD_DATA, else the user's cache."""
    if not isinstance(data_home, str | os.PathLike | None):
        raise InvalidParameterError(f"data_home must be a path or None; got {shown(data_home)}.")
    chosen = data_home or os.environ.get(DATA_HOME)
    if chosen:
        return Path(chosen).expanduser()
    cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(cache).expanduser() / "marginfold"


def found_file(entry: Entry, data_home: Path) -> Path | None:
    """Return the file of a data set in the folder, compressed or not, if there is one."""
    plain = entry.file.removesuffix(".gz")
    candidates = [data_home / entry.file, data_home / plain, data_home / f"{plain}.gz"]
    return next((path for path in candidates if os.path.isfile(path)), None)
