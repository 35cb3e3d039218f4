"""Blocks on a cluster: results in order, nothing large on the way, progress and cancelling."""

from __future__ import annotations

import os

import numpy as np
import pytest

from marginfold import LDA, LSVA, SVMPCA, LowRankKernel
from marginfold.errors import CancelledError, WorkerLostError
from marginfold.geometry.moments import class_means, spread, within_scatter
from marginfold.linalg.tall import Block
from marginfold.runtime.progress import watch

da = pytest.importorskip("dask.array", reason="dask is not installed")


def chunks_of(X, rows=150):
    return da.from_array(X, chunks=(rows, X.shape[1]))


def remote_blocks(X, codes, weights):
    from marginfold.feature_maps import Linear
    from marginfold.on_dask.inputs import read_rows

    rows = read_rows(SVMPCA(), chunks_of(X))
    return rows.coordinates(Linear(center=False), weights, codes).blocks


@pytest.mark.parametrize(
    ("chunks", "lengths"),
    [((10,) * 9, [30, 30, 30]), ((1, 1, 1, 87), [3, 87]), ((50, 40), [50, 40])],
)
def test_small_chunks_are_merged(chunks, lengths, monkeypatch):
    import marginfold.on_dask.inputs as reading

    monkeypatch.setattr(reading, "BLOCK_BYTES", 8 * 2 * 30)
    X = np.random.default_rng(0).normal(size=(90, 2))
    known = da.from_array(X, chunks=(chunks, (2,)))
    for lazy in (known, known[known[:, 0] < np.inf]):  # the second has chunks of unknown size
        rows = reading.read_rows(SVMPCA(), lazy)
        assert rows.lengths.tolist() == lengths
        assert np.array_equal(np.concatenate([part.compute() for part in rows.parts]), X)


def test_large_chunks_are_cut(monkeypatch):
    import marginfold.on_dask.inputs as reading

    monkeypatch.setattr(reading, "BLOCK_BYTES", 8 * 2 * 30)
    monkeypatch.setattr(reading, "LARGEST_CHUNK", 8 * 2 * 60)
    rows = reading.read_rows(SVMPCA(), da.ones((90, 2), chunks=(90, 1)))
    assert rows.lengths.tolist() == [30, 30, 30]


def test_blocks_are_small_in_coordinates_too(monkeypatch):
    import marginfold.on_dask.inputs as reading

    monkeypatch.setattr(reading, "BLOCK_BYTES", 8 * 20 * 30)
    monkeypatch.setattr(reading, "LARGEST_CHUNK", 8 * 20 * 60)
    wide = SVMPCA(kernel=LowRankKernel(rank=20))
    for chunks in (90, 10):
        assert reading.read_rows(wide, da.ones((90, 2), chunks=(chunks, 2))).lengths.max() == 30


def first_number(block):
    return block.start, len(block), float(block.Z[0, 0])


def test_results_come_in_the_order_of_the_rows(data, client, small_blocks):
    X, y = data
    found = remote_blocks(X, y, np.ones(len(y))).map(first_number)
    assert found == [(start, 150, X[start, 0]) for start in range(0, 900, 150)]


def test_sums_over_blocks_are_those_of_an_array(data, weights, small_blocks):
    X, y = data
    blocks = remote_blocks(X, np.where(y == 2, -1, y), weights)
    counted = weights > 0
    assert blocks.n_rows == counted.sum()
    sizes, means = class_means(blocks, 2)
    members = [(y == code) & counted for code in (0, 1)]
    assert np.allclose(sizes, [weights[m].sum() for m in members])
    expected = [np.average(X[m], axis=0, weights=weights[m]) for m in members]
    assert np.allclose(means, expected, rtol=1e-14)
    within = sum(np.cov(X[m].T, aweights=weights[m], ddof=0) * weights[m].sum() for m in members)
    assert np.allclose(within_scatter(blocks, means), within, rtol=1e-9, atol=1e-9)
    total = np.cov(X.T, aweights=weights, ddof=0) * weights.sum()
    assert np.allclose(spread(blocks), total, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("model", [LDA(), SVMPCA(2)])
def test_rows_stay_on_the_cluster(model, data, client, small_blocks, monkeypatch):
    """What comes back in all passes together is a small part of the rows."""
    import marginfold.on_dask.blocks as blocks
    import marginfold.on_dask.inputs as reading

    sizes = []

    def weighed(wanted, *, stage):
        results = gather(wanted, stage=stage)
        sizes.extend(_bytes(result) for result in results)
        return results

    gather = blocks.computed
    for module in (blocks, reading):
        monkeypatch.setattr(module, "computed", weighed)
    X = np.tile(data[0], (10, 1))
    model.fit(chunks_of(X, 1500), np.tile(data[1], 10))
    assert max(sizes) <= 8 * 7 * 7 + 500
    assert sum(sizes) < 0.1 * X.nbytes


def _bytes(result):
    if isinstance(result, np.ndarray):
        return result.nbytes
    if isinstance(result, tuple | list):
        return sum(_bytes(part) for part in result)
    return sum(_bytes(part) for part in vars(result).values()) if hasattr(result, "__dict__") else 8


def test_passes_are_reported(data, client, small_blocks):
    X, y = data
    events = []
    with watch(lambda event: events.append((event.stage, event.done, event.total))):
        LDA().fit(chunks_of(X), y)
    stages = list(dict.fromkeys(stage for stage, _, _ in events))
    assert {"survey of rows", "plain scatter", "class sums", "scatter about"} <= set(stages)
    assert ("plain scatter", 6, 6) in events


@pytest.mark.parametrize("with_client", [True, False])
def test_a_cancelled_fit_leaves_nothing(with_client, data, request, small_blocks):
    if with_client:
        request.getfixturevalue("client")
    X, y = data
    model = LSVA(2, graph="within")
    with watch(lambda event: event.cancel()), pytest.raises(CancelledError):
        model.fit(chunks_of(X), y)
    assert not hasattr(model, "classes_")
    assert model.fit(chunks_of(X), y).n_components_ == 2


def die(block):
    os._exit(1)


def test_work_that_kills_its_worker_is_given_up(data, client, small_blocks):
    from clusters import complete, wait_for

    from marginfold.on_dask.blocks import DaskBlocks, tasks

    made = tasks([1], one_row)
    with pytest.raises(WorkerLostError, match="smaller chunks"):
        DaskBlocks(made, np.array([1]), 1).map(die)
    complete(client)
    assert wait_for(lambda: not client.futures)  # an error keeps nothing there


def one_row(number):
    return Block(np.full((1, 1), float(number)), np.zeros(1, dtype=int), np.ones(1))
