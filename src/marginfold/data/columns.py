"""What each column is, and the scikit-learn parts that make numbers of all of them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from shlex import quote
from typing import TYPE_CHECKING, Any

import numpy as np

from marginfold.data.column_values import (
    UNNAMED,
    as_levels,
    as_numbers,
    called,
    drop_option,
    is_date_like,
    is_number,
    is_plain,
    iso_words,
    one_mark,
    present_values,
    texts_of,
)
from marginfold.data.csv_files import DECIMAL
from marginfold.data.reading import AS_FOUND, Reading
from marginfold.data.tables import NOTES
from marginfold.data.target import check_columns, listed
from marginfold.data.written import (
    DateStyle,
    NumberStyle,
    Style,
    date_style,
    is_written_number,
    number_style,
)
from marginfold.errors import InvalidInputError, InvalidParameterError
from marginfold.linalg.tall import Array
from marginfold.validation.parameters import shown

if TYPE_CHECKING:
    import pandas as pd
    from sklearn.compose import ColumnTransformer

MAX_LEVELS = 30
"""Levels of a categorical column that get a feature of their own; rarer ones share one."""

TEXT_SHARE = 0.5
"""Distinct values per row above which a column with more than `MAX_LEVELS` is free text, unless so
many of them are numbers; up to which a column of some numbers and words is one of categories."""

MISSING_LEVEL = "(missing)"
"""The level of a missing value."""

SCALES = ("standard", "range", "none")
"""Mean 0 and deviation 1, the range [-1, 1], or numbers as they are."""


@dataclass(frozen=True)
class Columns:
    """The columns that are used, by kind, and what should be known about them.

    ``written`` says how numbers and dates are written that are not plain numbers, ``reading`` how
    the table was read.
    """

    numbers: tuple[str, ...]
    levels: tuple[str, ...]
    dropped: tuple[str, ...]
    notes: tuple[str, ...]
    written: tuple[tuple[str, Style], ...] = ()
    reading: Reading = AS_FOUND


def inspect_columns(
    frame: pd.DataFrame, *, categorical: Collection[str] = (), reading: Reading = AS_FOUND
) -> Columns:
    """Find what each column is; refuse those that no method can use.

    Parameters
    ----------
    frame : pandas.DataFrame
        The features, without the target.
    categorical : collection of str, default=()
        Columns to take as categories whatever they hold, such as codes.
    reading : Reading
        Whether identifiers are left out and dates are numbers, and what stands before decimals.

    Returns
    -------
    Columns
        Numbers (also with percent signs, currencies and grouped thousands), levels (strings, truth
        values, categories), and the columns that are dropped: empty and constant ones, free text,
        words that all differ, dates (unless they are asked for) and the number of the row; notes
        say what was dropped, what was read as a number and what looks odd.

    Raises
    ------
    InvalidInputError
        If columns hold many numbers and some words, infinite numbers or objects; it names all of
        them.

    Examples
    --------
    >>> import pandas as pd
    >>> from marginfold.data import inspect_columns
    >>> frame = pd.DataFrame({"size": [1.5, 2.0, None], "hue": ["red", "red", "blue"], "unit": 1})
    >>> inspect_columns(frame).notes
    ("column 'size': 1 missing value, the median is taken", "column 'unit' is constant: dropped")
    >>> inspect_columns(pd.DataFrame({"price": ["$1,250.50", "$7.00"]})).written
    (('price', NumberStyle(decimal='.', unit='$')),)
    """
    codes = reading.columns(categorical)
    check_columns(frame, codes, "--categorical")
    decimal = reading.decimal or frame.attrs.get(DECIMAL)
    found: dict[str, _Found] = {}
    faults: dict[str, str] = {}
    for name in frame.columns:
        try:
            found[name] = _found(name, frame[name], name in codes, reading, decimal)
        except InvalidInputError as error:
            faults[name] = str(error)
    if faults:
        raise InvalidInputError(_told(faults))
    kinds = {
        kind: tuple(name for name, column in found.items() if column.kind == kind)
        for kind in ("numbers", "levels", "dropped")
    }
    if not kinds["numbers"] and not kinds["levels"]:
        raise InvalidInputError(
            f"there is no column to learn from: {listed(kinds['dropped'])} are empty, constant or "
            "left out."
        )
    notes = [*frame.attrs.get(NOTES, {}).values(), *(n for c in found.values() for n in c.notes)]
    if reading.decimal is None and decimal == ",":
        notes.insert(0, "commas stand before decimals: 0,5 is read as 0.5 (--decimal , or .)")
    written = tuple((name, column.style) for name, column in found.items() if column.style)
    known = replace(reading, decimal=one_mark(decimal))
    return Columns(**kinds, notes=tuple(notes), written=written, reading=known)


def _told(faults: dict[str, str]) -> str:
    """Return what is wrong with all columns, and what leaves all of them out."""
    if len(faults) == 1:
        return next(iter(faults.values()))
    said = " ".join(f"({k}) {fault}" for k, fault in enumerate(faults.values(), start=1))
    return (
        f"{len(faults)} columns cannot be used as they are. {said} All of them are left out with "
        f"{' '.join(map(drop_option, faults))}."
    )


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


def arrange(
    frame: pd.DataFrame,
    numbers: Sequence[str],
    levels: Sequence[str],
    written: Sequence[tuple[str, Style]] = (),
) -> pd.DataFrame:
    """Return the used columns, numbers as floats and levels as strings, missing ones as NaN.

    ``written`` are the styles that `inspect_columns` found.  All faults are told at once.
    """
    import pandas

    styles, faults = dict(written), []
    arranged: dict[str, Any] = {}
    for name in numbers:
        try:
            arranged[name] = as_numbers(
                name, frame[name], styles.get(name), frame.attrs.get(DECIMAL)
            )
        except InvalidInputError as error:
            faults.append(str(error))
    if faults:
        raise InvalidInputError(" ".join(faults))
    for name in levels:
        arranged[name] = as_levels(frame[name])
    return pandas.DataFrame(arranged, index=frame.index)


def feature_columns(part: ColumnTransformer) -> list[str]:
    """Return the column of the table that each number of a fitted `encoder` comes from."""
    found: list[str] = []
    for kind, fitted, names in part.transformers_:
        if kind == "numbers":
            found += names
        elif kind == "levels":
            places = [str(place) for place in range(len(names))]
            features = fitted[-1].get_feature_names_out(places)  # "0_red": place and level
            found += [names[int(feature.partition("_")[0])] for feature in features]
    return found


def decoded(part: ColumnTransformer, row: Array) -> dict[str, str]:
    """Return numbers of a fitted `encoder` as values of columns: a number, or the likeliest level.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from marginfold.data.columns import decoded, encoder, inspect_columns
    >>> frame = pd.DataFrame({"size": [1.0, 3.0, 8.0], "hue": ["red", "red", "blue"]})
    >>> part = encoder(inspect_columns(frame), "standard").fit(frame)
    >>> decoded(part, np.array([0.0, 0.7, 0.3]))
    {'size': '4', 'hue': 'blue'}
    """
    values: dict[str, str] = {}
    start = 0
    for kind, fitted, names in part.transformers_:
        if kind == "numbers":
            numbers = row[None, : len(names)]
            if hasattr(fitted[-1], "inverse_transform"):
                numbers = fitted[-1].inverse_transform(numbers)
            values |= {name: f"{n:.4g}" for name, n in zip(names, numbers[0], strict=True)}
            start = len(names)
        elif kind == "levels":
            places = [str(place) for place in range(len(names))]
            features = [f.split("_", 1) for f in fitted[-1].get_feature_names_out(places)]
            for place, name in zip(places, names, strict=True):
                own = [k for k, (column, _) in enumerate(features) if column == place]
                best = own[int(np.argmax(row[start:][own]))]
                values[name] = features[best][1].replace("infrequent_sklearn", "(rare)")
    return values


def unseen_levels(part: ColumnTransformer, arranged: pd.DataFrame) -> list[str]:
    """Return notes on words that a fitted `encoder` has never seen, which say nothing to it."""
    fitted = part.named_transformers_.get("levels")
    if fitted is None or fitted == "drop":
        return []
    notes = []
    names = next(names for kind, _, names in part.transformers_ if kind == "levels")
    for name, known in zip(names, fitted[-1].categories_, strict=True):
        words = arranged[name].fillna(MISSING_LEVEL)
        unseen = words[~words.isin(known)]
        if len(unseen):
            rows = "1 row has" if len(unseen) == 1 else f"{len(unseen)} rows have"
            notes.append(
                f"{called(name)}: {rows} what the model has never seen "
                f"({listed(sorted(set(unseen)))}), taken as none of its levels"
            )
    return notes


def _scaler(scale: str) -> list[Any]:
    from sklearn.preprocessing import MinMaxScaler, StandardScaler

    if scale not in SCALES:
        options = ", ".join(map(repr, SCALES))
        raise InvalidParameterError(f"scale must be one of {options}; got {shown(scale)}.")
    if scale == "none":
        return []
    return [StandardScaler() if scale == "standard" else MinMaxScaler(feature_range=(-1, 1))]


def _categories(name: str) -> str:
    return f"--categorical {quote(name)}"


@dataclass(frozen=True)
class _Found:
    """What a column is."""

    kind: str
    notes: tuple[str, ...] = ()
    style: Style | None = None


def _found(
    name: str, column: pd.Series, is_code: bool, reading: Reading, decimal: str | None
) -> _Found:
    """Return what a column is; refuse it if no method can use it."""
    style = None
    is_level = is_code or not is_number(column)
    if not is_level:
        as_numbers(name, column, None, decimal)
    elif is_code:
        _check_plain(name, column)
    else:
        style = _style(name, column, decimal)
        if isinstance(style, NumberStyle):
            as_numbers(name, column, style, decimal)
    is_level = is_level and style is None
    reason = _useless(column, is_level)
    if not reason and not is_code:
        reason = _unusable(name, column, style, reading)
    if reason:
        return _Found("dropped", (f"{called(name)} is {reason}: dropped",))
    if isinstance(style, DateStyle):
        _check_order(name, style, column)
    if is_level:
        mixed = [] if is_code else _check_words(name, column)
        return _Found("levels", (*mixed, *_level_notes(name, column)))
    notes = _number_notes(name, column)
    return _Found("numbers", (*_style_notes(name, column, style), *notes), style)


def _check_plain(name: str, column: pd.Series) -> pd.Series:
    """Return the values that are there; refuse dates, lists and other objects."""
    present = present_values(column)
    odd = [value for value in present.tolist() if not isinstance(value, (str, bool, int, float))]
    if odd:
        raise InvalidInputError(
            f"{called(name)} has {type(odd[0]).__name__} values ({shown(odd[0])}); numbers or "
            f"words are needed. Convert them, or leave the column out with {drop_option(name)}."
        )
    return present


def _style(name: str, column: pd.Series, decimal: str | None) -> Style | None:
    """Return how numbers or dates are written; None for words; refuse what is not certain."""
    texts = texts_of(iso_words(column) if is_date_like(column) else column)
    dates = date_style(texts)
    if dates is not None:
        return dates
    _check_plain(name, column)
    if not all(isinstance(text, str) for text in present_values(column).tolist()):
        return None
    if decimal in (None, ".") and all(map(is_plain, texts)):
        return None  # words of digits from a typed file are codes
    style = number_style(texts, one_mark(decimal))
    if style is not None and not style.decimal:
        example = next(text for text in texts if "," in text or "." in text)
        raise InvalidInputError(
            f"{called(name)} has numbers such as {shown(example)} that can be read in two ways; "
            "say --decimal , (a comma before decimals) or --decimal . (a point), leave it out "
            f"with {drop_option(name)}, or take it as categories with {_categories(name)}."
        )
    return style


def _check_order(name: str, style: DateStyle, column: pd.Series) -> None:
    if style.day_first is None:
        raise InvalidInputError(
            f"{called(name)} has dates such as {shown(texts_of(column)[0])}, whose values do not "
            "tell the day from the month; write them as 2024-05-31, or leave the column out with "
            f"{drop_option(name)}."
        )


def _unusable(name: str, column: pd.Series, style: Style | None, reading: Reading) -> str:
    """Return why a column tells no more than which row it is in, or an empty string."""
    if isinstance(style, DateStyle):
        return "" if reading.dates else "dates (--dates takes them as days since the earliest)"
    if style is not None:
        return ""
    distinct, n = column.nunique(), len(column)
    if is_number(column):
        all_differ = column.dtype.kind in "iu" and distinct == n > 2
        if _counts_rows(column) or (all_differ and str(name).startswith(UNNAMED)):
            return "the number of the row"
        return "an identifier, all values differ" if reading.drop_ids and all_differ else ""
    n_present = int(column.notna().sum())
    if distinct > max(MAX_LEVELS, TEXT_SHARE * n) or 2 < distinct == n_present:
        texts = texts_of(column)
        if sum(map(is_written_number, texts)) < TEXT_SHARE * len(texts):
            return (
                f"free text or an identifier, {distinct} different values in {n} rows such as "
                f"{shown(texts[0])} ({_categories(name)} takes it all the same)"
            )
    return ""


def _counts_rows(column: pd.Series) -> bool:
    """Return whether whole numbers only count the rows, as the index of a saved table does."""
    values = column.to_numpy()
    return column.dtype.kind in "iu" and len(values) > 2 and bool((np.diff(values) == 1).all())


def _check_words(name: str, column: pd.Series) -> list[str]:
    """Refuse columns of numbers and words, unless they are few; return what to note of those."""
    present = present_values(column)
    if all(isinstance(value, bool) for value in present.tolist()):
        return []
    known = {value: is_written_number(str(value)) for value in present.unique().tolist()}
    are_numbers = np.array([known[value] for value in present.tolist()], dtype=bool)
    if 0 < are_numbers.sum() < len(present):
        told = _mixed(name, present, are_numbers, column)
        if len(known) > min(MAX_LEVELS, TEXT_SHARE * len(column)):
            raise InvalidInputError(
                f"{told}; correct it (leave missing values empty), leave the column out with "
                f"{drop_option(name)}, or take all as categories with {_categories(name)}."
            )
        return [f"{told}; all are taken as categories"]
    if len(present) and are_numbers.all() and not all(map(is_plain, known)):
        raise InvalidInputError(
            f"{called(name)} has numbers written in several ways "
            f"({', '.join([*map(shown, known)][:3])}); write them in one, leave it out with "
            f"{drop_option(name)}, or take it as categories with {_categories(name)}."
        )
    return []


def _mixed(name: str, present: pd.Series, are_numbers: Any, column: pd.Series) -> str:
    """Say which kinds a column mixes, and where the rarer one begins."""
    n_numbers, n_words = int(are_numbers.sum()), int((~are_numbers).sum())
    first = np.flatnonzero(are_numbers if n_numbers < n_words else ~are_numbers)[0]
    row = np.flatnonzero(column.notna().to_numpy())[first] + 1
    return (
        f"{called(name)} mixes types: {n_numbers} numbers and {n_words} words, the first odd "
        f"value being {shown(present.iloc[first])} in row {row}"
    )


def _useless(column: pd.Series, is_level: bool) -> str:
    """Return why a column says nothing, or an empty string."""
    if column.isna().all():
        return "entirely missing"
    constant = column.nunique(dropna=not is_level) == 1
    return "constant" if constant else ""


def _style_notes(name: str, column: pd.Series, style: Style | None) -> list[str]:
    if style is None:
        return []
    if isinstance(style, DateStyle):
        day = style.origin.split("T")[0]
        return [f"{called(name)}: dates, taken as days since the earliest, {day}"]
    text = str(present_values(column).iloc[0])
    number = f"{style.number(text):.15g}"
    return [f"{called(name)}: {shown(text)} is read as the number {number}, and so all others"]


def _number_notes(name: str, column: pd.Series) -> list[str]:
    notes = []
    missing = int(column.isna().sum())
    if missing:
        values = "1 missing value" if missing == 1 else f"{missing} missing values"
        notes.append(f"{called(name)}: {values}, the median is taken")
    if column.dtype.kind in "iu" and column.nunique() == len(column):
        notes.append(
            f"{called(name)} looks like an identifier: all values differ ({drop_option(name)}, or "
            "--drop-ids)"
        )
    return notes


def _level_notes(name: str, column: pd.Series) -> list[str]:
    notes = []
    missing, distinct = int(column.isna().sum()), column.nunique()
    if missing:
        notes.append(f"{called(name)}: {missing} missing, taken as a level of its own")
    if distinct > MAX_LEVELS:
        notes.append(f"{called(name)}: {distinct} levels, the rarest share one feature")
    return notes
