"""Low-rank kernels against KernelPCA at 20,000 rows, and alone at 100,000.

Every measurement runs in a process of its own, on one thread: CPU seconds of whole fits, and how
far the peak memory (Linux) rose above that of the process with its data in memory.  KernelPCA
takes its randomized solver, because the one that it picks itself needs more than five minutes for
ten components; it is measured once.  The accuracy of a low rank stands in each line: the share of
the variance in feature space that is lost, and how far the eigenvalues lie below KernelPCA's.

``python benchmarks/low_rank.py`` prints everything (a few minutes); ``--quick`` a smaller sample.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from lines import REPEATS, Line, Times, ratio_text

SYNTH = """
X, y = make_classification(25000, 50, n_informative=15, n_redundant=10, n_classes=5,
    n_clusters_per_class=2, class_sep=1.5, flip_y=.02, random_state=0)
X, y = scale(X)[:{n}], y[:{n}]
i, j = np.random.default_rng(0).integers(0, {n}, (2, 5000))
gamma = 1 / np.median(((X[i] - X[j]) ** 2).sum(axis=1))
"""
"""The rows called synth20k: 50 features, 10 of them redundant, 5 classes."""

CLOUDS = """
rng = np.random.default_rng(0)
y = rng.integers(0, 3, {n})
X = rng.standard_normal(({n}, 20))
X[:, :3] += 1.5 * np.eye(3)[y]
gamma = 1 / 40
"""
"""Three overlapping classes in 20 features."""

PROGRAM = """
import ctypes, json, time, warnings
import numpy as np
from sklearn.datasets import make_classification
from sklearn.decomposition import KernelPCA
from sklearn.preprocessing import scale
from threadpoolctl import threadpool_limits
from marginfold import GESVC, KDA, MMDA, SVMPCA
from marginfold.feature_maps import LowRankKernel
warnings.simplefilter("ignore")

def peak():
    lines = open("/proc/self/status").read().splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) / 1024

{data}
seconds = []
with threadpool_limits(1):
    {estimator}.fit(X[:300], y[:300])
    ctypes.CDLL("libc.so.6").malloc_trim(0)  # what making the data left in the allocator
    open("/proc/self/clear_refs", "w").write("5")  # and its peak
    bare = peak()
    for _ in range({repeats}):
        model = {estimator}
        start = time.process_time()
        model.fit(X, y)
        seconds.append(time.process_time() - start)
values = getattr(model, "eigenvalues_", [])
lost = getattr(getattr(model, "feature_map_", None), "relative_error_", 0.0)
print(json.dumps([seconds, peak() - bare, list(values), lost]))
"""

KERNEL_PCA = "KernelPCA(10, kernel='rbf', gamma=gamma, eigen_solver='randomized', random_state=0)"
LOW_RANK = "LowRankKernel('rbf', gamma=gamma, rank={rank})"


@dataclass(frozen=True)
class Measured:
    """What a process found."""

    times: Times
    memory: float
    eigenvalues: np.ndarray
    lost: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer rows and repetitions")
    for line in lines(parser.parse_args().quick):
        sys.stdout.write(f"{line}\n")


def lines(quick: bool) -> list[Line]:
    """Return the lines of the table."""
    return [*against_kernel_pca(quick), *alone(quick)]


def against_kernel_pca(quick: bool) -> Iterator[Line]:
    """Kernel PCA and kernel discriminants of the same rows."""
    n, ranks = (5000, (200,)) if quick else (20_000, (300, 500))
    data = SYNTH.format(n=n)
    theirs = measure(KERNEL_PCA, data, 1)
    named = f"KernelPCA(10), randomized: {theirs.times}"
    for rank in ranks:
        kernel = LOW_RANK.format(rank=rank)
        pca = measure(f"SVMPCA(10, kernel={kernel})", data, REPEATS)
        kda = measure(f"KDA(4, kernel={kernel})", data, REPEATS)
        for name, ours in (("SVMPCA(10)", pca), ("KDA(4)", kda)):
            yield Line(
                f"{name}, LowRankKernel(rank={rank}), n = {n}, d = 50 ({accuracy(pca, theirs)})",
                ours.times,
                named,
                ratio_text(ours.times, theirs.times),
                ">= 20" if n == 20_000 else "-",
            )
            yield Line(
                f"the same {name}, rank {rank}: memory above the bare process",
                f"{ours.memory:.0f} MB",
                f"{theirs.memory:.0f} MB",
                f"{theirs.memory / ours.memory:.3g}x",
                ">= 10" if n == 20_000 else "-",
            )


def accuracy(ours: Measured, theirs: Measured) -> str:
    """Say what a low rank costs."""
    below = 1.0 - ours.eigenvalues[:10] / theirs.eigenvalues[:10]
    return (
        f"{ours.lost:.0%} of the variance lost, ten eigenvalues low by "
        f"{below.min():.1%} to {below.max():.1%}"
    )


def alone(quick: bool) -> Iterator[Line]:
    """Rows of which a kernel matrix would have 80 GB."""
    n, rank = 100_000, 200
    kernel = LOW_RANK.format(rank=rank)
    methods = {
        "SVMPCA(10)": f"SVMPCA(10, kernel={kernel})",
        "KDA(2)": f"KDA(2, kernel={kernel})",
        "MMDA(2)": f"MMDA(2, kernel={kernel})",
        "GESVC(graph='within')": f"GESVC(kernel={kernel}, graph='within')",
    }
    for name in list(methods)[: 2 if quick else None]:
        ours = measure(methods[name], CLOUDS.format(n=n), 1)
        yield Line(
            f"{name}, LowRankKernel(rank={rank}), n = 100,000, d = 20 "
            f"({ours.lost:.0%} of the variance lost)",
            f"{ours.times}, {ours.memory:.0f} MB",
            f"a kernel matrix: {8 * n * n / 1e6:.0f} MB",
            f"{8 * n * n / 1e6 / ours.memory:.0f}x",
        )


def measure(estimator: str, data: str, repeats: int) -> Measured:
    """Fit in a new process."""
    program = PROGRAM.format(data=data, estimator=estimator, repeats=repeats)
    threads = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    done = subprocess.run(
        [sys.executable, "-c", program],
        stdout=subprocess.PIPE,
        check=True,
        env=os.environ | threads,
    )
    seconds, memory, eigenvalues, lost = json.loads(done.stdout)
    return Measured(Times(tuple(seconds)), memory, np.array(eigenvalues), lost)


if __name__ == "__main__":
    main()
