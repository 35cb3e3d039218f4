"""Measure marginfold against what a user would take instead: ratios formed inside one run.

``python benchmarks/run.py`` measures everything and rewrites the table in benchmarks/README.md
(long); ``--quick`` prints a sample in under three minutes.  Every part can be run by
itself, ``--only`` measures some of them and keeps the other parts of the table.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import dask_fit
import first_try
import graphs
import low_rank
import numpy as np
import problems
import search
import subspaces
from lines import Line, repeat
from threadpoolctl import threadpool_limits

from marginfold import LSVA

HERE = Path(__file__).parent
BEGIN, END = "<!-- results begin -->", "<!-- results end -->"
HEAD = "| work | marginfold | instead | ratio | needed |\n|---|---|---|---|---|\n"
PACKAGES = ("numpy", "scipy", "scikit-learn", "numba", "dask", "faiss-cpu", "umap-learn")
PACKAGES += ("scikit-learn-intelex", "thundersvm-cpu")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a sample, printed only (< 3 min)")
    parser.add_argument("--only", nargs="*", choices=PARTS, help="measure these parts")
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    for name, part in PARTS.items():
        if (chosen.only and name not in chosen.only) or (chosen.quick and name in SLOW):
            continue
        found = []
        for line in part(chosen.quick):
            sys.stdout.write(f"{line}\n")
            sys.stdout.flush()
            found.append(line)
        if not chosen.quick:
            write(name, found)


def write(name: str, lines: list[Line]) -> None:
    """Put the lines of one part into the page, in place of those of an earlier run."""
    page = HERE / "README.md"
    before, rest = page.read_text().split(BEGIN)
    inside, after = rest.split(END)
    parts = dict(re.findall(r"### (.+?)\n\n(.+?)(?=\n### |\Z)", inside.strip() + "\n", re.S))
    parts[name] = f"{environment()}\n\n{HEAD}" + "\n".join(str(line) for line in lines) + "\n"
    ordered = [f"### {key}\n\n{parts[key].strip()}\n" for key in PARTS if key in parts]
    page.write_text(f"{before}{BEGIN}\n" + "\n".join(ordered) + f"{END}{after}")


def environment() -> str:
    """Say what was measured with."""
    found = []
    for package in PACKAGES:
        try:
            found.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            continue
    python = f"Python {platform.python_version()}"
    return f"{python}, {', '.join(found)}; {os.cpu_count()} cores, {platform.machine()}."


def shapes(quick: bool) -> Iterator[Line]:
    """Wide data, and the memory of whole processes."""
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], [47, 25])
    X = rng.normal(size=(72, 7129)) + y[:, None] * (rng.random(7129) < 0.02)
    with threadpool_limits(1):
        yield Line("LSVA, 5 components, 72 x 7129", repeat(lambda: LSVA(5).fit(X, y)), "-", "-")
    sizes = (25_000, 50_000) if quick else (50_000, 100_000, 200_000)
    for model, d, n_classes in [("LSVA(2)", 50, 2), ("GESVC(graph='within')", 10, 20)]:
        peaks = [peak_of_fit(model, n, d, n_classes) for n in sizes]
        bare = peak_of_fit(model, 1000, d, n_classes)
        growth = (peaks[-1] - bare) / (peaks[0] - bare)
        many = " / ".join(f"{n:,}" for n in sizes)
        yield Line(
            f"{model}, d = {d}, {n_classes} classes, n = {many}: peak memory",
            " / ".join(f"{peak:.0f} MB" for peak in peaks),
            f"the same process with 1000 rows: {bare:.0f} MB",
            f"grows {growth:.1f}x for {sizes[-1] / sizes[0]:.0f}x rows",
            "< 1 GB at 200,000",
        )


def peak_of_fit(model: str, n: int, d: int, n_classes: int) -> float:
    """Return the peak memory of a process that makes rows and fits, in MB (Linux)."""
    code = (
        "import warnings, numpy as np\n"
        "from marginfold import GESVC, LSVA\n"
        "warnings.simplefilter('ignore')\n"
        "rng = np.random.default_rng(0)\n"
        f"y = rng.integers(0, {n_classes}, {n})\n"
        f"X = rng.normal(size=({n}, {d})); X += rng.normal(size=({n_classes}, {d}))[y]\n"
        f"{model}.fit(X, y)\n"
        "lines = open('/proc/self/status').read().splitlines()\n"
        "print([line.split()[1] for line in lines if line.startswith('VmHWM')][0])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    return float(done.stdout) / 1024


PARTS: dict[str, Callable[[bool], Iterable[Line]]] = {
    "The first try": first_try.lines,
    "Problems and paths": problems.lines,
    "Choosing weights and dimensions": search.lines,
    "Ten dimensions and two": subspaces.lines,
    "Low-rank kernels": low_rank.lines,
    "Graphs": graphs.lines,
    "Rows on a cluster": dask_fit.lines,
    "Shapes and memory": shapes,
}

SLOW = ("The first try", "Graphs", "Shapes and memory", "Low-rank kernels")
"""Parts that the quick run leaves out."""


if __name__ == "__main__":
    main()
