"""A map as a file: its coordinates, its picture, its model."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path
from typing import Any

from marginfold.data.models import save_model
from marginfold.data.tables import csv_text
from marginfold.errors import InvalidInputError
from marginfold.explorer.table import Table
from marginfold.linalg.tall import Array
from marginfold.protocols.results import Figure, Panel, Series

MEDIA = {
    "csv": "text/csv",
    "svg": "image/svg+xml",
    "png": "image/png",
    "skops": "application/octet-stream",
    "html": "text/html",
}
"""The media type of each kind of file."""


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
