"""SVG text and PNG files: the same bytes each time, small, valid and safe within a page."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import matplotlib as mpl
import matplotlib.image
import matplotlib.pyplot as plt
import numpy as np
import pytest

from marginfold.errors import InvalidInputError
from marginfold.plotting import draw, png, svg
from marginfold.protocols.results import Figure, Panel, Series

MOST_BYTES = 600_000
NAMESPACES = re.compile(r'xmlns(:\w+)?="[^"]*"')


def scatter(n_rows, number="1", n_classes=5):
    rng = np.random.default_rng(5)
    series = [
        Series(f"class {k}", *rng.standard_normal((2, n_rows // n_classes)) + k, kind="points")
        for k in range(n_classes)
    ]
    return Figure("lsva", number, "", "", [Panel(f"panel {number}", series, "x", "y", True)])


@pytest.mark.parametrize("n_rows", [50, 5000])
def test_svg_is_the_same_each_time_and_after_other_figures(n_rows):
    first = svg(scatter(n_rows))
    svg(scatter(20, "2"))
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "other", "savefig.pad_inches": 3}):
        assert svg(scatter(n_rows)) == first
    assert svg(draw(scatter(n_rows))) == first


@pytest.mark.parametrize(("n_rows", "n_classes"), [(500, 10), (2000, 5), (5000, 5), (5000, 10)])
def test_svg_is_valid_and_small(n_rows, n_classes):
    text = svg(scatter(n_rows, n_classes=n_classes))
    root = ElementTree.fromstring(text)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert len(text.encode()) < MOST_BYTES


def test_many_points_are_one_image_and_the_axes_stay_vectors():
    few, many = (svg(scatter(n)) for n in (500, 5000))
    assert few.count("<image") == 0
    assert many.count("<image") == 1
    assert many.count("matplotlib.axis") == few.count("matplotlib.axis") > 0


def test_names_of_parts_are_defined_where_they_are_used_and_nowhere_else():
    texts = [svg(scatter(50, number)) for number in ("1", "2")]
    names = [set(re.findall(r'\bid="([^"]+)"', text)) for text in texts]
    uses = [set(re.findall(r'(?:url\(|href=")#([^")]+)', text)) for text in texts]
    assert names[0]
    assert uses[0]
    assert uses[0] <= names[0]
    assert uses[1] <= names[1]
    assert not names[0] & names[1]


def test_svg_reaches_nothing_outside_and_styles_nothing_outside():
    text = NAMESPACES.sub("", svg(scatter(5000)))
    assert "http" not in text
    assert "<style" not in text
    assert "<metadata" not in text
    assert "stroke-linejoin: round" in text.partition(">")[0]


def test_labels_are_text_whatever_they_hold():
    hostile = "</svg><script>alert(1)</script> & $\\frac{"
    series = [Series(hostile, [1, 2], [3.0, 4.0])]
    text = svg(Figure(hostile, hostile, hostile, "", [Panel(hostile, series, hostile, hostile)]))
    tags = {element.tag.rpartition("}")[2] for element in ElementTree.fromstring(text).iter()}
    assert "script" not in tags


def test_png_has_the_size_asked_for_and_something_on_it(tmp_path):
    figure = scatter(100)
    png(figure, tmp_path / "a.png", 50)
    png(draw(figure), tmp_path / "b.png", 100)
    small, large = (matplotlib.image.imread(tmp_path / name) for name in ("a.png", "b.png"))
    assert np.abs(np.array(large.shape[:2]) - 2 * np.array(small.shape[:2])).max() <= 1
    assert len(np.unique(large.reshape(-1, large.shape[2]), axis=0)) > 20
    assert plt.get_fignums() == []


def test_png_replaces_a_file_only_when_asked_and_by_the_same_bytes(tmp_path):
    path = tmp_path / "a.png"
    path.write_bytes(b"mine")
    with pytest.raises(InvalidInputError, match="exists"):
        png(scatter(20), path)
    assert path.read_bytes() == b"mine"
    png(scatter(20), path, overwrite=True)
    first = path.read_bytes()
    with mpl.rc_context({"font.size": 30.0, "figure.facecolor": "black"}):
        png(scatter(20), path, overwrite=True)
    assert path.read_bytes() == first
    assert [p.name for p in tmp_path.iterdir()] == ["a.png"]
