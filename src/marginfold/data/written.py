"""Numbers and dates as people write them: signs of currencies, thousands, decimal commas, days.

A column is taken for numbers, or for dates, only if all its values are; in one style.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache

DATE = re.compile(
    r"(?P<y>\d{4})([-/.])(?P<m>\d{1,2})\2(?P<d>\d{1,2})(?:[ T](?P<time>\d{1,2}:.*))?"
    r"|(?P<a>\d{1,2})(?P<mark>[-./])(?P<b>\d{1,2})(?P=mark)(?P<year>\d{4}|(?<=/)\d{2})"
    r"(?: (?P<clock>\d{1,2}:.*))?"
    r"|(?P<day>\d{1,2})[- ](?P<month>[A-Za-z]{3,9})[- ](?P<of>\d{4})",
    re.ASCII,
)
"""What dates look like: 2024-05-31 with or without a time, 31.5.2024, 5/31/24, 31 May 2024."""

MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
"""First letters of the months."""

CENTURY = 69
"""Two digits of a year from here on are of the last century, as in POSIX."""

DAY = timedelta(days=1)

CODES = frozenset(
    ("USD", "EUR", "GBP", "CHF", "JPY", "CNY", "INR", "AUD", "CAD", "SEK", "NOK", "DKK", "PLN")
)
"""Codes of currencies that are known beside the signs."""

SPACES = " \u00a0\u2009\u202f"
"""Blanks that group thousands, the unbreakable and the thin ones too."""


@dataclass(frozen=True)
class NumberStyle:
    """How the numbers of a column are written.

    Attributes
    ----------
    decimal : {".", ",", ""}
        What stands before decimals; empty if the values do not tell.
    unit : str
        The sign at every number: "%", one of a currency, or nothing.

    Examples
    --------
    >>> from marginfold.data.written import number_style
    >>> style = number_style(["1.250,50 €", "-3 €"])
    >>> style, style.number("1.250,50 €")
    (NumberStyle(decimal=',', unit='€'), 1250.5)
    """

    decimal: str
    unit: str = ""

    def number(self, text: str) -> float | None:
        """Return the number that a text stands for, None if it is none in this style.

        A currency may be left out; a percent sign may not, as 0.5 is not 0.5 %.
        """
        body, unit = _without_unit(text)
        if unit != self.unit and (unit or self.unit == "%"):
            return None
        return _value(body, self.decimal or ".")


def number_style(texts: Iterable[str], decimal: str | None = None) -> NumberStyle | None:
    """Return how all of these texts write numbers; None if one of them is no number.

    ``decimal`` decides where the texts themselves do not: 1,250 is 1.25 or 1250.  Money has no
    three decimals: $1,250 is 1250.

    Examples
    --------
    >>> from marginfold.data.written import number_style
    >>> number_style(["12 %", "7.5 %"])
    NumberStyle(decimal='.', unit='%')
    >>> number_style(["1,250", "3"])
    NumberStyle(decimal='', unit='')
    >>> number_style(["12 %", "7.5"]) is None
    True
    """
    texts = list(texts)
    units, possible, differ = set(), {".", ","}, False
    for text in texts:
        body, unit = _without_unit(text)
        values = {mark: _value(body, mark) for mark in possible}
        possible = {mark for mark, value in values.items() if value is not None}
        units.add(unit)
        if not possible or len(units) > 1:
            return None
        differ |= len(set(values.values())) > 1
    if not units:
        return None
    unit = units.pop()
    if len(possible) == 1 or not differ:
        return NumberStyle("." if "." in possible else ",", unit)
    marks = {mark for text in texts for mark in ".," if mark in text}
    is_money = unit not in ("", "%") and len(marks) == 1
    other = ({".", ","} - marks).pop() if is_money else ""
    return NumberStyle(decimal or other, unit)


def is_written_number(text: str) -> bool:
    """Return whether a text is a number in some style."""
    return number_style([text]) is not None


def _without_unit(text: str) -> tuple[str, str]:
    """Return the number without its sign of a unit, and that sign; (5) is -5."""
    body = text.strip().replace("\u2212", "-")
    minus = ""
    if body.startswith("(") and body.endswith(")"):
        minus, body = "-", body[1:-1].strip()
    elif body[:1] in ("-", "+"):
        minus, body = body[0], body[1:].strip()
    unit = ""
    if body.endswith("%") or _is_currency(body[-1:]):
        body, unit = body[:-1].rstrip(), body[-1]
    elif _is_currency(body[:1]):
        body, unit = body[1:].lstrip(), body[0]
    elif body[-3:].upper() in CODES:
        body, unit = body[:-3].rstrip(), body[-3:].upper()
    elif body[:3].upper() in CODES:
        body, unit = body[3:].lstrip(), body[:3].upper()
    return minus + body, unit


def _is_currency(character: str) -> bool:
    return character != "" and unicodedata.category(character) == "Sc"


@cache
def _pattern(decimal: str) -> re.Pattern[str]:
    """Return what a number looks like, for one of both marks of decimals."""
    mark, other, decimals = (r"\.", ",", r"\d*") if decimal == "." else (",", ".", r"\d+")
    groups = rf"[1-9]\d{{0,2}}(?P<group>[{other}'’{SPACES}])\d{{3}}(?:(?P=group)\d{{3}})*"
    return re.compile(
        rf"[+-]?(?:(?:{groups}|\d+)(?:{mark}{decimals})?|{mark}\d+)(?:[eE][+-]?\d+)?", re.ASCII
    )


def _value(body: str, decimal: str) -> float | None:
    if not _pattern(decimal).fullmatch(body):
        return None
    digits = re.sub(rf"[^0-9eE+\-{re.escape(decimal)}]", "", body)
    return float(digits.replace(",", "."))


@dataclass(frozen=True)
class DateStyle:
    """How the dates of a column are written, and the day from which they are counted.

    Attributes
    ----------
    day_first : bool or None
        Whether 5/6/2024 is in June; None if the values do not tell, or contradict each other.
    origin : str
        The earliest date, in ISO form.

    Examples
    --------
    >>> from marginfold.data.written import date_style
    >>> style = date_style(["31.1.2020", "1.2.2020"])
    >>> style.number("1.2.2020"), style.number("30.1.2020")
    (1.0, -1.0)
    """

    day_first: bool | None
    origin: str = ""

    def number(self, text: str) -> float | None:
        """Return the days since the origin, None if the text is no date in this style."""
        moment = _moment(text, self.day_first)
        return None if moment is None else (moment - datetime.fromisoformat(self.origin)) / DAY


def date_style(texts: Iterable[str]) -> DateStyle | None:
    """Return how all of these texts write dates; None if one of them is no date.

    Examples
    --------
    >>> from marginfold.data.written import date_style
    >>> date_style(["5/31/2024", "6/1/2024"])
    DateStyle(day_first=False, origin='2024-05-31T00:00:00')
    >>> date_style(["5/6/2024", "6/5/2024"]).day_first is None
    True
    >>> date_style(["2024-05-31", "later"]) is None
    True
    """
    texts = list(texts)
    if not all(DATE.fullmatch(text.strip()) for text in texts):
        return None
    moments = {first: [_moment(text, first) for text in texts] for first in (True, False)}
    if not texts or not all(map(any, zip(*moments.values(), strict=True))):
        return None
    orders = [first for first, found in moments.items() if all(found)]
    if len(orders) > 1 and not any(_is_open(text) for text in texts):
        orders = [True]
    if not orders:
        return DateStyle(None)
    earliest = min(moment for moment in moments[orders[0]] if moment)
    return DateStyle(orders[0] if len(orders) == 1 else None, earliest.isoformat())


def _is_open(text: str) -> bool:
    """Return whether day and month may be exchanged: 5/6/2024 is in May or in June."""
    match = DATE.fullmatch(text.strip())
    return match is not None and match["mark"] == "/" and match["a"] != match["b"]


def _moment(text: str, day_first: bool | None) -> datetime | None:
    match = DATE.fullmatch(text.strip())
    if match is None:
        return None
    time = match["time"] or match["clock"] or "0:00"
    if match["y"]:
        year, month, day = int(match["y"]), int(match["m"]), int(match["d"])
    elif match["a"]:
        year = int(match["year"])
        if len(match["year"]) == 2:
            year += 1900 if year >= CENTURY else 2000
        pair = int(match["a"]), int(match["b"])
        day, month = pair if day_first is not False else pair[::-1]
    else:
        name = match["month"][:3].lower()
        year, day = int(match["of"]), int(match["day"])
        month = MONTHS.index(name) + 1 if name in MONTHS else 0
    return _made(year, month, day, time)


def _made(year: int, month: int, day: int, time: str) -> datetime | None:
    """Return the moment, at its zone's offset turned to UTC; None if there is no such."""
    hours, rest = time.strip().split(":", 1)
    try:
        moment = datetime.fromisoformat(
            f"{year:04}-{month:02}-{day:02}T{int(hours):02}:{rest.strip()}"
        )
    except ValueError:
        return None
    offset = moment.utcoffset()
    return moment.replace(tzinfo=None) - (offset or timedelta())


Style = NumberStyle | DateStyle
"""How the values of a column are written that are numbers all the same."""
