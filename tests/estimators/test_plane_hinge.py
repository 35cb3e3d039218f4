"""The hinge problem of a plane on rows in blocks is that of the rows in one array."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from marginfold.estimators.plane_problems import MirroredBlocks, Rest, solve_box_qp
from marginfold.geometry.tikhonov import TikhonovBasis
from marginfold.linalg.blocks import Block, LocalBlocks
from marginfold.svm import BlockBatch, BlockRows, InteriorPoint

RNG = np.random.default_rng(2)
CODES = RNG.integers(0, 3, 400)
Z = RNG.normal(size=(400, 3)) + np.array([[0, 0, 0], [2, 0, 1], [0, 2, -1]])[CODES]
WEIGHTS = RNG.random(400) + 0.5


def rest(code):
    F = np.tril(RNG.normal(size=(4, 4))) + 3.0 * np.eye(4)
    return Rest(code, np.array([1.0, 2.0, 0.5]), TikhonovBasis(None, 2.0, 3), F)


def test_rows_of_the_rest_by_definition():
    some = rest(1)
    U, weights = some.rows(Block(Z, CODES, WEIGHTS))
    others = CODES != 1
    H = np.column_stack([Z[others] / 2.0, np.ones(others.sum())])
    assert_allclose(U @ some.F.T, -H, rtol=1e-12)
    assert_allclose(weights, WEIGHTS[others] * some.factors[CODES[others]])


@pytest.mark.parametrize("code", [0, 1, 2])
@pytest.mark.parametrize("n_rows", [90, 400])
def test_blocks_give_the_solution_of_the_box_problem(code, n_rows):
    some = rest(code)
    U, weights = some.rows(Block(Z, CODES, WEIGHTS))
    expected = solve_box_qp(U, 0.3 * weights, InteriorPoint())
    order = np.argsort(CODES, kind="stable")  # blocks of the own class only: no rows are left
    cut = LocalBlocks.cut(Z[order], CODES[order], WEIGHTS[order], n_rows)
    mirrored = MirroredBlocks(cut, some, 2 * len(U))
    batch = BlockBatch(
        BlockRows.of(mirrored, None, 2),
        np.array([[1.0, -1.0]]),
        np.full((1, 2), 0.3),
        np.ones((1, 4)),
        np.zeros((1, 4, 0)),
    )
    found = InteriorPoint().solve_batch(batch)[0]
    assert found.converged
    assert_allclose(found.coef, expected.coef, rtol=1e-8)
