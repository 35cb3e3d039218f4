"""The maps of a session as one HTML file that needs no server."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from html import escape
from itertools import combinations

import numpy as np

from marginfold.explorer import fits
from marginfold.explorer.exports import picture
from marginfold.explorer.frames import Answer
from marginfold.explorer.one_file import FILE_DIGITS, KeptAnswer, coarser, one_file, without_server
from marginfold.explorer.pushes import column_pushes
from marginfold.explorer.state import ShownMap, ShownPath, told_errors
from marginfold.explorer.table import Table

MOST_CELLS = 500_000
"""Cells of all rows that a file holds; with more it names rows only."""


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
