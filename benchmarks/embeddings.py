"""Measure the direct embeddings: against scikit-learn at small sizes, alone at 20,000 rows.

``python benchmarks/embeddings.py`` prints everything (a few minutes); ``--quick`` leaves the
largest comparison out.  Single-thread CPU seconds of a whole fit (graph and eigenvectors) and peak
memory of its process; each fit runs in a process of its own, and is given up after ten minutes.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain

GIVEN_UP = 600
"""Seconds after which a fit is given up."""

SIZES = (2000, 5000)
"""Rows at which both sides are measured."""

LARGE = 20_000
"""Rows at which ours is measured alone."""

DATA = {
    "roll (3 features)": "X = make_swiss_roll({n}, random_state=0)[0]",
    "synth (50 features)": (
        "X = make_classification(25000, 50, n_informative=15, n_redundant=10, n_classes=5, "
        "n_clusters_per_class=2, class_sep=1.5, flip_y=.02, random_state=0)[0]; "
        "X = scale(X)[:{n}]"
    ),
}
OURS = {"eigenmaps": "LaplacianEigenmaps(2)", "LLE": "LocallyLinearEmbedding(2)"}
THEIRS = {
    "eigenmaps": "manifold.SpectralEmbedding(2, affinity='nearest_neighbors', n_neighbors=10)",
    "LLE": "manifold.LocallyLinearEmbedding(n_neighbors=10, n_components=2)",
}
PROGRAM = """
import time, warnings
from sklearn import manifold
from sklearn.datasets import make_classification, make_swiss_roll
from sklearn.preprocessing import scale
from threadpoolctl import threadpool_limits
from marginfold import LaplacianEigenmaps, LocallyLinearEmbedding
warnings.simplefilter("ignore")
{data}
estimator = {estimator}
with threadpool_limits(1):
    start = time.process_time()
    estimator.fit(X)
    spent = time.process_time() - start
status = open("/proc/self/status").read().splitlines()
peak = int(next(line for line in status if line.startswith("VmHWM")).split()[1]) // 1024
smallest = getattr(estimator, "eigenvalues_", [0])[0]
print(spent, peak, smallest)
"""


@dataclass(frozen=True)
class Measured:
    seconds: float
    peak: int
    smallest: float

    def __str__(self) -> str:
        return f"{self.seconds:.2f} s, {self.peak} MB"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="without the larger comparison")
    sizes = SIZES[:1] if parser.parse_args().quick else SIZES
    for line in chain(comparisons(sizes), alone()):
        print(line, flush=True)


def comparisons(sizes: tuple[int, ...]) -> Iterator[str]:
    """Both sides, with the same number of neighbors."""
    for n in sizes:
        for method, data in cases():
            ours = measure(OURS[method], data, n)
            theirs = measure(THEIRS[method], data, n)
            yield f"{method}, {data}, n = {n}: {ours} against scikit-learn's {theirs}"


def alone() -> Iterator[str]:
    """Ours where scikit-learn needs a multiple of the time or the memory."""
    for method, data in cases():
        ours = measure(OURS[method], data, LARGE)
        value = f", smallest eigenvalue {ours.smallest:.2e}" if isinstance(ours, Measured) else ""
        yield f"{method}, {data}, n = {LARGE}: {ours}{value}"


def cases() -> Iterator[tuple[str, str]]:
    return ((method, data) for method in OURS for data in DATA)


def measure(estimator: str, data: str, n: int) -> Measured | str:
    """Fit in a new process; say so if it does not end in time."""
    program = PROGRAM.format(data=DATA[data].format(n=n), estimator=estimator)
    threads = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    try:
        done = subprocess.run(
            [sys.executable, "-c", program],
            capture_output=True,
            check=True,
            timeout=GIVEN_UP,
            env=os.environ | threads,
        )
    except subprocess.TimeoutExpired:
        return f"more than {GIVEN_UP} s"
    spent, peak, smallest = done.stdout.split()
    return Measured(float(spent), int(peak), float(smallest))


if __name__ == "__main__":
    main()
