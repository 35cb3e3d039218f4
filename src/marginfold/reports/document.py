"""A report as a value: sections of paragraphs, tables and pictures, whatever they are about.

All text is plain: markup in it is shown as it is.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from xml.etree.ElementTree import Element

from marginfold.errors import InvalidInputError
from marginfold.validation.parameters import shown

SVG_START = re.compile(r"\s*(<\?xml[^>]*\?>\s*)?(<!DOCTYPE[^>]*>\s*)?<svg\b[^>]*xmlns=")
"""How SVG text begins that can stand alone."""

CHART_TAGS = frozenset(("svg", "g", "title", "desc", "line", "rect", "circle", "text", "use"))
"""Elements of a chart: none of them runs or loads anything."""

CHART_ATTRIBUTES = frozenset(
    ("class", "width", "height", "x", "y", "x1", "x2", "y1", "y2", "cx", "cy", "dy", "r", "href")
)
"""Attributes of a chart; an address is that of a shape of the page."""


@dataclass(frozen=True)
class Column:
    """A column of a table: its name, whether it sorts as numbers, and what it means."""

    name: str
    numeric: bool = True
    help: str = ""


@dataclass(frozen=True)
class Entry:
    """One cell of a table.

    Attributes
    ----------
    text : str
    sort : float, str or None
        What the cell sorts by; None: by its text, a number if the column is numeric.
    mark : str
        A verdict in a word, shown with a symbol and a colour if it is one of those of
        `marginfold.protocols.results`.
    title : str
        What else there is to know: spread, number of seeds, a note.
    source : mapping
        The columns of the records that the number was computed from; see
        `marginfold.reports.rendering.query`.
    below : str
        Smaller lines.
    bold : bool
    """

    text: str
    sort: float | str | None = None
    mark: str = ""
    title: str = ""
    source: Mapping[str, Any] = field(default_factory=dict)
    below: str = ""
    bold: bool = False


@dataclass(frozen=True)
class Grid:
    """A table; the first column names the rows.

    Attributes
    ----------
    title : str
    columns : sequence of Column
    rows, footer : sequence of sequences of Entry
        Each as long as the columns; the footer stays below when rows are sorted.
    legend : str
        Below the table.
    facts : mapping of str to str
        Named remarks below the table.
    """

    title: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[Entry]]
    legend: str = ""
    footer: Sequence[Sequence[Entry]] = ()
    facts: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for row in (*self.rows, *self.footer):
            if len(row) != len(self.columns):
                raise InvalidInputError(
                    f"The table {shown(self.title)} has {len(self.columns)} columns and a row of "
                    f"{len(row)} entries; give one entry for each column."
                )


@dataclass(frozen=True)
class Picture:
    """A drawing as SVG text; it is shown as an image, in which no script runs."""

    title: str
    caption: str
    svg: str
    source: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not SVG_START.match(self.svg):
            raise InvalidInputError(
                f"The picture {shown(self.title)} is {shown(self.svg)}; give SVG text, "
                "for instance from marginfold.plotting.svg."
            )


@dataclass(frozen=True)
class Chart:
    """A drawing that is part of the page: in its colours, in the dark too, and to be pointed at.

    Attributes
    ----------
    title, caption : str
    root : xml.etree.ElementTree.Element
        An ``svg`` of `CHART_TAGS` with a ``title`` and a ``desc`` that says what is seen;
        `marginfold.reports.charts` makes them.
    keys : sequence of str
        Names of the looks, in their order.
    source : mapping
    """

    title: str
    caption: str
    root: Element
    keys: Sequence[str] = ()
    source: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for element in self.root.iter():
            tags = {element.tag} - CHART_TAGS
            names = set(element.attrib) - CHART_ATTRIBUTES
            address = element.get("href", "#")
            if tags or names or not address.startswith("#"):
                found = ", ".join(sorted(map(str, tags | names))) or address
                raise InvalidInputError(
                    f"The chart {shown(self.title)} has {shown(found)}; it may have the elements "
                    f"{', '.join(sorted(CHART_TAGS))} with the attributes "
                    f"{', '.join(sorted(CHART_ATTRIBUTES))}, and addresses that begin with #."
                )


@dataclass(frozen=True)
class Live:
    """Pictures that answer to the pointer, in place of the blocks of a section where scripts run.

    Attributes
    ----------
    style, script : str
        Put into the page as they are, so they must not come from a table.
    data_id, data : str
        JSON for the script, and the element in which it looks for it.  `root_id` is the element
        that it fills; the blocks stay where it fills nothing.
    """

    style: str
    script: str
    data_id: str
    data: str
    root_id: str = "app"


@dataclass(frozen=True)
class Code:
    """Lines to be copied, with a heading that says what they are for."""

    title: str
    text: str


@dataclass(frozen=True)
class Section:
    """A heading with paragraphs, then tables and pictures.

    A ``folded`` one is opened by whoever wants to see it; so are the blocks after the first
    ``n_open``, of which all are open by default.  With ``live`` pictures they are what is seen
    without scripts.
    """

    title: str
    paragraphs: Sequence[str] = ()
    blocks: Sequence[Grid | Picture | Chart] = ()
    anchor: str = ""
    folded: bool = False
    n_open: int | None = None
    live: Live | None = None


@dataclass(frozen=True)
class Report:
    """A whole document.

    Attributes
    ----------
    title : str
    summary : sequence of str
        What it says, in a few sentences; after the answer, what else there is to know.
    sections : sequence of Section
    facts : mapping
        How it came about: versions, seeds, date, folder, command.  Nothing is added to it, so that
        the same report is the same bytes.
    records_note : str
        Where the records are and how to ask them.
    about : str
        What the page is, in one sentence.
    answer : sequence of str
        What it found, in one or two sentences.
    code : sequence of Code
        What to do with it.
    front : Chart or None
        The answer as a drawing; with the three above it fills the first screen.
    """

    title: str
    summary: Sequence[str] = ()
    sections: Sequence[Section] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)
    records_note: str = ""
    about: str = ""
    answer: Sequence[str] = ()
    code: Sequence[Code] = ()
    front: Chart | None = None
