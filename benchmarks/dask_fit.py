"""Fits on a Dask cluster of two workers against the fit on an array of the same rows.

CPU seconds of all processes: this one (with the scheduler) and the workers.  The rows are made
chunk by chunk on both sides, so that both pay for reading them once.

    python benchmarks/dask_fit.py [--quick]
"""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from lines import Line, Times, ratio_text
from sklearn.base import clone

from marginfold import LDA, LSVA
from marginfold.graphs import AnchorGraph

FEATURES, CLASSES = 20, 3

CHUNK = 250_000
"""Rows of a chunk."""

NEEDED = "at most 3x the CPU time"

MODELS = {
    "LDA": LDA(),
    'LSVA(2, graph="within", C=1)': LSVA(2, C=1.0, graph="within"),
    "LSVA(2, graph=AnchorGraph(200), C=1)": LSVA(2, C=1.0, graph=AnchorGraph(200)),
}


def chunk_of_rows(number: int) -> tuple[np.ndarray, np.ndarray]:
    """Return one chunk of rows and labels, the same wherever it is made."""
    rng = np.random.default_rng(number)
    y = rng.integers(0, CLASSES, CHUNK)
    centres = np.random.default_rng(10**6).normal(size=(CLASSES, FEATURES))
    return rng.normal(size=(CHUNK, FEATURES)) + 0.7 * centres[y], y


def rows_of_chunk(block_id: tuple[int, int] | None = None) -> np.ndarray:
    """Return the rows of one chunk."""
    return chunk_of_rows(block_id[0])[0] if block_id else np.zeros((0, FEATURES))


def lazy_rows(n_chunks: int) -> Any:
    """Return the rows as a dask array."""
    import dask.array as da

    chunks = ((CHUNK,) * n_chunks, (FEATURES,))
    return da.map_blocks(rows_of_chunk, chunks=chunks, dtype=float, meta=np.zeros((0, 0)))


def array_of_rows(n_chunks: int) -> np.ndarray:
    """Return the rows as an array."""
    X = np.empty((n_chunks * CHUNK, FEATURES))
    for number in range(n_chunks):
        X[number * CHUNK : (number + 1) * CHUNK] = chunk_of_rows(number)[0]
    return X


def cluster_cpu(client: Any, work: Callable[[], object]) -> float:
    """Return the CPU seconds of one call in this process and in the workers."""
    before, start = sum(client.run(time.process_time).values()), time.process_time()
    work()
    here = time.process_time() - start
    return here + sum(client.run(time.process_time).values()) - before


def measured(client: Any, model: Any, n_chunks: int, repeats: int) -> tuple[Times, Times, float]:
    """Return the CPU seconds on the cluster and here, in turn, and how far the models differ."""
    y = np.concatenate([chunk_of_rows(number)[1] for number in range(n_chunks)])
    fits = clone(model), clone(model)
    ours, theirs = [], []
    for _ in range(repeats + 1):
        ours.append(cluster_cpu(client, lambda: fits[0].fit(lazy_rows(n_chunks), y)))
        start = time.process_time()
        fits[1].fit(array_of_rows(n_chunks), y)
        theirs.append(time.process_time() - start)
    difference = np.abs(fits[0].components_ - fits[1].components_).max()
    size = np.abs(fits[1].components_).max()
    return Times(tuple(ours[1:])), Times(tuple(theirs[1:])), float(difference / size)


def lines(quick: bool) -> list[Line]:
    """Return the lines of the table."""
    from distributed import Client, LocalCluster

    n_chunks, repeats = (2, 1) if quick else (8, 5)
    found = []
    with (
        LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=True,
            dashboard_address=":0",
            silence_logs=logging.ERROR,
        ) as cluster,
        Client(cluster) as client,
    ):
        for name, model in list(MODELS.items())[: 2 if quick else None]:
            ours, theirs, difference = measured(client, model, n_chunks, repeats)
            found.append(
                Line(
                    f"{name} on Dask, 2 workers, {n_chunks * CHUNK:,} x {FEATURES}, against the "
                    f"array (components differ by {difference:.0e})",
                    ours,
                    theirs,
                    f"{ours.median / theirs.median:.2f}x its CPU time "
                    f"({ratio_text(theirs, ours).split('(')[1]}",
                    NEEDED,
                )
            )
    return found


if __name__ == "__main__":
    for line in lines("--quick" in sys.argv):
        print(line)
