"""What all Displays draw with: axes of column width, texts as they are, points and a legend."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Literal, cast

import matplotlib.pyplot as plt
import matplotlib.style
import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.text import Text
from matplotlib.ticker import MaxNLocator
from matplotlib.transforms import Bbox, ScaledTranslation, Transform

from marginfold.linalg.tall import Array
from marginfold.plotting.displays.rows import Rows
from marginfold.plotting.drawing import (
    BAND_OPACITY,
    COLORS,
    FEW_BARS,
    RC,
    SHAPES,
    Style,
    draw_points,
    style,
    too_many,
)
from marginfold.plotting.fonts import drawable, families
from marginfold.protocols.results import Series
from marginfold.validation.rows import UNLABELLED

WIDTH, HEIGHT = 3.5, 3.0
"""Inches of a picture: the column of a journal."""

MOST_LINES = 8
"""Lines of classes in a legend, at most."""

NAMES_PER_INCH = 4
"""Names of a legend beside each other, at most."""

SMALL = 18.0
"""Small letters in an inch, on average."""

MOST_LETTERS = 24
"""Letters of a name; the rest is left out."""

NO_LABEL = Style("#8C8C8C", "-", "o")
"""The look of rows without a label."""

ANCHOR_GAP = 8.0
"""Points between an anchor and its name."""

NEARLY_ABOVE = 0.2
"""An anchor this near to the middle has its name above or below it."""

DECADE = 10.0
"""Ratio of the largest value of a parameter to the least from which its axis is logarithmic."""

MOST_TICKS = 6
"""Powers of ten along a logarithmic axis, at most."""

ANY = Style("#757575", "-", "o")
"""The look of rows of any class, as far from white as from black."""

Keys = Sequence[tuple[str, Artist]]
"""Names and what stands for them in a legend."""

N_LOOKS = len(COLORS) * len(SHAPES)
"""Classes that differ in the colour or the shape of their points."""

SEEN, HELD_OUT, UNKNOWN = "training", "held out", "no label"
"""Names in the legend."""


@contextmanager
def canvas(ax: Axes | None) -> Iterator[Axes]:
    """Give the axes to draw on: those given as they are, or new ones of pyplot in our style."""
    if ax is not None:
        yield ax
        return
    with matplotlib.style.context(["default", RC]):
        figure, axes = plt.subplots(figsize=(WIDTH, HEIGHT), layout="constrained")
        axes.tick_params(labelsize=RC["xtick.labelsize"])  # of ticks that come later, too
        try:
            yield axes
        except BaseException:
            plt.close(figure)
            raise


def write(text: Text, words: str) -> None:
    """Set a text as it is: no formula, and with fonts that have its letters."""
    words = drawable(words)
    text.set_parse_math(False)
    text.set_text(words)
    fonts = families(words)
    if len(fonts) > 1:
        text.set_fontfamily(fonts)


def label_axes(axes: Axes, x: str, y: str) -> None:
    """Name both axes."""
    write(axes.xaxis.label, short(x))
    write(axes.yaxis.label, short(y))


def name_heights(axes: Axes, names: Sequence[str]) -> None:
    """Write names at the heights 0, 1, ... in place of numbers."""
    words = [drawable(short(name)) for name in names]
    axes.set_yticks(range(len(names)), labels=words)
    for tick, name in zip(axes.get_yticklabels(), words, strict=True):
        write(tick, name)


def count_along(axes: Axes, count: int) -> None:
    """Have places 1, 2, ... along the first axis: all of them if they are few."""
    if count <= FEW_BARS:
        axes.set_xticks(range(1, count + 1))
    else:
        axes.xaxis.set_major_locator(MaxNLocator(nbins="auto", integer=True))


def whole_heights(axes: Axes) -> None:
    """Have ticks at whole numbers on the second axis."""
    axes.yaxis.set_major_locator(MaxNLocator(nbins="auto", integer=True))


def spread_weights(axes: Axes, values: Array) -> None:
    """Have a logarithmic first axis for values that span more than a decade; 0 has its place."""
    positive = values[values > 0]
    if len(positive) < 2 or positive.max() < DECADE * positive.min() or values.min() < 0:
        return
    low, high = float(positive.min()), float(positive.max())
    if len(positive) == len(values):
        axes.set_xscale("log")
    else:
        axes.set_xscale("symlog", linthresh=low)
    powers = np.arange(np.ceil(np.log10(low)), np.floor(np.log10(high)) + 1)
    ticks = DECADE ** powers[:: -(-len(powers) // MOST_TICKS)]
    ticks = np.append(values[values == 0][:1], ticks)
    axes.set_xticks(ticks, labels=[f"{tick:g}" for tick in ticks])  # no formulas
    axes.set_xticks([], minor=True)


def set_title(axes: Axes, lines: Sequence[str], side: Literal["left", "right"] = "left") -> None:
    """Write sentences above the axes, small and wrapped to their width."""
    letters = max(MOST_LETTERS, round(SMALL * axes.get_window_extent().width / axes.figure.dpi))
    title = axes.set_title("", loc=side, fontsize=RC["xtick.labelsize"])
    write(title, "\n".join(part for line in lines for part in textwrap.wrap(line, letters)))


def short(name: str) -> str:
    """Return a name cut to what a picture has room for."""
    name = " ".join(name.split())
    return name if len(name) <= MOST_LETTERS else name[: MOST_LETTERS - 1] + "…"


def add_legend(axes: Axes, classes: Keys, others: Keys = (), *, own: bool) -> None:
    """Put names below the axes and all that belongs to them, in as few lines as they fit into.

    Of many classes the last ones are left out.  A figure of our ``own`` grows by the lines.
    """
    figure = axes.figure
    box, whole = axes.get_window_extent(), cast(Bbox, axes.get_tightbbox())
    across, down = 0.5 * (whole.x0 + whole.x1 - box.x0 - box.x1), whole.y0 - box.y0
    place = axes.transAxes + ScaledTranslation(
        across / figure.dpi, down / figure.dpi, figure.dpi_scale_trans
    )
    width = figure.bbox.width if own else whole.width
    most = min(len(classes) + len(others), max(1, int(NAMES_PER_INCH * width / figure.dpi)))
    for n_columns in range(most, 0, -1):
        keys = _kept(classes, MOST_LINES * n_columns) + list(others)
        legend = _legend(axes, keys, n_columns, place)
        if legend.get_window_extent().width <= width or n_columns == 1:
            n_lines = -(-len(keys) // n_columns)
            legend = _legend(axes, keys, -(-len(keys) // n_lines), place)  # lines of equal length
            break
    else:
        return
    if own:
        more = legend.get_window_extent().height / figure.dpi
        cast(Figure, figure).set_size_inches(WIDTH, HEIGHT + more)


def _kept(keys: Keys, most: int) -> list[tuple[str, Artist]]:
    """Return the first names, the last of them saying how many there are beside."""
    if len(keys) <= most:
        return list(keys)
    return [*keys[: most - 1], (f"and {len(keys) - most + 1} more", Line2D([], [], linestyle=""))]


def _legend(axes: Axes, keys: Keys, n_columns: int, place: Transform) -> Legend:
    """Return a legend that is read line by line; matplotlib fills column by column."""
    order = [i for column in range(n_columns) for i in range(column, len(keys), n_columns)]
    legend = axes.legend(
        [keys[i][1] for i in order],
        [str(number) for number in order],
        loc="upper center",
        bbox_to_anchor=(0.5, 0.0),
        bbox_transform=place,
        ncols=n_columns,
        frameon=False,
        borderpad=0.2,
        borderaxespad=0.3,
        handlelength=1.2,
        handletextpad=0.4,
        columnspacing=1.0,
    )
    for text, i in zip(legend.get_texts(), order, strict=True):
        write(text, short(keys[i][0]))  # not as a label: matplotlib hides those that start with _
    return legend


def draw_rows(axes: Axes, rows: Rows) -> None:
    """Draw rows in the looks of their classes: hollow if the fit has seen them, else filled."""
    known = rows.codes != UNLABELLED
    looks = np.where(known, rows.codes % N_LOOKS, UNLABELLED)
    sides = []
    for side in (~rows.held_out, rows.held_out):
        groups = [(rows.xy[side & (looks == look)], look) for look in np.unique(looks[side])]
        sides.append(
            [(Series("", xy[:, 0], xy[:, 1], kind="points"), _look(k)) for xy, k in groups]
        )
    pixels = too_many([*sides[0], *sides[1]])
    for hollow, series in zip((True, False), sides, strict=True):
        draw_points(axes, series, pixels=pixels, hollow=hollow, n_shown=len(rows.xy))


def draw_anchors(axes: Axes, anchors: Array, names: Sequence[str], *, rotated: bool) -> None:
    """Draw the polygon of the anchors and the names outside of it, along the radius if rotated."""
    ring = anchors[np.argsort(np.arctan2(anchors[:, 1], anchors[:, 0]))]
    ring = np.vstack([ring, ring[:1]])
    axes.plot(*ring.T, color=NO_LABEL.color, linewidth=0.6, zorder=1)
    for code, ((x, y), name) in enumerate(zip(anchors, names, strict=True)):
        look = style(code)
        axes.plot([x], [y], look.shape, color=look.color, markersize=6, zorder=3)
        angle = float(np.degrees(np.arctan2(y, x)))
        upright = angle - 180 * np.sign(angle) if abs(angle) > 90 else angle
        across = "center" if abs(x) < NEARLY_ABOVE else ("left" if x > 0 else "right")
        text = axes.annotate(
            "",
            (x, y),
            xytext=(ANCHOR_GAP * x, ANCHOR_GAP * y),
            textcoords="offset points",
            ha=("left" if x >= 0 else "right") if rotated else across,
            va="center" if rotated or across != "center" else ("bottom" if y > 0 else "top"),
            rotation=upright if rotated else 0.0,
            rotation_mode="anchor",
            color=look.color,
        )
        write(text, short(name))


def draw_regions(axes: Axes, regions: Array, extent: Sequence[float], n_classes: int) -> None:
    """Draw the class of each pixel, the lowest row first, in the pale colours of the classes."""
    axes.imshow(
        regions,
        cmap=ListedColormap([style(code).color for code in range(n_classes)]),
        vmin=-0.5,
        vmax=n_classes - 0.5,
        extent=(extent[0], extent[1], extent[2], extent[3]),
        origin="lower",
        aspect="auto",
        interpolation="nearest",
        alpha=BAND_OPACITY,
        zorder=0,
    )


def draw_zero(axes: Axes, places: tuple[Array, Array], heights: Array, look: Style) -> None:
    """Draw where heights over a grid are 0."""
    if heights.min() < 0 < heights.max():
        axes.contour(
            *places,
            heights,
            levels=[0.0],
            colors=look.color,
            linestyles=look.dash,
            linewidths=1.4,
            zorder=3,
        )


def _look(code: int) -> Style:
    return NO_LABEL if code == UNLABELLED else style(int(code))


def class_keys(rows: Rows) -> list[tuple[str, Artist]]:
    """Return the entries of the legend for the classes of rows."""
    filled = bool(rows.held_out.any())
    keys: list[tuple[str, Artist]] = [
        (name, point(style(code), filled)) for code, name in enumerate(rows.names)
    ]
    if rows.names and (rows.codes == UNLABELLED).any():
        keys.append((UNKNOWN, point(NO_LABEL, filled)))
    return keys


def side_keys(rows: Rows) -> list[tuple[str, Artist]]:
    """Return the entries of the legend for what the fit has seen and what not."""
    present = {HELD_OUT: rows.held_out.any(), SEEN: not rows.held_out.all()}
    return [(name, point(ANY, name == HELD_OUT)) for name, there in present.items() if there]


def point(look: Style, filled: bool) -> Line2D:
    """Return a point for the legend."""
    return Line2D(
        [],
        [],
        color=look.color,
        linestyle="",
        marker=look.shape,
        markersize=5,
        markerfacecolor=look.color if filled else "none",
    )


def patch(color: str) -> Patch:
    """Return an area for the legend."""
    return Patch(color=color)


def line(look: Style) -> Line2D:
    """Return a line for the legend."""
    return Line2D([], [], color=look.color, linestyle=look.dash)
