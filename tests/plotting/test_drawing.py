"""Drawn figures: what is on the canvas, in which order, and what is left behind."""

from __future__ import annotations

import itertools

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgb, to_rgba

from marginfold.errors import InvalidInputError
from marginfold.plotting import draw
from marginfold.plotting.drawing import COLORS, MOST_COLUMNS, style
from marginfold.protocols.results import Figure, Panel, Series

RED_BLIND = np.array([[0.11238, 0.88762, 0.0], [0.11238, 0.88762, 0.0], [0.00401, -0.00401, 1.0]])
GREEN_BLIND = np.array([[0.29275, 0.70725, 0.0], [0.29275, 0.70725, 0.0], [-0.02234, 0.02234, 1.0]])
"""Linear RGB as red- and green-blind readers see it (Viénot, Brettel, Mollon 1999)."""


def figure_of(*panels, n_columns=2):
    return Figure("lsva", "2", "title", "caption", list(panels), n_columns)


def classes(n_rows, n_classes, kind="points"):
    rng = np.random.default_rng(3)
    return [
        Series(f"class {k}", *rng.standard_normal((2, n_rows)) + k / 2, kind=kind)
        for k in range(n_classes)
    ]


def pixels(drawing):
    canvas = FigureCanvasAgg(drawing)
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())[..., :3]


def legend_names(drawing):
    return [text.get_text() for legend in drawing.legends for text in legend.get_texts()]


@pytest.mark.parametrize("kind", ["points", "crosses", "line", "bars"])
def test_every_kind_leaves_its_colour_on_the_canvas(kind):
    series = Series("one", np.arange(4), np.array([1.0, 3.0, 2.0, 4.0]), kind=kind)
    image = pixels(draw(figure_of(Panel("p", [series]))))
    colour = np.round(255 * np.array(to_rgb(COLORS[0])))
    empty = pixels(draw(figure_of(Panel("p", []))))
    near = (np.abs(image.astype(float) - colour) < 60).all(axis=2).sum()
    assert near > 50
    assert (np.abs(empty.astype(float) - colour) < 60).all(axis=2).sum() == 0


def test_points_of_all_classes_are_drawn_in_one_fixed_random_order():
    drawings = [draw(figure_of(Panel("p", classes(200, 3)))) for _ in range(2)]
    first, second = (drawing.axes[0].collections[0] for drawing in drawings)
    assert np.array_equal(first.get_offsets(), second.get_offsets())
    colours = [tuple(c[:3]) for c in first.get_facecolors()]
    assert {to_rgb(c) for c in COLORS[:3]} == set(colours)
    # Class by class there are 2 changes of colour; in random order about two of three rows change.
    changes = sum(a != b for a, b in itertools.pairwise(colours))
    assert 0.55 * 600 < changes < 0.8 * 600


def test_every_point_keeps_its_place_and_colour():
    series = classes(50, 10, kind="crosses")
    points = draw(figure_of(Panel("p", series))).axes[0].collections[0]
    drawn = {
        (*xy, tuple(c)) for xy, c in zip(points.get_offsets(), points.get_facecolors(), strict=True)
    }
    expected = {
        (x, y, to_rgba(style(k).color, points.get_alpha()))
        for k, s in enumerate(series)
        for x, y in zip(s.x, s.y, strict=True)
    }
    assert drawn == expected


def test_more_classes_than_colours_differ_in_shape():
    points = draw(figure_of(Panel("p", classes(5, 10)))).axes[0].collections[0]
    looks = {
        (tuple(colour), path.vertices.tobytes())
        for colour, path in zip(points.get_facecolors(), points.get_paths(), strict=True)
    }
    assert len(looks) == 10
    assert len({(style(k).color, style(k).dash) for k in range(28)}) == 28


@pytest.mark.parametrize("sight", [np.eye(3), RED_BLIND, GREEN_BLIND], ids=["all", "red", "green"])
def test_no_two_colours_look_alike_to_the_colour_blind(sight):
    linear = np.array([to_rgb(c) for c in COLORS]) ** 2.2
    seen = np.clip(linear @ sight.T, 0.0, 1.0) ** (1 / 2.2)
    distances = [np.linalg.norm(a - b) for a, b in itertools.combinations(seen, 2)]
    assert min(distances) > 0.12


def test_points_become_pixels_only_when_they_are_many():
    def rasterised(n_rows, n_panels=1):
        panels = [Panel("p", classes(n_rows, 2))] * n_panels
        return draw(figure_of(*panels)).axes[0].collections[0].get_rasterized()

    assert not rasterised(1000)
    assert rasterised(1001)
    assert rasterised(501, n_panels=2)


def test_the_legend_names_each_series_once_and_lies_below_all_panels():
    names = ["LSVA", "_private", "costs $5 or $x^{", "<b>"]
    panel = Panel("p", [Series(name, [1, 2], [3.0, 4.0]) for name in names])
    drawing = draw(figure_of(panel, panel))
    assert legend_names(drawing) == names
    pixels(drawing)
    top = drawing.legends[0].get_window_extent().y1
    assert all(top <= axes.get_tightbbox().y0 + 1 for axes in drawing.axes)


def test_without_names_there_is_no_legend():
    assert draw(figure_of(Panel("p", [Series("", [1], [2.0])]))).legends == []


def test_a_name_looks_the_same_in_all_panels():
    a, b = Series("A", [1, 2], [1.0, 2.0]), Series("B", [1, 2], [2.0, 1.0])
    left, right = draw(figure_of(Panel("l", [a, b]), Panel("r", [b]))).axes
    assert left.lines[1].get_color() == right.lines[0].get_color()
    assert left.lines[0].get_color() != right.lines[0].get_color()


def test_spread_is_a_band_of_one_standard_deviation():
    series = Series("A", [1, 2, 3], [5.0, 6.0, 7.0], spread=[1.0, 0.5, 2.0])
    band = draw(figure_of(Panel("p", [series]))).axes[0].collections[0]
    corners = band.get_paths()[0].vertices
    edges = [corners[corners[:, 0] == x, 1] for x in (1, 2, 3)]
    assert [(e.min(), e.max()) for e in edges] == [(4.0, 6.0), (5.5, 6.5), (5.0, 9.0)]


def test_bars_of_two_series_stand_side_by_side():
    series = [Series(name, [0, 1, 2], [1.0, 2.0, 3.0], kind="bars") for name in "ab"]
    axes = draw(figure_of(Panel("p", series))).axes[0]
    spans = sorted((bar.get_x(), bar.get_x() + bar.get_width()) for bar in axes.patches)
    assert len(spans) == 6
    assert all(a[1] <= b[0] + 1e-9 for a, b in itertools.pairwise(spans))


def test_equal_axes_have_equal_units():
    series = [Series("", [0.0, 10.0], [0.0, 1.0], kind="points")]
    drawing = draw(figure_of(Panel("p", series, equal_axes=True)))
    pixels(drawing)
    to_screen = drawing.axes[0].transData.transform
    origin, right, up = to_screen([(0.0, 0.0), (1.0, 0.0), (0.0, 1.0)])
    assert right[0] - origin[0] == pytest.approx(up[1] - origin[1])


@pytest.mark.parametrize(("asked", "got"), [(0, 1), (3, 3), (50, MOST_COLUMNS)])
def test_panels_side_by_side_are_limited(asked, got):
    panels = [Panel(str(i), [Series("", [1], [2.0])]) for i in range(8)]
    drawing = draw(figure_of(*panels, n_columns=asked))
    assert [axes.get_title() for axes in drawing.axes] == [str(i) for i in range(8)]
    assert drawing.axes[0].get_subplotspec().get_gridspec().ncols == got


def test_values_that_are_not_finite_are_left_out():
    x = np.array([1.0, np.nan, 3.0, 4.0])
    y = np.array([1.0, 2.0, np.inf, 4.0])
    points = draw(figure_of(Panel("p", [Series("", x, y, kind="points")]))).axes[0].collections[0]
    assert sorted(map(tuple, points.get_offsets())) == [(1.0, 1.0), (4.0, 4.0)]


def test_a_panel_without_data_says_so():
    nothing = np.zeros(0)
    for series in (
        [],
        [Series("a", nothing, nothing, kind="points")],
        [Series("a", [1], [np.nan])],
    ):
        axes = draw(figure_of(Panel("p", series))).axes[0]
        assert [text.get_text() for text in axes.texts] == ["no data"]


@pytest.mark.parametrize(
    ("panels", "message"),
    [
        ([], "no panel"),
        ([Panel("p", [Series("a", [1, 2], [1.0])])], "one length"),
        ([Panel("p", [Series("a", [[1, 2]], [[1.0, 2.0]])])], "one-dimensional"),
        ([Panel("p", [Series("a", [1], [1.0], spread=[1.0, 2.0])])], "spread of shape"),
        ([Panel("p", [Series("a", [1], [1.0], kind="pie")])], "'pie'"),
    ],
)
def test_what_cannot_be_drawn_is_refused_by_name(panels, message):
    with pytest.raises(InvalidInputError, match="Figure 2 of lsva") as caught:
        draw(figure_of(*panels))
    assert message in str(caught.value)


def test_nothing_is_left_in_matplotlib():
    before = plt.get_fignums()
    with mpl.rc_context({"font.size": 30.0, "figure.facecolor": "black"}):
        settings = dict(mpl.rcParams)
        drawing = draw(figure_of(Panel("p", classes(20, 2))))
        assert dict(mpl.rcParams) == settings
    assert plt.get_fignums() == before
    assert drawing.get_facecolor() == to_rgba("white")
