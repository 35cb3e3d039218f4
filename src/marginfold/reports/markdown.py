"""The tables of the papers beside ours, as Markdown for the documentation."""

from __future__ import annotations

import re
from collections.abc import Sequence

from marginfold.protocols.results import RULE, Cell, Table
from marginfold.reports.shown_table import LEGEND, SEEDS, ShownTable, agreement
from marginfold.reports.symbols import SYMBOLS

SPECIAL = re.compile(r"([\\`*_{}\[\]<>|#~$&])")
"""What Markdown would read as markup."""

BLANK = re.compile(r"\s+")
"""A line break would end a row of a table."""


def markdown(tables: Sequence[Table], *, errata: str = "errata.md") -> str:
    """Return the tables as GitHub Markdown.

    Parameters
    ----------
    tables : sequence of Table
    errata : str, default="errata.md"
        Address of the errata that the remarks refer to.

    Returns
    -------
    str
        A heading, the table, the counts per column, protocol, remark and notes of each; the rule
        of the marks stands first.

    Examples
    --------
    >>> from marginfold.protocols.results import Cell, Table
    >>> from marginfold.reports import markdown
    >>> cells = [Cell("wine", "LDA", 1.0, 0.2, 5, printed=1.1, mark="agrees")]
    >>> table = Table("lsva", "I", "Errors", "error %", cells, "5 folds, 5 seeds")
    >>> "| wine | 1.00 ± 0.20<br>1.10 ✓ agrees |" in markdown([table])
    True
    """
    if not tables:
        return ""
    parts = [
        _plain(f"{LEGEND.format(spread=SEEDS)}{RULE}."),
        *(_table(table, errata) for table in tables),
    ]
    return "\n\n".join(parts) + "\n"


def _table(table: Table, errata: str) -> str:
    shown = ShownTable(table)
    lines = [
        _line(["", *map(_plain, shown.columns)]),
        _line(["---", *["---:"] * len(shown.columns)]),
    ]
    for row in shown.rows:
        cells = [_cell(shown, shown.cell(row, column)) for column in shown.columns]
        lines.append(_line([_plain(row), *cells]))
    if shown.compared:
        counts = [shown.counts(column) for column in shown.columns]
        lines.append(_line(["*agree / near / differ*", *counts]))
    heading = f"### {_plain(table.study)}, {_plain(shown.title)}"
    return "\n\n".join([heading, "\n".join(lines), *_remarks(shown, errata)])


def _cell(shown: ShownTable, cell: Cell) -> str:
    note = f" <sup>{shown.note(cell)}</sup>" if cell.note else ""
    printed = " ".join([shown.printed(cell), SYMBOLS.get(cell.mark, ""), cell.mark]).strip()
    return shown.ours(cell) + note + (f"<br>{printed}" if printed else "")


def _remarks(shown: ShownTable, errata: str) -> list[str]:
    table = shown.table
    links = ", ".join(f"[{_plain(number)}]({errata})" for number in table.errata)
    remark = [_plain(table.remark), f"Errata: {links}." if links else ""]
    spread = "" if table.spread_is == SEEDS else f"± is the {_plain(table.spread_is)}."
    parts = [
        *(agreement([table]), f"Protocol: {_plain(table.protocol)}", spread),
        " ".join(remark).strip(),
    ]
    notes = [f"<sup>{number}</sup> {_plain(text)}" for text, number in shown.notes.items()]
    return [part for part in (*parts, *notes) if part]


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _plain(text: str) -> str:
    return SPECIAL.sub(r"\\\1", BLANK.sub(" ", text).strip())
