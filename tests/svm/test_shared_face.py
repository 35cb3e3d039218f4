"""A stretch of problems on one face: as one by one, and only as far as the face holds."""

from __future__ import annotations

import numpy as np
import pytest
from marginfold.svm.shared_face import solve_on_face
from numpy.testing import assert_allclose

from marginfold.linalg.tall import SharedRows
from marginfold.svm import InteriorPoint, SVMBatch
from marginfold.svm.problem import EXACT

ALONE = InteriorPoint(tol=1e-12, compiled=False)


def chain(steps, *, n=80, r=5, k=0, cost=1.0, seed=0):
    """Return problems whose metric changes by the given shares, and what each has alone."""
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    U = rng.normal(size=(n, r))
    U += 0.3 * y[:, None]
    scale = 1.0 + np.array(steps)[:, None] * np.linspace(0.0, 1.0, r)
    B = len(steps)
    deflated = np.stack([np.linalg.qr(rng.normal(size=(r, k)))[0]] * B)
    tile = np.ones((B, 1))
    batch = SVMBatch(SharedRows(U), tile * y, np.full((B, n), cost), scale, deflated)
    centred = SharedRows(batch.rows.features)  # whose centre is zero: so are the solutions'
    batch = SVMBatch(centred, batch.signs, batch.costs, scale, deflated)
    return batch, [ALONE.solve_batch(batch.take([b]))[0] for b in range(B)]


@pytest.mark.parametrize("k", [0, 1, 2])
@pytest.mark.parametrize("cost", [1.0, 1000.0])
@pytest.mark.parametrize("seed", range(3))
def test_small_steps_stay_on_the_face(k, cost, seed):
    batch, alone = chain([0.0, 1e-7, 2e-7, 3e-7], k=k, cost=cost, seed=seed)
    found = solve_on_face(batch, [1, 2, 3], alone[0].dual, tol=1e-8)
    assert len(found) == 3
    for solution, expected in zip(found, alone[1:], strict=True):
        assert solution.gap <= EXACT
        size = max(1.0, np.abs(expected.coef).max())
        assert_allclose(solution.coef, expected.coef, atol=1e-7 * size)
        assert solution.intercept == pytest.approx(expected.intercept, abs=1e-7 * size)
        assert solution.objective == pytest.approx(expected.objective, rel=1e-11)


def test_it_ends_where_the_face_does():
    batch, alone = chain([0.0, 1e-7, 50.0, 2e-7])
    found = solve_on_face(batch, [1, 2, 3], alone[0].dual, tol=1e-8)
    assert len(found) == 1
    assert_allclose(found[0].coef, alone[1].coef, atol=1e-7)
    assert solve_on_face(batch, [2, 1], alone[0].dual, tol=1e-8) == []


def test_a_wrong_face_gives_nothing():
    batch, alone = chain([0.0, 1e-7])
    wrong = np.roll(alone[0].dual, 1)
    assert solve_on_face(batch, [1], wrong, tol=1e-8) == []
    everything = np.full(len(wrong), 0.5)
    assert solve_on_face(batch, [1], everything, tol=1e-8) == []
    assert solve_on_face(batch, [1], np.zeros(len(wrong)), tol=1e-8) == []


def test_equal_free_rows_are_left_to_others():
    """Their equations are singular: what comes out is exact or nothing."""
    batch, alone = chain([0.0, 1e-7])
    twice = np.flatnonzero((alone[0].dual > 1e-6) & (alone[0].dual < 1 - 1e-6))[0]
    U = np.concatenate([batch.rows.features, batch.rows.features[[twice]]])
    again = np.append(np.arange(batch.signs.shape[1]), twice)
    doubled = SVMBatch(
        SharedRows(U), batch.signs[:, again], batch.costs[:, again], batch.scale, batch.deflated
    )
    dual = alone[0].dual[again].copy()
    dual[[twice, -1]] *= 0.5
    found = solve_on_face(doubled, [0, 1], dual, tol=1e-8)
    assert all(solution.gap <= EXACT for solution in found)
