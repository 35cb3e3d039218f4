"""Write a table by the suffix of the file's name, whole or not at all."""

from __future__ import annotations

import gzip
import io
import os
from pathlib import Path
from typing import TYPE_CHECKING

from marginfold.errors import InvalidInputError
from marginfold.runtime.extras import require
from marginfold.runtime.files import check_writable, write_file

if TYPE_CHECKING:
    import pandas as pd

SUFFIXES = (".csv", ".csv.gz", ".parquet", ".pq")
"""How the name of a table ends."""


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
