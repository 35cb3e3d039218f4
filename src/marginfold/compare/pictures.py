"""The figures of a comparison: error by dimension, and maps of held-out rows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from marginfold.compare.measures import BY_DIMENSION, INSIDE
from marginfold.compare.race import counted_records
from marginfold.compare.runs import ANCHOR, PICTURES, Comparison
from marginfold.protocols.cells import PERCENT, Evidence
from marginfold.protocols.records import Record, RecordStore
from marginfold.protocols.results import COORDINATE, Series, scores_panel

WHOLE = "all features"
"""The method without dimensions: a level in the error by dimension."""

CURVE_METHODS = ("PCA", "LDA", "MMDA", "LSVA", "WSVDA", "KDA", "KLSVA")
"""Lines of the error by dimension."""


@dataclass(frozen=True)
class MapPoint:
    """A row of the table in two dimensions; ``row`` is its number in the file, from 1."""

    x: float
    y: float
    label: str
    row: int


@dataclass(frozen=True)
class RowMap:
    """Held-out rows as a method maps them, and the anchors of classes if it has some."""

    method: str
    points: Sequence[MapPoint]
    anchors: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    xlabel: str = ""
    ylabel: str = ""


def error_curves(comparison: Comparison, store: RecordStore) -> list[Series]:
    """Return the error by dimension of each method that has records of it, and a level.

    Nearest neighbors on the first components: rows held out inside the training rows, by which all
    was chosen, mean over folds.
    """
    series: list[Series] = []
    records = counted_records(comparison, store, metric=[BY_DIMENSION, INSIDE])
    for method in CURVE_METHODS:
        values: dict[int, list[float]] = defaultdict(list)
        for r in records:
            by_dimension = r.method == method and r.metric == BY_DIMENSION
            if by_dimension and r.value is not None and r.dimension is not None:
                values[r.dimension].append(PERCENT * r.value)
        depth = max((len(v) for v in values.values()), default=0)
        x = np.array(sorted(k for k, v in values.items() if len(v) == depth))
        if len(x):
            y = np.array([np.mean(values[k]) for k in x])
            series.append(Series(method, x.astype(float), y))
    whole = [r.value for r in records if r.method == WHOLE and r.value is not None]
    if series and whole:
        ends = np.array([min(s.x[0] for s in series), max(s.x[-1] for s in series)])
        series.append(Series(WHOLE, ends, np.full(2, PERCENT * float(np.mean(whole)))))
    return series


def row_maps(comparison: Comparison, store: RecordStore) -> list[RowMap]:
    """Return the two-dimensional maps that there are records of."""
    evidence = Evidence(store, comparison.picture_tasks())
    found = []
    for method in PICTURES:
        records = evidence.records(method=method, protocol="picture")
        points, anchors = _points(records), _anchors(records)
        if anchors:
            found.append(RowMap(method, points, anchors))
        elif points:
            found.append(_along_axes(method, points))
    return found


def _along_axes(method: str, points: Sequence[MapPoint]) -> RowMap:
    """Return the map along its principal axes if its two scores are nearly the same."""
    x, y = (np.array([getattr(point, name) for point in points]) for name in ("x", "y"))
    panel = scores_panel(method, [Series("", x, y, kind="points")])
    (turned,) = panel.series
    places = zip(points, turned.x.tolist(), turned.y.tolist(), strict=True)
    moved = [replace(point, x=x, y=y) for point, x, y in places]
    return RowMap(method, moved, xlabel=panel.xlabel, ylabel=panel.ylabel)


def _points(records: Sequence[Record]) -> list[MapPoint]:
    places = _places(records, COORDINATE, lambda params: (params["row"], params["label"]))
    return [MapPoint(x, y, str(label), row) for (row, label), (x, y) in sorted(places.items())]


def _anchors(records: Sequence[Record]) -> dict[str, tuple[float, float]]:
    return _places(records, ANCHOR, lambda params: str(params["label"]))


def _places(records: Sequence[Record], metric: str, name: Any) -> dict[Any, tuple[float, float]]:
    """Return two coordinates for each name."""
    parts: dict[Any, dict[int, float]] = defaultdict(dict)
    for r in records:
        if r.metric == metric and r.value is not None and r.dimension is not None:
            parts[name(r.params)][r.dimension] = r.value
    return {key: (place[1], place.get(2, 0.0)) for key, place in parts.items()}
