"""Rows in blocks give the map of the same rows in one array."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from marginfold.errors import InvalidInputError, MarginfoldWarning
from marginfold.feature_maps import LowRankKernel
from marginfold.linalg.tall import LocalBlocks

rng = np.random.default_rng(11)
X = rng.standard_normal((300, 4)) * [1.0, 2.0, 0.5, 1.0]
NEW = rng.standard_normal((20, 4))
WEIGHTS = rng.random(300) + 0.1


def blocks(rows, weights, size):
    return LocalBlocks.cut(rows, np.zeros(len(rows), dtype=int), weights, size)


MAPS = {
    "rbf": LowRankKernel("rbf", rank=40),
    "tolerance": LowRankKernel("rbf", tol=0.05),
    "uncentred": LowRankKernel("rbf", gamma="auto", tol=0.05, center=False),
    "laplacian": LowRankKernel("laplacian", rank=40),
    "poly": LowRankKernel("poly", rank=30),
    "linear": LowRankKernel("linear", rank=30),
    "function": LowRankKernel(lambda A, B: (1 + A @ B.T) ** 2, rank=30),
}


@pytest.mark.parametrize("size", [29, 300])
@pytest.mark.parametrize("name", MAPS)
def test_blocks_give_the_map_of_an_array(name, size):
    given = MAPS[name]
    array = given.fit(X, sample_weight=WEIGHTS)
    expected = array.transform(NEW)
    found = LowRankKernel(**given.get_params()).fit_blocks(blocks(X, WEIGHTS, size))
    assert_array_equal(found.pivots_, array.pivots_)
    assert_allclose(found.transform(NEW), expected, atol=1e-8 * np.abs(expected).max())
    assert_allclose(found.eigenvalues_, array.eigenvalues_, rtol=1e-8)
    for name in ("gamma_", "trace_", "relative_error_"):
        assert getattr(found, name) == pytest.approx(getattr(array, name), rel=1e-9, abs=1e-12)
    assert set(vars(found)) == set(vars(array))


def test_a_row_for_each_block():
    array = LowRankKernel("rbf", rank=10).fit(X[:60])
    found = LowRankKernel("rbf", rank=10).fit_blocks(blocks(X[:60], np.ones(60), 1))
    assert_allclose(found.transform(NEW), array.transform(NEW), atol=1e-10)


def test_blocks_far_from_the_origin():
    given = LowRankKernel("rbf", rank=40)
    array = given.fit(X + 1e5).transform(NEW + 1e5)
    found = given.fit_blocks(blocks(X + 1e5, np.ones(300), 90)).transform(NEW + 1e5)
    assert_allclose(found, array, atol=1e-7)


def test_constant_rows_in_blocks():
    found = LowRankKernel("rbf").fit_blocks(blocks(np.ones((50, 2)), np.ones(50), 20))
    assert found.transform(NEW[:, :2]).shape == (20, 0)
    nothing = LowRankKernel("linear").fit_blocks(blocks(np.zeros((50, 2)), np.ones(50), 20))
    assert nothing.transform(NEW[:, :2]).shape == (20, 0)


def test_too_small_a_rank_warns_and_a_matrix_is_refused():
    with pytest.warns(MarginfoldWarning, match="max_rank=3"):
        LowRankKernel("rbf", max_rank=3).fit_blocks(blocks(X, WEIGHTS, 100))
    with pytest.raises(InvalidInputError, match="precomputed"):
        LowRankKernel("precomputed").fit_blocks(blocks(X, WEIGHTS, 100))
