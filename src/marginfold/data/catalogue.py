"""The catalogue of data sets, from ``catalogue.toml``: what each must be, and where its file is."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cache
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType
from typing import Any

from marginfold.errors import InvalidParameterError
from marginfold.validation.parameters import shown

DATA_HOME = "MARGINFOLD_DATA"
"""Environment variable with the folder of data sets that are not in the package."""

BUNDLED = "bundled"
"""A data set that comes with the package."""


@dataclass(frozen=True)
class Entry:
    """What is known of one data set, and what a file must agree with to be taken for it.

    Parameters
    ----------
    name, title, description : str
        The name for `load`, the name in words, and what rows and labels are.
    rows, columns, missing : int
        Number of rows, of features, and of missing values.
    class_counts : mapping of str to int
        Rows of each class, in the order of ``np.unique(y)``.
    where : {"bundled", "data_home"}
        Whether the set comes with the package or from the user's folder.
    file : str
        Name of its file.
    sha256 : str
        Hash of the values in the pinned order of rows (see `marginfold.data.loading`).
    order : str
        Which order of rows is pinned.
    license, citation, source : str
        Terms, whom to cite, and the repository and package that the values were taken from.
    feature_names : tuple of str
        Names of the columns; f1, f2, ... where the source has none.
    target_names : tuple of str
        Names of the classes, in the order of `class_counts`.
    sha256_unordered : str or None
        Hash of the rows in any order, to tell a permuted file from a damaged one.
    openml_id : int or None
        Where OpenML has the set; None if it cannot be downloaded.
    openml_labels : mapping of str to str
        Labels that OpenML prints in another way, and ours.
    """

    name: str
    title: str
    description: str
    rows: int
    columns: int
    missing: int
    class_counts: Mapping[str, int]
    where: str
    file: str
    sha256: str
    order: str
    license: str
    citation: str
    source: str
    feature_names: tuple[str, ...]
    target_names: tuple[str, ...]
    sha256_unordered: str | None = None
    openml_id: int | None = None
    openml_labels: Mapping[str, str] = field(default_factory=dict)


@cache
def catalogue() -> Mapping[str, Entry]:
    """Return all data sets that `load` knows, by name.

    Examples
    --------
    >>> from marginfold.data import catalogue
    >>> heart = catalogue()["heart"]
    >>> heart.rows, heart.columns, dict(heart.class_counts)
    (270, 13, {'1': 150, '2': 120})
    """
    text = files("marginfold.data").joinpath("catalogue.toml").read_text(encoding="utf-8")
    entries = [_entry(table) for table in tomllib.loads(text)["dataset"]]
    return MappingProxyType({entry.name: entry for entry in entries})


def lookup(name: str) -> Entry:
    """Return the entry of a name, or say which names are close to it.

    Examples
    --------
    >>> from marginfold.data.catalogue import lookup
    >>> lookup("tae").order
    'as in the original file'
    """
    entries = catalogue()
    if isinstance(name, str) and name in entries:
        return entries[name]
    close = get_close_matches(str(name).lower(), entries)
    advice = f"did you mean {' or '.join(map(repr, close))}?" if close else "there is none like it."
    raise InvalidParameterError(
        f"Unknown data set {shown(name)}; {advice} Known are: {', '.join(entries)}."
    )


def _entry(table: Mapping[str, Any]) -> Entry:
    unnamed = [f"f{j}" for j in range(1, table["columns"] + 1)]
    named = {
        "feature_names": tuple(table.get("feature_names", unnamed)),
        "target_names": tuple(table.get("target_names", table["class_counts"])),
    }
    tables = {
        name: MappingProxyType(table.get(name, {})) for name in ("class_counts", "openml_labels")
    }
    return Entry(**{**table, **named, **tables})


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
    return "in data_home" if found_file(entry, folder(data_home)) else "missing"


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
