"""A real cluster of two worker processes, shared by the tests of this folder."""

from __future__ import annotations

import numpy as np
import pytest
from clusters import complete

ROWS = 900


@pytest.fixture
def client(cluster):
    """The current client; its cluster is complete."""
    complete(cluster)
    with cluster.as_current():
        yield cluster


@pytest.fixture
def small_blocks(monkeypatch):
    """Blocks of a few hundred rows, so that small data has several of them."""
    import marginfold.on_dask.inputs as reading

    monkeypatch.setattr(reading, "BLOCK_BYTES", 12_000)


@pytest.fixture(scope="session")
def data():
    """Three classes in order, so that chunks have one class only; far from the origin."""
    rng = np.random.default_rng(3)
    y = np.sort(rng.integers(0, 3, ROWS))
    X = rng.normal(size=(ROWS, 6)) + 1.5 * rng.normal(size=(3, 6))[y]
    X = X * np.array([1.0, 1.0, 10.0, 0.1, 1.0, 1.0]) + 1e3
    X[:, 5] = 7.7
    return X, y


@pytest.fixture(scope="session")
def weights():
    """Weights 0, 1 and 2; the first 150 rows, a whole chunk, have weight 0."""
    weights = np.random.default_rng(4).integers(0, 3, ROWS).astype(float)
    weights[:150] = 0.0
    return weights
