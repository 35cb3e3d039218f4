"""The tables of the papers, cell by cell as they are printed.

One file holds one table.  Nothing is corrected, not even what cannot be right: these numbers are
compared with, not computed with.  Only the names of the rows are ours, those of the data sets.

References
----------
000: Arvanitopoulos, Bouzas, Tefas: Laplacian Support Vector Analysis for Subspace Discriminative
Learning.

001: Pitelis, Tefas: Discriminant Subspace Learning Based on Support Vectors Machines.

002: Arvanitidis, Tefas: Exploiting Graph Embedding in Support Vector Machines.

003: Liang, Zhang, Xiong, Chen, Chen, Lan: Manifold Regularized Proximal Support Vector Machine via
Generalized Eigenvalue.

004: Suykens, Van Gestel, Vandewalle, De Moor: A Support Vector Machine Formulation to PCA Analysis
and its Kernel Version.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from dataclasses import dataclass, fields
from importlib.resources import files
from itertools import product
from typing import Any

from marginfold.errors import InvalidInputError, InvalidParameterError
from marginfold.validation.parameters import Choice, shown

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

DECIMAL = re.compile(r"[0-9]+(\.[0-9]+)?")
"""A number as papers print it: no sign, no exponent."""

WHOLE = re.compile(r"[0-9]+")
"""A dimension as papers print it."""


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


COLUMNS = [field.name for field in fields(Printed)]
"""The header of every file."""


def tables(study: str) -> list[str]:
    """Return the tables of a paper, in its order.

    Parameters
    ----------
    study : {"lsva", "wsvda", "gesvm", "mrgepsvm", "svmpca"}

    Returns
    -------
    list of str

    Examples
    --------
    >>> from marginfold.protocols.published_numbers import tables
    >>> tables("lsva")
    ['I', 'II', 'III', 'IV']
    """
    studies = Choice(*TABLES)
    if not studies.allows(study):
        raise InvalidParameterError(f"study must be {studies}; got {shown(study)}.")
    return list(TABLES[study])


def printed(study: str, table: str) -> dict[tuple[str, str], Printed]:
    """Return the cells of one table by row and column, in printed order.

    Parameters
    ----------
    study : {"lsva", "wsvda", "gesvm", "mrgepsvm"}
        The method whose paper prints the table; see `tables` for what there is.
    table : str
        The name of the table, for instance ``"IV"``.

    Returns
    -------
    dict of (row, column) to Printed

    Examples
    --------
    >>> from marginfold.protocols.published_numbers import printed
    >>> cell = printed("lsva", "I")["sonar", "LLSVA"]
    >>> cell.value, cell.dimension, cell.unit
    (16.97, 45, 'error %')
    """
    _check_table(study, table)
    name = f"{study}_{table}.csv"
    text = files("marginfold.protocols").joinpath("published", name).read_text(encoding="utf-8")
    return parse(text, name, paper=PAPERS[study], table=table)


def parse(text: str, name: str, *, paper: str, table: str) -> dict[tuple[str, str], Printed]:
    """Return the cells in the text of a file; its first fault is named with file and line."""
    cells: dict[tuple[str, str], Printed] = {}
    for where, record in _records(text, name):
        cell = _cell(record, where)
        if (cell.paper, cell.table) != (paper, table):
            got = f"paper {cell.paper!r}, table {cell.table!r}"
            raise _fault(where, got, f"paper {paper!r}, table {table!r}")
        if (cell.row, cell.column) in cells:
            raise _fault(where, f"{cell.row!r}, {cell.column!r} again", "every cell once")
        cells[cell.row, cell.column] = cell
    _check_complete(cells, name, text)
    return cells


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


def _records(text: str, name: str) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield the place and the fields of every line below the header."""
    reader = csv.reader(text.splitlines(), strict=True)
    try:
        for entries in reader:
            where = f"{name}, line {reader.line_num}"
            if reader.line_num == 1 and entries != COLUMNS:
                raise _fault(where, f"the header {entries}", f"{COLUMNS}")
            if len(entries) != len(COLUMNS):
                raise _fault(where, f"{len(entries)} fields", f"{len(COLUMNS)}")
            if reader.line_num > 1:
                yield where, dict(zip(COLUMNS, entries, strict=True))
    except csv.Error as error:
        raise _fault(f"{name}, line {reader.line_num}", str(error), "plain CSV") from error


def _cell(record: dict[str, str], where: str) -> Printed:
    for field in ("row", "column"):
        if not record[field] or record[field] != record[field].strip():
            raise _fault(where, f"{field} {record[field]!r}", "a name without blanks around it")
    if record["unit"] not in UNITS:
        raise _fault(where, f"unit {record['unit']!r}", str(Choice(*UNITS)))
    dimension = _number(record, "dimension", WHOLE, where)
    numbers: dict[str, Any] = {
        "value": _number(record, "value", DECIMAL, where),
        "spread": _number(record, "spread", DECIMAL, where),
        "dimension": None if dimension is None else int(dimension),
    }
    return Printed(**record | numbers)


def _number(
    record: dict[str, str], field: str, pattern: re.Pattern[str], where: str
) -> float | None:
    text = record[field]
    if not text:
        return None
    if not pattern.fullmatch(text):
        raise _fault(where, f"{field} {text!r}", f"nothing or a match of {pattern.pattern}")
    return float(text)


def _check_complete(cells: dict[tuple[str, str], Printed], name: str, text: str) -> None:
    """Refuse a table that has a hole: a number that is not printed has a line without value."""
    last = f"{name}, line {len(text.splitlines())}"
    if not cells:
        raise _fault(last, "no cell", "a header and at least one cell")
    rows, columns = (dict.fromkeys(names) for names in zip(*cells, strict=True))
    for key in product(rows, columns):
        if key not in cells:
            raise _fault(last, f"the end without the cell {key}", "every column in every row")


def _fault(where: str, got: str, needed: str) -> InvalidInputError:
    return InvalidInputError(
        f"{where}: got {got}; needed: {needed}. Restore the file or install marginfold again."
    )
