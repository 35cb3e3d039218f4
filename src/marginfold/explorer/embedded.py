"""The maps of a comparison as linked pictures in its report: the explorer without a server."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from marginfold._version import __version__
from marginfold.compare.methods import METHODS
from marginfold.compare.pictures import RowMap
from marginfold.compare.table import LabelledTable
from marginfold.explorer.one_file import KEPT_ID, KeptAnswer, built, closed_script
from marginfold.linalg.tall import Array
from marginfold.reports.document import Live

FIRST_MAPS = 2
"""Maps side by side at first; each can be changed to any of the others."""

MOST_CELLS = 60_000
"""Cells of rows that a report holds, about 400 kB of numbers; with more it names rows only."""

STYLE = """
.live:not(:has(canvas)) { display: none; }
.live:has(canvas) ~ :not(:target, :has(:target)) { display: none; }
.live:has(canvas) ~ .more > .block:not(:target) { display: none; }
.live.marginfold.static { min-height: 0; }
.live .header, .live .foot, .live .rates { display: none; }
.live h2 { margin: 0; padding: 0; border: 0; }
"""
"""Where maps are drawn they stand for what follows them, except for a drawing that a link of the
contents leads to; the report has its own heading."""


def live_maps(maps: Sequence[RowMap], *, rows: LabelledTable, target: str) -> Live:
    """Return maps of the same held-out rows as pictures for a report.

    Parameters
    ----------
    maps : sequence of RowMap
        The one to be seen first is first.
    rows : LabelledTable
        The table that the rows are from.
    target : str
    """
    points = maps[0].points
    numbers = np.array([point.row for point in points], dtype=np.uint32)
    classes, codes = np.unique([point.label for point in points], return_inverse=True)
    listed = [_listed(one.method) for one in maps]
    counts = np.bincount(codes, minlength=len(classes)).tolist()
    body = {
        "name": rows.name,
        "rows": rows.n_read,
        "shown": len(points),
        "sampled": None,
        "target": target,
        "targets": [target],
        "columns": [],
        "notes": [],
        "sets": [],
        "edits": 0,
        "edited": None,
        "version": __version__,
        "methods": listed,
        "classes": [
            {"name": str(name), "count": count} for name, count in zip(classes, counts, strict=True)
        ],
        "split": {"seed": 0, "share": 1.0, "training": 0, "held_out": len(points)},
        "maps": [{"method": one.method, "params": {}} for one in maps[:FIRST_MAPS]],
    }
    arrays: dict[str, Array] = {
        "class": codes.astype(np.uint16),
        "held_out": np.ones(len(points), np.uint8),
        "number": numbers,
    }
    answers = [KeptAnswer("describe", {}, body, arrays), _cells(rows, numbers)]
    answers += [_fit(number, one, numbers) for number, one in enumerate(maps)]
    data = json.dumps({"answers": [answer.listed() for answer in answers]})
    style = built("page.css").replace("</", "<\\/") + STYLE
    return Live(style, closed_script(built("page.js")), KEPT_ID, data)


def _listed(method: str) -> dict[str, Any]:
    """Return a method as the page is told of it."""
    plain = {"path": False, "graph": False, "controls": [], "plan": "", "why_not": None}
    return {
        "name": method,
        "title": f"{method}: {METHODS[method].words}",
        "group": "linear",
        **plain,
    }


def _fit(number: int, one: RowMap, numbers: Array) -> KeptAnswer:
    """Return a map as the answer to a fit; its rows are those with the numbers."""
    places = {point.row: (point.x, point.y) for point in one.points}
    coordinates = np.array([places[row] for row in numbers.tolist()], dtype=np.float32)
    axes = [one.xlabel or f"{one.method} 1", one.ylabel or f"{one.method} 2"]
    nothing = ("loadings", "preimage", "path", "control", "suspects")
    body = {
        "map": number,
        "method": one.method,
        "params": {},
        "axes": axes,
        "errors": None,
        "gain": None,
        "new_gain": None,
        "seconds": 0.0,
        "gap": None,
        "notes": [],
        "has": dict.fromkeys(nothing, False),
        "anchors": None,
    }
    return KeptAnswer(
        "fit", {"method": one.method, "params": {}}, body, {"coordinates": coordinates}
    )


def _cells(rows: LabelledTable, numbers: Array) -> KeptAnswer:
    """Return what stands in the rows, or in none where that is too much for a report."""
    columns = [str(name) for name in rows.frame.columns]
    cells: list[list[str]] = [[] for _ in numbers]
    if len(numbers) * len(columns) > MOST_CELLS:
        columns = []
    else:
        found = rows.frame.loc[numbers.astype(int) - 1].astype(object)
        texts = found.where(found.notna(), "").map(_text)
        cells = texts.to_numpy().tolist()
    return KeptAnswer("rows", {}, {"columns": columns, "cells": cells}, {})


def _text(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
