"""Read and write CSV and Parquet files, or say in one line why one cannot be used."""

from __future__ import annotations

import csv
import gzip
import io
import os
import zlib
from collections import Counter
from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from marginfold.errors import InvalidInputError
from marginfold.runtime.extras import require
from marginfold.runtime.files import check_writable, write_file

if TYPE_CHECKING:
    import pandas as pd

MIN_ROWS = 10
"""Rows that a table to learn from has at least."""

DELIMITERS = (",", ";", "\t", "|")
"""What may stand between the fields of a CSV file."""

SAMPLED_RECORDS = 50
"""Records from which the delimiter is found."""

MISSING = ("?",)
"""Words for a missing value beside those that pandas knows (empty, NA, NaN, null, None, ...)."""

EXACT_PANDAS = (3, 1)
"""First version of pandas that reads numbers to the last bit and deprecates the option for it."""

UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
"""First bytes of UTF-16 files, which spreadsheets write as "Unicode text"."""

SUFFIXES = (".csv", ".csv.gz", ".parquet", ".pq")
"""How the name of a table ends."""


def read_table(path: str | os.PathLike[str], *, min_rows: int = MIN_ROWS) -> pd.DataFrame:
    r"""Read a table with named columns.

    Parameters
    ----------
    path : str or path
        A CSV file (fields apart by comma, semicolon, tab or bar; also gzipped, ``.csv.gz``) in
        UTF-8, or a Parquet file (``.parquet``).
    min_rows : int, default=10
        Fewest rows that are accepted.

    Returns
    -------
    pandas.DataFrame

    Raises
    ------
    InvalidInputError
        If the file is missing, empty, too short, not UTF-8, ragged or names a column twice.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from marginfold.data import read_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "flowers.csv"
    ...     _ = file.write_text("petal;kind" + "\n1.5;a" * 12)
    ...     read_table(file).shape
    (12, 2)
    """
    file = Path(path)
    if not file.exists():
        raise InvalidInputError(f"there is no file {file}; check the name and the folder.")
    if not file.is_file():
        raise InvalidInputError(f"{file} is no regular file; a CSV or Parquet file is needed.")
    content = file.read_bytes()
    if not content:
        raise InvalidInputError(
            f"{file} is empty; a header and at least {min_rows} rows are needed."
        )
    frame = _parquet(file, content) if _is_parquet(file) else _csv(file, content)
    if len(frame) == 0:
        raise InvalidInputError(f"{file} has a header and no rows; at least {min_rows} are needed.")
    if len(frame) < min_rows:
        rows = "1 row" if len(frame) == 1 else f"{len(frame)} rows"
        raise InvalidInputError(f"{file} has only {rows}; at least {min_rows} are needed.")
    return frame


def _is_parquet(file: Path) -> bool:
    return file.suffix.lower() in {".parquet", ".pq"}


def _parquet(file: Path, content: bytes) -> pd.DataFrame:
    require("pandas", "pyarrow")
    import pandas
    import pyarrow.parquet

    try:
        table = pyarrow.parquet.read_table(io.BytesIO(content))
    except Exception as error:
        raise InvalidInputError(
            f"{file} is no Parquet file or is damaged ({first_line(error)})."
        ) from error
    _refuse_duplicates(file, table.column_names)
    frame = table.to_pandas()
    if not isinstance(frame.index, pandas.RangeIndex):
        frame = frame.reset_index()
    frame.columns = [str(name) for name in frame.columns]
    return frame


def _csv(file: Path, content: bytes) -> pd.DataFrame:
    require("pandas")
    import pandas

    text = _decoded(file, _unzipped(file, content))
    delimiter = _delimiter(text)
    _check_records(file, text, delimiter)
    try:
        return pandas.read_csv(
            io.StringIO(text),
            sep=delimiter,
            na_values=list(MISSING),
            skipinitialspace=True,
            low_memory=False,
            **_exact_numbers(pandas.__version__),
        )
    except (ValueError, pandas.errors.ParserError) as error:
        raise InvalidInputError(f"{file} is no table ({first_line(error)}).") from error


def _exact_numbers(pandas_version: str) -> dict[str, str]:
    """Return the option that reads numbers to the last bit, which later versions always do."""
    major, minor = pandas_version.split(".")[:2]
    return {} if (int(major), int(minor)) >= EXACT_PANDAS else {"float_precision": "round_trip"}


def _unzipped(file: Path, content: bytes) -> bytes:
    if not content.startswith(b"\x1f\x8b"):
        return content
    try:
        return gzip.decompress(content)
    except (OSError, EOFError, zlib.error) as error:
        raise InvalidInputError(
            f"{file} is a damaged gzip file ({first_line(error)}); copy it again."
        ) from error


def _decoded(file: Path, content: bytes) -> str:
    if content.startswith(UTF16_MARKS):
        raise InvalidInputError(
            f"{file} is UTF-16, not UTF-8; convert with iconv -f utf-16 -t utf-8."
        )
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise InvalidInputError(
            f"{file} is not UTF-8: byte 0x{content[error.start]:02x} at position {error.start} "
            f"(line {line}); convert with iconv -f latin1 -t utf-8."
        ) from error
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise InvalidInputError(f"{file} is no text: a zero byte in line {line}.")
    if not text.strip():
        raise InvalidInputError(
            f"{file} has nothing but blank lines; a header and rows are needed."
        )
    return text


def _delimiter(text: str) -> str:
    """Return the delimiter that parts the header into most fields, steady ones before others."""
    return max(DELIMITERS, key=lambda delimiter: _steadiness(text, delimiter))


def _steadiness(text: str, delimiter: str) -> tuple[bool, int]:
    try:
        lengths = [len(r) for r in islice(_records(text, delimiter), SAMPLED_RECORDS)]
    except csv.Error:
        return False, 0
    return len(set(lengths)) == 1 and lengths[0] > 1, lengths[0]


def _records(text: str, delimiter: str) -> Iterable[list[str]]:
    reader = csv.reader(io.StringIO(text), delimiter=delimiter, skipinitialspace=True)
    return (record for record in reader if record)


def _check_records(file: Path, text: str, delimiter: str) -> None:
    """Refuse names given twice, and records with more or fewer fields than the header."""
    reader = csv.reader(io.StringIO(text), delimiter=delimiter, skipinitialspace=True)
    header: list[str] = []
    try:
        for record in reader:
            if record and not header:
                header = record
                _refuse_duplicates(file, header)
            elif record and len(record) != len(header):
                raise InvalidInputError(
                    f"{file}: line {reader.line_num} has {len(record)} fields, the header has "
                    f"{len(header)}; mend or remove the line."
                )
    except csv.Error as error:
        raise InvalidInputError(f"{file} is no table ({first_line(error)}).") from error


def _refuse_duplicates(file: Path, names: list[str]) -> None:
    counts = Counter(name.strip() for name in names if name.strip())
    twice = [repr(name) for name, count in counts.items() if count > 1]
    if twice:
        raise InvalidInputError(
            f"{file} names more than one column {', '.join(twice)}; every column needs a name of "
            "its own."
        )


def first_line(error: Exception) -> str:
    """Return what an error says, in one line without a full stop."""
    return " ".join(str(error).split()).rstrip(".")


def check_table_path(path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
    """Refuse early what `write_table` would refuse."""
    if not str(path).lower().endswith(SUFFIXES):
        raise InvalidInputError(
            f"cannot write {path}: the name must end with one of {', '.join(SUFFIXES)}."
        )
    check_writable(path, overwrite=overwrite)
    if Path(path).suffix.lower() in {".parquet", ".pq"}:
        require("pyarrow")


def write_table(
    frame: pd.DataFrame, path: str | os.PathLike[str], *, overwrite: bool = False
) -> None:
    """Write a table without its index.

    Parameters
    ----------
    frame : pandas.DataFrame
    path : str or path
        Ends with ``.csv``, ``.csv.gz`` or ``.parquet``.
    overwrite : bool, default=False
        Whether an existing file may be replaced.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import pandas as pd
    >>> from marginfold.data import read_table, write_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_table(pd.DataFrame({"a": [0.5, 2.0]}), Path(folder) / "a.csv")
    ...     read_table(Path(folder) / "a.csv", min_rows=1)["a"].tolist()
    [0.5, 2.0]
    """
    check_table_path(path, overwrite=overwrite)
    write_file(path, _rendered(frame, str(path).lower()), overwrite=overwrite)


def _rendered(frame: pd.DataFrame, name: str) -> bytes:
    if name.endswith((".parquet", ".pq")):
        buffer = io.BytesIO()
        frame.to_parquet(buffer, index=False)
        return buffer.getvalue()
    text = frame.to_csv(index=False).encode("utf-8")
    return gzip.compress(text, mtime=0) if name.endswith(".gz") else text
