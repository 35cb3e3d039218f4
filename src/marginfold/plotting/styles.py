"""One look for every name of a figure, told apart without relying on colour alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from marginfold.protocols.results import Figure, Series

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


@dataclass(frozen=True)
class Style:
    """Colour, dash and shape of one series."""

    color: str
    dash: Dash
    shape: str


def style(index: int) -> Style:
    """Return the look of the series with this number.

    Examples
    --------
    >>> from marginfold.plotting.styles import style
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
