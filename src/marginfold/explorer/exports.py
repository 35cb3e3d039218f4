"""What leaves a session: a map as a file, all maps as one HTML file, and a script that draws them.

The HTML file needs no server.  The script is built of the ``repr`` of values, and never run here:
whatever a table or a page calls its columns and files, it stays a string.
"""

from __future__ import annotations

import re
import tempfile
from base64 import b64encode
from collections.abc import Sequence
from html import escape
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from marginfold.data.models import save_model
from marginfold.data.reading import AS_FOUND
from marginfold.data.tables import csv_text, is_set
from marginfold.errors import InvalidInputError
from marginfold.explorer import fits
from marginfold.explorer.frames import Answer
from marginfold.explorer.one_file import FILE_DIGITS, KeptAnswer, coarser, one_file, without_server
from marginfold.explorer.pushes import column_pushes
from marginfold.explorer.state import ShownMap, ShownPath, told_errors
from marginfold.explorer.table import Table, most_rows
from marginfold.graphs.rule import GraphRule
from marginfold.linalg.tall import Array
from marginfold.protocols.results import Figure, Panel, Series
from marginfold.protocols.splits import hold_out

MEDIA = {
    "csv": "text/csv",
    "svg": "image/svg+xml",
    "png": "image/png",
    "skops": "application/octet-stream",
    "html": "text/html",
}
"""The media type of each kind of file."""

MOST_CELLS = 500_000
"""Cells of all rows that a file holds; with more it names rows only."""


def exported(
    kind: str,
    table: Table,
    labels: Array,
    Z: Array,
    method: str,
    fitted: Any,
    axes: list[int],
) -> tuple[str, str, bytes]:
    """Return name, media type and content of a file.

    Parameters
    ----------
    kind : {"csv", "svg", "png", "skops"}
        Coordinates of all rows, a picture of the held-out rows, or the model.
    table : Table
    labels : array
        As they were when the map was fitted.
    Z : array
        Coordinates.
    method : str
    fitted : estimator
    axes : list of int
        The two components of a picture.
    """
    if kind == "csv":
        content = _coordinates(table, labels, Z, method).encode("utf-8")
    elif kind == "skops":
        content = _model(table, fitted, method)
    elif kind in ("svg", "png"):
        content = picture(kind, table, labels, Z, method, axes)
    else:
        raise InvalidInputError(f"a map is exported as csv, svg, png or skops; got {kind!r}.")
    return file_name(table, method, kind), MEDIA[kind], content


def file_name(table: Table, method: str, kind: str) -> str:
    """Return the name of a file that any disk takes."""
    stem = re.sub(r"[^\w-]+", "-", f"{Path(table.opened.name).stem}-{method}").strip("-.")[:80]
    return f"{stem}.{kind}"


def _coordinates(table: Table, labels: Array, Z: Array, method: str) -> str:
    import pandas

    columns: dict[str, Any] = {"row": table.row_numbers, table.target: labels}
    columns["held_out"] = table.held_out
    columns |= {f"{method} {k + 1}": Z[:, k] for k in range(Z.shape[1])}
    return csv_text(pandas.DataFrame(columns))


def _model(table: Table, fitted: Any, method: str) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.skops"
        save_model(table.model(fitted, method), path)
        return path.read_bytes()


def picture(
    kind: str, table: Table, labels: Array, Z: Array, method: str, axes: list[int]
) -> bytes:
    """Return a picture of the held-out rows."""
    from marginfold.plotting import png, svg

    Z, labels = Z[table.held_out][:, axes], labels[table.held_out]
    series = [
        Series(str(name), Z[labels == name, 0], Z[labels == name, 1], kind="points")
        for name in table.classes.tolist()
    ]
    title = f"{method}, {len(Z)} rows that the fit has not seen"
    panel = Panel(title, series, f"{method} {axes[0] + 1}", f"{method} {axes[1] + 1}")
    figure = Figure("explorer", "1", title, "", [panel], n_columns=1)
    if kind == "svg":
        return svg(figure).encode("utf-8")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "map.png"
        png(figure, path)
        return path.read_bytes()


def session_file(
    description: Answer,
    maps: Sequence[tuple[int, ShownMap]],
    paths: Sequence[tuple[int, ShownPath] | None],
) -> str:
    """Return the text of the file.

    Parameters
    ----------
    description : Answer
        To the call ``describe``.
    maps : sequence of pairs
        Maps of one table with their numbers.
    paths : sequence of pairs or None
        The path that each of them lies on, if it was computed.
    """
    body, arrays = description
    table = maps[0][1].table
    asked = [{"method": each.method, "params": each.params} for _, each in maps]
    rows = _kept_rows(table)
    answers = [KeptAnswer("describe", {}, body | {"maps": asked}, arrays), rows]
    for (number, shown), path, request in zip(maps, paths, asked, strict=True):
        fit, coordinates = shown.answer(number)
        pushes = column_pushes(shown) if rows.body["cells"] else None
        kept = without_server(fit, path=path is not None, loadings=pushes is not None)
        answers.append(KeptAnswer("fit", request, kept, coordinates))
        answers += _kept_errors(number, shown)
        if pushes is not None:
            answers.append(KeptAnswer("loadings", {"map": number}, {"columns": pushes}, {}))
        if path is not None:
            body, steps = path[1].answer(path[0], shown.params["graph_weight"])
            answers.append(KeptAnswer("path", request, body, coarser(steps)))
    return one_file(table.opened.name, answers, _plainly([shown for _, shown in maps]))


def _kept_rows(table: Table) -> KeptAnswer:
    """Return the cells of all rows, or of none where they are too many for a file."""
    columns = [str(name) for name in table.opened.frame.columns]
    fits_in = len(table.labels) * len(columns) <= MOST_CELLS
    cells = table.cells(np.arange(len(table.labels)), FILE_DIGITS) if fits_in else []
    return KeptAnswer("rows", {}, {"columns": columns, "cells": cells}, {})


def _kept_errors(number: int, shown: ShownMap) -> list[KeptAnswer]:
    """Return the errors on every pair of axes."""
    pairs = map(list, combinations(range(shown.fitted.coordinates.shape[1]), 2))
    return [
        KeptAnswer("errors", {"map": number, "axes": axes}, told_errors(shown.errors(axes)), {})
        for axes in pairs
    ]


def _plainly(maps: Sequence[ShownMap]) -> str:
    """Return pictures of maps and their errors as HTML, for a page whose scripts are off."""
    parts = []
    for shown in maps:
        Z = fits.two_axes(shown.fitted.coordinates)
        drawing = picture("png", shown.table, shown.rows.labels, Z, shown.method, [0, 1])
        source = f"data:image/png;base64,{b64encode(drawing).decode()}"
        text = f"Held-out error: {shown.fitted.drawn.held_out}"
        image = f'<img alt="{escape(shown.method)}" src="{source}">'
        parts.append(f"<figure>{image}<figcaption>{escape(text)}</figcaption></figure>")
    return "".join(parts)


def script(table: Table, labels: Array, estimators: Sequence[tuple[str, Any]]) -> str:
    """Return a script that computes the coordinates of all rows by each estimator.

    Its last names are ``held_out``, which rows no fit has seen, and ``coordinates``, a list with an
    array for each estimator.

    Parameters
    ----------
    table : Table
    labels : array
        As they are now; where they differ from the table's, the script edits them too.
    estimators : sequence of pairs
        The name of a method and the unfitted estimator.
    """
    lines = [
        '"""Maps as they were on the screen."""',
        "",
        *_imports(table, [estimator for _, estimator in estimators]),
        "",
        *_rows(table),
        *_edits(table, labels),
        "",
        "maps = [",
        *(f"    {_written(estimator)},  # {_word(name)}" for name, estimator in estimators),
        "]",
        "coordinates = []",
        "for method in maps:",
        "    model = TableModel.fit(",
        f"        method, features[~held_out], labels[~held_out], {table.target!r}, columns",
        "    )",
        "    coordinates.append(model.transform(features))",
    ]
    return "\n".join(lines) + "\n"


def _imports(table: Table, estimators: Sequence[Any]) -> list[str]:
    """Return the lines that import what the script names."""
    names: dict[str, set[str]] = {}
    for part in (part for estimator in estimators for part in _parts(estimator)):
        module = type(part).__module__.split(".")
        home = "marginfold" if module[0] == "marginfold" else ".".join(module[:2])
        names.setdefault(home, set()).add(type(part).__name__)
    names["marginfold.data"] = {"TableModel"}
    if not table.opened.path:
        names["marginfold.explorer.table"] = {"Table", "array_table"}
        return _import_lines(names)
    data = {"TableModel", "inspect_columns", "read_labelled"}
    if table.opened.reading != AS_FOUND:
        data.add("Reading")
    names["marginfold.data"] = data
    if _is_drawn(table):
        names["marginfold.protocols.splits"] = {"hold_out"}
    if table.sampled is not None:
        names["marginfold.compare.table"] = {"sample_rows"}
    lines = _import_lines(names)
    return lines if _is_drawn(table) else ["import numpy", *lines]


def _import_lines(names: dict[str, set[str]]) -> list[str]:
    return [f"from {home} import {', '.join(sorted(names[home]))}" for home in sorted(names)]


def _parts(estimator: Any) -> list[Any]:
    """Return an estimator and what it is made of, as far as a ``repr`` shows it."""
    inside = [
        value
        for value in estimator.get_params(deep=True).values()
        if isinstance(value, (BaseEstimator, GraphRule)) and not isinstance(value, type)
    ]
    return [estimator, *inside]


def _rows(table: Table) -> list[str]:
    """Return the lines that read, leave out, sample and split."""
    opened, reading = table.opened, table.opened.reading
    if not opened.path:
        given = "X, y" if opened.held_out is None else "X, y, held_out"
        return [
            f"given = array_table({given})  # what the explorer was given",
            f"table = Table.of(given.opened, {table.target!r}, {[*table.ignored]!r}, "
            f"{table.seed!r}, {table.share!r})",
            "features, labels = table.frame, table.labels.copy()",
            "held_out, columns = table.held_out, table.columns",
        ]
    left_out = [*table.ignored, *table.left_out]
    target = None if is_set(opened.path) else table.target
    how = "" if reading == AS_FOUND else f", reading={reading!r}"
    lines = [
        f"drop = {left_out!r}",
        "features, labels = read_labelled(",
        f"    {opened.path!r}, {target!r}, drop=drop, drop_missing=True{how}",
        ")",
        f"columns = inspect_columns(features{how})",
    ]
    if table.sampled is not None:
        lines += [
            f"rows = sample_rows(labels, {most_rows(opened, table.ignored)})",
            "features, labels = features.iloc[rows], labels[rows]",
        ]
    if _is_drawn(table):
        return [*lines, f"held_out = hold_out(labels, {table.share!r}, seed={table.seed!r})"]
    rows = np.flatnonzero(table.held_out).tolist()
    return [*lines, f"held_out = numpy.isin(numpy.arange(len(labels)), {rows!r})"]


def _is_drawn(table: Table) -> bool:
    """Return whether the rows are held out that the seed says, and not others that were given."""
    return np.array_equal(hold_out(table.labels, table.share, table.seed), table.held_out)


def _edits(table: Table, labels: Array) -> list[str]:
    """Return the lines that change labels as it was done by hand."""
    changed = np.flatnonzero(labels != table.labels)
    if not len(changed):
        return []
    edits = {int(row): labels[row].item() for row in changed}
    return [
        f"for row, label in {edits!r}.items():  # labels edited after looking",
        "    labels[row] = label",
    ]


def _written(estimator: Any) -> str:
    return " ".join(estimator.__repr__(N_CHAR_MAX=10**9).split())


def _word(name: str) -> str:
    return "".join(letter for letter in name if letter.isalnum() or letter in " -_")
