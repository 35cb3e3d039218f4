"""The report of a comparison in a browser: linked maps with scripts, drawings without."""

from __future__ import annotations

import re

import numpy as np
import pandas
import pytest
from browsers import Screen

from marginfold.cli import main
from marginfold.compare.runs import PICTURES
from marginfold.explorer.one_file import KEPT_ID

MOST_BYTES = 2_000_000
"""Size of a report, at most."""


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """The report of a quick comparison."""
    folder = tmp_path_factory.mktemp("report")
    file = folder / "wine.html"
    options = ["--methods", "PCA,LDA,LSVA", "--repeats", "1", "--run", str(folder / "run")]
    assert main(["compare", "wine", *options, "--report", str(file)]) == 0
    return file


@pytest.fixture
def opened(launch, report):
    """Open the report, with scripts or without; it may complain of nothing."""
    browser, screens = launch(gl=False), []

    def opened(**how):
        screens.append(Screen.of(browser.new_context(offline=True, **how)))
        screens[-1].page.goto(report.as_uri())
        return screens[-1]

    yield opened
    assert [problem for screen in screens for problem in screen.problems] == []
    assert {url for screen in screens for url in screen.requests} == {report.as_uri()}


def test_maps_are_linked_and_can_be_changed(opened, report):
    screen = opened()
    screen.page.locator("canvas[data-renderer]").nth(1).wait_for()
    assert not screen.page.locator("#pictures svg.chart").first.is_visible()
    for method in ("PCA", "LDA", "LSVA"):
        screen.choose(1, method)
        screen.page.locator(f"[aria-label='Map 1: {method}'] canvas").first.wait_for()
    screen.lasso(screen.corners(2, 0.7))
    chosen = screen.page.locator(".rowtable h2")
    chosen.wait_for()
    assert re.match(r"[1-9]\d* rows? selected", chosen.inner_text())
    screen.page.locator(".rowtable tbody td").nth(10).wait_for()
    assert report.stat().st_size < MOST_BYTES


def test_without_scripts_the_drawings_are_there(opened):
    screen = opened(java_script_enabled=False)
    assert screen.page.locator("#pictures svg.chart").first.is_visible()
    assert not screen.page.locator("#app").is_visible()


def test_the_contents_lead_to_drawings_also_beside_live_maps(opened):
    screen = opened()
    screen.page.locator("canvas[data-renderer]").nth(1).wait_for()
    screen.page.locator("nav summary").click()
    for number in (1, 3):
        screen.page.locator(f"nav a[href='#pictures.{number}']").click()
        drawing = screen.page.locator(f"[id='pictures.{number}'] svg.chart")
        drawing.wait_for()
        assert drawing.evaluate(
            "(drawing) => drawing.getBoundingClientRect().top < innerHeight && "
            "drawing.getBoundingClientRect().bottom > 0"
        )
        assert screen.page.locator("#pictures .block svg.chart:visible").count() == 1
    assert screen.page.locator("canvas[data-renderer]").first.is_visible()


def test_the_report_of_5000_rows_with_all_maps_is_below_2_mb(tmp_path):
    rng = np.random.default_rng(0)
    labels = rng.integers(5, size=5000)
    X = rng.normal(size=(5000, 30)) + 1.5 * rng.normal(size=(5, 30))[labels]
    frame = pandas.DataFrame(X.round(4)).add_prefix("column ").assign(kind=labels)
    frame.to_csv(tmp_path / "rows.csv", index=False)
    options = ["--methods", "PCA,LDA", "--repeats", "1", "--run", str(tmp_path / "run")]
    file = tmp_path / "report.html"
    command = ["compare", str(tmp_path / "rows.csv"), "--target", "kind", *options]
    assert main([*command, "--report", str(file)]) == 0
    page = file.read_text(encoding="utf-8")
    (drawn,) = re.findall(r'<section id="pictures">.*?</section>', page, flags=re.DOTALL)
    (answers,) = re.findall(rf'id="{KEPT_ID}">.*?</script>', page, flags=re.DOTALL)
    assert drawn.count("<use ") >= 2 * 1000
    each = (len(drawn) + len(answers)) / 2  # more than a map takes: the rows are among it once
    assert len(page.encode()) + (len(PICTURES) - 2) * each < MOST_BYTES


@pytest.mark.parametrize("width", [390, 2560])
def test_nothing_is_wider_than_the_window(opened, width):
    screen = opened(viewport={"width": width, "height": 844})
    screen.page.locator("canvas[data-renderer]").nth(1).wait_for()
    page = "document.documentElement"
    assert screen.page.evaluate(f"{page}.scrollWidth - {page}.clientWidth") <= 0
