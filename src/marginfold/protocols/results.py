"""Tables and figures as values: made of records and printed numbers only, drawn elsewhere."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from marginfold.linalg.tall import Array, principal_rotation
from marginfold.protocols.records import Record, Result

AGREES, NEAR, DIFFERS, NOT_COMPARED = "agrees", "near", "differs", ""
"""The marks of a cell."""

WIDTH = 1.5 * np.sqrt(2.0)
"""Standard deviations between two measurements, each with its own noise, that still agree."""

LEAST_SPREAD = 0.3
"""Points: the spread over seeds counts as at least this much."""

MOST_APART = 3.0
"""Points: numbers further apart than this never agree, however much ours spread."""

RULE = (
    "agrees: |ours - printed| <= 1.5 sqrt(2) max(s, 0.3 points), s our standard deviation over "
    "seeds, and at most 3 points; near: within 1.5 sqrt(2) sqrt(p (1 - p) / n), the sampling error "
    "of a share p of n rows; differs: neither"
)
"""The rule behind the marks, in words."""

CORRELATED = 0.7
"""Correlation of two scores from which their picture is a diagonal band: it is turned then."""

COORDINATE = "coordinate"
"""The metric of a record that holds one coordinate of one point."""


@dataclass(frozen=True)
class Cell:
    """One number of ours beside the printed one.

    Attributes
    ----------
    row, column : str
        Place in the table.
    value, spread : float or None
        Our mean and standard deviation over seeds, in the table's unit.
    n_seeds : int
    printed, printed_spread : float or None
    dimension, printed_dimension : float or None
        Ours is the median over seeds.
    mark : str
        By `RULE`; empty if there is nothing to compare.
    note : str
        Why there is no value, or what to know of it.
    source : mapping
        The columns of the records it was computed from.
    counted : bool
        Whether the mark counts for the table: a printed number counts once, by the first reading
        of the paper, not by variants of it.
    unit : str
        The cell's own unit, if it is not the table's.
    """

    row: str
    column: str
    value: float | None = None
    spread: float | None = None
    n_seeds: int = 0
    printed: float | None = None
    printed_spread: float | None = None
    dimension: float | None = None
    printed_dimension: float | None = None
    mark: str = NOT_COMPARED
    note: str = ""
    source: Mapping[str, Any] = field(default_factory=dict)
    counted: bool = True
    unit: str = ""


@dataclass(frozen=True)
class Table:
    """A table of a paper with our numbers.

    Attributes
    ----------
    study, number, title : str
        "lsva", "I", the paper's title of it.
    unit : str
        "error %", "accuracy %" or "ratio".
    cells : sequence of Cell
        In reading order; rows and columns are those of the cells.
    protocol : str
        The reading of the paper in words: scaling, folds, seeds, what was selected on what.
    remark : str
        One sentence on why the other cells differ.
    errata : sequence of str
        Their numbers in the errata.
    spread_is : str
        What stands behind ±.
    fitted : str
        What the paper leaves open and was chosen by how near it comes to the printed numbers.
    honest : str
        What comes out if nothing is chosen on test rows.
    """

    study: str
    number: str
    title: str
    unit: str
    cells: Sequence[Cell]
    protocol: str
    remark: str = ""
    errata: Sequence[str] = ()
    spread_is: str = "standard deviation over seeds"
    fitted: str = ""
    honest: str = ""

    def counts(self, column: str | None = None) -> dict[str, int]:
        """Return how many cells agree, are near and differ; of a column, variants included."""
        marks = [
            cell.mark
            for cell in self.cells
            if (cell.counted if column is None else cell.column == column)
        ]
        return {mark: marks.count(mark) for mark in (AGREES, NEAR, DIFFERS)}

    def explained(self) -> int:
        """Return how many cells differ that a column beside them, with another reading, explains.

        Such a column is not counted, its name begins with that of the cell's column, and its own
        cell in the same row agrees or is near.
        """
        return sum(
            any(
                other.row == cell.row
                and not other.counted
                and other.column.startswith(f"{cell.column} ")
                and other.mark in (AGREES, NEAR)
                for other in self.cells
            )
            for cell in self.cells
            if cell.counted and cell.mark == DIFFERS
        )

    def cell(self, row: str, column: str) -> Cell:
        """Return the cell in a place."""
        for cell in self.cells:
            if (cell.row, cell.column) == (row, column):
                return cell
        raise KeyError(f"Table {self.number} has no cell in row {row!r}, column {column!r}")


@dataclass(frozen=True)
class Series:
    """Points or a line of one panel.

    Attributes
    ----------
    name : str
        For the legend; empty for none.
    x, y : arrays
    spread : array or None
        Standard deviation of y, drawn as a band.
    kind : {"points", "crosses", "line", "bars"}
    """

    name: str
    x: Array
    y: Array
    spread: Array | None = None
    kind: str = "line"


@dataclass(frozen=True)
class Panel:
    """One pair of axes."""

    title: str
    series: Sequence[Series]
    xlabel: str = ""
    ylabel: str = ""
    equal_axes: bool = False


@dataclass(frozen=True)
class Figure:
    """A figure of a paper, redrawn from records.

    Attributes
    ----------
    study, number, title, caption : str
    panels : sequence of Panel
    n_columns : int
        Panels side by side.
    source : mapping
        The columns of the records it was drawn from.
    """

    study: str
    number: str
    title: str
    caption: str
    panels: Sequence[Panel]
    n_columns: int = 2
    source: Mapping[str, Any] = field(default_factory=dict)


def mark(value: float | None, spread: float | None, printed: float | None, n_rows: int) -> str:
    """Return the mark of a cell by `RULE`; all numbers in percent.

    Examples
    --------
    >>> from marginfold.protocols.results import mark
    >>> mark(20.0, 0.5, 20.9, n_rows=200), mark(20.0, 0.5, 25.0, 200), mark(20.0, 0.5, 30.0, 200)
    ('agrees', 'near', 'differs')
    """
    if value is None or printed is None:
        return NOT_COMPARED
    difference = abs(value - printed)
    if difference <= min(WIDTH * max(spread or 0.0, LEAST_SPREAD), MOST_APART):
        return AGREES
    p = printed / 100.0
    if difference <= WIDTH * 100.0 * float(np.sqrt(max(p * (1.0 - p), 0.0) / n_rows)):
        return NEAR
    return DIFFERS


def coordinate_results(
    points: Array, labels: Iterable[Any], rows: Iterable[int] | None = None
) -> list[Result]:
    """Return one result for each coordinate of each point, as `points_by_label` reads them.

    ``rows`` are the numbers of the points; by default they are counted from 0.
    """
    numbers = range(len(points)) if rows is None else rows
    return [
        Result(COORDINATE, float(value), {"row": row, "label": label}, dimension=k)
        for row, point, label in zip(numbers, points, labels, strict=True)
        for k, value in enumerate(point, start=1)
    ]


def points_by_label(
    records: Iterable[Record], axes: tuple[int, int] = (1, 2)
) -> dict[Any, tuple[Array, Array]]:
    """Return x and y of the points of each label, in the order of their rows, sorted by label.

    Records of other metrics are passed over; params name the "row" and the "label" of a point.
    ``axes`` are dimensions, numbered from 1; a point without the second one lies at 0 there.
    """
    first, second = axes
    points: dict[Any, dict[int, dict[int, float]]] = defaultdict(lambda: defaultdict(dict))
    for r in records:
        if r.metric == COORDINATE and r.value is not None and r.dimension is not None:
            points[r.params["label"]][r.params["row"]][r.dimension] = r.value
    found = {}
    for label, rows in sorted(points.items()):
        ordered = [point for _, point in sorted(rows.items())]
        x = np.array([point[first] for point in ordered])
        y = np.array([point.get(second, 0.0) for point in ordered])
        found[label] = (x, y)
    return found


def scatter_series(
    records: Iterable[Record], axes: tuple[int, int] = (1, 2), *, name: Callable[[Any], str] = str
) -> list[Series]:
    """Return the points of each label as a series; ``name`` makes its name of the label."""
    points = points_by_label(records, axes)
    return [Series(name(label), x, y, kind="points") for label, (x, y) in points.items()]


def scores_panel(title: str, series: Sequence[Series], axes: tuple[int, int] = (1, 2)) -> Panel:
    """Return the panel of two scores, along their principal axes if they correlate strongly.

    Scores of orthogonal components may correlate so much that their picture is a line.  It is
    turned, and neither stretched nor moved: all distances stay.  The labels of the axes say so.

    Parameters
    ----------
    title : str
    series : sequence of Series
        The points of each class.
    axes : pair of int
        The numbers of the two components.

    Returns
    -------
    Panel

    Examples
    --------
    >>> import numpy as np
    >>> from marginfold.protocols.results import Series, scores_panel
    >>> x = np.array([-2.0, -1.0, 0.0, 1.0, 2.0])
    >>> panel = scores_panel("LSVA", [Series("", x, x + [0.1, -0.1, 0.0, -0.1, 0.1])])
    >>> panel.xlabel
    'long axis of components 1, 2'
    >>> bool(np.ptp(panel.series[0].y) < 0.2)
    True
    """
    points = [np.column_stack([s.x, s.y]).astype(float) for s in series]
    everything = np.concatenate(points) if points else np.zeros((0, 2))
    everything = everything[np.isfinite(everything).all(axis=1)]
    if not _correlated(everything):
        return Panel(title, series, f"component {axes[0]}", f"component {axes[1]}")
    rotation = principal_rotation(everything)
    turned = [
        replace(s, x=own[:, 0], y=own[:, 1])
        for s, own in zip(series, (own @ rotation for own in points), strict=True)
    ]
    pair = f"of components {axes[0]}, {axes[1]}"
    return Panel(title, turned, f"long axis {pair}", f"short axis {pair}")


def _correlated(points: Array) -> bool:
    if len(points) < 2 or not (np.ptp(points, axis=0) > 0).all():
        return False
    return bool(abs(np.corrcoef(points.T)[0, 1]) >= CORRELATED)
