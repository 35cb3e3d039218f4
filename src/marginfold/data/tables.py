"""Read and write CSV and Parquet files, or say in one line why one cannot be used."""

from __future__ import annotations

import contextlib
import gzip
import io
import os
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from marginfold.data.catalogue import catalogue
from marginfold.data.column_values import called
from marginfold.data.csv_files import (
    CSV_MEMORY,
    DECIMAL,
    MISSING,
    first_line,
    read_csv,
    refuse_duplicates,
    require_table_memory,
)
from marginfold.data.loading import load
from marginfold.data.reading import AS_FOUND, Reading
from marginfold.data.written import is_written_number
from marginfold.errors import InvalidInputError
from marginfold.runtime.extras import require
from marginfold.runtime.files import check_writable, write_file

if TYPE_CHECKING:
    import pandas as pd

MIN_ROWS = 10
"""Rows that a table to learn from has at least."""

SUFFIXES = (".csv", ".csv.gz", ".parquet", ".pq")
"""How the name of a table ends."""

NOTES = "marginfold.notes"
"""Attribute of a frame: what was changed while it was read, by column."""

MISSING_WORDS = frozenset({"", "NA", "N/A", "NaN", "nan", "null", "NULL", *MISSING})
"""Words that are missing values when the blanks around them are gone."""

FORMULAS = ("=", "+", "-", "@", "\t", "\r", "\n")
"""How words begin that a spreadsheet computes instead of showing them."""

NUMBER_BYTES = 8
"""Bytes of a number, or of the place of a word."""

PARQUET_MEMORY = 6
"""Bytes of memory that a Parquet file takes while it is read, for each byte of its values: measured
3.3 for random floats, 2.4 for repeated words and 6.3 for texts that all differ."""


def read_table(
    path: str | os.PathLike[str], *, min_rows: int = MIN_ROWS, reading: Reading = AS_FOUND
) -> pd.DataFrame:
    r"""Read a table with named columns.

    Blanks around words and names are left out.

    Parameters
    ----------
    path : str or path
        A CSV file (fields apart by comma, semicolon, tab or bar; also gzipped, ``.csv.gz``), a
        Parquet file (``.parquet``), or the name of a data set of `catalogue`.
    min_rows : int, default=10
        Fewest rows that are accepted.
    reading : Reading
        What to know about the file; by default it is found by looking.

    Returns
    -------
    pandas.DataFrame

    Raises
    ------
    InvalidInputError
        If the file is missing, empty, too short, in another encoding, ragged, names a column
        twice, or can be read in two ways.
    TooLargeError
        If it needs more memory than there is.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from marginfold.data import read_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "flowers.csv"
    ...     _ = file.write_text("petal;kind" + "\n1,5;a" * 12)
    ...     read_table(file)["petal"].sum()
    np.float64(18.0)
    >>> read_table("iris").shape
    (150, 5)
    """
    file = Path(path)
    if is_set(path):
        _refuse_text_options(str(path), reading)
        return load(str(path)).frame
    _check_file(file, min_rows)
    require_table_memory((1 if is_parquet(file) else CSV_MEMORY) * file.stat().st_size, file)
    content = file.read_bytes()
    if is_parquet(file):
        _refuse_text_options(str(file), reading)
        frame = _parquet(file, content)
    else:
        frame = read_csv(file, content, reading)
    if len(frame) < max(min_rows, 1):
        rows = ["a header and no rows", "only 1 row", f"only {len(frame)} rows"][min(len(frame), 2)]
        raise InvalidInputError(f"{file} has {rows}; at least {min_rows} are needed.")
    return _trimmed(frame)


def is_set(name: str | os.PathLike[str]) -> bool:
    """Return whether a name means a data set of the catalogue: no file has it."""
    return not Path(name).exists() and str(name) in catalogue()


def _check_file(file: Path, min_rows: int) -> None:
    if not file.exists():
        raise InvalidInputError(
            f"there is no file {file}, nor a data set of that name; check the name and the folder "
            "('marginfold datasets' lists the sets)."
        )
    if not file.is_file():
        raise InvalidInputError(f"{file} is not a regular file; a CSV or Parquet file is needed.")
    if file.stat().st_size == 0:
        raise InvalidInputError(
            f"{file} is empty; a header and at least {min_rows} rows are needed."
        )


def _refuse_text_options(name: str, reading: Reading) -> None:
    given = {
        "--sep": reading.sep is not None,
        "--encoding": reading.encoding is not None,
        "--no-header": not reading.header,
    }
    wrong = [option for option, is_given in given.items() if is_given]
    if wrong:
        raise InvalidInputError(f"{wrong[0]} is for CSV files, and {name} is none; leave it out.")


def is_parquet(file: Path) -> bool:
    """Return whether a file is Parquet, by its name."""
    return file.suffix.lower() in {".parquet", ".pq"}


def _parquet(file: Path, content: bytes) -> pd.DataFrame:
    require("pandas", "pyarrow")
    import pandas
    import pyarrow.parquet

    try:
        known = pyarrow.parquet.read_metadata(io.BytesIO(content))
    except MemoryError:
        raise
    except Exception as error:
        raise _no_parquet(file, error) from error
    packed = sum(known.row_group(k).total_byte_size for k in range(known.num_row_groups))
    values = max(packed, NUMBER_BYTES * known.num_rows * known.num_columns)
    require_table_memory(PARQUET_MEMORY * values, file)
    try:
        table = pyarrow.parquet.read_table(io.BytesIO(content))
    except MemoryError:
        raise
    except Exception as error:
        raise _no_parquet(file, error) from error
    refuse_duplicates(file, table.column_names)
    frame = table.to_pandas()
    if not isinstance(frame.index, pandas.RangeIndex):
        frame = frame.reset_index()
    frame.columns = [str(name) for name in frame.columns]
    return frame


def _no_parquet(file: Path, error: Exception) -> InvalidInputError:
    return InvalidInputError(
        f"{file} is not a Parquet file, or it is damaged ({first_line(error)})."
    )


def _trimmed(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the table without blanks around names and words; its ``attrs`` note where."""
    import pandas

    frame.columns = [str(name).strip() or str(name) for name in frame.columns]
    notes: dict[str, str] = {}
    for name in frame.columns:
        if frame[name].dtype.kind in "iufbM":
            continue
        values = frame[name].tolist()
        words = {value for value in values if isinstance(value, str)}
        bare: dict[str, Any] = {word: word.strip() for word in words if word != word.strip()}
        if bare:
            notes[name] = _about_blanks(name, values, words, bare)
            bare |= {word: None for word, stripped in bare.items() if stripped in MISSING_WORDS}
            changed = [bare.get(v, v) if isinstance(v, str) else v for v in values]
            frame[name] = pandas.Series(changed, index=frame.index)
            if frame.attrs.get(DECIMAL) in (None, "."):
                with contextlib.suppress(ValueError, TypeError):  # numbers but for "NA "
                    frame[name] = pandas.to_numeric(frame[name])
    frame.attrs[NOTES] = notes
    return frame


def _about_blanks(name: str, values: list[Any], words: set[str], bare: dict[str, str]) -> str:
    """Say how many values had blanks, and which words are the same without them."""
    n_changed = sum(isinstance(value, str) and value in bare for value in values)
    said = "1 value" if n_changed == 1 else f"{n_changed} values"
    counts = Counter(bare.get(word, word) for word in words)
    twice = sorted(word for word, count in counts.items() if count > 1)
    joined = f", which joins spellings of {', '.join(map(repr, twice[:3]))}" if twice else ""
    return f"{called(name)}: blanks around {said} left out{joined}"


def check_table_path(path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
    """Refuse early what `write_table` would refuse."""
    if not str(path).lower().endswith(SUFFIXES):
        raise InvalidInputError(
            f"cannot write {path}: the name must end with one of {', '.join(SUFFIXES)}."
        )
    check_writable(path, overwrite=overwrite)
    if is_parquet(Path(path)):
        require("pyarrow")


def write_table(
    frame: pd.DataFrame,
    path: str | os.PathLike[str],
    *,
    overwrite: bool = False,
    raw: bool = False,
) -> None:
    """Write a table without its index.

    Parameters
    ----------
    frame : pandas.DataFrame
    path : str or path
        Ends with ``.csv``, ``.csv.gz`` or ``.parquet``.
    overwrite : bool, default=False
        Whether an existing file may be replaced.
    raw : bool, default=False
        Whether words that a spreadsheet takes for formulas go into CSV as they are, see `csv_text`.

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
    write_file(path, _rendered(frame, str(path).lower(), raw), overwrite=overwrite)


def csv_text(frame: pd.DataFrame, *, raw: bool = False) -> str:
    r"""Return a table as CSV that spreadsheets show and do not compute.

    An apostrophe is put before words, in cells and names, that begin as formulas do, unless they
    are numbers; ``raw`` leaves them as they are.

    Examples
    --------
    >>> import pandas as pd
    >>> from marginfold.data.tables import csv_text
    >>> csv_text(pd.DataFrame({"kind": ["=1+1", "-5 %", "plain"], "x": [-1.0, 2.0, 3.0]}))
    "kind,x\n'=1+1,-1.0\n-5 %,2.0\nplain,3.0\n"
    """
    return (frame if raw else _without_formulas(frame)).to_csv(index=False)


def count_formulas(frame: pd.DataFrame) -> int:
    """Return in how many cells and names `csv_text` puts an apostrophe."""
    words = [frame[name] for name in frame.columns if not _is_typed(frame[name])]
    return sum(map(_is_formula, [*frame.columns, *(cell for column in words for cell in column)]))


def _without_formulas(frame: pd.DataFrame) -> pd.DataFrame:
    import pandas

    columns = {
        name: column
        if _is_typed(column)
        else pandas.Series(map(_defused, column), index=frame.index, dtype=object)
        for name, column in frame.items()
    }
    return pandas.DataFrame(columns, index=frame.index).rename(columns=_defused)


def _is_typed(column: pd.Series) -> bool:
    """Return whether a column holds numbers, truth values or times, and no words."""
    return column.dtype.kind in "iufbmM"


def _defused(cell: Any) -> Any:
    return f"'{cell}" if _is_formula(cell) else cell


def _is_formula(cell: Any) -> bool:
    return isinstance(cell, str) and cell.startswith(FORMULAS) and not is_written_number(cell)


def _rendered(frame: pd.DataFrame, name: str, raw: bool) -> bytes:
    if name.endswith((".parquet", ".pq")):
        buffer = io.BytesIO()
        frame.to_parquet(buffer, index=False)
        return buffer.getvalue()
    text = csv_text(frame, raw=raw).encode("utf-8")
    return gzip.compress(text, mtime=0) if name.endswith(".gz") else text
