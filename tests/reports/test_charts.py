"""Charts: every mark stands where its number says, and the words are all there."""

from __future__ import annotations

import re
from itertools import pairwise
from xml.etree.ElementTree import Element, SubElement

import numpy as np
import pytest

pytest.importorskip("jinja2", reason="reports need the extra cli")

from marginfold.compare.pictures import MapPoint
from marginfold.errors import InvalidInputError
from marginfold.protocols.results import Series
from marginfold.reports.charts import Dot, dot_plot, line_plot, map_plot, ticks
from marginfold.reports.document import Chart

DOTS = [
    Dot("LDA", 0.0, 0.0, 0.0, "1.0 %", "best"),
    Dot("PCA", 2.0, -1.0, 5.0, "3.0 %", "equal"),
    Dot("MMDA", 4.0, float("-inf"), float("inf"), "5.0 %"),
    Dot("largest class", 50.0, 45.0, 55.0, "51.0 %", "quiet"),
]


def dots_of(chart):
    return [group for group in chart.root.iter("g") if "dot" in group.get("class").split()]


def across(text):
    assert text.endswith("%")
    return float(text[:-1])


def plotted(limits=(-2.0, 8.0)):
    chart = dot_plot(DOTS, title="t", caption="c", axis="points", limits=limits)
    marks = {
        float(t.text): across(t.get("x"))
        for t in chart.root.iter("text")
        if "tick" in t.get("class")
    }
    slope, start = np.polyfit(list(marks), list(marks.values()), 1)
    return chart, lambda percent: (percent - start) / slope


def test_dots_and_intervals_are_where_the_axis_says():
    chart, value = plotted()
    lda, pca, mmda, largest = dots_of(chart)
    assert value(across(lda.find("circle").get("cx"))) == pytest.approx(0.0, abs=0.02)
    assert value(across(pca.find("circle").get("cx"))) == pytest.approx(2.0, abs=0.02)
    (line,) = pca.findall("line")
    ends = [value(across(line.get(name))) for name in ("x1", "x2")]
    assert ends == pytest.approx([-1.0, 5.0], abs=0.02)
    assert mmda.findall("line") == []  # no interval is known
    assert value(across(mmda.find("circle").get("cx"))) == pytest.approx(4.0, abs=0.02)
    assert largest.find("circle") is None  # an arrow at the edge
    assert "▸" in [text.text for text in largest.iter("text")]


def test_every_dot_has_its_name_and_number_and_the_chart_says_all_of_them():
    chart, _ = plotted()
    for group, dot in zip(dots_of(chart), DOTS, strict=True):
        words = [text.text for text in group.iter("text")]
        assert dot.name in words
        assert dot.text in words
        assert group.find("title").text.startswith(f"{dot.name}: {dot.text}")
        assert dot.name in chart.root.find("desc").text
    assert chart.root.find("title").text == "t"


def test_all_places_are_inside_the_chart():
    for limits in ((-2.0, 8.0), (0.0, 100.0), (-0.1, 1.0)):
        chart, _ = plotted(limits)
        places = [
            across(element.get(name))
            for element in chart.root.iter()
            for name in ("x", "x1", "x2", "cx")
            if element.get(name, "").endswith("%")
        ]
        assert 0 <= min(places) <= max(places) <= 100


def test_lines_pass_through_their_points():
    series = [Series("LDA", np.array([1.0, 2.0, 4.0]), np.array([40.0, 20.0, 10.0]))]
    chart = line_plot(series, title="t", caption="", xlabel="components", ylabel="error %")
    (group,) = chart.root.iter("g")
    places = [(across(u.get("x")), across(u.get("y"))) for u in group.iter("use")]
    ends = [
        (
            across(line.get("x1")),
            across(line.get("y1")),
            across(line.get("x2")),
            across(line.get("y2")),
        )
        for line in group.iter("line")
    ]
    assert ends == [(*a, *b) for a, b in pairwise(places)]
    (x1, y1), (x2, y2), (x4, y4) = places
    assert (x4 - x2) / (x2 - x1) == pytest.approx(2.0, abs=0.01)
    assert (y4 - y2) / (y2 - y1) == pytest.approx(0.5, abs=0.01)  # down is less error
    assert y4 > y2 > y1


def points(seed=0, n=40):
    rng = np.random.default_rng(seed)
    return [
        MapPoint(float(x), float(y), "ab"[k % 2], k + 1)
        for k, (x, y) in enumerate(rng.standard_normal((n, 2)))
    ]


def test_a_row_in_a_map_says_its_number_and_its_class_and_keeps_its_place():
    rows = points()
    chart = map_plot(rows, title="LDA", caption="")
    places = {
        use.find("title").text: (across(use.get("x")), across(use.get("y")))
        for use in chart.root.iter("use")
    }
    assert set(places) == {f"row {p.row}: {p.label}" for p in rows}
    drawn = np.array([places[f"row {p.row}: {p.label}"] for p in rows])
    given = np.array([(p.x, -p.y) for p in rows])  # up is more
    for k in range(2):
        assert np.corrcoef(drawn[:, k], given[:, k])[0, 1] == pytest.approx(1.0, abs=1e-4)
    assert drawn.min() >= 0
    assert drawn.max() <= 100
    assert list(chart.keys) == ["a", "b"]
    names = [t.text for t in chart.root.iter("text")]
    assert names == ["a", "b"]


def test_names_stand_at_the_anchors_of_their_classes():
    """Both axes have one unit: the anchors are on a circle."""
    anchors = {"a": (1.0, 0.0), "b": (0.0, 1.0)}
    rows = [MapPoint(p.x / 9, p.y / 9, p.label, p.row) for p in points()]
    chart = map_plot(rows, title="MarginMap", caption="", anchors=anchors)
    texts = {t.text: (across(t.get("x")), across(t.get("y"))) for t in chart.root.iter("text")}
    (xa, ya), (xb, yb) = texts["a"], texts["b"]
    assert ya == pytest.approx(50.0, abs=0.1)
    assert xb == pytest.approx(50.0, abs=0.1)
    assert xa - 50 == pytest.approx(50 - yb, abs=0.1)
    assert "square" in chart.root.get("class")


def test_a_map_of_one_place_can_be_drawn():
    same = [MapPoint(1.0, 2.0, "a", k) for k in range(3)]
    assert len(list(map_plot(same, title="t", caption="").root.iter("use"))) == 3


@pytest.mark.parametrize(("low", "high"), [(-3.2, 7.9), (0.0, 0.03), (-55.0, 60.0), (1.0, 2.0)])
def test_ticks_are_round_and_even(low, high):
    found = ticks(low, high)
    assert 3 <= len(found) <= 8
    assert low <= found[0] + 1e-9
    assert found[-1] <= high + 1e-9
    steps = np.diff(found)
    assert steps == pytest.approx(np.full(len(steps), steps[0]))
    assert re.fullmatch(r"[125]", f"{steps[0]:.0e}"[0])


BAD_PARTS = [
    ("script", {}),
    ("foreignObject", {}),
    ("text", {"onclick": "alert(1)"}),
    ("text", {"style": "x"}),
    ("use", {"href": "https://example.org/x.svg#a"}),
    ("use", {"href": "javascript:alert(1)"}),
    ("{http://www.w3.org/2000/svg}image", {}),
]


@pytest.mark.parametrize(("tag", "attributes"), BAD_PARTS)
def test_a_chart_with_anything_that_runs_or_loads_is_refused(tag, attributes):
    root = Element("svg")
    SubElement(SubElement(root, "g"), tag, attributes)
    with pytest.raises(InvalidInputError, match="The chart 'c' has"):
        Chart("c", "", root)
