"""Loading a data set by name, verified against the catalogue."""

from __future__ import annotations

import os
from importlib.resources import files
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from marginfold.data.catalogue import Entry, lookup
from marginfold.data.dataset import Dataset
from marginfold.data.location import BUNDLED, DATA_HOME, folder, found_file
from marginfold.data.openml import download as download_file
from marginfold.data.table_files import parse_table, read_table
from marginfold.data.verification import verify
from marginfold.errors import InvalidInputError


def load(
    name: str, *, data_home: str | os.PathLike[str] | None = None, download: bool = False
) -> Dataset:
    """Load a data set of the catalogue; its shape, class counts and hash are verified.

    Parameters
    ----------
    name : str
        A name of `catalogue`.
    data_home : path, default=None
        The folder of the sets that do not come with the package. None means the environment
        variable MARGINFOLD_DATA, and where that is not set ``marginfold`` in the user's cache.
    download : bool, default=False
        Whether a set that is not in `data_home` may be fetched from OpenML and put there. An
        existing file is never replaced.

    Returns
    -------
    Dataset
        New arrays at each call; missing values are nan.

    Raises
    ------
    InvalidParameterError
        If the name is unknown.
    InvalidInputError
        If the file is absent, damaged, or not the data set that it should be.

    Examples
    --------
    >>> from marginfold.data import load
    >>> wine = load("wine")
    >>> wine.X.shape, wine.y[:3], wine.feature_names[:2]
    ((178, 13), array([1, 1, 1]), ('alcohol', 'malic acid'))
    """
    entry = lookup(name)
    if entry.where == BUNDLED:
        X, y = _bundled(entry)
    else:
        X, y = _from_folder(entry, folder(data_home), download)
    return Dataset(
        X=X,
        y=y,
        feature_names=entry.feature_names,
        target_names=entry.target_names,
        description=f"{entry.title}. {entry.description}",
        source=f"{entry.source}. Cite: {entry.citation}",
        license=entry.license,
    )


def _bundled(entry: Entry) -> tuple[NDArray[Any], NDArray[Any]]:
    resource = files("marginfold.data").joinpath("bundled", entry.file)
    try:
        content = resource.read_bytes()
    except OSError as error:
        raise InvalidInputError(
            f"{resource} belongs to the package but cannot be read ({error.strerror}); "
            "install marginfold again."
        ) from error
    X, y = parse_table(content, str(resource))
    verify(entry, X, y, str(resource))
    return X, y


def _from_folder(
    entry: Entry, data_home: Path, download: bool
) -> tuple[NDArray[Any], NDArray[Any]]:
    path = found_file(entry, data_home)
    if path is None and download and entry.openml_id is not None:
        path = download_file(entry, data_home)
    if path is None:
        raise InvalidInputError(_how_to_get(entry, data_home))
    X, y = read_table(path)
    verify(entry, X, y, str(path))
    return X, y


def _how_to_get(entry: Entry, data_home: Path) -> str:
    absent = f"The data set {entry.name!r} is not in {data_home}"
    put = f"put {entry.file} there, or name its folder by data_home or {DATA_HOME}"
    if entry.openml_id is None:
        return f"{absent} and cannot be downloaded; {put} (source: {entry.source})."
    return f"{absent}; {put}, or call load({entry.name!r}, download=True)."
