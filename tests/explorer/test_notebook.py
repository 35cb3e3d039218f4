"""The widget under a real JupyterLab: `make test-notebook` runs this."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from browsers import Screen

from marginfold.explorer.session import WEIGHTS

pytestmark = pytest.mark.notebook

MANY = 20
"""Widgets on one page: more than a browser has contexts of WebGL."""

FIRST = """
import json
from pathlib import Path
from sklearn.datasets import load_wine
from sklearn.model_selection import train_test_split
from marginfold.explorer import Explorer

X, y = load_wine(return_X_y=True, as_frame=True)
X, X_held_out, y, y_held_out = train_test_split(X, y, stratify=y, random_state=0)

def tell(change):
    Path(f"{change['name']}.json").write_text(json.dumps(change["new"]))

explorer = Explorer(X, y, held_out=(X_held_out, y_held_out))
explorer.observe(tell, ["selection", "weight"])
explorer
"""

SECOND = """
explorer.weight = 10.0
explorer.selection = [140, 141, 142]
explorer.export_html("maps.html")
"""

THIRD = f"""
from IPython.display import display
for _ in range({MANY}):
    display(Explorer(X, y))
"""


def notebook(*cells):
    code = [
        {
            "cell_type": "code",
            "id": f"cell{number}",
            "execution_count": None,
            "metadata": {},
            "outputs": [],
            "source": source.strip(),
        }
        for number, source in enumerate(cells)
    ]
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    page = {"cells": code, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(page)


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    """JupyterLab in a folder of its own: its address and the folder."""
    folder = tmp_path_factory.mktemp("lab")
    home = folder / "home"
    home.mkdir()
    shared = Path(__file__).resolve().parents[2] / ".venv" / "share" / "jupyter"
    token = "of-this-test"
    command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", "--port=0"]
    process = subprocess.Popen(
        [*command, f"--IdentityProvider.token={token}", f"--ServerApp.root_dir={folder}"],
        stderr=subprocess.STDOUT,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"HOME": str(home), "JUPYTER_PATH": str(shared)},
    )
    found = None
    for line in process.stdout:
        if found := re.search(r"http://127\.0\.0\.1:\d+", line):
            break
    assert found, "JupyterLab does not begin"
    log = subprocess.Popen(["cat"], stdin=process.stdout, stdout=subprocess.DEVNULL)
    yield found.group(0), token, folder
    process.send_signal(signal.SIGTERM)
    process.wait(20)
    log.wait(5)


@pytest.fixture
def opened(lab, browser):
    """Open a notebook of some cells and run them."""
    address, token, folder = lab
    context = browser.new_context(viewport={"width": 1500, "height": 1000})

    def run(name, *cells):
        (folder / name).write_text(notebook(*cells), encoding="utf-8")
        screen = Screen.of(context)
        screen.page.set_default_timeout(90_000)
        screen.page.goto(f"{address}/lab/tree/{name}?token={token}&reset")
        screen.page.locator(".jp-Notebook .jp-CodeCell").first.wait_for()
        screen.page.locator(".jp-Notebook-ExecutionIndicator[data-status=idle]").first.wait_for()
        return screen

    yield run
    context.close()


def run_cell(screen, number):
    """Run a cell; what is asked of a kernel that still begins may be lost, so ask again."""
    cell = screen.page.locator(".jp-CodeCell").nth(number)
    prompt = cell.locator(".jp-InputPrompt").first
    while not re.match(r"\[\d+\]", prompt.inner_text().strip()):
        if prompt.inner_text().strip() == "[ ]:":
            cell.locator(".cm-content").click()
            screen.page.keyboard.press("Shift+Enter")
        screen.page.wait_for_timeout(1000)


def read_when(path, holds, seconds=30):
    """Return what a file holds as soon as it is what is wanted."""
    end = time.monotonic() + seconds
    while True:
        value = json.loads(path.read_text(encoding="utf-8") or "null") if path.exists() else None
        if value is not None and holds(value):
            return value
        assert time.monotonic() < end, f"{path.name} holds {value}"
        time.sleep(0.1)


def test_selection_and_weight_go_both_ways_and_maps_are_exported(opened, lab):
    folder = lab[2]
    screen = opened("one.ipynb", FIRST, SECOND)
    run_cell(screen, 0)
    screen.wait_for("PCA", "LSVA")
    screen.card(2).locator(".path input[type=range]").wait_for()
    screen.map(1).scroll_into_view_if_needed()
    screen.lasso(screen.corners(1))
    screen.page.locator(".rowtable h2").wait_for()
    numbers = screen.selected()
    chosen = read_when(folder / "selection.json", lambda ids: len(ids) == len(numbers))
    assert {row + 1 for row in chosen} == numbers
    assert min(chosen) >= 133  # the rows that were given as held out come last
    run_cell(screen, 1)
    near = min(WEIGHTS, key=lambda weight: abs(weight - 10.0))
    read_when(folder / "weight.json", lambda weight: abs(weight - near) < 1e-12)
    screen.page.locator(".rowtable h2", has_text="3 rows selected").wait_for()
    shown = screen.card(2).locator(".path output")
    screen.page.wait_for_function(
        "([element, text]) => element.textContent === text",
        arg=[shown.element_handle(), f"{near:.3g}"],
    )
    read_when(folder / "selection.json", lambda ids: ids == [140, 141, 142])
    end = time.monotonic() + 30
    while not (folder / "maps.html").exists():
        assert time.monotonic() < end
        time.sleep(0.1)
    assert [problem for problem in screen.problems if "marginfold" in problem.lower()] == []


def test_twenty_widgets_on_one_page_all_draw(opened):
    screen = opened("many.ipynb", FIRST, THIRD)
    run_cell(screen, 0)
    screen.wait_for("PCA", "LSVA")
    run_cell(screen, 1)
    drawn = screen.page.locator(".jp-OutputArea canvas.mf-points[data-renderer]")
    end = time.monotonic() + 180
    for _ in range(400):
        screen.page.mouse.wheel(0, 600)
        if drawn.count() >= 2 * MANY or time.monotonic() > end:
            break
        time.sleep(0.3)
    assert drawn.count() >= 2 * MANY
    pixels = screen.page.evaluate(
        """() => [...document.querySelectorAll('canvas.mf-points')].map((canvas) => {
            const whole = document.createElement('canvas');
            [whole.width, whole.height] = [canvas.width, canvas.height];
            const context = whole.getContext('2d');
            context.drawImage(canvas, 0, 0);
            const data = context.getImageData(0, 0, whole.width, whole.height).data;
            return data.reduce((sum, value) => sum + (value > 0), 0);
        })"""
    )
    assert min(pixels) > 100
