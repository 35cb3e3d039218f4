"""Operations on tall matrices against their plain formulas."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from marginfold.linalg import tall as rows_module
from marginfold.linalg.tall import (
    SharedRows,
    by_columns,
    column_signs,
    gram,
    principal_rotation,
    row_blocks,
)

rng = np.random.default_rng(0)
Z = rng.standard_normal((300, 6)) + 2.0


@pytest.mark.parametrize(
    ("n", "r"), [(0, 3), (1, 1), (63, 5), (64, 5), (65, 5), (200_000, 3), (500, 0)]
)
def test_blocks_cover_all_rows_once(n, r):
    covered = [i for block in row_blocks(n, r) for i in range(block.start, block.stop)]
    assert covered == list(range(n))


def test_blocks_are_of_the_target_size():
    sizes = {8 * 10 * (block.stop - block.start) for block in row_blocks(100_000, 10)}
    assert max(sizes) <= rows_module.BLOCK_BYTES


def test_rotated_rows_are_those_of_the_product():
    rotation = np.linalg.qr(rng.standard_normal((6, 6)))[0]
    found, expected = SharedRows(Z, rotation), SharedRows(Z @ rotation)
    assert_allclose(found.table, expected.table, atol=1e-14)
    assert_allclose(found.centre, expected.centre, atol=1e-14)
    remote = SharedRows(Z + 1e8, rotation)  # centred before it is rotated: no digits are lost
    assert_allclose(remote.features, found.features, atol=1e-7)


@pytest.mark.parametrize("shape", [(45, 13), (300, 6), (3000, 70), (5, 0)])
def test_a_column_of_a_product_does_not_depend_on_later_ones(shape):
    A, B = rng.standard_normal(shape), rng.standard_normal((shape[1], 20))
    all_columns = by_columns(A, B)
    assert_allclose(all_columns, A @ B, atol=1e-12)
    for k in range(21):
        assert_array_equal(by_columns(A, B[:, :k]), all_columns[:, :k])


def test_gram():
    weights = rng.random(300)
    assert_allclose(gram(Z), Z.T @ Z)
    assert_allclose(gram(Z, weights), Z.T @ np.diag(weights) @ Z)
    assert_allclose(gram(Z, np.zeros(300)), np.zeros((6, 6)))


def test_gram_of_many_blocks(monkeypatch):
    weights = rng.random(300)
    whole = gram(Z, weights)
    monkeypatch.setattr(rows_module, "BLOCK_BYTES", 1)
    assert len(list(row_blocks(300, 6))) > 1
    assert_allclose(gram(Z, weights), whole)


def test_column_signs():
    assert (column_signs(np.array([[1.0, -3.0, 0.0], [-2.0, 1.0, 0.5]])) == [-1, -1, 1]).all()


def test_shared_rows_are_centred_with_a_column_of_ones():
    rows = SharedRows(Z)
    assert_allclose(rows.table[:, -1], 1)
    assert_allclose(rows.features, Z - Z.mean(axis=0))
    assert_allclose(rows.centre, Z.mean(axis=0))
    assert np.shares_memory(rows.features, rows.table)


def test_shared_rows_leave_their_input_alone():
    given = Z.copy()
    SharedRows(given)
    assert (given == Z).all()


@pytest.mark.parametrize("seed", range(6))
def test_the_principal_rotation_is_proper_and_leaves_no_correlation(seed):
    random = np.random.default_rng(seed)
    points = random.standard_normal((50, 2)) @ random.standard_normal((2, 2)) + 5.0
    rotation = principal_rotation(points)
    assert_allclose(rotation.T @ rotation, np.eye(2), atol=1e-14)
    assert np.linalg.det(rotation) == pytest.approx(1.0)
    assert rotation[0, 0] >= 0
    turned = points @ rotation
    assert abs(np.corrcoef(turned.T)[0, 1]) < 1e-10
    assert turned[:, 0].var() >= turned[:, 1].var()
    sizes = np.linalg.svd(points - points.mean(axis=0), compute_uv=False)
    assert_allclose(np.sort(turned.var(axis=0))[::-1], sizes**2 / 50)


def test_points_on_their_axes_are_not_turned():
    points = np.array([[-2.0, 0.0], [2.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    assert_allclose(principal_rotation(points), np.eye(2), atol=1e-15)
    assert_allclose(principal_rotation(np.ones((3, 2))), np.eye(2), atol=1e-15)
