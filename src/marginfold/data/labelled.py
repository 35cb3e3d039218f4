"""A file with a target column as features and labels."""

from __future__ import annotations

import os
from collections.abc import Collection
from typing import TYPE_CHECKING

from marginfold.data.tables import read_table
from marginfold.data.target import check_columns, split_target
from marginfold.errors import InvalidInputError
from marginfold.linalg.tall import Array

if TYPE_CHECKING:
    import pandas as pd


def read_labelled(
    path: str | os.PathLike[str],
    target: str,
    *,
    drop: Collection[str] = (),
    drop_missing: bool = False,
) -> tuple[pd.DataFrame, Array]:
    """Read a table and part it into features and labels.

    Parameters
    ----------
    path : str or path
        See `read_table`.
    target : str
        The column with the classes.
    drop : collection of str, default=()
        Columns to leave out.
    drop_missing : bool, default=False
        Whether rows without a label are left out; they are refused otherwise.

    Returns
    -------
    features : pandas.DataFrame
    labels : array

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from marginfold.data import read_labelled
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "t.csv"
    ...     _ = path.write_text("id,size,kind\\n" + "1,2.5,a\\n2,0.5,b\\n" * 6)
    ...     features, labels = read_labelled(path, "kind", drop=["id"])
    >>> list(features.columns), len(labels)
    (['size'], 12)
    """
    if target in drop:
        raise InvalidInputError(f"--drop {target} is the target; choose one of both.")
    frame = read_table(path)
    check_columns(frame, list(drop), "--drop")
    return split_target(frame.drop(columns=list(drop)), target, drop_missing=drop_missing)
