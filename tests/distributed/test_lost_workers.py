"""A worker that is killed in the middle of a fit loses nothing."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from clusters import Killer, complete
from same_fit import assert_same_fit
from sklearn.base import clone

from marginfold import LDA, LSVA

da = pytest.importorskip("dask.array", reason="dask is not installed")

ROWS, FEATURES, CLASSES = 24_000, 8, 2


def block_of_rows(number):
    """Return the rows of one chunk: they can be read again wherever they are needed."""
    rng = np.random.default_rng(number)
    y = rng.integers(0, CLASSES, ROWS // 12)
    centres = np.random.default_rng(99).normal(size=(CLASSES, FEATURES))
    return rng.normal(size=(len(y), FEATURES)) + centres[y], y


def lazy_rows():
    def rows(block_id):
        return block_of_rows(block_id[0])[0]

    chunks = ((ROWS // 12,) * 12, (FEATURES,))
    return da.map_blocks(
        lambda block_id=None: rows(block_id), chunks=chunks, dtype=float, meta=np.zeros((0, 0))
    )


@pytest.mark.parametrize(
    ("model", "seed"),
    [(LSVA(2, graph="within"), 0), (LDA(shrinkage="auto"), 1)],
    ids=["LSVA", "LDA"],
)
def test_a_killed_worker_costs_time_only(model, seed, client, small_blocks):
    blocks = [block_of_rows(number) for number in range(12)]
    X, y = (np.concatenate(part) for part in zip(*blocks, strict=True))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = clone(model).fit(X, y)
        with Killer(client, seed, pause=0.3, most=1) as killer:
            found = model.fit(lazy_rows(), y)
            while killer.kills == 0:  # the fit was faster than the first kill
                found = model.fit(lazy_rows(), y)
    assert_same_fit(found, expected)
    complete(client)
