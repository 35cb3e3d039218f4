"""A session as a Python script that draws the same maps.

The script is built of the ``repr`` of values, and never run here: whatever a table or a page calls
its columns and files, it stays a string.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from marginfold.data.reading import AS_FOUND
from marginfold.data.tables import is_set
from marginfold.explorer.table import Table, most_rows
from marginfold.graphs.rule import GraphRule
from marginfold.linalg.tall import Array
from marginfold.protocols.splits import hold_out


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
        names["marginfold.compare.runs"] = {"sample_rows"}
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
