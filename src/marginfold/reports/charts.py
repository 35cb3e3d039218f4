"""Charts as part of a page: dots with intervals, lines, and maps of rows.

Places are percentages of the chart and sizes of letters are not, so that a chart is readable on a
phone and on a wall.  Colours are classes of the page's style sheet, in the light and in the dark.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import floor, isfinite, log10
from typing import Any
from xml.etree.ElementTree import Element, SubElement

import numpy as np

from marginfold.compare.pictures import MapPoint
from marginfold.protocols.results import Series
from marginfold.reports.document import Chart

N_COLOURS, N_SHAPES = 7, 5
"""Looks of the style sheet and of the page: one colour with one shape, 35 in all."""

ROW = 22
"""Pixels from one dot to the next."""

FOOT = 44
"""Pixels below the dots, for the numbers of the axis and its name."""

NAMES, RIGHT = 40.0, 83.0
"""Percent of the width between which dots lie; names are to the left, numbers to the right."""

LONGEST = 22
"""Letters of a name beside a dot; a longer one is cut, and whole when it is pointed at."""

N_TICKS = 4
"""Numbers of an axis, about."""

LEFT, TOP, END, BOTTOM = 9.0, 4.0, 98.0, 86.0
"""Percent of the frame of a line plot."""

EDGE = 4.0
"""Percent between the frame of a map and its outermost rows."""

AROUND, AROUND_FLAT, FLAT = 1.05, 0.55, 0.5
"""Half the sides of a map with anchors on the unit circle, and of one with two opposite anchors,
whose rows are no further than the last from the line between them; the style sheet has both."""

WHOLE_NUMBER = re.compile(r"-?[0-9]{1,15}")
"""Classes that are sorted by size."""

NAMED_CLASSES = 30
"""Classes of a map whose names stand in it; more would hide the rows."""


@dataclass(frozen=True)
class Dot:
    """A dot with its interval.

    Attributes
    ----------
    name : str
    value, low, high : float
        An infinite end is not drawn.
    text : str
        The number at the right.
    kind : {"", "best", "equal", "quiet"}
        How it looks.
    """

    name: str
    value: float
    low: float
    high: float
    text: str
    kind: str = ""


def dot_plot(
    dots: Sequence[Dot],
    *,
    title: str,
    caption: str,
    axis: str,
    limits: tuple[float, float],
    source: Mapping[str, Any] | None = None,
) -> Chart:
    """Return dots with intervals in the order given, one below the other.

    What lies outside the limits is drawn as an arrow at the edge; its number says how far.
    """
    height = ROW * len(dots) + FOOT
    root = _root(title, "; ".join(_in_words(dot) for dot in dots), "dots", height)
    low, high = limits

    def place(value: float) -> float:
        return NAMES + (RIGHT - NAMES) * (value - low) / (high - low)

    bottom = ROW * len(dots) + 4
    for tick in ticks(low, high):
        _line(root, place(tick), place(tick), 0, bottom, "zero" if tick == 0 else "grid")
        _text(root, place(tick), bottom + 15, f"{tick:+g}" if tick else "0", "tick middle")
    _text(root, 100, bottom + 33, axis, "label end")
    for number, dot in enumerate(dots):
        _draw_dot(root, dot, ROW * number + ROW / 2, limits, place)
    return Chart(title, caption, root, source=source or {})


def _draw_dot(root: Element, dot: Dot, y: float, limits: tuple[float, float], place: Any) -> None:
    low, high = limits
    group = SubElement(root, "g", {"class": f"dot {dot.kind}".strip()})
    SubElement(group, "title").text = _in_words(dot)
    SubElement(
        group, "rect", {"class": "hit", "x": "0", "y": f"{y - ROW / 2:g}", "width": "100%"}
    ).set("height", str(ROW))
    name = dot.name if len(dot.name) <= LONGEST else f"{dot.name[: LONGEST - 1]}…"
    _text(group, 0, y + 4, name, "name")
    ends = [min(max(end, low), high) for end in (dot.low, dot.high)]
    if isfinite(dot.low) and isfinite(dot.high) and ends[0] < ends[1]:
        _line(group, place(ends[0]), place(ends[1]), y, y, "interval")
    if low <= dot.value <= high:
        SubElement(group, "circle", {"cx": _percent(place(dot.value)), "cy": f"{y:g}", "r": "4.5"})
    else:
        arrow = "▸" if dot.value > high else "◂"
        _text(group, place(high if dot.value > high else low), y + 5, arrow, "arrow middle")
    _text(group, 100, y + 4, dot.text, "value end")


def _in_words(dot: Dot) -> str:
    if isfinite(dot.low) and isfinite(dot.high) and dot.low < dot.high:
        return f"{dot.name}: {dot.text} ({dot.value:+.1f}, {dot.low:+.1f} to {dot.high:+.1f})"
    return f"{dot.name}: {dot.text}"


def line_plot(
    series: Sequence[Series],
    *,
    title: str,
    caption: str,
    xlabel: str,
    ylabel: str,
    source: Mapping[str, Any] | None = None,
) -> Chart:
    """Return lines through points, from zero up."""
    most = max(float(np.max(s.y)) for s in series)
    first, last = min(float(s.x[0]) for s in series), max(float(s.x[-1]) for s in series)
    last = last if last > first else first + 1.0
    top = most * 1.05 or 1.0
    said = "; ".join(
        f"{s.name}: {s.y[0]:.1f} at {s.x[0]:g}, {s.y[-1]:.1f} at {s.x[-1]:g}" for s in series
    )
    root = _root(title, said, "lines")

    def across(x: float) -> float:
        return LEFT + (END - LEFT) * (x - first) / (last - first)

    def down(y: float) -> float:
        return BOTTOM - (BOTTOM - TOP) * y / top

    for tick in ticks(0.0, top):
        _line(root, LEFT, END, _percent(down(tick)), _percent(down(tick)), "grid")
        _text(root, LEFT - 1, _percent(down(tick)), f"{tick:g}", "tick end raised")
    for tick in ticks(first, last):
        if tick == int(tick):
            _text(root, across(tick), _percent(BOTTOM + 5.5), f"{tick:g}", "tick middle")
    _text(root, (LEFT + END) / 2, "99%", xlabel, "label middle")
    _text(root, 0, _percent(TOP - 1.0), ylabel, "label")
    for number, one in enumerate(series):
        group = SubElement(root, "g", {"class": f"line c{number % N_COLOURS}"})
        ends = list(zip(map(across, one.x), map(down, one.y), strict=True))
        for (x1, y1), (x2, y2) in pairwise(ends):
            _line(group, x1, x2, _percent(y1), _percent(y2))
        for (x, y), k, error in zip(ends, one.x, one.y, strict=True):
            _mark(group, number, x, y, f"{one.name}: {error:.1f} % with {k:g}")
    return Chart(title, caption, root, [s.name for s in series], source or {})


def map_plot(
    points: Sequence[MapPoint],
    *,
    title: str,
    caption: str,
    anchors: Mapping[str, tuple[float, float]] | None = None,
    labels: tuple[str, str] = ("", ""),
    source: Mapping[str, Any] | None = None,
) -> Chart:
    """Return rows in two dimensions with the names of their classes.

    A name stands at the anchor of its class, or where there are none in the middle of its rows.  A
    row that is pointed at says its number and its class.  With anchors both axes have one unit.
    """
    classes = sorted({point.label for point in points}, key=_in_order)
    said = f"{len(points)} rows of {len(classes)} classes: {', '.join(classes[:NAMED_CLASSES])}"
    tall = any(abs(y) > FLAT for _, y in (anchors or {}).values())
    root = _root(title, said, "map" if not anchors else "square map" if tall else "flat map")
    across = _scale([p.x for p in points], AROUND if anchors else None)
    down = _scale([-p.y for p in points], None if not anchors else AROUND if tall else AROUND_FLAT)
    for label, (x, y) in (anchors or {}).items():
        _circle(root, across(x), down(-y), label)
    for number, label in enumerate(classes):
        group = SubElement(root, "g", {"class": f"points c{number % N_COLOURS}"})
        for p in points:
            if p.label == label:
                _mark(group, number, across(p.x), down(-p.y), f"row {p.row}: {label}")
    if len(classes) <= NAMED_CLASSES:
        for label, (x, y) in (anchors or _middles(points)).items():
            _class_name(root, label, across(x), down(-y), bool(anchors))
    xlabel, ylabel = labels
    if xlabel:
        _text(root, 100, "99%", f"{xlabel} →", "label end")
    if ylabel:
        _text(root, 0, "2%", f"↑ {ylabel}", "label")
    return Chart(title, caption, root, classes, source or {})


def _class_name(root: Element, label: str, x: float, y: float, at_anchor: bool) -> None:
    """Write the name of a class in the middle of its rows, or above its anchor."""
    side = "start" if x < 15 else "end" if x > 85 else "middle"
    kind = f"class {side}" if at_anchor else f"class {side} raised"
    _text(root, x, _percent(y), _short(label), kind, "-9" if at_anchor else "")


def _in_order(label: str) -> tuple[bool, float, str]:
    """Order whole numbers by their size, before words."""
    is_number = WHOLE_NUMBER.fullmatch(label) is not None
    return not is_number, float(label) if is_number else 0.0, label


def _circle(root: Element, x: float, y: float, label: str) -> None:
    ring = SubElement(
        root, "circle", {"class": "anchor", "cx": _percent(x), "cy": _percent(y), "r": "5"}
    )
    SubElement(ring, "title").text = f"anchor of {label}"


def _short(label: str) -> str:
    return label if len(label) <= LONGEST else f"{label[: LONGEST - 1]}…"


def _scale(values: Sequence[float], half: float | None) -> Callable[[float], float]:
    """Return the map from a coordinate to percent: of the range, or of one about zero."""
    low, high = (min(values), max(values)) if half is None else (-half, half)
    span = (high - low) or 1.0
    return lambda value: EDGE + (100 - 2 * EDGE) * (value - low) / span


def _middles(points: Sequence[MapPoint]) -> dict[str, tuple[float, float]]:
    """Return the median place of the rows of each class."""
    places: dict[str, list[tuple[float, float]]] = {}
    for p in points:
        places.setdefault(p.label, []).append((p.x, p.y))
    return {
        label: (float(np.median([x for x, _ in rows])), float(np.median([y for _, y in rows])))
        for label, rows in places.items()
    }


def ticks(low: float, high: float) -> list[float]:
    """Return round numbers between two, about `N_TICKS` of them.

    Examples
    --------
    >>> from marginfold.reports.charts import ticks
    >>> ticks(-1.2, 7.3), ticks(0, 0.4)
    ([0.0, 2.0, 4.0, 6.0], [0.0, 0.1, 0.2, 0.3, 0.4])
    """
    rough = (high - low) / N_TICKS
    power = 10.0 ** floor(log10(rough))
    step = min((s * power for s in (1, 2, 5, 10)), key=lambda s: abs(log10(s / rough)))
    first, last = int(np.ceil(low / step - 1e-9)), int(np.floor(high / step + 1e-9))
    return [round(k * step, 10) for k in range(first, last + 1)]


def _root(title: str, said: str, kind: str, height: float | None = None) -> Element:
    root = Element("svg", {"class": f"chart {kind}"})
    if height is not None:
        root.set("height", f"{height:g}")
    SubElement(root, "title").text = title
    SubElement(root, "desc").text = said
    return root


def _mark(parent: Element, look: int, x: float, y: float, title: str) -> None:
    place = {"href": f"#m{look % N_SHAPES}", "x": _percent(x), "y": _percent(y)}
    SubElement(SubElement(parent, "use", place), "title").text = title


def _line(
    parent: Element, x1: float, x2: float, y1: float | str, y2: float | str, kind: str = ""
) -> None:
    ends = {"x1": _percent(x1), "x2": _percent(x2), "y1": _pixels(y1), "y2": _pixels(y2)}
    SubElement(parent, "line", ({"class": kind} if kind else {}) | ends)


def _text(
    parent: Element, x: float, y: float | str, words: str, kind: str, shift: str = ""
) -> None:
    place = {"class": kind, "x": _percent(x), "y": _pixels(y)} | ({"dy": shift} if shift else {})
    SubElement(parent, "text", place).text = words


def _percent(value: float) -> str:
    return f"{value:.4g}%"


def _pixels(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:g}"
