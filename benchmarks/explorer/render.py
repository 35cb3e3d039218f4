"""The explorer's renderers in a real browser: two maps, WebGL2 in software and Canvas 2D.

Needs Node (the page is built from web/), the package playwright and a Chromium on this machine:

    pip install playwright
    python benchmarks/explorer/render.py [--quick] [--chromium /usr/bin/chromium]

Times are milliseconds of the wall clock: what a person waits. All lines but "from frame to frame"
read one pixel back from each map, so that nothing is left to do in the background.
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from playwright.sync_api import sync_playwright

WEB = Path(__file__).resolve().parents[2] / "web"

#: Switches with which a Chromium without a GPU has WebGL2.
SOFTWARE_GL = ["--enable-unsafe-swiftshader", "--use-gl=angle", "--use-angle=swiftshader"]

#: Browsers: switches, and the renderer that is asked for (None: the page's own choice).
BROWSERS = {
    "software GL, GL asked for": (SOFTWARE_GL, "webgl2"),
    "software GL, page's choice": (SOFTWARE_GL, None),
    "no GL, page's choice": (["--disable-gpu"], None),
}

#: One map in CSS pixels: two of them side by side on a screen of 1600 x 900.
SIZE = {"width": 760, "height": 620, "ratio": 1}

#: Levels of 255 by which blended edges may differ.
CLOSE = 8

#: Bars in milliseconds by measurement and rows: the statistic, then WebGL2 and Canvas 2D.
BARS = {
    ("two maps interactive", 50_000): ("median", 1500, 1500),
    ("method switch", 50_000): ("median", 200, 200),
    ("slider step", 50_000): ("p95", 33, 33),
    ("linked lasso", 100_000): ("median", 100, 150),
}


def main() -> None:
    """Measure every browser and print a table."""
    arguments = read_arguments()
    script = build_page()
    repeats = 10 if arguments.quick else 40
    print("| what | rows x maps | browser | renderer | median ms | p95 ms | bar |")
    print("|---|---|---|---|---|---|---|")
    pictures = {}
    for browser, (switches, prefer) in BROWSERS.items():
        with open_page(arguments.chromium, switches, script) as page:
            for rows in (50_000, 100_000):
                given = [prefer, rows, SIZE, repeats]
                measured = page.evaluate("(given) => measure(...given)", given)
                for name, times in measured["times"].items():
                    print(table_line(name, rows, browser, measured["kind"], times), flush=True)
                name, times = "slider step, processor time", [processor_time(page, prefer, rows)]
                print(table_line(name, rows, browser, measured["kind"], times), flush=True)
            picture = page.evaluate("(given) => picture(...given)", [prefer, 20_000, SIZE])
            pictures[picture["kind"]] = read_pixels(picture["pixels"])
    print(agreement(pictures["webgl2"], pictures["canvas"]))


def read_arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="10 repeats instead of 40")
    parser.add_argument(
        "--chromium", default=shutil.which("chromium") or "chromium", help="the browser's program"
    )
    return parser.parse_args()


def build_page() -> str:
    """Bundle render.ts with the explorer's own modules."""
    with tempfile.TemporaryDirectory() as folder:
        command = [
            "npx",
            "vite",
            "build",
            "--mode",
            "bench",
            "--outDir",
            folder,
            "--logLevel",
            "warn",
        ]
        subprocess.run(command, cwd=WEB, check=True)
        return (Path(folder) / "bench.js").read_text(encoding="utf-8")


@contextlib.contextmanager
def open_page(chromium: str, switches: list[str], script: str) -> Iterator[Any]:
    """Open an empty page with the bundle in a browser with some switches."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=chromium, args=["--no-sandbox", *switches]
        )
        page = browser.new_page(viewport={"width": 1600, "height": 900})
        page.add_script_tag(content=script, type="module")
        page.wait_for_function("typeof measure === 'function'")
        yield page
        browser.close()


def processor_time(page: Any, prefer: str | None, rows: int) -> float:
    """Milliseconds of the page's own thread for one step, whatever else the machine does."""
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})

    def spent(count: int) -> float:
        page.evaluate("(given) => steps(...given)", [prefer, rows, SIZE, count])
        metrics = session.send("Performance.getMetrics")["metrics"]
        return next(each["value"] for each in metrics if each["name"] == "TaskDuration")

    spent(20)
    start = spent(1)
    few = spent(1) - start
    many = spent(101) - start - few
    return 10 * (many - few)


def table_line(name: str, rows: int, browser: str, kind: str, times: list[float]) -> str:
    """One measurement as a line of a Markdown table."""
    median, p95 = np.percentile(times, [50, 95])
    bar = "-"
    if (name, rows) in BARS:
        statistic, *limits = BARS[name, rows]
        limit = limits[kind == "canvas"]
        reached = (p95 if statistic == "p95" else median) <= limit
        bar = f"{statistic} <= {limit}: {'reached' if reached else 'MISSED'}"
    return f"| {name} | {rows} x 2 | {browser} | {kind} | {median:.2f} | {p95:.2f} | {bar} |"


def agreement(first: np.ndarray, second: np.ndarray) -> str:
    """How far the renderers' pictures of the same rows are apart."""
    apart = np.abs(first - second).max(axis=1)
    drawn = (first < 255).any(axis=1).sum()
    return (
        f"On white, {(apart > CLOSE).sum()} of {drawn} drawn pixels differ by more than {CLOSE} "
        f"of 255; the others by {apart[apart <= CLOSE].max():.0f} at most."
    )


def read_pixels(text: str) -> np.ndarray:
    """Pixels of a picture over white."""
    pixels = np.frombuffer(base64.b64decode(text), dtype=np.uint8).reshape(-1, 4).astype(float)
    return pixels[:, :3] * pixels[:, 3:] / 255 + 255 - pixels[:, 3:]


if __name__ == "__main__":
    main()
