"""The marks of one panel: points in one random order, lines with bands, bars side by side."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.markers import MarkerStyle

from marginfold.linalg.tall import Array
from marginfold.plotting.styles import CROSS, Style
from marginfold.protocols.results import Series

ORDER_SEED = 0
"""Of the order in which points are drawn."""

AREAS = ((300, 22.0), (2000, 12.0), (np.inf, 6.0))
"""Area of a point, in points squared, up to a number of points."""

OPACITY, BAND_OPACITY = 0.8, 0.2
"""Of points and of the band of one standard deviation."""

FEW_ON_A_LINE = 15
"""Values up to which a line shows each of them as a dot."""

BARS_WIDTH = 0.8
"""Share of the distance between neighbouring places that a group of bars fills."""

Styled = Sequence[tuple[Series, Style]]


def draw_points(axes: Axes, series: Styled, *, pixels: bool) -> None:
    """Draw all points of a panel in one random order: class by class, the last hides the others.

    As ``pixels`` they take the same space however many they are; the axes stay vectors.
    """
    if not series:
        return
    x, y = (np.concatenate([np.asarray(getattr(s, n), float) for s, _ in series]) for n in "xy")
    owner = np.repeat(np.arange(len(series)), [len(s.x) for s, _ in series])
    order = np.random.default_rng(ORDER_SEED).permutation(len(owner))
    order = order[np.isfinite(x[order]) & np.isfinite(y[order])]
    area = next(area for most, area in AREAS if len(order) <= most)
    points = axes.scatter(
        x[order],
        y[order],
        c=np.array([look.color for _, look in series])[owner[order]],
        s=area,
        alpha=OPACITY,
        linewidths=0.0,
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
