"""What each column is, and the scikit-learn parts that make numbers of all of them."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from marginfold.data.target import check_columns, listed
from marginfold.errors import InvalidInputError, InvalidParameterError
from marginfold.validation.parameters import shown

if TYPE_CHECKING:
    import pandas as pd
    from sklearn.compose import ColumnTransformer

MAX_LEVELS = 30
"""Levels of a categorical column that get a feature of their own; rarer ones share one."""

TEXT_SHARE = 0.5
"""Distinct values per row above which a column with more than `MAX_LEVELS` is free text."""

DATE = re.compile(
    r"\d{4}([-/])(0?[1-9]|1[0-2])\1(0?[1-9]|[12]\d|3[01])([ T]\d{1,2}:.*)?"
    r"|\d{1,2}([.-])\d{1,2}\5\d{4}|\d{1,2}/\d{1,2}/(\d{2}|\d{4})",
    re.ASCII,
)
"""What dates look like: 2024-05-31 with or without a time, 31.5.2024, 5/31/24."""

WITH_COMMAS = re.compile(r"[+-]?\d+(,\d+)*", re.ASCII)
"""What numbers look like that are written with commas, of decimals or of thousands."""

MISSING_LEVEL = "(missing)"
"""The level of a missing value."""

SCALES = ("standard", "range", "none")
"""Mean 0 and deviation 1, the range [-1, 1], or numbers as they are."""


@dataclass(frozen=True)
class Columns:
    """The columns that are used, by kind, and what should be known about them."""

    numbers: tuple[str, ...]
    levels: tuple[str, ...]
    dropped: tuple[str, ...]
    notes: tuple[str, ...]


def inspect_columns(frame: pd.DataFrame, *, categorical: Collection[str] = ()) -> Columns:
    """Find what each column is; refuse those that no method can use.

    Parameters
    ----------
    frame : pandas.DataFrame
        The features, without the target.
    categorical : collection of str, default=()
        Columns to take as categories whatever they hold, such as codes.

    Returns
    -------
    Columns
        Numbers, levels (strings, truth values, categories), and the columns that are dropped
        because they are empty or constant; notes say what was dropped and what looks odd.

    Raises
    ------
    InvalidInputError
        If a column holds numbers and words, free text, infinite numbers, dates or objects.

    Examples
    --------
    >>> import pandas as pd
    >>> from marginfold.data import inspect_columns
    >>> frame = pd.DataFrame({"size": [1.5, 2.0, None], "hue": ["red", "red", "blue"], "unit": 1})
    >>> inspect_columns(frame).notes
    ("column 'size': 1 missing value, the median is taken", "column 'unit' is constant: dropped")
    """
    check_columns(frame, list(categorical), "categorical column")
    numbers: list[str] = []
    levels: list[str] = []
    dropped: list[str] = []
    notes: list[str] = []
    for name in frame.columns:
        column = frame[name]
        is_level = name in categorical or not _is_number(column)
        if not is_level:
            _check_finite(name, column)
        elif name in categorical:
            _check_plain(name, column)
        else:
            _check_words(name, column)
        reason = _useless(column, is_level)
        if reason:
            dropped.append(name)
            notes.append(f"column {name!r} is {reason}: dropped")
            continue
        (levels if is_level else numbers).append(name)
        notes += _level_notes(name, column) if is_level else _number_notes(name, column)
    if not numbers and not levels:
        raise InvalidInputError(
            f"no column can be learnt from: {listed(dropped)} are empty or constant."
        )
    return Columns(tuple(numbers), tuple(levels), tuple(dropped), tuple(notes))


def encoder(columns: Columns, scale: str) -> ColumnTransformer:
    """Return the unfitted transformer that makes numbers of what `arrange` gives.

    Numbers are imputed by the median and scaled; categories become one feature per level, a
    missing one being a level of its own and an unknown one none.
    """
    from sklearn.compose import ColumnTransformer
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    median = SimpleImputer(strategy="median", keep_empty_features=True)
    levels = make_pipeline(
        SimpleImputer(strategy="constant", fill_value=MISSING_LEVEL, keep_empty_features=True),
        OneHotEncoder(
            handle_unknown="infrequent_if_exist", max_categories=MAX_LEVELS, sparse_output=False
        ),
    )
    parts = [
        ("numbers", make_pipeline(median, *_scaler(scale)), columns.numbers),
        ("levels", levels, columns.levels),
    ]
    return ColumnTransformer(
        [(name, part, list(used)) for name, part, used in parts if used],
        verbose_feature_names_out=False,
    )


def arrange(frame: pd.DataFrame, numbers: Sequence[str], levels: Sequence[str]) -> pd.DataFrame:
    """Return the used columns, numbers as floats and levels as strings, missing ones as NaN."""
    import pandas

    arranged: dict[str, Any] = {}
    for name in numbers:
        if not _is_number(frame[name]) and not frame[name].isna().all():
            raise InvalidInputError(_no_numbers(name, frame[name]))
        _check_finite(name, frame[name])
        arranged[name] = frame[name].to_numpy(dtype=np.float64, na_value=np.nan)
    for name in levels:
        arranged[name] = _as_levels(frame[name])
    return pandas.DataFrame(arranged, index=frame.index)


def _no_numbers(name: str, column: pd.Series) -> str:
    """Say where a column that should hold numbers does not."""
    import pandas

    odd = column.notna() & pandas.to_numeric(column.astype(object), errors="coerce").isna()
    first = int(odd.to_numpy().argmax())
    return (
        f"column {name!r} was numbers when the model was fitted; row {first + 1} holds "
        f"{shown(column.iloc[first])}. Mend it, or leave the value empty."
    )


def _scaler(scale: str) -> list[Any]:
    from sklearn.preprocessing import MinMaxScaler, StandardScaler

    if scale not in SCALES:
        options = ", ".join(map(repr, SCALES))
        raise InvalidParameterError(f"scale must be one of {options}; got {shown(scale)}.")
    if scale == "none":
        return []
    return [StandardScaler() if scale == "standard" else MinMaxScaler(feature_range=(-1, 1))]


def _is_number(column: pd.Series) -> bool:
    return column.dtype.kind in "iuf"


def _as_levels(column: pd.Series) -> Any:
    """Return strings; whole numbers read the same whether a missing value made them floats."""
    values = np.full(len(column), np.nan, dtype=object)
    present = column.notna().to_numpy()
    values[present] = [_level(value) for value in column[present].tolist()]
    return values


def _level(value: Any) -> str:
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _check_finite(name: str, column: pd.Series) -> None:
    values = column.to_numpy(dtype=np.float64, na_value=np.nan)
    infinite = np.flatnonzero(np.isinf(values))
    if len(infinite):
        raise InvalidInputError(
            f"column {name!r} has an infinite value in row {infinite[0] + 1}; replace it, or leave "
            f"the column out with --drop {name}."
        )


def _check_plain(name: str, column: pd.Series) -> pd.Series:
    """Return the values that are there; refuse dates, lists and other objects."""
    present = column[column.notna().to_numpy()]
    odd = [value for value in present.tolist() if not isinstance(value, (str, bool, int, float))]
    if odd:
        raise InvalidInputError(
            f"column {name!r} holds {type(odd[0]).__name__} values ({shown(odd[0])}); numbers or "
            f"words are needed. Convert them, or leave the column out with --drop {name}."
        )
    return present


def _check_words(name: str, column: pd.Series) -> None:
    """Refuse columns that are neither numbers nor a few repeated words."""
    import pandas

    present = _check_plain(name, column)
    if column.dtype.kind == "b" or all(isinstance(value, bool) for value in present.tolist()):
        return
    _check_written_numbers(name, present.tolist())
    is_number = pandas.to_numeric(present.astype(object), errors="coerce").notna().to_numpy()
    if 0 < is_number.sum() < len(present):
        raise InvalidInputError(_mixed(name, present, is_number, column))
    distinct = present.nunique()
    if distinct > max(MAX_LEVELS, TEXT_SHARE * len(column)) or 2 < distinct == len(present):
        raise InvalidInputError(
            f"column {name!r} is free text or an identifier: {distinct} different values in "
            f"{len(column)} rows, such as {shown(present.iloc[0])}. Leave it out with "
            f"--drop {name}."
        )


def _check_written_numbers(name: str, values: list[Any]) -> None:
    """Refuse dates and decimal commas for what they are, before they look like words."""
    texts = [value for value in values if isinstance(value, str)]
    if texts and all(DATE.fullmatch(text.strip()) for text in texts):
        raise InvalidInputError(
            f"column {name!r} holds dates ({shown(texts[0])}); make numbers of them (days since a "
            f"day, month, ...), leave it out with --drop {name}, or take it as categories with "
            f"--categorical {name}."
        )
    commas = [text for text in texts if "," in text]
    if commas and all(WITH_COMMAS.fullmatch(text.strip()) for text in texts):
        raise InvalidInputError(
            f"column {name!r} holds numbers with commas ({shown(commas[0])}), of decimals or of "
            "thousands; write plain numbers such as 7.5 or 7500, leave it out with "
            f"--drop {name}, or take it as categories with --categorical {name}."
        )


def _mixed(name: str, present: pd.Series, is_number: Any, column: pd.Series) -> str:
    """Say which kinds a column mixes, and where the rarer one begins."""
    n_numbers, n_words = int(is_number.sum()), int((~is_number).sum())
    first = np.flatnonzero(is_number if n_numbers < n_words else ~is_number)[0]
    row = np.flatnonzero(column.notna().to_numpy())[first] + 1
    return (
        f"column {name!r} mixes types: {n_numbers} numbers and {n_words} words, the first odd "
        f"value being {shown(present.iloc[first])} in row {row}; mend it, leave the column out "
        f"with --drop {name}, or take all as categories with --categorical {name}."
    )


def _useless(column: pd.Series, is_level: bool) -> str:
    """Return why a column says nothing, or an empty string."""
    if column.isna().all():
        return "entirely missing"
    constant = column.nunique(dropna=not is_level) == 1
    return "constant" if constant else ""


def _number_notes(name: str, column: pd.Series) -> list[str]:
    notes = []
    missing = int(column.isna().sum())
    if missing:
        values = "1 missing value" if missing == 1 else f"{missing} missing values"
        notes.append(f"column {name!r}: {values}, the median is taken")
    if column.dtype.kind in "iu" and column.nunique() == len(column):
        notes.append(f"column {name!r} looks like an identifier: all values differ (--drop {name})")
    return notes


def _level_notes(name: str, column: pd.Series) -> list[str]:
    notes = []
    missing, distinct = int(column.isna().sum()), column.nunique()
    if missing:
        notes.append(f"column {name!r}: {missing} missing, taken as a level of its own")
    if distinct > MAX_LEVELS:
        notes.append(f"column {name!r}: {distinct} levels, the rarest share one feature")
    return notes
