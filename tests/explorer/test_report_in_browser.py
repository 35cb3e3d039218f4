"""The report of a comparison in a browser: linked maps with scripts, drawings without."""

from __future__ import annotations

import re

import pytest
from browsers import Screen

from marginfold.cli import main

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


@pytest.mark.parametrize("width", [390, 2560])
def test_nothing_is_wider_than_the_window(opened, width):
    screen = opened(viewport={"width": width, "height": 844})
    screen.page.locator("canvas[data-renderer]").nth(1).wait_for()
    page = "document.documentElement"
    assert screen.page.evaluate(f"{page}.scrollWidth - {page}.clientWidth") <= 0
