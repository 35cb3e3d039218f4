"""A figure drawn: panels in rows, one legend below them."""

from __future__ import annotations

import textwrap

import matplotlib.style
import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from marginfold.errors import InvalidInputError
from marginfold.plotting.marks import draw_bars, draw_lines, draw_points, shape
from marginfold.plotting.styles import RC, Style, styles
from marginfold.protocols.results import Figure, Panel, Series
from marginfold.validation.parameters import Choice, shown

MOST_COLUMNS = 6
"""Panels side by side, at most."""

PANEL_WIDTH, PANEL_HEIGHT = 2.9, 2.5
"""Inches of one panel among several."""

SINGLE_WIDTH, SINGLE_HEIGHT = 3.7, 3.0
"""Inches of a panel alone: the width of a phone."""

LEGEND_LINE = 0.22
"""Inches of one line of the legend."""

LETTERS_PER_INCH = 11.0
"""Of a title or a legend, on average."""

LEGEND_KEY = 6
"""Letters as wide as the key of a name in the legend and the space around it."""

FEW_BARS = 12
"""Places of bars up to which each has its tick."""

MANY_POINTS, MANY_SHAPES = 2000, 500
"""Points of a figure, of one shape and of several, above which they are drawn as pixels."""

SCATTERED = ("points", "crosses")
"""Kinds whose points are drawn in one order."""

KINDS = Choice("points", "crosses", "line", "bars")
"""What a series can be drawn as."""


def draw(figure: Figure) -> Drawing:
    """Return the figure as a matplotlib figure.

    Nothing of matplotlib's global state is left changed: no pyplot, no current figure, no setting.

    Parameters
    ----------
    figure : Figure
        With at least one panel.  Names that occur in several panels look the same in all of them.
        Points that are not finite are left out.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> from marginfold.plotting import draw
    >>> from marginfold.protocols.results import Figure, Panel, Series
    >>> line = Series("LSVA", x=[1, 2, 3], y=[30.0, 22.0, 20.0], spread=[2.0, 1.0, 1.0])
    >>> panel = Panel("sonar", [line], xlabel="dimension", ylabel="error %")
    >>> drawing = draw(Figure("lsva", "2", "Error by dimension", "", [panel]))
    >>> [axes.get_title() for axes in drawing.axes]
    ['sonar']
    """
    _check(figure)
    n_columns = max(1, min(figure.n_columns, MOST_COLUMNS, len(figure.panels)))
    n_rows = -(-len(figure.panels) // n_columns)
    alone = len(figure.panels) == 1
    width = SINGLE_WIDTH if alone else n_columns * PANEL_WIDTH
    height = SINGLE_HEIGHT if alone else n_rows * PANEL_HEIGHT
    with matplotlib.style.context(["default", RC]):
        looks = styles(figure)
        pixels = _too_many(figure, looks)
        drawing = Drawing(figsize=(width, height), layout="constrained")
        places = drawing.subplots(n_rows, n_columns, squeeze=False).ravel()
        for axes, panel, panel_looks in zip(places, figure.panels, looks, strict=False):
            _draw_panel(axes, panel, panel_looks, pixels=pixels)
        for axes in places[len(figure.panels) :]:
            axes.remove()
        _draw_legend(drawing, figure, looks)
    return drawing


def _check(figure: Figure) -> None:
    place = f"Figure {figure.number} of {figure.study}"
    if not figure.panels:
        raise InvalidInputError(f"{place} has no panel; give at least one.")
    for panel in figure.panels:
        for series in panel.series:
            _check_series(series, f"{place}, panel {shown(panel.title)}")


def _check_series(series: Series, place: str) -> None:
    if not KINDS.allows(series.kind):
        raise InvalidInputError(
            f"{place}: kind of the series {shown(series.name)} must be {KINDS}; "
            f"got {shown(series.kind)}."
        )
    shapes = {name: np.shape(getattr(series, name)) for name in ("x", "y")}
    if series.spread is not None:
        shapes["spread"] = np.shape(series.spread)
    if len(set(shapes.values())) > 1 or len(shapes["x"]) != 1:
        raise InvalidInputError(
            f"{place}: the series {shown(series.name)} needs one-dimensional arrays of one length; "
            f"got {', '.join(f'{name} of shape {size}' for name, size in shapes.items())}."
        )


def _too_many(figure: Figure, looks: list[list[Style]]) -> bool:
    """Return whether the points of the figure are too many for vectors."""
    pairs = [
        (series, look)
        for panel, panel_looks in zip(figure.panels, looks, strict=True)
        for series, look in zip(panel.series, panel_looks, strict=True)
        if series.kind in SCATTERED
    ]
    n_shapes = len({shape(series, look) for series, look in pairs})
    n_points = sum(len(series.x) for series, _ in pairs)
    return n_points > (MANY_POINTS if n_shapes == 1 else MANY_SHAPES)


def _draw_panel(axes: Axes, panel: Panel, looks: list[Style], *, pixels: bool) -> None:
    styled = list(zip(panel.series, looks, strict=True))
    draw_bars(axes, [(s, look) for s, look in styled if s.kind == "bars"])
    points = [(s, look) for s, look in styled if s.kind in SCATTERED]
    draw_points(axes, points, pixels=pixels)
    draw_lines(axes, [(s, look) for s, look in styled if s.kind == "line"])
    _label(axes, panel)
    _set_ticks(axes, panel)
    if panel.equal_axes:
        axes.set_aspect("equal", adjustable="datalim")
    if not any(np.isfinite(np.asarray(s.y, float)).any() for s in panel.series):
        axes.set(xticks=[], yticks=[])
        axes.text(0.5, 0.5, "no data", ha="center", va="center", transform=axes.transAxes)


def _label(axes: Axes, panel: Panel) -> None:
    letters = round(PANEL_WIDTH * LETTERS_PER_INCH)
    axes.set_title(textwrap.fill(panel.title, letters))
    axes.set_xlabel(panel.xlabel)
    axes.set_ylabel(panel.ylabel)


def _set_ticks(axes: Axes, panel: Panel) -> None:
    """Give bars their places and counts whole numbers."""
    x = np.concatenate([np.zeros(0), *(np.asarray(s.x, float) for s in panel.series)])
    x = np.unique(x[np.isfinite(x)])
    if any(s.kind == "bars" for s in panel.series) and len(x) <= FEW_BARS:
        axes.set_xticks(x)
    elif len(x) and np.array_equal(x, np.round(x)):
        axes.xaxis.set_major_locator(MaxNLocator(nbins="auto", integer=True))


def _draw_legend(drawing: Drawing, figure: Figure, looks: list[list[Style]]) -> None:
    """Put the names below all panels, where they cover no data."""
    entries: dict[tuple[str, str], Artist] = {}
    for panel, panel_looks in zip(figure.panels, looks, strict=True):
        for series, look in zip(panel.series, panel_looks, strict=True):
            if series.name:
                entries.setdefault((series.name, series.kind), _key(series, look))
    if not entries:
        return
    names = [name for name, _ in entries]
    letters = max(len(name) for name in names) + LEGEND_KEY
    width, height = drawing.get_size_inches()
    n_columns = int(np.clip(width * LETTERS_PER_INCH // letters, 1, len(names)))
    drawing.set_size_inches(width, height + LEGEND_LINE * -(-len(names) // n_columns))
    legend = drawing.legend(
        list(entries.values()),
        [str(number) for number in range(len(names))],
        loc="outside lower center",
        ncols=n_columns,
        frameon=False,
    )
    for text, name in zip(legend.get_texts(), names, strict=True):
        text.set_text(name)  # not as a label: matplotlib hides those that start with _


def _key(series: Series, look: Style) -> Artist:
    if series.kind == "bars":
        return Patch(color=look.color)
    dash = look.dash if series.kind == "line" else ""
    return Line2D(
        [], [], color=look.color, linestyle=dash, marker=shape(series, look), markersize=5
    )
