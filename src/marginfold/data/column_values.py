"""The values of one column: as numbers, as levels or as words, and how the column is called."""

from __future__ import annotations

from dataclasses import replace
from shlex import quote
from typing import TYPE_CHECKING, Any

import numpy as np

from marginfold.data.reading import DECIMALS
from marginfold.data.written import DateStyle, NumberStyle, Style, number_style
from marginfold.errors import InvalidInputError
from marginfold.linalg.tall import Array
from marginfold.validation.parameters import shown

if TYPE_CHECKING:
    import pandas as pd

UNNAMED = "Unnamed: "
"""How pandas calls a column without a name, its number behind it, counted from 0."""


def called(name: object) -> str:
    """Return how a message calls a column.

    Examples
    --------
    >>> from marginfold.data.column_values import called
    >>> called("size"), called("Unnamed: 0")
    ("column 'size'", 'column 1 (it has no name)')
    """
    number = str(name).removeprefix(UNNAMED)
    if number != str(name) and number.isdecimal():
        return f"column {int(number) + 1} (it has no name)"
    return f"column {name!r}"


def as_numbers(name: str, column: pd.Series, style: Style | None, decimal: str | None) -> Any:
    """Return the numbers of a column; refuse what is none, by row."""
    _check_same_kind(name, column, style)
    if is_number(column) or column.isna().all():
        return _checked_size(name, column.to_numpy(dtype=np.float64, na_value=np.nan))
    if is_date_like(column):
        column = iso_words(column)
    style = _style_now(column, style, decimal)
    values = np.full(len(column), np.nan)
    present = present_values(column)
    known = {value: style.number(str(value)) for value in dict.fromkeys(present.tolist())}
    rows = np.flatnonzero(column.notna().to_numpy())
    for row, value in zip(rows.tolist(), present.tolist(), strict=True):
        number = known[value]
        if number is None:
            kind = "dates" if isinstance(style, DateStyle) else "numbers"
            unit = f" with the sign {_unit(style)}" if _unit(style) else ""
            raise InvalidInputError(
                f"{called(name)} was {kind}{unit} when the model was fitted; row {row + 1} has "
                f"{shown(value)}. Correct it, or leave the value empty."
            )
        values[row] = number
    return _checked_size(name, values)


def as_levels(column: pd.Series) -> Any:
    """Return strings; whole numbers read the same whether a missing value made them floats."""
    values = np.full(len(column), np.nan, dtype=object)
    present = column.notna().to_numpy()
    values[present] = [_level(value) for value in column[present].tolist()]
    return values


def present_values(column: pd.Series) -> pd.Series:
    """Return the values that are there."""
    return column[column.notna().to_numpy()]


def texts_of(column: pd.Series) -> list[str]:
    """Return the distinct values as words, in their order."""
    return list(dict.fromkeys(map(str, present_values(column).tolist())))


def iso_words(column: pd.Series) -> pd.Series:
    """Return dates as words."""
    import pandas

    present = present_values(column)
    words = pandas.Series([value.isoformat() for value in present.tolist()], present.index, object)
    return words.reindex(column.index)


def is_number(column: pd.Series) -> bool:
    """Return whether a column holds numbers as such."""
    return column.dtype.kind in "iuf"


def is_plain(text: str) -> bool:
    """Return whether a text is a number to Python."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def is_date_like(column: pd.Series) -> bool:
    """Return whether a column holds dates as such, not as words."""
    if column.dtype.kind == "M":
        return True
    present = present_values(column).tolist()
    return bool(present) and all(hasattr(value, "isoformat") for value in present)


def one_mark(decimal: str | None) -> str | None:
    """Return the mark of decimals, None where a file has both."""
    return decimal if decimal in DECIMALS else None


def drop_option(name: str) -> str:
    """Return the option that leaves a column out."""
    return f"--drop {quote(name)}"


def _style_now(column: pd.Series, style: Style | None, decimal: str | None) -> Style:
    """Return how a column is written that a model knows in some style: commas may be points now."""
    if isinstance(style, DateStyle):
        return style
    then = style or NumberStyle(one_mark(decimal) or ".")
    now = number_style(texts_of(column), one_mark(decimal) or then.decimal)
    return then if now is None else replace(then, decimal=now.decimal)


def _check_same_kind(name: str, column: pd.Series, style: Style | None) -> None:
    """Refuse plain numbers where a model knows dates, or percent signs: 0.5 may be 50 %."""
    is_date = isinstance(style, DateStyle)
    if not is_number(column) or column.isna().all() or not (is_date or _unit(style) == "%"):
        return
    raise InvalidInputError(
        f"{called(name)} had {'dates' if is_date else 'percent signs'} when the model was fitted "
        "and has plain numbers now; write them as in the table of the fit."
    )


def _unit(style: Style | None) -> str:
    return style.unit if isinstance(style, NumberStyle) else ""


def _level(value: Any) -> str:
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _checked_size(name: str, values: Array) -> Array:
    """Return the numbers of a column; refuse those that no method can compute with, by row."""
    from marginfold.validation.rows import LARGEST_ENTRY

    too_large = np.flatnonzero(np.abs(values) > LARGEST_ENTRY)
    if len(too_large):
        value = values[too_large[0]]
        what = f"{value:g}, and {LARGEST_ENTRY:g} is the limit," if np.isfinite(value) else ""
        raise InvalidInputError(
            f"{called(name)} has {what or 'an infinite value'} in row {too_large[0] + 1}; replace "
            f"it, or leave the column out with {drop_option(name)}."
        )
    return values
