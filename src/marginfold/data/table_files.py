"""Reading ``.csv``, ``.csv.gz`` and ``.npz`` files of data sets; nothing in them is ever run."""

from __future__ import annotations

import gzip
import io
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from marginfold.data.canonical import header
from marginfold.errors import InvalidInputError
from marginfold.validation.parameters import shown

REPLACE = "Replace it by an undamaged copy."
"""What to do about a file that cannot be read."""


def read_table(path: Path) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return values and labels of a file, which errors name."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InvalidInputError(f"{path} cannot be read: {error.strerror}.") from error
    return parse_table(content, str(path))


def parse_table(content: bytes, name: str) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return values and labels of a file's content; the end of its name tells the format."""
    if name.endswith(".npz"):
        return _parse_npz(content, name)
    if name.endswith(".gz"):
        content = _decompressed(content, name)
    try:
        text = content.decode("ascii")
    except UnicodeDecodeError as error:
        raise InvalidInputError(f"{name} is no table of text: {error}. {REPLACE}") from error
    lines = text.replace("\r\n", "\n").removesuffix("\n").split("\n")
    return _parse_csv(lines, name)


def labels(texts: list[str]) -> NDArray[Any]:
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
        raise InvalidInputError(f"{name} is no whole gzip file: {error}. {REPLACE}") from error


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
    return X, labels([cells[-1] for cells in rows])


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
            f"{name} is no whole .npz file with the numbers X and y: {error}. {REPLACE}"
        ) from error
    if X.ndim != 2 or y.shape != X.shape[:1]:
        raise InvalidInputError(
            f"{name} must hold X of shape (n, d) and y of shape (n,); got {X.shape} and {y.shape}."
        )
    return X, y
