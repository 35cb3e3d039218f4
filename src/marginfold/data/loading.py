"""Loading a data set by name from the package, the user's folder or OpenML, verified.

Files are ``.csv``, ``.csv.gz`` and ``.npz``; nothing in them is ever run.  A data set is verified
by a hash of its canonical text; nothing else is taken for one.

The canonical text has a header ``f1,...,fd,label``, then a line for each row; numbers in their
shortest form without ``.0``, nothing for a missing value, the label last, and a line feed after
every line.  The files in the wheel are this text, compressed, so ``gzip -dc iris.csv.gz |
sha256sum`` shows the hash.
"""

from __future__ import annotations

import gzip
import io
import os
import zipfile
import zlib
from collections.abc import Callable, Iterator
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from marginfold.data.catalogue import BUNDLED, DATA_HOME, Entry, folder, found_file, lookup
from marginfold.data.dataset import Dataset
from marginfold.errors import InvalidInputError
from marginfold.runtime.files import write_file
from marginfold.validation.parameters import shown

Fetch = Callable[[int], tuple[Any, Any]]
"""Takes OpenML's number of a data set; returns a data frame and the column of labels."""

REPLACE = "Replace it by an undamaged copy."
"""What to do about a file that cannot be read."""


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
    X, y = parse_arrays(content, str(resource))
    verify(entry, X, y, str(resource))
    return X, y


def _from_folder(
    entry: Entry, data_home: Path, download: bool
) -> tuple[NDArray[Any], NDArray[Any]]:
    path = found_file(entry, data_home)
    if path is None and download and entry.openml_id is not None:
        path = fetch_file(entry, data_home)
    if path is None:
        raise InvalidInputError(_how_to_get(entry, data_home))
    X, y = read_arrays(path)
    verify(entry, X, y, str(path))
    return X, y


def _how_to_get(entry: Entry, data_home: Path) -> str:
    absent = f"The data set {entry.name!r} is not in {data_home}"
    put = f"put {entry.file} there, or name its folder by data_home or {DATA_HOME}"
    if entry.openml_id is None:
        return f"{absent} and cannot be downloaded; {put} (source: {entry.source})."
    return f"{absent}; {put}, or call load({entry.name!r}, download=True)."


def fetch_frame(data_id: int) -> tuple[Any, Any]:
    """Fetch a data set through scikit-learn, which keeps a copy in its own folder."""
    from sklearn.datasets import fetch_openml

    return fetch_openml(data_id=data_id, as_frame=True, return_X_y=True)


def fetch_file(entry: Entry, data_home: Path, *, fetch: Fetch = fetch_frame) -> Path:
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
            f"{origin} ({entry.name}) could not be downloaded: {error}. Try again later, or put "
            f"{entry.file} into {data_home}."
        ) from error
    X, y = _openml_values(frame, origin), _openml_labels(target, entry)
    verify(entry, X, y, origin)
    return _write_new(data_home / entry.file, canonical_text(X, y).encode())


def _openml_values(frame: Any, origin: str) -> NDArray[Any]:
    """Return the numbers; a column of categories holds them as text."""
    columns = [frame.iloc[:, j].astype(object) for j in range(frame.shape[1])]
    try:
        return np.column_stack([column.to_numpy().astype(np.float64) for column in columns])
    except (TypeError, ValueError) as error:
        raise InvalidInputError(
            f"{origin} contains values that are not numbers: {error}."
        ) from error


def _openml_labels(target: Any, entry: Entry) -> NDArray[Any]:
    texts = [str(label) for label in target]
    if set(texts) == set(entry.openml_labels):
        texts = [entry.openml_labels[text] for text in texts]
    return as_labels(texts)


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


def read_arrays(path: Path) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return values and labels of a file, which errors name."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InvalidInputError(f"{path} cannot be read: {error.strerror}.") from error
    return parse_arrays(content, str(path))


def parse_arrays(content: bytes, name: str) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return values and labels of a file's content; the end of its name tells the format."""
    if name.endswith(".npz"):
        return _parse_npz(content, name)
    if name.endswith(".gz"):
        content = _decompressed(content, name)
    try:
        text = content.decode("ascii")
    except UnicodeDecodeError as error:
        raise InvalidInputError(f"{name} is not a text table: {error}. {REPLACE}") from error
    lines = text.replace("\r\n", "\n").removesuffix("\n").split("\n")
    return _parse_csv(lines, name)


def as_labels(texts: list[str]) -> NDArray[Any]:
    """Return whole numbers where all labels are such, else the words themselves."""
    words = np.array(texts, dtype=np.str_)
    try:
        numbers = np.array([int(text) for text in texts], dtype=np.int64)
    except (ValueError, OverflowError):
        return words
    return numbers if [str(number) for number in numbers.tolist()] == texts else words


def _decompressed(content: bytes, name: str) -> bytes:
    try:
        return gzip.decompress(content)
    except (OSError, EOFError, zlib.error) as error:
        raise InvalidInputError(
            f"{name} is not a complete gzip file: {error}. {REPLACE}"
        ) from error


def _parse_csv(lines: list[str], name: str) -> tuple[NDArray[Any], NDArray[Any]]:
    columns = lines[0].count(",")
    if columns == 0 or lines[0] != header(columns):
        raise InvalidInputError(
            f"{name} must start with a line f1,f2,...,label; got {shown(lines[0])}. {REPLACE}"
        )
    rows = [line.split(",") for line in lines[1:]]
    for number, cells in enumerate(rows, start=2):
        if len(cells) != columns + 1:
            raise InvalidInputError(
                f"{name}, line {number}: got {len(cells)} cells, need {columns + 1}. {REPLACE}"
            )
    values = [_numbers(cells[:-1], f"{name}, line {i}") for i, cells in enumerate(rows, start=2)]
    X = np.array(values, dtype=np.float64).reshape(len(rows), columns)
    return X, as_labels([cells[-1] for cells in rows])


def _numbers(cells: list[str], place: str) -> list[float]:
    try:
        return [float(cell or "nan") for cell in cells]
    except ValueError as error:
        raise InvalidInputError(f"{place}: {error}. {REPLACE}") from error


def _parse_npz(content: bytes, name: str) -> tuple[NDArray[Any], NDArray[Any]]:
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
            X, y = arrays["X"].astype(np.float64), arrays["y"].astype(np.int64)
    except (OSError, EOFError, ValueError, KeyError, zipfile.BadZipFile, zlib.error) as error:
        raise InvalidInputError(
            f"{name} is not a complete .npz file with the arrays X and y: {error}. {REPLACE}"
        ) from error
    if X.ndim != 2 or y.shape != X.shape[:1]:
        raise InvalidInputError(
            f"{name} must contain X of shape (n, d) and y of shape (n,); got {X.shape} and "
            f"{y.shape}."
        )
    return X, y


def verify(entry: Entry, X: NDArray[Any], y: NDArray[Any], origin: str) -> None:
    """Raise `InvalidInputError` that names the origin and the first thing that differs."""
    got, need = _first_difference(entry, X, y)
    if got != need:
        raise InvalidInputError(
            f"{origin} is not the data set {entry.name!r}: got {got}, need {need}. "
            f"Use the original file ({entry.source})."
        )


def _first_difference(entry: Entry, X: NDArray[Any], y: NDArray[Any]) -> tuple[str, str]:
    shape, expected = f"{X.shape[0]} x {X.shape[1]} values", f"{entry.rows} x {entry.columns}"
    if shape != f"{expected} values":
        return shape, f"{expected} values"
    missing = int(np.isnan(X).sum())
    if missing != entry.missing:
        return f"{missing} missing values", str(entry.missing)
    classes, counts = np.unique(y, return_counts=True)
    found = dict(zip(map(str, classes.tolist()), counts.tolist(), strict=True))
    if found != dict(entry.class_counts):
        return f"rows by class {found}", str(dict(entry.class_counts))
    digest = fingerprint(X, y)
    if digest != entry.sha256 and unordered_fingerprint(X, y) == entry.sha256_unordered:
        return "its rows in another order", f"the order {entry.order}"
    return f"values with hash {digest[:12]}", f"values with hash {entry.sha256[:12]}"


def canonical_text(X: NDArray[Any], y: NDArray[Any]) -> str:
    r"""Return the canonical text of a data set.

    Examples
    --------
    >>> import numpy as np
    >>> canonical_text(np.array([[1.0, 0.50], [np.nan, -0.0]]), np.array(["a", "b"]))
    'f1,f2,label\n1,0.5,a\n,0,b\n'
    """
    return "\n".join([header(X.shape[1]), *_lines(X, y), ""])


def header(columns: int) -> str:
    """Return the first line: f1, f2, ..., label."""
    return ",".join([*(f"f{j}" for j in range(1, columns + 1)), "label"])


def fingerprint(X: NDArray[Any], y: NDArray[Any]) -> str:
    """Return the hash of the canonical text: of the values and the order of the rows."""
    return sha256(canonical_text(X, y).encode()).hexdigest()


def unordered_fingerprint(X: NDArray[Any], y: NDArray[Any]) -> str:
    """Return a hash of the rows that does not depend on their order."""
    return sha256("\n".join(sorted(_lines(X, y))).encode()).hexdigest()


def _lines(X: NDArray[Any], y: NDArray[Any]) -> Iterator[str]:
    """Yield the rows; each distinct value is printed once, which images are full of."""
    values, places = np.unique(X + 0.0, return_inverse=True)  # -0.0 becomes 0.0
    texts = np.array([_number(value) for value in values.tolist()], dtype=object)
    for row, label in zip(texts[places].reshape(X.shape).tolist(), y.tolist(), strict=True):
        yield ",".join([*row, str(label)])


def _number(value: float) -> str:
    text = repr(value)
    return "" if text == "nan" else text.removesuffix(".0")
