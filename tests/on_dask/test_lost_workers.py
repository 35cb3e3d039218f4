"""A worker that is killed in the middle of a fit loses nothing."""

from __future__ import annotations

import os
import random
import signal
import warnings

import numpy as np
import pytest
from clusters import complete, worker_pids
from same_fit import assert_same_fit
from sklearn.base import clone

from marginfold import LDA, LSVA
from marginfold.runtime.progress import watch

da = pytest.importorskip("dask.array", reason="dask is not installed")

BLOCKS, ROWS, FEATURES, CLASSES = 12, 2000, 8, 2

EARLIEST, LATEST = 3, 70
"""Steps of a fit between which a worker is killed; both fits have more."""


def block_of_rows(number):
    """Return the rows of one chunk: they can be read again wherever they are needed."""
    rng = np.random.default_rng(number)
    y = rng.integers(0, CLASSES, ROWS)
    centres = np.random.default_rng(99).normal(size=(CLASSES, FEATURES))
    return rng.normal(size=(ROWS, FEATURES)) + centres[y], y


def lazy_rows():
    def rows(block_id=None):
        return block_of_rows(block_id[0])[0]

    chunks = ((ROWS,) * BLOCKS, (FEATURES,))
    return da.map_blocks(rows, chunks=chunks, dtype=float, meta=np.zeros((0, 0)))


class KillOnTheWay:
    """Kill a worker when a fit has gone a random number of steps."""

    def __init__(self, client, seed):
        self._client, self._random = client, random.Random(seed)
        self._rest = self._random.randint(EARLIEST, LATEST)
        self.killed = False

    def __call__(self, event):
        self._rest -= 1
        if self._rest == 0:
            os.kill(self._random.choice(worker_pids(self._client)), signal.SIGKILL)
            self.killed = True


@pytest.mark.attack("kills and interrupts")
@pytest.mark.parametrize(
    ("model", "seed"),
    [(LSVA(2, graph="within"), 0), (LDA(shrinkage="auto"), 2)],
)
def test_a_killed_worker_costs_time_only(model, seed, client, small_blocks):
    blocks = [block_of_rows(number) for number in range(BLOCKS)]
    X, y = (np.concatenate(part) for part in zip(*blocks, strict=True))
    kill = KillOnTheWay(client, seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = clone(model).fit(X, y)
        with watch(kill):
            found = clone(model).fit(lazy_rows(), y)
    assert kill.killed
    assert_same_fit(found, expected)
    complete(client)
