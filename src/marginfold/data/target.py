"""The target column: part a table, or a file, into features and labels."""

from __future__ import annotations

import os
from collections.abc import Collection
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

import numpy as np

from marginfold.data.tables import read_table
from marginfold.errors import InvalidInputError
from marginfold.linalg.tall import Array

if TYPE_CHECKING:
    import pandas as pd

MANY_VALUES = 50
"""Distinct numbers above which a target may be one of regression."""

MANY_SHARE = 1 / 3
"""Distinct numbers per row above which a target with many values is one of regression."""

SHOWN_NAMES = 12
"""Column names or labels that an error lists."""


def read_labelled(
    path: str | os.PathLike[str],
    target: str,
    *,
    drop: Collection[str] = (),
    drop_missing: bool = False,
) -> tuple[pd.DataFrame, Array]:
    r"""Read a table and part it into features and labels.

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
    ...     _ = path.write_text("id,size,kind\n" + "1,2.5,a\n2,0.5,b\n" * 6)
    ...     features, labels = read_labelled(path, "kind", drop=["id"])
    >>> list(features.columns), len(labels)
    (['size'], 12)
    """
    if target in drop:
        raise InvalidInputError(f"--drop {target} is the target; choose one of both.")
    frame = read_table(path)
    check_columns(frame, list(drop), "--drop")
    return split_target(frame.drop(columns=list(drop)), target, drop_missing=drop_missing)


def split_target(
    frame: pd.DataFrame, target: str, *, drop_missing: bool = False
) -> tuple[pd.DataFrame, Array]:
    """Part a table into features and labels.

    Parameters
    ----------
    frame : pandas.DataFrame
    target : str
        The column with the classes.
    drop_missing : bool, default=False
        Whether rows without a label are left out; they are refused otherwise.

    Returns
    -------
    features : pandas.DataFrame
    labels : array
        Whole numbers if the column has nothing else, strings otherwise.

    Raises
    ------
    InvalidInputError
        If there is no such column, or it holds fewer than two classes, a class of one row, an
        identifier or a quantity.

    Examples
    --------
    >>> import pandas as pd
    >>> from marginfold.data import split_target
    >>> frame = pd.DataFrame({"size": [1.0, 2.0, 3.0, 4.0], "kind": ["a", "a", "b", "b"]})
    >>> features, labels = split_target(frame, "kind")
    >>> list(features.columns), labels.tolist()
    (['size'], ['a', 'a', 'b', 'b'])
    """
    check_columns(frame, [target], "target")
    missing = frame[target].isna()
    if missing.any() and not drop_missing:
        raise InvalidInputError(
            f"target {target!r} is missing in {int(missing.sum())} of {len(frame)} rows; fill it "
            "in, or leave these rows out with --drop-missing-target (drop_missing=True)."
        )
    kept = frame.reset_index(drop=True)[~missing.to_numpy()]  # indexed by the rows of the file
    labels = _labels(kept[target])
    _check_classes(target, kept[target], labels)
    features = kept.drop(columns=[target])
    if features.shape[1] == 0:
        raise InvalidInputError(f"the table has no column beside the target {target!r}.")
    return features, labels


def check_columns(frame: pd.DataFrame, names: list[str], role: str) -> None:
    """Refuse names that are no columns; suggest those that are close."""
    columns = [str(name) for name in frame.columns]
    for name in names:
        if name not in columns:
            close = get_close_matches(name, columns, n=3)
            meant = f" Did you mean {' or '.join(map(repr, close))}?" if close else ""
            raise InvalidInputError(
                f"{role} {name!r} is no column.{meant} The columns are {listed(columns)}."
            )


def listed(names: list[Any]) -> str:
    """Return names for an error, the first of many."""
    more = len(names) - SHOWN_NAMES
    shown = ", ".join(str(name) for name in names[:SHOWN_NAMES])
    return f"{shown} and {more} more" if more > 0 else shown


def _labels(column: pd.Series) -> Array:
    """Return whole numbers as such and everything else as strings."""
    values = column.to_numpy()
    if values.dtype.kind in "iu":
        return values
    if values.dtype.kind == "f" and np.all(np.mod(values, 1) == 0):
        return values.astype(np.int64)
    return np.array([str(value) for value in values], dtype=str)


def _check_classes(target: str, column: pd.Series, labels: Array) -> None:
    classes, counts = np.unique(labels, return_counts=True)
    n = len(labels)
    if len(classes) < 2:
        only = f"one class ({classes[0]})" if len(classes) else "no value"
        raise InvalidInputError(
            f"target {target!r} has only {only} in {n} rows; at least two classes are needed."
        )
    if len(classes) == n:
        raise InvalidInputError(
            f"target {target!r} has {n} different values in {n} rows: an identifier or a quantity, "
            "no classes. Choose a column whose values repeat."
        )
    numeric = column.dtype.kind in "iuf"
    if numeric and len(classes) > MANY_VALUES and len(classes) > MANY_SHARE * n:
        raise InvalidInputError(
            f"target {target!r} has {len(classes)} different numbers in {n} rows: a quantity (a "
            "regression target), no classes. Choose a column of classes, or bin the numbers."
        )
    rare = classes[counts < 2].tolist()
    if rare:
        raise InvalidInputError(
            f"target {target!r} has only one row of class {listed(rare)}; every class needs at "
            "least two. Add rows, or remove or merge the class."
        )
