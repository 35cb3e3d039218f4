"""From a report to one HTML page that loads nothing and whose only script is its own."""

from __future__ import annotations

import base64
import copy
import hashlib
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from importlib.resources import files
from numbers import Integral, Real
from typing import Any
from xml.etree.ElementTree import tostring

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from marginfold.protocols.records import Record, as_json
from marginfold.reports.charts import N_COLOURS, N_SHAPES
from marginfold.reports.document import (
    Chart,
    Column,
    Entry,
    Grid,
    Live,
    Picture,
    Report,
    Section,
)
from marginfold.reports.tables import SYMBOLS
from marginfold.runtime.files import check_writable, write_file

POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src {scripts}; "
    "base-uri 'none'; form-action 'none'"
)
"""What the page may load: nothing but itself; run: the scripts with these hashes."""

NOT_IN_AN_ANCHOR = re.compile(r"[^A-Za-z0-9_-]+")
"""What becomes a hyphen in the name of a section."""

RESERVED = ("origin", "front", "code", "app", "marginfold-answers", "m0", "m1", "m2", "m3", "m4")
"""Anchors of what the page adds: the last section, the first chart, the code and the shapes."""

COLUMNS = frozenset(field.name for field in fields(Record)) - {"versions"}
"""What records can be chosen by."""

SHOWN = "seed, fold, params, dimension, metric, value, status, reason"
"""The columns that a query returns."""


def render(report: Report) -> str:
    """Return the report as a self-contained HTML page.

    The page works from a file, without network and without JavaScript; with it, tables are sorted
    by a click on (or Enter in) a heading, and the records behind a number are shown below its
    table.  All text is escaped.  The same report gives the same page.

    Examples
    --------
    >>> from marginfold.reports import Report, Section, render
    >>> page = render(Report("Errors <%>", sections=[Section("Wine", ["One sentence."])]))
    >>> "<h1>Errors &lt;%&gt;</h1>" in page
    True
    """
    script = _read("page.js")
    front = None if report.front is None else _chart(report.front, "front")
    sections = _placed(report.sections)
    live = [section.live for section in report.sections if section.live is not None]
    return _template().render(
        report=report,
        front=front,
        sections=sections,
        with_shapes=any(block["kind"] == "chart" for s in sections for block in s["blocks"]),
        n_colours=N_COLOURS,
        n_shapes=N_SHAPES,
        live=[{"value": one, "script": Markup(one.script), "data": _data(one)} for one in live],
        policy=POLICY.format(scripts=" ".join(map(_hash, [script, *(one.script for one in live)]))),
        style=Markup("".join([_read("page.css"), *(one.style for one in live)])),
        script=Markup(script),
    )


def write_report(report: Report, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
    """Write the report as one HTML file, in one step, into a folder that exists.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from marginfold.reports import Report, write_report
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_report(Report("Wine"), Path(folder) / "wine.html")
    ...     (Path(folder) / "wine.html").read_text(encoding="utf-8")[:15]
    '<!DOCTYPE html>'
    """
    check_writable(path, overwrite=overwrite)
    content = render(report).encode("utf-8", "xmlcharrefreplace")
    write_file(path, content, overwrite=overwrite)


def _hash(script: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"


def _data(live: Live) -> Markup:
    """Return JSON that cannot end the element it stands in."""
    safe = live.data.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    return Markup(safe)


def _template() -> Any:
    environment = Environment(
        loader=PackageLoader("marginfold.reports", ""),
        autoescape=True,
        undefined=StrictUndefined,
        keep_trailing_newline=True,
    )
    return environment.get_template("page.html.j2")


def _read(name: str) -> str:
    return files("marginfold.reports").joinpath(name).read_text(encoding="utf-8")


def _placed(sections: Sequence[Section]) -> list[dict[str, Any]]:
    """Return what the template shows of each section."""
    placed = []
    for name, section in zip(_anchors(sections), sections, strict=True):
        blocks = [
            _block(block, f"{name}.{number}")
            for number, block in enumerate(section.blocks, start=1)
        ]
        n_open = len(blocks) if section.n_open is None else section.n_open
        parts = {"open": blocks[:n_open], "closed": blocks[n_open:]}
        placed.append({"id": name, "value": section, "blocks": blocks, **parts})
    return placed


def _block(block: Grid | Picture | Chart, name: str) -> dict[str, Any]:
    if isinstance(block, Grid):
        return _grid(block, name)
    return _chart(block, name) if isinstance(block, Chart) else _picture(block, name)


def _anchors(sections: Sequence[Section]) -> Iterator[str]:
    """Yield a name for each section that no other part of the page has."""
    taken = set(RESERVED)
    for section in sections:
        wanted = NOT_IN_AN_ANCHOR.sub("-", section.anchor or section.title).strip("-") or "section"
        name, number = wanted, 2
        while name in taken:
            name, number = f"{wanted}-{number}", number + 1
        taken.add(name)
        yield name


def _grid(grid: Any, name: str) -> dict[str, Any]:
    links: dict[tuple[str, str], str] = {}

    def items(row: Sequence[Entry]) -> list[dict[str, Any]]:
        return [
            _item(entry, column, _link(entry.source, name, links))
            for entry, column in zip(row, grid.columns, strict=True)
        ]

    rows, footer = [items(row) for row in grid.rows], [items(row) for row in grid.footer]
    return {
        "kind": "grid",
        "id": name,
        "value": grid,
        "rows": rows,
        "footer": footer,
        "links": links,
    }


def _picture(picture: Any, name: str) -> dict[str, Any]:
    links: dict[tuple[str, str], str] = {}
    _link(picture.source, name, links)
    image = f"data:image/svg+xml;base64,{base64.b64encode(picture.svg.encode()).decode()}"
    return {"kind": "picture", "id": name, "value": picture, "image": image, "links": links}


def _chart(chart: Chart, name: str) -> dict[str, Any]:
    """Return the chart as markup: its text is escaped, and its parts are those of a chart."""
    links: dict[tuple[str, str], str] = {}
    _link(chart.source, name, links)
    root = copy.deepcopy(chart.root)
    names = {"title": f"{name}.title", "desc": f"{name}.desc"}
    for tag, identity in names.items():
        part = root.find(tag)
        if part is not None:
            part.set("id", identity)
    root.set("role", "img")
    root.set("aria-labelledby", " ".join(names.values()))
    drawing = Markup(tostring(root, encoding="unicode", short_empty_elements=False))
    return {"kind": "chart", "id": name, "value": chart, "drawing": drawing, "links": links}


def _link(source: Mapping[str, Any], name: str, links: dict[tuple[str, str], str]) -> str:
    """Return the anchor of a source in the list below the block; equal sources share one."""
    if not source:
        return ""
    return links.setdefault((query(source), counts(source)), f"{name}.q{len(links) + 1}")


def _item(entry: Entry, column: Column, link: str) -> dict[str, Any]:
    """Return an entry with all that the template needs to know of it."""
    names = (
        ["bold"] * entry.bold
        + ["numeric"] * column.numeric
        + [f"mark-{entry.mark}"] * (entry.mark in SYMBOLS)
    )
    return {
        "entry": entry,
        "key": sort_key(entry, column),
        "symbol": SYMBOLS.get(entry.mark, ""),
        "classes": " ".join(names),
        "link": link,
    }


def sort_key(entry: Entry, column: Column) -> str | None:
    """Return what an entry sorts by, as the script reads it; None if it comes last."""
    if not column.numeric:
        return str(entry.text if entry.sort is None else entry.sort)
    try:
        number = float(entry.text if entry.sort is None else entry.sort)
    except ValueError:
        return None
    text = repr(number).replace("inf", "Infinity")
    return None if text == "nan" else text


def query(source: Mapping[str, Any]) -> str:
    """Return the SQL that selects the records with these columns; what is no column is left out.

    A list stands for any of its values; a mapping, for the columns that hold JSON, for its
    entries, and as ``options`` for exactly these.

    Examples
    --------
    >>> from marginfold.reports.rendering import query
    >>> query({"study": "lsva", "dataset": ["wine", "sonar"], "records": 300})
    "SELECT seed, fold, params, dimension, metric, value, status, reason FROM records
    WHERE study = 'lsva' AND dataset IN ('wine', 'sonar')"
    """
    terms = [
        term for name, value in source.items() if name in COLUMNS for term in _terms(name, value)
    ]
    return f"SELECT {SHOWN} FROM records" + (" WHERE " + " AND ".join(terms) if terms else "")


def counts(source: Mapping[str, Any]) -> str:
    """Return in words what a source says beside its columns: how many records, seeds, ...

    Examples
    --------
    >>> from marginfold.reports.rendering import counts
    >>> counts({"study": "lsva", "records": 300, "seeds": 1})
    '300 records, 1 seed'
    """
    others = ((name, value) for name, value in source.items() if name not in COLUMNS)
    return ", ".join(f"{v} {name.removesuffix('s') if v == 1 else name}" for name, v in others)


def _terms(name: str, value: Any) -> Iterator[str]:
    if isinstance(value, Mapping) and name == "options":
        yield f"options = {_literal(as_json(value))}"
        return
    if isinstance(value, Mapping):
        for key, part in value.items():
            path = _literal(f'$."{key}"')
            yield from _terms(f"json_extract({name}, {path})", part)
        return
    values = _values(value)
    if values == [None]:
        yield f"{name} IS NULL"
    elif len(values) == 1:
        yield f"{name} = {_literal(values[0])}"
    else:
        yield f"{name} IN ({', '.join(_literal(v) for v in values)})"


def _values(value: Any) -> list[Any]:
    if isinstance(value, set | frozenset):
        return sorted(value, key=str)
    return list(value) if isinstance(value, list | tuple) else [value]


def _literal(value: Any) -> str:
    if isinstance(value, Integral):
        return str(int(value))
    if isinstance(value, Real):
        return repr(float(value))
    return "'" + str(value).replace("'", "''") + "'"
