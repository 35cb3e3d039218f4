"""A table of a paper beside ours: in words, as Markdown, and in a section of a report."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cached_property

from marginfold.protocols.results import AGREES, DIFFERS, NEAR, RULE, Cell, Figure, Table
from marginfold.reports.document import Column, Entry, Grid, Picture, Section

FITTED, HONEST = "Fitted to print", "Chosen honestly"
"""Names of what was chosen by the printed numbers, and of what comes out without such choices."""

SYMBOLS = {AGREES: "✓", NEAR: "≈", DIFFERS: "✗"}
"""A symbol for each mark."""

NOTHING = "–"
"""Where there is no number."""

LEGEND = (
    "Each cell shows our mean ± its {spread} (and the median dimension), then what the paper "
    "prints. "
)
"""How to read a cell; the rule of the marks follows."""

SEEDS = "standard deviation over seeds"
"""What stands behind ± unless a table says otherwise."""

TWO_DECIMALS = re.compile(r"%|\bpoints\b")
"""Units of tables that are shown with two decimals."""

NUMERAL = re.compile(r"(?:[IVXLC]+|[0-9]+[a-z]?)\b")
"""How the number of a table begins that the paper has; others are ours and have names."""

SPECIAL = re.compile(r"([\\`*_{}\[\]<>|#~$&])")
"""What Markdown would read as markup."""


class ShownTable:
    """The rows, columns, counts and notes of a table.

    Parameters
    ----------
    table : Table
    """

    def __init__(self, table: Table) -> None:
        self.table = table
        self.rows = list(dict.fromkeys(cell.row for cell in table.cells))
        self.columns = list(dict.fromkeys(cell.column for cell in table.cells))
        self._cells = {(cell.row, cell.column): cell for cell in table.cells}

    @property
    def title(self) -> str:
        """The number and the title of the table, and its unit."""
        number = self.table.number
        name = f"Table {number}" if NUMERAL.match(number) else number[:1].upper() + number[1:]
        return f"{name}: {self.table.title} ({self.table.unit})"

    @property
    def compared(self) -> bool:
        """Whether any cell has a mark."""
        return any(self.table.counts().values())

    def cell(self, row: str, column: str) -> Cell:
        """Return the cell in a place; an empty one if the table has none there."""
        return self._cells.get((row, column), Cell(row, column))

    @cached_property
    def notes(self) -> Mapping[str, int]:
        """The notes of the cells, numbered from 1; equal ones have one number."""
        texts = dict.fromkeys(cell.note for cell in self.table.cells if cell.note)
        return {text: number for number, text in enumerate(texts, start=1)}

    def note(self, cell: Cell) -> str:
        """Return the number of a cell's note; nothing if it has none."""
        return str(self.notes[cell.note]) if cell.note else ""

    def ours(self, cell: Cell) -> str:
        """Return our number as it is shown."""
        return self._number(cell, cell.value, cell.spread, cell.dimension) or NOTHING

    def printed(self, cell: Cell) -> str:
        """Return the printed number as it is shown; nothing if there is none."""
        return self._number(cell, cell.printed, cell.printed_spread, cell.printed_dimension)

    def details(self, cell: Cell) -> str:
        """Return in words what a cell holds."""
        printed = self.printed(cell)
        seeds = "one seed, so no spread" if cell.n_seeds == 1 else f"mean of {cell.n_seeds} seeds"
        parts = [
            f"ours {self.ours(cell)}",
            seeds if cell.n_seeds else "",
            f"printed {printed}" if printed else "",
            *(cell.mark, cell.note),
        ]
        return "; ".join(filter(None, parts))

    def counts(self, column: str) -> str:
        """Return how many cells of a column agree, are near and differ; nothing if none could."""
        numbers = self.table.counts(column)
        return " / ".join(str(n) for n in numbers.values()) if any(numbers.values()) else ""

    def _number(
        self, cell: Cell, value: float | None, spread: float | None, dimension: float | None
    ) -> str:
        if value is None:
            return ""
        form = ".2f" if TWO_DECIMALS.search(cell.unit or self.table.unit) else ".3g"
        text = f"{value:{form}}" + (f" ± {spread:{form}}" if spread is not None else "")
        return text + (f" ({dimension:g})" if dimension is not None else "")

    @property
    def legend(self) -> str:
        """How to read a cell."""
        return LEGEND.format(spread=self.table.spread_is)


def agreement(tables: Sequence[Table]) -> str:
    """Return in one sentence how many cells agree.

    Examples
    --------
    >>> from marginfold.protocols.results import Cell, Table
    >>> from marginfold.reports.tables import agreement
    >>> cells = [Cell("wine", "LDA", 1.0, printed=1.1, mark="agrees"), Cell("wine", "PCA", 5.0)]
    >>> agreement([Table("lsva", "I", "", "error %", cells, "")])
    'Of 1 compared cell 1 agrees, 0 are near and 0 differ.'
    """
    counts = [table.counts() for table in tables]
    agree, near, differ = (sum(c[mark] for c in counts) for mark in (AGREES, NEAR, DIFFERS))
    n_cells = agree + near + differ
    if not n_cells:
        return "No cell has a mark."
    return (
        f"Of {n_cells} compared cell{'s' * (n_cells != 1)} {agree} agree{'s' * (agree == 1)}, "
        f"{near} {'is' if near == 1 else 'are'} near and {differ} differ{'s' * (differ == 1)}."
    )


def markdown(tables: Sequence[Table]) -> str:
    """Return the tables as GitHub Markdown, beside the file of the errata.

    The rule of the marks stands first, then a heading, the table, the counts per column, protocol,
    remark and notes of each.

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
        *(_table(table) for table in tables),
    ]
    return "\n\n".join(parts) + "\n"


def _table(table: Table) -> str:
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
    return "\n\n".join([heading, "\n".join(lines), *_remarks(shown)])


def _cell(shown: ShownTable, cell: Cell) -> str:
    note = f" <sup>{shown.note(cell)}</sup>" if cell.note else ""
    printed = " ".join([shown.printed(cell), SYMBOLS.get(cell.mark, ""), cell.mark]).strip()
    return shown.ours(cell) + note + (f"<br>{printed}" if printed else "")


def _remarks(shown: ShownTable) -> list[str]:
    table = shown.table
    links = ", ".join(f"[{_plain(number)}](errata.md)" for number in table.errata)
    remark = [_plain(table.remark), f"Errata: {links}." if links else ""]
    spread = "" if table.spread_is == SEEDS else f"± is the {_plain(table.spread_is)}."
    parts = [
        *(agreement([table]), f"Protocol: {_plain(table.protocol)}", spread),
        *(f"{name}: {_plain(text)}" for name, text in _openness(table).items()),
        " ".join(remark).strip(),
    ]
    notes = [f"<sup>{number}</sup> {_plain(text)}" for text, number in shown.notes.items()]
    return [part for part in (*parts, *notes) if part]


def _openness(table: Table) -> dict[str, str]:
    """Return what was fitted to print and what an honest protocol gives, where it is said."""
    said = {FITTED: table.fitted, HONEST: table.honest}
    return {name: text for name, text in said.items() if text}


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _plain(text: str) -> str:
    return SPECIAL.sub(r"\\\1", " ".join(text.split()))  # a line break would end a row


def paper_section(tables: Sequence[Table], figures: Sequence[Figure], *, title: str) -> Section:
    """Return a section with every table beside the printed one, and every figure.

    Examples
    --------
    >>> from marginfold.protocols.results import Cell, Table
    >>> from marginfold.reports import paper_section
    >>> cells = [Cell("wine", "LDA", 1.0, 0.2, 5, printed=1.1, mark="agrees")]
    >>> table = Table("lsva", "I", "Errors", "error %", cells, "5 folds, 5 seeds")
    >>> section = paper_section([table], [], title="Paper 000")
    >>> section.blocks[0].rows[0][1].text
    '1.00 ± 0.20'
    """
    studies = list(dict.fromkeys([t.study for t in tables] + [f.study for f in figures]))
    grids = [_grid(table) for table in tables]
    pictures = [_picture(figure) for figure in figures]
    return Section(
        title,
        [agreement(tables)] if tables else [],
        [*grids, *pictures],
        anchor="-".join(studies),
    )


def _grid(table: Table) -> Grid:
    shown = ShownTable(table)
    columns = [Column("data", numeric=False), *(Column(name) for name in shown.columns)]
    rows = [
        [Entry(row), *(_entry(shown, shown.cell(row, column)) for column in shown.columns)]
        for row in shown.rows
    ]
    footer = [
        Entry("agree / near / differ"),
        *(Entry(shown.counts(column)) for column in shown.columns),
    ]
    return Grid(
        shown.title,
        columns,
        rows,
        legend=f"{shown.legend}{RULE}." if shown.compared else "",
        footer=[footer] if shown.compared else [],
        facts=_facts(shown),
    )


def _entry(shown: ShownTable, cell: Cell) -> Entry:
    printed, note = shown.printed(cell), shown.note(cell)
    below = [f"printed {printed}" if printed else "", f"note {note}" if note else ""]
    seeds = {"seeds": cell.n_seeds} if cell.n_seeds and "seeds" not in cell.source else {}
    return Entry(
        shown.ours(cell),
        cell.value,
        cell.mark,
        shown.details(cell),
        {**cell.source, **seeds} if cell.source else {},
        "\n".join(filter(None, below)),
    )


def _facts(shown: ShownTable) -> dict[str, str]:
    table = shown.table
    facts = {"Agreement": agreement([table]), "Protocol": table.protocol, **_openness(table)}
    if table.remark or table.errata:
        errata = f" Errata: {', '.join(table.errata)}." if table.errata else ""
        facts["Differences"] = table.remark + errata
    return facts | {f"Note {number}": text for text, number in shown.notes.items()}


def _picture(figure: Figure) -> Picture:
    from marginfold.plotting import svg

    title = f"Figure {figure.number}: {figure.title}"
    return Picture(title, figure.caption, svg(figure), figure.source)
