"""Names in any script: no warnings of matplotlib, text in an SVG where this machine has no font."""

from __future__ import annotations

import warnings
from xml.etree import ElementTree

import pytest

pytest.importorskip("matplotlib", reason="figures need matplotlib")

from marginfold.errors import MarginfoldWarning
from marginfold.plotting import draw, png, svg
from marginfold.plotting.fonts import families, missing_letters
from marginfold.protocols.results import Figure, Panel, Series

NAMES = ["猫", "ねこ", "고양이", "🐈", "قط", "кот", "<b>&", "a\x1bb"]
UNASSIGNED = "\U0003fffd"  # no font draws it


def figure(names):
    series = [Series(name, [1.0, 2.0], [k, k + 1.0], kind="points") for k, name in enumerate(names)]
    return Figure("user", "1", "", "", [Panel(names[0], series, xlabel=names[-1], ylabel="y")])


def words(page):
    return [node.text for node in ElementTree.fromstring(page).findall(".//{*}text")]


@pytest.mark.parametrize("name", NAMES)
def test_a_name_in_any_script_is_drawn_without_warnings_or_left_as_text(name):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        page = svg(figure([name, "plain"]))
    if missing_letters(draw(figure([name, "plain"]))):
        assert words(page).count(name) == 2  # in the title and in the legend
    else:
        assert words(page) == []  # paths, which look the same everywhere


def test_letters_without_a_font_are_text_and_plain_ones_are_paths():
    assert words(svg(figure([UNASSIGNED, "plain"]))).count(UNASSIGNED) == 2
    assert words(svg(figure(["plain"]))) == []


def test_a_picture_says_once_which_letters_are_missing(tmp_path):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        png(figure([UNASSIGNED, UNASSIGNED * 2]), tmp_path / "a.png")
        png(figure(["plain", "кот"]), tmp_path / "b.png")
    (warning,) = caught
    assert warning.category is MarginfoldWarning
    assert "they appear as boxes in" in str(warning.message)
    assert (tmp_path / "a.png").read_bytes()[1:4] == b"PNG"


def test_the_own_font_comes_first_and_alone_where_it_suffices():
    assert families("plain кот") == ["DejaVu Sans"]
    assert families("plain 猫")[0] == "DejaVu Sans"
