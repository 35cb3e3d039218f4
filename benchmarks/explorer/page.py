"""The explorer as a person meets it: the command, its page in a real Chromium, both renderers.

    python benchmarks/explorer/page.py [--quick] [--chromium /usr/bin/chromium]

Needs the package playwright and a Chromium, no Node: it measures the built page over
``marginfold explore``.  Times are milliseconds of the wall clock between what the person does and
the frame that shows it, on the page's own clock; the two lines about processes are taken here.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import psutil
from playwright.sync_api import sync_playwright

from marginfold.explorer import Session, Table, open_table

STATIC = Path(__file__).resolve().parents[2] / "src" / "marginfold" / "explorer" / "static"
SOFTWARE_GL = ["--enable-unsafe-swiftshader", "--use-gl=angle", "--use-angle=swiftshader"]
RENDERERS = ("webgl2", "canvas")

#: The bar of each line: the statistic and how much it may be, for WebGL2 and Canvas 2D.
BARS: dict[str, tuple[str, float, float]] = {
    "command to first paint, 5000 x 30": ("median", 2500, 2500),
    "command to the table on the page, 5000 x 30": ("median", 2500, 2500),
    "50,000 rows in two maps opened, without a fit": ("median", 1500, 1500),
    "50,000 points in two maps drawn": ("median", 1500, 1500),
    "method switch, 5000 x 30": ("median", 200, 200),
    "slider step, 50,000 points": ("p95", 33, 33),
    "path of 30 weights, 1000 x 30": ("median", 1000, 1000),
    "path of 30 weights, 5000 x 30": ("median", 2000, 2000),
    "linked lasso, 100,000 points x 2 maps": ("median", 100, 150),
    "hover to loadings, 5000 x 30": ("p95", 100, 100),
    "cancel of a fit of 8 s": ("median", 1000, 1000),
}

#: What runs before the page: it counts the pictures of maps and tells when the next ones are shown.
CLOCK = """
    globalThis.drawings = 0;
    for (const name of ['putImageData', 'drawImage']) {
        const before = CanvasRenderingContext2D.prototype[name];
        CanvasRenderingContext2D.prototype[name] = function (...given) {
            before.apply(this, given);
            if (this.canvas.classList?.contains('mf-points')) drawings += 1;
        };
    }
    const afterFrame = (then) => requestAnimationFrame(() => {
        const channel = new MessageChannel();
        channel.port1.onmessage = then;
        channel.port2.postMessage(null);
    });
    globalThis.until = (done) => new Promise((resolve) => {
        const began = performance.now();
        const look = () => (done() ? resolve(performance.now() - began) : afterFrame(look));
        afterFrame(look);
    });
    globalThis.shown = (maps, act) => {
        const wanted = drawings + maps;
        act();
        return until(() => drawings >= wanted);
    };
    globalThis.onEvent = (name, done) => {
        globalThis.measured = new Promise((resolve) => addEventListener(
            name, () => until(done).then(resolve), { capture: true, once: true }));
    };
"""


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a third of the repeats")
    parser.add_argument("--chromium", default=shutil.which("chromium") or "chromium")
    given = parser.parse_args()
    repeats = 5 if given.quick else 15
    print("| what | renderer | median | p95 | bar |\n|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright:
        folder = Path(name)
        launch = playwright.chromium.launch
        for renderer in RENDERERS:
            switches = SOFTWARE_GL if renderer == "webgl2" else ["--disable-gpu"]
            browser = launch(executable_path=given.chromium, args=["--no-sandbox", *switches])
            for measure in (small_tables, middle_table, large_tables):
                for line, times in measure(browser, renderer, folder, repeats).items():
                    print_line(line, renderer, times)
            browser.close()
        print_sizes(folder)


def print_line(name: str, renderer: str, times: list[float]) -> None:
    """Print median, 95th percentile and whether the bar is reached."""
    median, p95 = np.percentile(times, [50, 95])
    statistic, *limits = BARS.get(name, ("median", np.inf, np.inf))
    limit = limits[renderer == "canvas"]
    reached = "reached" if (p95 if statistic == "p95" else median) <= limit else "MISSED"
    bar = "-" if np.isinf(limit) else f"{statistic} <= {limit} ms: {reached}"
    print(f"| {name} | {renderer} | {median:.0f} ms | {p95:.0f} ms | {bar} |", flush=True)


# What is measured --------------------------------------------------------------------------------


def small_tables(browser: Any, renderer: str, folder: Path, repeats: int) -> dict[str, list[float]]:
    """A path at 1000 rows."""
    with explored(table(folder, 1000)) as (_, address):
        page = opened(browser, address, renderer)
        return {"path of 30 weights, 1000 x 30": paths(page, repeats // 2)}


def middle_table(browser: Any, renderer: str, folder: Path, repeats: int) -> dict[str, list[float]]:
    """From the command to the first paint, then what is done most, at 5000 rows."""
    first, there = [], []
    for _ in range(max(3, repeats // 3)):
        page = new_page(browser)
        began = time.perf_counter()
        with explored(table(folder, 5000)) as (_, address):
            page.goto(f"{address}&renderer={renderer}")
            page.locator("h1").wait_for()
            first.append(1000 * (time.perf_counter() - began))
            page.locator(".header h1").wait_for()
            there.append(1000 * (time.perf_counter() - began))
    with explored(table(folder, 5000)) as (_, address):
        page = opened(browser, address, renderer)
        return {
            "command to first paint, 5000 x 30": first,
            "command to the table on the page, 5000 x 30": there,
            "path of 30 weights, 5000 x 30": paths(page, repeats // 2),
            "method switch, 5000 x 30": switches(page, repeats),
            "hover to loadings, 5000 x 30": hovers(page, 3 * repeats),
        }


def large_tables(browser: Any, renderer: str, folder: Path, repeats: int) -> dict[str, list[float]]:
    """Many points: 50,000 with a slider, 100,000 under a lasso, training rows drawn too."""
    found = {}
    with explored(noise(folder)) as (process, address):
        page = opened(browser, address, renderer)
        found["cancel of a fit of 8 s"] = cancels(page, process, max(3, repeats // 3))
    kept = kept_maps(folder, 50_000)
    found["50,000 rows in two maps opened, without a fit"] = [
        opening(browser, f"{kept}#renderer={renderer}") for _ in range(max(3, repeats // 3))
    ]
    with explored(table(folder, 50_000)) as (_, address):
        page = opened(browser, address, renderer)
        found["50,000 points in two maps drawn"] = toggles(page, repeats)
        prepare = page.get_by_role("button", name="Prepare the slider")
        if prepare.count():  # the fit took so long that the page does not go on by itself
            prepare.click()
        page.locator(".path input").wait_for()
        found["slider step, 50,000 points"] = slides(page, 29)
    with explored(table(folder, 100_000)) as (_, address):
        page = opened(browser, address, renderer)
        page.get_by_role("switch").check()
        found["linked lasso, 100,000 points x 2 maps"] = lassos(page, repeats)
    return found


def paths(page: Any, repeats: int) -> list[float]:
    """From the question for a path, which follows the fit, to the slider."""
    page.evaluate(
        """() => {
            const before = fetch;
            globalThis.fetch = (url, options) => {
                if (String(url).endsWith('/path')) globalThis.measured =
                    until(() => document.querySelector('.card:first-child .path input'));
                return before(url, options);
            };
        }"""
    )
    times = []
    for _ in range(repeats):
        choose(page, 1, "LDA")
        choose(page, 1, "LSVA")
        page.locator(".card").first.locator(".path input").wait_for()
        times.append(page.evaluate("() => measured"))
    return times


def switches(page: Any, repeats: int) -> list[float]:
    """From the choice of a method to its map, first PCA and LDA in turn."""
    act = """(method) => shown(1, () => {
        const chooser = document.querySelector('.card .method select');
        chooser.value = method;
        chooser.dispatchEvent(new Event('change', { bubbles: true }));
    })"""
    times = []
    for turn in range(repeats):
        times.append(page.evaluate(act, ["LDA", "PCA"][turn % 2]))
        settle(page)
    return times


def hovers(page: Any, repeats: int) -> list[float]:
    """From the pointer on a row to the columns that move it."""
    box = page.locator(".mf-map").first.bounding_box()
    random, times = np.random.default_rng(0), []
    while len(times) < repeats:
        across, down = random.uniform(0.3, 0.7, 2)
        page.evaluate(
            """() => {
                const old = document.querySelector('.rowcard h2')?.textContent;
                onEvent('pointermove', () => {
                    const now = document.querySelector('.rowcard h2')?.textContent;
                    const missed = !now || now === old;
                    return missed || document.querySelector('.rowcard .loadings') ? true : false;
                });
            }"""
        )
        before = page.locator(".rowcard h2").all_text_contents()
        page.mouse.move(box["x"] + across * box["width"], box["y"] + down * box["height"])
        spent = page.evaluate("() => measured")
        if page.locator(".rowcard h2").all_text_contents() not in ([], before):
            times.append(spent)
        page.mouse.move(2, 2)
        page.wait_for_timeout(60)
    return times


def cancels(page: Any, process: psutil.Process, repeats: int) -> list[float]:
    """From the button to the last work of the process that fits."""
    times = []
    for _ in range(repeats):
        page.locator(".card .method select").first.select_option("MarginMap")
        button = page.locator(".card").first.get_by_role("button", name="Cancel")
        button.wait_for()
        worker = None
        while worker is None:
            working = [(work_of(each, 0.1), each) for each in process.children(recursive=True)]
            worker = next((each for work, each in working if work > 0.2), None)
        button.click()
        began = last = time.perf_counter()
        while time.perf_counter() - last < 0.5:
            if work_of(worker, 0.02) > 0.05:
                last = time.perf_counter()
        times.append(1000 * (last - began))
        choose(page, 1, "PCA")
    return times


def opening(browser: Any, address: str) -> float:
    """From the begin of the navigation to both maps."""
    page = new_page(browser)
    page.goto(address)
    spent = page.evaluate("() => until(() => drawings >= 2).then(() => performance.now())")
    page.close()
    return spent


def toggles(page: Any, repeats: int) -> list[float]:
    """From the switch to all rows in both maps."""
    times = []
    for _ in range(repeats):
        for wanted in (True, False):
            spent = page.evaluate(
                "() => shown(2, () => document.querySelector('[role=switch]').click())"
            )
            if wanted:
                times.append(spent)
    return times


def slides(page: Any, repeats: int) -> list[float]:
    """From a step of the slider to its picture, all rows drawn."""
    page.get_by_role("switch").check()
    act = """(step) => shown(1, () => {
        const slider = document.querySelector('.path input');
        slider.value = step;
        slider.dispatchEvent(new Event('input', { bubbles: true }));
    })"""
    return [page.evaluate(act, step) for step in range(repeats)]


def lassos(page: Any, repeats: int) -> list[float]:
    """From the end of a lasso with 64 corners to both maps with the rows inside."""
    box = page.locator(".mf-map").first.bounding_box()
    times = []
    for turn in range(repeats):
        angles = np.linspace(0, 2 * np.pi, 64)
        radius = 0.2 + 0.2 * (turn % 5) / 5
        across = box["x"] + box["width"] * (0.5 + radius * np.cos(angles))
        down = box["y"] + box["height"] * (0.5 + radius * np.sin(angles))
        page.keyboard.down("Shift")
        page.mouse.move(across[0], down[0])
        page.mouse.down()
        for at in zip(across[1:], down[1:], strict=True):
            page.mouse.move(*at)
        page.evaluate(
            "() => { const wanted = drawings + 2; onEvent('pointerup', () => drawings >= wanted); }"
        )
        page.mouse.up()
        page.keyboard.up("Shift")
        times.append(page.evaluate("() => measured"))
        page.wait_for_timeout(200)
    return times


def print_sizes(folder: Path) -> None:
    """Print the sizes of what is shipped and of an exported file."""
    for kind, limit in (("page", 60_000), ("widget", 150_000)):
        files = [STATIC / f"{kind}.js", STATIC / "page.css"]
        packed = sum(len(gzip.compress(file.read_bytes())) for file in files)
        print_size(f"{kind}, gzipped", packed, limit)
    with Session(Table.of(open_table(table(folder, 5000)))) as session:
        print_size("exported HTML, 5000 x 30, 30 weights", len(session.page().encode()), 2_000_000)


def print_size(name: str, size: int, limit: int) -> None:
    reached = "reached" if size <= limit else "MISSED"
    print(f"| {name} | - | {size / 1000:.0f} kB | - | <= {limit // 1000} kB: {reached} |")


# Tables, processes, pages ------------------------------------------------------------------------


def table(folder: Path, rows: int) -> str:
    """Write a CSV of 30 columns and five classes that overlap."""
    file = folder / f"rows{rows}.csv"
    if not file.exists():
        random = np.random.default_rng(0)
        labels = random.integers(5, size=rows)
        X = random.normal(size=(rows, 30)) + 1.5 * random.normal(size=(5, 30))[labels]
        frame = pandas.DataFrame(X.round(4), columns=[f"column {k}" for k in range(30)])
        frame.assign(kind=np.array(list("abcde"))[labels]).to_csv(file, index=False)
    return str(file)


def noise(folder: Path) -> str:
    """Write a CSV on which MarginMap takes eight seconds of a core: 12,000 rows of noise."""
    file = folder / "noise.csv"
    if not file.exists():
        random = np.random.default_rng(0)
        frame = pandas.DataFrame(random.normal(size=(12_000, 6)).round(3))
        frame.assign(kind=random.choice(list("abcdef"), 12_000)).to_csv(file, index=False)
    return str(file)


def kept_maps(folder: Path, rows: int) -> str:
    """Write two maps, fitted already, as one HTML file and return its address."""
    file = folder / f"maps{rows}.html"
    if not file.exists():
        with Session(Table.of(open_table(table(folder, rows)))) as session:
            fitted = [session.handle("fit", {"method": name})[0]["map"] for name in ("PCA", "LDA")]
            file.write_text(session.page(fitted), encoding="utf-8")
    return file.as_uri()


@contextlib.contextmanager
def explored(path: str) -> Iterator[tuple[psutil.Process, str]]:
    """Run the command, and end it by Ctrl-C."""
    program = str(Path(sys.executable).with_name("marginfold"))
    process = psutil.Popen(
        [program, "explore", path, "--no-browser"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    found = None
    while found is None:
        found = re.search(r"http://127\S+", process.stdout.readline().decode())
    yield process, found.group(0)
    process.send_signal(signal.SIGINT)
    process.wait(20)


def new_page(browser: Any) -> Any:
    page = browser.new_page(viewport={"width": 1600, "height": 900})
    page.set_default_timeout(120_000)
    page.add_init_script(CLOCK)
    return page


def opened(browser: Any, address: str, renderer: str) -> Any:
    """Open a page and wait for its first maps."""
    page = new_page(browser)
    page.goto(f"{address}&renderer={renderer}")
    page.locator(f"canvas[data-renderer={renderer}]").nth(1).wait_for()
    settle(page)
    return page


def choose(page: Any, number: int, method: str) -> None:
    """Choose a method and wait for its map."""
    page.locator(".card .method select").nth(number - 1).select_option(method)
    page.locator(f"[aria-label='Map {number}: {method}'] .duration", has_text="fitted").wait_for()


def settle(page: Any) -> None:
    page.evaluate("() => until(() => !document.querySelector('.busy'))")


def work_of(process: psutil.Process, seconds: float) -> float:
    """Return how much of a core a process uses; nothing if it has ended."""

    def used() -> float:
        with contextlib.suppress(psutil.NoSuchProcess):
            return sum(process.cpu_times()[:2])
        return np.nan

    began, before = time.perf_counter(), used()
    time.sleep(seconds)
    return (used() - before) / (time.perf_counter() - began)


if __name__ == "__main__":
    main()
