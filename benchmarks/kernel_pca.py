"""Leading kernel coordinates against scikit-learn's KernelPCA, with the solver it picks itself.

Medians of three fits in one run, single-thread CPU seconds.  KernelPCA takes ARPACK below ten
components and a dense decomposition from ten on; both sides find the same eigenvalues, and the
last column shows how far they differ.  ``--quick`` leaves out the larger problems.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from sklearn.decomposition import KernelPCA
from threadpoolctl import threadpool_limits

from marginfold import ExactKernel

SIZES = (2000, 5000)
FEATURES = (2, 10, 50)
COMPONENTS = (2, 5, 10, 50)
REPEATS = 3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="only the smaller problems")
    sizes = SIZES[:1] if parser.parse_args().quick else SIZES
    sys.stdout.write("| rows | features | components | marginfold | KernelPCA | ratio | differ |\n")
    sys.stdout.write("|---|---|---|---|---|---|---|\n")
    with threadpool_limits(1):
        for n in sizes:
            for d in FEATURES:
                for line in compare(n, d):
                    sys.stdout.write(line + "\n")
                    sys.stdout.flush()


def compare(n: int, d: int) -> Iterator[str]:
    """Yield one line of the table for each number of components."""
    X = np.random.default_rng(0).standard_normal((n, d))
    X[: n // 2] += 1.5
    gamma = ExactKernel("rbf", rank=1).fit(X).gamma_  # also lets both sides find memory in use
    for k in COMPONENTS:
        ours, found = timed(lambda k=k: ExactKernel("rbf", gamma=gamma, rank=k).fit(X))
        theirs, pca = timed(lambda k=k: KernelPCA(k, kernel="rbf", gamma=gamma).fit(X))
        differ = np.abs(found.eigenvalues_ / pca.eigenvalues_ - 1).max()
        yield (
            f"| {n} | {d} | {k} | {shown(ours)} | {shown(theirs)} | "
            f"{np.median(theirs) / np.median(ours):.2f}x | {differ:.0e} |"
        )


def timed(work: Callable[[], Any]) -> tuple[list[float], Any]:
    """Return the CPU seconds of repeated calls and what the last one returned."""
    spent, result = [], None
    for _ in range(REPEATS):
        start = time.process_time()
        result = work()
        spent.append(time.process_time() - start)
    return spent, result


def shown(spent: list[float]) -> str:
    return f"{np.median(spent):.3g} s ({min(spent):.3g} to {max(spent):.3g})"


if __name__ == "__main__":
    main()
