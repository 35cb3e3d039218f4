"""Measure marginfold against what a user would take instead: ratios formed inside one run.

``python benchmarks/run.py`` measures everything and rewrites the table in benchmarks/README.md;
``--quick`` takes a sample of it and only prints.  Single-thread CPU seconds, except memory.
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import scipy
import sklearn
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

from marginfold import LSVA, InteriorPoint, NeighborGraph
from marginfold.errors import ExhaustedWarning

CUTOFF = 300_000
"""libsvm iterations after which the obvious implementation is cut off."""

HERE = Path(__file__).parent
BEGIN, END = "<!-- results begin -->", "<!-- results end -->"

Pair = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True)
class Row:
    work: str
    ours: str
    theirs: str
    ratio: str
    needed: str


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a sample, printed only (< 3 min)")
    quick = parser.parse_args().quick
    warnings.simplefilter("ignore", ConvergenceWarning)
    warnings.simplefilter("ignore", ExhaustedWarning)
    rows = []
    with threadpool_limits(1):
        for measure in (path_of_graph_weights, one_problem, separable_problem, wide_data, memory):
            for row in measure(quick):
                sys.stdout.write(f"{row.work}: {row.ours} against {row.theirs}: {row.ratio}\n")
                sys.stdout.flush()
                rows.append(row)
    if not quick:
        write(rows)


def path_of_graph_weights(quick: bool) -> Iterator[Row]:
    """LSVA, 10 components x 30 graph weights, against one SVC per component and weight."""
    X, y = overlapping(1000, 30, seed=0)
    for normalize, weights in [(True, np.logspace(-2, 2, 30)), (False, np.logspace(-1, 2, 30))]:
        estimator = LSVA(10, C=100.0, normalize_graph=normalize)
        ours = repeat(lambda e=estimator, w=weights: e.fit_path(X, y, w), 2 if quick else 5)
        sample = weights[::10] if quick else weights
        unit = graph_unit(X) if normalize else 1.0
        spent = [obvious_path(X, y, lam / unit, 10) for lam in sample]
        theirs = [sum(spent) * len(weights) / len(sample)]
        cut = "measured once" if len(sample) == 30 else f"{len(sample)} of 30 weights measured"
        kind = f"weights {weights[0]:g} to {weights[-1]:g}" + (
            "" if normalize else " in the paper's raw units (the graph dominates: easy problems)"
        )
        yield Row(
            f"LSVA, 10 components x 30 graph weights, n = 1000, d = 30, C = 100, {kind}",
            seconds(ours),
            f"SVC(precomputed) each, cut off at 300k iterations: {seconds(theirs)} ({cut})",
            ratio(ours, theirs),
            ">= 100" if normalize else "-",
        )


def graph_unit(X: np.ndarray) -> float:
    """Return tr(Z M Z') / tr(Z Z'), the unit of a normalised graph weight."""
    Z = X - X.mean(axis=0)
    M = NeighborGraph().build(X).scatter(Z)
    return float((M * (Z.T @ Z)).sum() / (Z * Z).sum())


def obvious_path(X: np.ndarray, y: np.ndarray, lam: float, n_components: int) -> float:
    """Return the CPU seconds of Algorithm 1 of paper 000 as one would write it down."""
    start = time.process_time()
    L = NeighborGraph().build(X).scatter(np.eye(len(X)))
    signs = np.where(y > 0, 1.0, -1.0)
    P = np.eye(X.shape[1])
    for _ in range(n_components):
        A = np.eye(X.shape[1]) + lam * P @ X.T @ L @ X @ P
        kernel = X @ P @ np.linalg.solve(A, P @ X.T)
        svc = SVC(kernel="precomputed", C=100.0, class_weight="balanced", max_iter=CUTOFF)
        svc.fit(kernel, signs)
        w = np.linalg.solve(A, P @ X[svc.support_].T @ svc.dual_coef_[0])
        w /= np.linalg.norm(w)
        P = P @ (np.eye(len(w)) - np.outer(w, w))
    return time.process_time() - start


def one_problem(quick: bool) -> Iterator[Row]:
    """One certified problem against SVC(kernel="linear") at its default tolerance."""
    for n, r, C in (
        [(5000, 40, 1.0)] if quick else [(300, 16, 1.0), (1000, 24, 1.0), (5000, 40, 1.0)]
    ):
        yield versus_svc("overlapping", overlapping, n, r, C, 2 if quick else 5, needed=n == 5000)


def separable_problem(quick: bool) -> Iterator[Row]:
    """Where we lose: far separated classes, on which libsvm needs few iterations."""
    for n, r, C in [(1000, 30, 1.0)] if quick else [(1000, 30, 1.0), (5000, 50, 100.0)]:
        yield versus_svc("separable", separable, n, r, C, 2 if quick else 5, needed=False)


def versus_svc(
    kind: str,
    data: Callable[..., Pair],
    n: int,
    r: int,
    C: float,
    repeats: int,
    *,
    needed: bool,
) -> Row:
    ours, theirs, gaps = [], [], []
    for seed in range(repeats):
        X, y = data(n, r, seed=seed)
        work = (
            lambda X=X, y=y: gaps.append(InteriorPoint().solve(X, y, C).gap),
            lambda X=X, y=y: SVC(kernel="linear", C=C).fit(X, y),
        )
        ours.append(float(np.median(repeat(work[0], 3))))
        theirs.append(float(np.median(repeat(work[1], 3))))
    return Row(
        f"one problem, {kind}, C = {C:g}, n = {n}, r = {r} (gap <= {max(gaps):.0e})",
        seconds(ours),
        f"SVC(linear), tol 1e-3: {seconds(theirs)}",
        ratio(ours, theirs),
        ">= 50" if needed else "-",
    )


def wide_data(quick: bool) -> Iterator[Row]:
    """A 72 x 7129 problem must fit in well under a second."""
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], [47, 25])
    X = rng.normal(size=(72, 7129)) + y[:, None] * (rng.random(7129) < 0.02)
    spent = repeat(lambda: LSVA(5).fit(X, y), 3)
    yield Row("LSVA, 5 components, 72 x 7129", seconds(spent), "-", "-", "< 1 s")


def memory(quick: bool) -> Iterator[Row]:
    """Peak resident memory of a whole process that makes the data and fits."""
    sizes = (25_000, 50_000) if quick else (50_000, 100_000, 200_000)
    cases = [("LSVA(2)", 50, 2), ("GESVC(graph='within')", 10, 20)]
    for model, d, n_classes in cases:
        peaks = [peak_of_fit(model, n, d, n_classes) for n in sizes]
        bare = peak_of_fit(model, 1000, d, n_classes)
        growth = (peaks[-1] - bare) / (peaks[0] - bare)
        many = " / ".join(f"{n:,}" for n in sizes)
        yield Row(
            f"{model}, d = {d}, {n_classes} classes, n = {many}: peak memory",
            " / ".join(f"{peak:.0f} MB" for peak in peaks),
            f"the same process with 1000 rows: {bare:.0f} MB",
            f"grows {growth:.1f}x for {sizes[-1] / sizes[0]:.0f}x rows",
            "< 1 GB at 200,000",
        )


def peak_of_fit(model: str, n: int, d: int, n_classes: int) -> float:
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


def overlapping(n: int, r: int, *, seed: int) -> Pair:
    return two_clouds(n, r, 0.7, seed)


def separable(n: int, r: int, *, seed: int) -> Pair:
    return two_clouds(n, r, 8.0, seed)


def two_clouds(n: int, r: int, distance: float, seed: int) -> Pair:
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(n) < 0.5, 1, -1)
    X = rng.normal(size=(n, r))
    X[:, 0] += distance * y
    return X, y


def repeat(work: Callable[[], object], times: int) -> list[float]:
    """Return the CPU seconds of repeated calls, the shortest first."""
    spent = []
    for _ in range(times):
        start = time.process_time()
        work()
        spent.append(time.process_time() - start)
    return sorted(spent)


def seconds(spent: list[float]) -> str:
    if len(spent) == 1:
        return f"{spent[0]:.3g} s"
    return f"{np.median(spent):.3g} s ({min(spent):.3g} to {max(spent):.3g})"


def ratio(ours: list[float], theirs: list[float]) -> str:
    middle = np.median(theirs) / np.median(ours)
    return f"{middle:.3g}x ({min(theirs) / max(ours):.3g} to {max(theirs) / min(ours):.3g})"


def write(rows: list[Row]) -> None:
    page = HERE / "README.md"
    before, rest = page.read_text().split(BEGIN)
    after = rest.split(END)[1]
    versions = (
        f"Python {platform.python_version()}, numpy {np.__version__}, scipy {scipy.__version__}, "
        f"scikit-learn {sklearn.__version__}, {os.cpu_count()} cores, {platform.machine()}."
    )
    lines = ["| work | marginfold | instead | ratio | needed |", "|---|---|---|---|---|"]
    lines += [f"| {r.work} | {r.ours} | {r.theirs} | {r.ratio} | {r.needed} |" for r in rows]
    page.write_text(f"{before}{BEGIN}\n{versions}\n\n" + "\n".join(lines) + f"\n{END}{after}")


if __name__ == "__main__":
    main()
