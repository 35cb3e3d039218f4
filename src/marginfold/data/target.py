"""The target column: part a table, or a file, into features and labels."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from difflib import get_close_matches
from shlex import quote
from typing import TYPE_CHECKING, Any

import numpy as np

from marginfold.data.csv_files import no_header_hint
from marginfold.data.reading import AS_FOUND, Reading
from marginfold.data.tables import NOTES, is_set, read_table
from marginfold.data.written import number_style
from marginfold.errors import InvalidInputError, InvalidParameterError
from marginfold.linalg.tall import Array

if TYPE_CHECKING:
    import pandas as pd

FRACTIONS = 20
"""Distinct numbers with decimals above which a target is one of regression."""

SHOWN_NAMES = 12
"""Column names or labels that an error lists."""

SET_TARGET = "label"
"""Column of the classes in the frame of a data set."""


def chosen_target(
    path: str | os.PathLike[str], target: str | None, reading: Reading = AS_FOUND
) -> str:
    """Return the column with the classes that ``--target`` means; a data set has its own.

    Examples
    --------
    >>> from marginfold.data.target import chosen_target
    >>> chosen_target("wine", None)
    'label'
    >>> chosen_target("t.csv", "5", Reading(header=False))
    'c5'
    """
    if is_set(path):
        if target not in (None, SET_TARGET):
            raise InvalidParameterError(
                f"the classes of the set {path} are {SET_TARGET!r}, not {target!r}; leave --target "
                "out."
            )
        return SET_TARGET
    if target is None and not os.path.exists(path):
        raise InvalidInputError(
            f"{path} is neither a file nor a data set; 'marginfold datasets' lists those."
        )
    if target is None:
        columns = listed([quote(str(name)) for name in read_table(path, reading=reading).columns])
        raise InvalidParameterError(
            f"--target is missing: name the column with the classes. The columns are {columns}."
        )
    return reading.column(target)


def read_labelled(
    path: str | os.PathLike[str],
    target: str | None = None,
    *,
    drop: Collection[str] = (),
    drop_missing: bool = False,
    reading: Reading = AS_FOUND,
) -> tuple[pd.DataFrame, Array]:
    r"""Read a table and part it into features and labels.

    Parameters
    ----------
    path : str or path
        See `read_table`.
    target : str or None, default=None
        The column with the classes; a data set of the catalogue needs none.
    drop : collection of str, default=()
        Columns to leave out.
    drop_missing : bool, default=False
        Whether rows without a label are left out; they are refused otherwise.
    reading : Reading
        What to know about the file; by default it is found by looking.

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
    target, left_out = chosen_target(path, target, reading), reading.columns(drop)
    if target in left_out:
        raise InvalidInputError(
            f"--drop {quote(target)} is the target, which cannot be left out; choose another "
            "column."
        )
    frame = read_table(path, reading=reading)
    check_columns(frame, left_out, "--drop")
    for name in left_out:
        frame.attrs.get(NOTES, {}).pop(name, None)
    return split_target(frame.drop(columns=left_out), target, drop_missing=drop_missing)


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


def split_groups(features: pd.DataFrame, column: str) -> tuple[pd.DataFrame, Array]:
    """Part features into the other columns and the groups that a column holds, as numbers 0, 1, ...

    Raises
    ------
    InvalidInputError
        If there is no such column, if it lacks values, or if it has one value only.

    Examples
    --------
    >>> import pandas as pd
    >>> from marginfold.data.target import split_groups
    >>> frame = pd.DataFrame({"who": ["b", "a", "b"], "x": [1, 2, 3]})
    >>> features, groups = split_groups(frame, "who")
    >>> list(features.columns), groups.tolist()
    (['x'], [0, 1, 0])
    """
    import pandas

    check_columns(features, [column], "--group")
    missing = int(features[column].isna().sum())
    if missing:
        raise InvalidInputError(
            f"--group {quote(column)} is missing in {missing} of {len(features)} rows; fill it in, "
            "with a value of its own for a row that belongs to no other."
        )
    groups, values = pandas.factorize(features[column])
    if len(values) == 1:
        raise InvalidInputError(
            f"--group {quote(column)} has one value, {quote(str(values[0]))}: folds that keep it "
            "together cannot hold it out. Choose another column, or leave --group out."
        )
    features = features.drop(columns=[column])
    features.attrs.get(NOTES, {}).pop(column, None)
    if features.shape[1] == 0:
        raise InvalidInputError(
            f"the table has no column beside the target and --group {quote(column)}."
        )
    return features, groups


def check_columns(frame: pd.DataFrame, names: list[str], role: str) -> None:
    """Refuse names that are no columns, all at once; suggest those that are close."""
    columns = [str(name) for name in frame.columns]
    unknown = [name for name in dict.fromkeys(names) if name not in columns]
    if not unknown:
        return
    close = [near for name in unknown for near in get_close_matches(name, columns, n=3)]
    meant = f" Did you mean {' or '.join(map(repr, dict.fromkeys(close)))}?" if close else ""
    hint = no_header_hint(columns)
    if len(columns) == 1:
        hint = " The table has one column only: say what is between its fields with --sep."
    are = "is not a column" if len(unknown) == 1 else "are not columns"
    raise InvalidInputError(
        f"{role} {' and '.join(map(repr, unknown))} {are}.{meant} The columns are "
        f"{listed([quote(name) for name in columns])}.{hint}"
    )


def listed(names: Sequence[Any]) -> str:
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
    _check_quantity(target, column)
    classes, counts = np.unique(labels, return_counts=True)
    n = len(labels)
    if len(classes) < 2:
        only = f"one class ({classes[0]})" if len(classes) else "no value"
        raise InvalidInputError(
            f"target {target!r} has only {only} in {n} rows; at least two classes are needed."
        )
    if len(classes) == n:
        raise InvalidInputError(
            f"target {target!r} has {n} different values in {n} rows: it is an identifier or a "
            "quantity, not a class. Choose a column whose values repeat."
        )
    rare = classes[counts < 2].tolist()
    if rare:
        raise InvalidInputError(
            f"target {target!r} has only one row of class {listed(rare)}; every class needs at "
            "least two. Add rows, or remove or merge the class."
        )


def _check_quantity(target: str, column: pd.Series) -> None:
    """Refuse numbers that are measured or counted, before they are taken for many classes."""
    from marginfold.validation.rows import is_quantity

    numbers = _numbers(column)
    if numbers is None:
        return
    values, counts = np.unique(numbers, return_counts=True)
    fractions = len(values) > FRACTIONS and bool(np.any(np.mod(values, 1) != 0))
    if fractions or is_quantity(counts):
        name = repr(target)
        raise InvalidInputError(
            f"target {name} is a quantity: {len(values)} different numbers in {len(column)} rows. "
            "Classes are needed; marginfold does no regression. Choose a column of classes, or "
            f"group the numbers into a few classes, such as table[{name}] = "
            f"pandas.qcut(table[{name}], 3, labels=['low', 'middle', 'high'])."
        )


def _numbers(column: pd.Series) -> Array | None:
    """Return the numbers of a column, also if each has the sign of a unit; None for words."""
    if column.dtype.kind in "iuf":
        return column.to_numpy(dtype=np.float64)
    texts = column.tolist()
    if column.dtype.kind == "b" or not all(isinstance(text, str) for text in texts):
        return None
    style = number_style(dict.fromkeys(texts), ".")
    return None if style is None else np.array([style.number(text) for text in texts], dtype=float)
