"""The tables and figures of a paper as a section of a report."""

from __future__ import annotations

from collections.abc import Sequence

from marginfold.plotting import svg
from marginfold.protocols.published_numbers import PAPERS
from marginfold.protocols.results import RULE, Cell, Figure, Table
from marginfold.reports.document import Column, Entry, Grid, Hyperlink, Paragraph, Picture, Section
from marginfold.reports.tables import NOTHING, ShownTable, agreement

ROWS = "data"
"""Heading of the rows."""

COUNTS = "agree / near / differ"
"""Heading of the counts below the columns."""


def paper_section(
    tables: Sequence[Table], figures: Sequence[Figure], *, title: str = "", errata: str = ""
) -> Section:
    """Return a section with every table beside the printed one, and every figure.

    Parameters
    ----------
    tables, figures : sequences of Table and Figure
        Of one study.
    title : str, default=""
        Heading; by default the study and the number of its paper.
    errata : str, default=""
        Address of the errata that the remarks refer to; without one their numbers are plain text.

    Returns
    -------
    Section

    Examples
    --------
    >>> from marginfold.protocols.results import Cell, Table
    >>> from marginfold.reports import paper_section
    >>> cells = [Cell("wine", "LDA", 1.0, 0.2, 5, printed=1.1, mark="agrees")]
    >>> table = Table("lsva", "I", "Errors", "error %", cells, "5 folds, 5 seeds")
    >>> section = paper_section([table], [])
    >>> section.title, section.blocks[0].rows[0][1].text
    ('lsva (paper 000)', '1.00 ± 0.20')
    """
    studies = list(dict.fromkeys([t.study for t in tables] + [f.study for f in figures]))
    grids = [_grid(table, errata) for table in tables]
    pictures = [_picture(figure) for figure in figures]
    return Section(
        title or ", ".join(_study(study) for study in studies) or NOTHING,
        [agreement(tables)] if tables else [],
        [*grids, *pictures],
        anchor="-".join(studies),
    )


def _study(name: str) -> str:
    return f"{name} (paper {PAPERS[name]})" if name in PAPERS else name


def _grid(table: Table, errata: str) -> Grid:
    shown = ShownTable(table)
    columns = [Column(ROWS, numeric=False), *(Column(name) for name in shown.columns)]
    rows = [
        [Entry(row), *(_entry(shown, shown.cell(row, column)) for column in shown.columns)]
        for row in shown.rows
    ]
    footer = [Entry(COUNTS), *(Entry(shown.counts(column)) for column in shown.columns)]
    return Grid(
        shown.title,
        columns,
        rows,
        legend=f"{shown.legend}{RULE}." if shown.compared else "",
        footer=[footer] if shown.compared else [],
        facts=_facts(shown, errata),
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


def _facts(shown: ShownTable, errata: str) -> dict[str, Paragraph]:
    table = shown.table
    facts: dict[str, Paragraph] = {"Agreement": agreement([table]), "Protocol": table.protocol}
    if table.remark or table.errata:
        facts["Differences"] = [table.remark, *_errata(table.errata, errata)]
    return facts | {f"Note {number}": text for text, number in shown.notes.items()}


def _errata(numbers: Sequence[str], address: str) -> list[str | Hyperlink]:
    if not numbers:
        return []
    links = [Hyperlink(number, address) if address else number for number in numbers]
    separators = [" Errata: ", *[", "] * (len(numbers) - 1)]
    return [*(piece for pair in zip(separators, links, strict=True) for piece in pair), "."]


def _picture(figure: Figure) -> Picture:
    title = f"Figure {figure.number}: {figure.title}"
    return Picture(title, figure.caption, svg(figure), figure.source)
