"""Fetching a data set from OpenML: verified first, then written in one step."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from marginfold.data.canonical import canonical_text
from marginfold.data.catalogue import Entry
from marginfold.data.table_files import labels
from marginfold.data.verification import verify
from marginfold.errors import InvalidInputError
from marginfold.runtime.files import write_file

Fetch = Callable[[int], tuple[Any, Any]]
"""Takes OpenML's number of a data set; returns a data frame and the column of labels."""


def fetch_frame(data_id: int) -> tuple[Any, Any]:
    """Fetch a data set through scikit-learn, which keeps a copy in its own folder."""
    from sklearn.datasets import fetch_openml

    return fetch_openml(data_id=data_id, as_frame=True, return_X_y=True)


def download(entry: Entry, data_home: Path, *, fetch: Fetch = fetch_frame) -> Path:
    """Fetch a data set, verify it, and write it into the folder; return its path.

    A file that exists is not replaced, and nothing stays behind if anything fails.
    """
    if entry.openml_id is None:
        raise InvalidInputError(f"OpenML has no data set {entry.name!r}; {entry.source}.")
    origin = f"OpenML's data set {entry.openml_id}"
    try:
        frame, target = fetch(entry.openml_id)
    except (OSError, ValueError, ImportError) as error:
        raise InvalidInputError(
            f"{origin} ({entry.name}) could not be fetched: {error}. Try again later, or put "
            f"{entry.file} into {data_home}."
        ) from error
    X, y = _values(frame, origin), _labels(target, entry)
    verify(entry, X, y, origin)
    return _write_new(data_home / entry.file, canonical_text(X, y).encode())


def _values(frame: Any, origin: str) -> NDArray[Any]:
    """Return the numbers; a column of categories holds them as text."""
    columns = [frame.iloc[:, j].astype(object) for j in range(frame.shape[1])]
    try:
        return np.column_stack([column.to_numpy().astype(np.float64) for column in columns])
    except (TypeError, ValueError) as error:
        raise InvalidInputError(f"{origin} holds something else than numbers: {error}.") from error


def _labels(target: Any, entry: Entry) -> NDArray[Any]:
    texts = [str(label) for label in target]
    if set(texts) == set(entry.openml_labels):
        texts = [entry.openml_labels[text] for text in texts]
    return labels(texts)


def _write_new(path: Path, content: bytes) -> Path:
    if path.suffix == ".gz":
        content = gzip.compress(content, mtime=0)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_file(path, content)
    except OSError as error:
        raise InvalidInputError(
            f"{path} cannot be written: {error.strerror}. Choose another data_home."
        ) from error
    return path
