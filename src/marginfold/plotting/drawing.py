"""A figure as a matplotlib drawing, and as SVG text and PNG files: panels of points, lines, bars.

Every name of a figure has one look, told apart without relying on colour alone.  The same figure
gives the same bytes.
"""

from __future__ import annotations

import hashlib
import io
import os
import re
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import matplotlib.style
import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing
from matplotlib.lines import Line2D
from matplotlib.markers import MarkerStyle
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from marginfold.errors import InvalidInputError, MarginfoldWarning, warn
from marginfold.linalg.tall import Array
from marginfold.plotting.fonts import drawable, families, missing_letters, without_glyph_warnings
from marginfold.protocols.results import Figure, Panel, Series
from marginfold.runtime.files import write_file
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

SIZES = (
    (300, 22.0, 0.8, 0.8),
    (2000, 12.0, 0.8, 0.8),
    (10_000, 6.0, 0.7, 0.5),
    (np.inf, 2.0, 0.4, 0.25),
)
"""Area of a point, in points squared, its opacity and that of a hollow one, up to a number."""

HOLLOW_EDGE = 0.18
"""Width of the edge of a hollow point as a share of its own."""

BAND_OPACITY = 0.2
"""Of the band of one standard deviation."""

FEW_ON_A_LINE = 15
"""Values up to which a line shows each of them as a dot."""

BARS_WIDTH = 0.8
"""Share of the distance between neighbouring places that a group of bars fills."""

Dash = Literal["-", "--", "-.", ":"]

COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#4D4D4D")
"""The colours of Okabe and Ito (2008), safe for colour-blind readers, without the pale yellow."""

DASHES: tuple[Dash, ...] = ("-", "--", "-.", ":")
"""Of lines; their number and that of the colours have no common factor: 28 looks."""

SHAPES = ("o", "s", "^", "D", "v", "P")
"""Of points: the next one once the colours are used up."""

CROSS = "X"
"""Of the points of a series of crosses."""

RC = {
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": 10.0,
    "axes.labelsize": 9.0,
    "figure.facecolor": "white",
    "font.size": 9.0,
    "legend.fontsize": 9.0,
    "text.parse_math": False,
    "xtick.labelsize": 8.0,
    "ytick.labelsize": 8.0,
}
"""Settings of matplotlib for our figures, over its own defaults; a $ in a label is a $."""

SVG_DPI = 200
"""Of points that are drawn as pixels within an SVG."""

PNG_DPI = 150
"""Of PNG files."""

SHOWN_LETTERS = 20
"""Letters without a font that a warning lists."""

NO_METADATA = {"Creator": None, "Date": None, "Format": None, "Type": None}
"""Nothing that changes from day to day or from version to version."""

STYLE_SHEET = re.compile(r"\s*<defs>\s*<style[^>]*>\*\{([^}]*)\}</style>\s*</defs>")
"""Matplotlib's rule for all elements: inside a page it would hold for the whole page."""

NAME = re.compile(r'(\bid="|url\(#|href="#)')
"""Where the name of a part stands."""


@dataclass(frozen=True)
class Style:
    """Colour, dash and shape of one series."""

    color: str
    dash: Dash
    shape: str


Styled = Sequence[tuple[Series, Style]]


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
    fonts = {"font.family": families(_all_words(figure))}
    with matplotlib.style.context(["default", RC, fonts]):
        panels = [
            list(zip(panel.series, looks, strict=True))
            for panel, looks in zip(figure.panels, styles(figure), strict=True)
        ]
        everything = [pair for styled in panels for pair in styled]
        drawing = Drawing(figsize=(width, height), layout="constrained")
        places = drawing.subplots(n_rows, n_columns, squeeze=False).ravel()
        for axes, panel, styled in zip(places, figure.panels, panels, strict=False):
            _draw_panel(axes, panel, styled, pixels=too_many(everything))
        for axes in places[len(figure.panels) :]:
            axes.remove()
        _draw_legend(drawing, everything)
    return drawing


def _all_words(figure: Figure) -> str:
    """Return every letter that a figure shows."""
    labels = [text for p in figure.panels for text in (p.title, p.xlabel, p.ylabel)]
    names = [series.name for panel in figure.panels for series in panel.series]
    return drawable("".join(labels + names))


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


def too_many(styled: Styled) -> bool:
    """Return whether the points of a figure are too many for vectors."""
    points = [(series, look) for series, look in styled if series.kind in SCATTERED]
    n_shapes = len({shape(series, look) for series, look in points})
    n_points = sum(len(series.x) for series, _ in points)
    return n_points > (MANY_POINTS if n_shapes == 1 else MANY_SHAPES)


def _draw_panel(axes: Axes, panel: Panel, styled: Styled, *, pixels: bool) -> None:
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
    axes.set_title(textwrap.fill(drawable(panel.title), letters))
    axes.set_xlabel(drawable(panel.xlabel))
    axes.set_ylabel(drawable(panel.ylabel))


def _set_ticks(axes: Axes, panel: Panel) -> None:
    """Give bars their places and counts whole numbers."""
    x = np.concatenate([np.zeros(0), *(np.asarray(s.x, float) for s in panel.series)])
    x = np.unique(x[np.isfinite(x)])
    if any(s.kind == "bars" for s in panel.series) and len(x) <= FEW_BARS:
        axes.set_xticks(x)
    elif len(x) and np.array_equal(x, np.round(x)):
        axes.xaxis.set_major_locator(MaxNLocator(nbins="auto", integer=True))


def _draw_legend(drawing: Drawing, styled: Styled) -> None:
    """Put the names below all panels, where they cover no data."""
    entries: dict[tuple[str, str], Artist] = {}
    for series, look in styled:
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
        text.set_text(drawable(name))  # not as a label: matplotlib hides those that start with _


def _key(series: Series, look: Style) -> Artist:
    if series.kind == "bars":
        return Patch(color=look.color)
    dash = look.dash if series.kind == "line" else ""
    return Line2D(
        [], [], color=look.color, linestyle=dash, marker=shape(series, look), markersize=5
    )


def draw_points(
    axes: Axes, series: Styled, *, pixels: bool, hollow: bool = False, n_shown: int = 0
) -> None:
    """Draw all points of a panel in one random order: class by class, the last hides the others.

    As ``pixels`` they take the same space however many they are; the axes stay vectors.  Hollow
    points are their edges only.  The more points, or ``n_shown`` if that is more, the smaller.
    """
    if not series:
        return
    x, y = (np.concatenate([np.asarray(getattr(s, n), float) for s, _ in series]) for n in "xy")
    owner = np.repeat(np.arange(len(series)), [len(s.x) for s, _ in series])
    order = np.random.default_rng(0).permutation(len(owner))
    order = order[np.isfinite(x[order]) & np.isfinite(y[order])]
    n_points = max(len(order), n_shown)
    area, filled, empty = next(size for most, *size in SIZES if n_points <= most)
    colors = np.array([look.color for _, look in series])[owner[order]]
    points = axes.scatter(
        x[order],
        y[order],
        facecolors="none" if hollow else colors,
        edgecolors=colors if hollow else "none",
        s=area,
        alpha=empty if hollow else filled,
        linewidths=HOLLOW_EDGE * np.sqrt(area) if hollow else 0.0,
        rasterized=pixels,
        zorder=2,
    )
    shapes = [MarkerStyle(shape(s, look)) for s, look in series]
    paths = [m.get_path().transformed(m.get_transform()) for m in shapes]
    mixed = len({shape(s, look) for s, look in series}) > 1
    points.set_paths([paths[i] for i in owner[order]] if mixed else paths[:1])
    for s, look in series:
        _draw_spread(axes, s, np.asarray(s.x, float), look)


def shape(series: Series, look: Style) -> str:
    """Return the shape of the points of a series; a line of many values shows none."""
    if series.kind == "line" and len(series.x) > FEW_ON_A_LINE:
        return ""
    return CROSS if series.kind == "crosses" else look.shape


def draw_lines(axes: Axes, series: Styled) -> None:
    """Draw lines, each with a band of one standard deviation; a missing value is a gap."""
    for s, look in series:
        x, y = np.asarray(s.x, float), np.asarray(s.y, float)
        dot = shape(s, look)
        axes.plot(x, y, color=look.color, linestyle=look.dash, marker=dot, markersize=4, zorder=3)
        if s.spread is not None:
            spread = np.asarray(s.spread, float)
            axes.fill_between(
                x, y - spread, y + spread, color=look.color, alpha=BAND_OPACITY, linewidth=0
            )


def draw_bars(axes: Axes, series: Styled) -> None:
    """Draw bars, those of several series side by side."""
    if not series:
        return
    places = np.unique(np.concatenate([np.asarray(s.x, float) for s, _ in series]))
    gap = float(np.diff(places).min()) if len(places) > 1 else 1.0
    width = BARS_WIDTH * gap / len(series)
    for index, (s, look) in enumerate(series):
        x = np.asarray(s.x, float) + (index - (len(series) - 1) / 2) * width
        axes.bar(x, np.asarray(s.y, float), width, color=look.color, zorder=2)
        _draw_spread(axes, s, x, look)


def _draw_spread(axes: Axes, series: Series, x: Array, look: Style) -> None:
    if series.spread is not None:
        color = look.color if series.kind != "bars" else "black"
        axes.errorbar(
            x, series.y, yerr=series.spread, fmt="none", ecolor=color, elinewidth=1, capsize=2
        )


def style(index: int) -> Style:
    """Return the look of the series with this number.

    Examples
    --------
    >>> from marginfold.plotting.drawing import style
    >>> style(0) == style(7), style(0).color == style(7).color
    (False, True)
    """
    return Style(
        COLORS[index % len(COLORS)],
        DASHES[index % len(DASHES)],
        SHAPES[index // len(COLORS) % len(SHAPES)],
    )


def styles(figure: Figure) -> list[list[Style]]:
    """Return the looks of all series, panel by panel: one name, one look in the whole figure."""
    keys = [list(_keys(panel.series)) for panel in figure.panels]
    order = dict.fromkeys(key for panel in keys for key in panel)
    looks = {key: style(index) for index, key in enumerate(order)}
    return [[looks[key] for key in panel] for panel in keys]


def _keys(series: Sequence[Series]) -> Iterator[tuple[str, int]]:
    """Yield the name of each series; those without one are counted."""
    nameless = 0
    for item in series:
        yield (item.name, 0) if item.name else ("", nameless)
        nameless += not item.name


def svg(figure: Figure | Drawing) -> str:
    """Return the figure as SVG text, ready to be put into a page.

    Parameters
    ----------
    figure : Figure, or matplotlib figure
        As a value, or as `draw` returned it.

    Returns
    -------
    str
        One ``<svg>`` element without date, style sheet or document type; text is drawn as paths,
        or stays text if it has letters for which this machine has no font: who looks at it may
        have one.  The names of its parts occur in no other figure.

    Examples
    --------
    >>> from marginfold.plotting import svg
    >>> from marginfold.protocols.results import Figure, Panel, Series
    >>> figure = Figure("lsva", "2", "", "", [Panel("sonar", [Series("", [1, 2], [3.0, 4.0])])])
    >>> svg(figure)[:4], svg(figure) == svg(figure)
    ('<svg', True)
    """
    buffer = io.StringIO()
    drawing = _drawn(figure)
    salt = {"svg.hashsalt": "marginfold"}  # the names of parts are random otherwise
    text = {"svg.fonttype": "none" if missing_letters(drawing) else "path"}
    with matplotlib.style.context(["default", RC, salt, text]), without_glyph_warnings():
        drawing.savefig(buffer, format="svg", dpi=SVG_DPI, metadata=NO_METADATA)
    return _embeddable(buffer.getvalue())


def png(
    figure: Figure | Drawing,
    path: str | os.PathLike[str],
    dpi: float = PNG_DPI,
    *,
    overwrite: bool = False,
) -> None:
    """Write the figure as a PNG file, in one step.

    Parameters
    ----------
    figure : Figure, or matplotlib figure
    path : str or path
    dpi : float, default=150
    overwrite : bool, default=False
        Whether an existing file may be replaced.

    Warns
    -----
    MarginfoldWarning
        If no font of this machine has some of the letters: they appear as boxes in the picture.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from marginfold.plotting import png
    >>> from marginfold.protocols.results import Figure, Panel, Series
    >>> figure = Figure("lsva", "2", "", "", [Panel("sonar", [Series("", [1, 2], [3.0, 4.0])])])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     png(figure, Path(folder) / "figure.png")
    ...     (Path(folder) / "figure.png").read_bytes()[1:4]
    b'PNG'
    """
    buffer = io.BytesIO()
    drawing = _drawn(figure)
    missing = missing_letters(drawing)
    if missing:
        warn(
            f"No font of this machine has the letters {missing[:SHOWN_LETTERS]!r}: they appear as "
            f"boxes in {path}. Install a font that has them (such as Noto Sans CJK), or use "
            "svg(), which keeps them as text.",
            MarginfoldWarning,
        )
    with matplotlib.style.context(["default", RC]), without_glyph_warnings():
        drawing.savefig(buffer, format="png", dpi=dpi, metadata={"Software": None})
    write_file(path, buffer.getvalue(), overwrite=overwrite)


def _drawn(figure: Figure | Drawing) -> Drawing:
    return figure if isinstance(figure, Drawing) else draw(figure)


def _embeddable(text: str) -> str:
    text = text[text.index("<svg") :]
    sheet = STYLE_SHEET.search(text)
    if sheet:
        text = text[: sheet.start()] + text[sheet.end() :]
        text = text.replace("<svg", f'<svg style="{sheet.group(1)}"', 1)
    prefix = hashlib.sha256(text.encode()).hexdigest()[:8]  # shared by no two figures of a page
    return NAME.sub(rf"\g<1>f{prefix}-", text)
