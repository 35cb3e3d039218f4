"""The tables of the papers (`marginfold.papers.STUDIES`), cell by cell as they are printed.

One file holds one table.  Nothing is corrected, not even what cannot be right: these numbers are
compared with, not computed with.  Only the names of the rows are ours, those of the data sets.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from marginfold.errors import InvalidParameterError
from marginfold.validation.parameters import Choice, check_arguments, shown

PAPERS = {"lsva": "000", "wsvda": "001", "gesvm": "002", "mrgepsvm": "003", "svmpca": "004"}
"""The number of the paper that a study repeats."""

TABLES = {
    "lsva": ("I", "II", "III", "IV"),
    "wsvda": ("3",),
    "gesvm": ("4", "5"),
    "mrgepsvm": ("1", "2", "3", "4", "5"),
    "svmpca": (),
}
"""The tables of results in each paper, in its order; 004 shows figures only."""

UNITS = ("error %", "accuracy %", "seconds")
"""What a printed number can measure."""


@dataclass(frozen=True)
class Printed:
    """One cell of a printed table.

    Attributes
    ----------
    paper, table : str
        The number of the paper and the name of the table in it.
    row : str
        The data set, by its name in the catalogue, or the size of the training set.
    column : str
        The method, as printed.
    value : float or None
        None where the paper prints no number.
    spread : float or None
        The standard deviation, where one is printed.
    dimension : int or None
        The number of components at which the value was reached, where one is printed.
    unit : str
        One of `UNITS`.
    """

    paper: str
    table: str
    row: str
    column: str
    value: float | None
    spread: float | None
    dimension: int | None
    unit: str


def tables(study: str) -> list[str]:
    """Return the tables of the paper of a study, in its order.

    Examples
    --------
    >>> from marginfold.protocols.published_numbers import tables
    >>> tables("lsva")
    ['I', 'II', 'III', 'IV']
    """
    check_arguments(study=(study, Choice(*TABLES)))
    return list(TABLES[study])


def printed(study: str, table: str) -> dict[tuple[str, str], Printed]:
    """Return the cells of one table by row and column, in printed order; `tables` has the names.

    Examples
    --------
    >>> from marginfold.protocols.published_numbers import printed
    >>> cell = printed("lsva", "I")["sonar", "LLSVA"]
    >>> cell.value, cell.dimension, cell.unit
    (16.97, 45, 'error %')
    """
    _check_table(study, table)
    file = files("marginfold.protocols").joinpath("published", f"{study}_{table}.csv")
    lines = file.read_text(encoding="utf-8").splitlines()
    cells = [_cell(record) for record in csv.DictReader(lines)]
    return {(cell.row, cell.column): cell for cell in cells}


def _check_table(study: str, table: str) -> None:
    known = tables(study)
    if not known:
        raise InvalidParameterError(
            f"The paper of {study!r} prints no table of results; got table {shown(table)}. "
            "Ask for one of a study for which tables(study) is not empty."
        )
    choice = Choice(*known)
    if not choice.allows(table):
        raise InvalidParameterError(f"table of {study!r} must be {choice}; got {shown(table)}.")


def _cell(record: dict[str, Any]) -> Printed:
    """Return the cell of a line; an empty field is a number that is not printed."""
    kinds = {"value": float, "spread": float, "dimension": int}
    numbers = {name: kind(record[name]) if record[name] else None for name, kind in kinds.items()}
    return Printed(**record | numbers)
