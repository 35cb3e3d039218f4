"""A browser and the explorer as a person starts it: what the tests of its page share."""

from __future__ import annotations

import base64
import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
from explorer_client import split
from matplotlib.path import Path as Polygon

SOFTWARE_GL = ["--enable-unsafe-swiftshader", "--use-gl=angle", "--use-angle=swiftshader"]
"""Switches with which Chromium has WebGL2 without a graphics card."""

NAMES = ("chromium", "chromium-browser", "google-chrome")
"""What the browser is called."""

PATIENCE = 25.0
"""Seconds after which something on a page that has not happened is a failure."""

ENDS = 5.0
"""Seconds in which Ctrl-C ends the command where others work too; one where nobody does."""


KEEP_ANSWERS = """
    globalThis.answersForTests = [];
    const fetchAsIs = fetch;
    globalThis.fetch = async (url, options) => {
        const response = await fetchAsIs(url, options);
        if (!String(url).startsWith('/api/')) return response;
        const params = typeof options.body === 'string' ? JSON.parse(options.body) : null;
        answersForTests.push(response.clone().bytes().then(
            (bytes) => [String(url), params, bytes.toBase64()],
            () => [String(url), params, null],
        ));
        return response;
    };
"""
"""A page on which this runs first keeps a copy of every answer."""


def chromium() -> str:
    """Return the browser; without one tests are skipped, and fail in CI."""
    wanted = os.environ.get("CHROMIUM")
    found = next(filter(None, map(shutil.which, [wanted] if wanted else NAMES)), None)
    if found is None:
        said = "no Chromium on PATH: install one (Debian: apt-get install chromium) or set CHROMIUM"
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(said)
    return found


@contextlib.contextmanager
def browsers() -> Iterator[Any]:
    """Give a function that launches browsers, with WebGL2 or without."""
    playwright = pytest.importorskip("playwright.sync_api")
    with contextlib.ExitStack() as stack:
        started = stack.enter_context(playwright.sync_playwright())

        def launch(*, gl: bool = True) -> Any:
            switches = SOFTWARE_GL if gl else ["--disable-gpu", "--disable-3d-apis"]
            browser = started.chromium.launch(
                executable_path=chromium(), args=["--no-sandbox", *switches]
            )
            stack.callback(browser.close)
            return browser

        yield launch


@contextlib.contextmanager
def explored(folder: Path, *arguments: str) -> Iterator[psutil.Process]:
    """Run ``marginfold explore``; Ctrl-C ends it, soon and without a file left behind."""
    program = Path(sys.executable).with_name("marginfold")
    command = [str(program), "explore", "--no-browser", *arguments]
    scratch = folder / "scratch"
    scratch.mkdir()
    process = psutil.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=os.environ | {"TMPDIR": str(scratch), "PYTHONUNBUFFERED": "1", "COLUMNS": "200"},
    )
    said = []
    for line in process.stdout:
        said.append(line)
        if found := re.search(r"open (http://127\.0\.0\.1:\d+/#token=\S+)", line):
            break
    assert found, said
    process.address = found.group(1)
    yield process
    began = time.monotonic()
    process.send_signal(signal.SIGINT)
    process.wait(10)
    assert time.monotonic() - began < ENDS
    assert "Traceback" not in process.stdout.read()
    assert list(scratch.iterdir()) == []


@dataclass
class Screen:
    """A page as a person sees it; what its console complains of is kept."""

    page: Any
    problems: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, context: Any) -> Screen:
        """Open an empty page that tells of every breach of its policy."""
        screen = cls(context.new_page())
        page = screen.page
        page.set_default_timeout(1000 * PATIENCE)
        page.add_init_script(
            "addEventListener('securitypolicyviolation', (event) => console.error("
            "`policy: ${event.violatedDirective} ${event.blockedURI} ${event.sample}`))"
        )
        page.add_init_script(KEEP_ANSWERS)
        page.on(
            "console",
            lambda message: message.type == "error" and screen.problems.append(message.text),
        )
        page.on("pageerror", lambda error: screen.problems.append(str(error)))
        page.on("dialog", lambda dialog: screen.problems.append(f"dialog {dialog.message}"))
        page.on("request", lambda request: screen.requests.append(request.url))
        return screen

    # What is there ------------------------------------------------------------------------------

    def card(self, number: int) -> Any:
        """Return the card of a map."""
        return self.page.locator(".card").nth(number - 1)

    def map(self, number: int) -> Any:
        """Return a map."""
        return self.card(number).locator(".mf-map").first

    def button(self, name: str) -> Any:
        """Return a button by its whole name."""
        return self.page.get_by_role("button", name=name, exact=True)

    def wait_for(self, *methods: str) -> None:
        """Wait until maps of these methods are drawn and nothing runs."""
        self.page.wait_for_function(
            """(methods) => {
                const cards = [...document.querySelectorAll('.card')];
                return cards.length === methods.length &&
                    !document.querySelector('.marginfold .busy') &&
                    cards.every((card, at) =>
                        card.getAttribute('aria-label').endsWith(`: ${methods[at]}`) &&
                        card.querySelector('canvas.mf-points')?.dataset.renderer &&
                        card.querySelector('.rates dd'));
            }""",
            arg=list(methods),
        )

    def frames(self, call: str) -> list[tuple[Any, dict, dict]]:
        """Return parameters, body and arrays of the answers to a call that were read whole."""
        found = []
        for url, params, text in self.page.evaluate("() => Promise.all(answersForTests)"):
            parts = list(split(base64.b64decode(text or "")))
            if parts and parts[-1][0] == "result" and url.partition("?")[0].endswith(f"/{call}"):
                found.append((params, *parts[-1][1:]))
        return found

    def places(self, number: int, coordinates: np.ndarray, rows: dict[int, int]) -> np.ndarray:
        """Return where all rows lie on a map, from where a few are marked.

        ``rows`` gives the number in the file of each of the few, which must be listed as selected.
        A map moves and stretches both axes and does nothing else: what is left over by the best
        such map of the few is an error.
        """
        marked = np.array([self.marked(number, name) for name in rows.values()])
        few, found = list(rows), []
        for axis in range(2):
            design = np.column_stack([np.ones(len(few)), coordinates[few, axis]])
            weights, *_ = np.linalg.lstsq(design, marked[:, axis], rcond=None)
            apart = np.abs(design @ weights - marked[:, axis]).max()
            assert apart <= 1e-6 * np.ptp(coordinates[:, axis]) * abs(weights[1])
            found.append(weights[0] + weights[1] * coordinates[:, axis].astype(float))
        return np.column_stack(found)

    def marked(self, number: int, name: int) -> list[float]:
        """Pin a row that is listed as selected and return where a map marks it."""
        link = self.page.locator(".rowtable").get_by_role("button", name=str(name), exact=True)
        link.evaluate("(button) => button.click()")
        self.page.locator(".rowcard h2", has_text=re.compile(rf"Row {name}\b")).wait_for()
        mark = self.map(number).locator(".mf-pinned")
        return [float(mark.get_attribute(name)) for name in ("cx", "cy")]

    # What a person does -------------------------------------------------------------------------

    def choose(self, number: int, method: str) -> None:
        """Choose the method of a map."""
        self.card(number).locator(".method select").first.select_option(method)

    def select_all(self, number: int = 1) -> None:
        """Select the rows that a map shows, by its key."""
        self.map(number).focus()
        self.page.keyboard.press("s")

    def selected(self) -> set[int]:
        """Return the numbers of the selected rows, page by page of their table."""
        table = self.page.locator(".rowtable")
        if not table.count():
            return set()
        wanted = int(re.sub(r"\D", "", table.locator("h2").inner_text()))
        found: set[int] = set()
        while len(found) < wanted:
            found |= self.listed()
            if len(found) < wanted:
                table.get_by_role("button", name="Next").click()
        return found

    def listed(self) -> set[int]:
        """Return the numbers on one page of the table of selected rows, when it is complete."""
        links = self.page.locator(".rowtable tbody .link")
        links.first.wait_for()
        before, now = None, links.all_inner_texts()
        while now != before:
            self.page.wait_for_timeout(150)
            before, now = now, links.all_inner_texts()
        return set(map(int, now))

    def lasso(self, corners: list[tuple[float, float]]) -> None:
        """Drag around places of the window with Shift."""
        self.page.keyboard.down("Shift")
        self.page.mouse.move(*corners[0])
        self.page.mouse.down()
        for corner in corners[1:]:
            self.page.mouse.move(*corner)
        self.page.mouse.up()
        self.page.keyboard.up("Shift")

    def corners(self, number: int, share: float = 0.45) -> list[tuple[float, float]]:
        """Return a polygon in the left part of a map."""
        self.map(number).scroll_into_view_if_needed()
        box = self.map(number).bounding_box()
        inside = [(0.04, 0.08), (share, 0.05), (0.8 * share, 0.5), (share, 0.94), (0.05, 0.9)]
        return [(box["x"] + a * box["width"], box["y"] + b * box["height"]) for a, b in inside]

    def drop(self, name: str, content: bytes) -> None:
        """Drop a file on the opening screen."""
        files = self.page.evaluate_handle(
            """([name, bytes]) => {
                const dropped = new DataTransfer();
                dropped.items.add(new File([Uint8Array.fromBase64(bytes)], name));
                return dropped;
            }""",
            [name, base64.b64encode(content).decode()],
        )
        self.page.locator(".drop").dispatch_event("drop", {"dataTransfer": files})


def inside(corners: list[tuple[float, float]], places: np.ndarray) -> np.ndarray:
    """Return which places lie in a polygon."""
    return Polygon([*corners, corners[0]], closed=True).contains_points(places)


def busy_share(process: psutil.Process, seconds: float = 0.6) -> float:
    """Return how much of one core a process and all below it use."""

    def used() -> float:
        total = 0.0
        for each in [process, *process.children(recursive=True)]:
            with contextlib.suppress(psutil.NoSuchProcess):
                total += sum(each.cpu_times()[:2])
        return total

    began, before = time.monotonic(), used()
    time.sleep(seconds)
    return (used() - before) / (time.monotonic() - began)
