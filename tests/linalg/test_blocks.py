"""Rows in blocks: cutting keeps every row once, in order, and passes see what was given."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from marginfold.linalg.tall import Block, LocalBlocks, total


def arrays(n, r=3, seed=0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, r)), rng.integers(-1, 3, n), rng.random(n)


@given(n=st.integers(1, 60), size=st.integers(1, 70))
def test_cutting_keeps_every_row_once_and_in_order(n, size):
    Z, codes, weights = arrays(n)
    blocks = LocalBlocks.cut(Z, codes, weights, size)
    parts = blocks.blocks
    assert blocks.n_rows == n
    assert blocks.n_columns == 3
    assert_array_equal(np.concatenate([part.Z for part in parts]), Z)
    assert_array_equal(np.concatenate([part.codes for part in parts]), codes)
    assert_array_equal(np.concatenate([part.weights for part in parts]), weights)
    assert [part.start for part in parts] == list(range(0, n, size))
    assert all(1 <= len(part) <= size for part in parts)


def test_blocks_are_views():
    Z, codes, weights = arrays(10)
    for part in LocalBlocks.cut(Z, codes, weights, 4).blocks:
        assert np.shares_memory(part.Z, Z)
        assert np.shares_memory(part.codes, codes)
        assert np.shares_memory(part.weights, weights)


def moments(block, power, shift):
    return ((block.Z - shift) ** power).sum(axis=0), block.start


@given(n=st.integers(1, 60), size=st.integers(1, 70))
def test_a_pass_gets_its_arguments_and_answers_in_order(n, size):
    Z, codes, weights = arrays(n, seed=1)
    blocks = LocalBlocks.cut(Z, codes, weights, size)
    answers = blocks.map(moments, 2, 0.5)
    assert [start for _, start in answers] == list(range(0, n, size))
    np.testing.assert_allclose(total([part for part, _ in answers]), ((Z - 0.5) ** 2).sum(axis=0))


def test_a_pass_that_fails_says_so():
    blocks = LocalBlocks.cut(*arrays(5), 2)
    with pytest.raises(ZeroDivisionError):
        blocks.map(lambda block: 1 // block.start)


def test_totals_of_numbers_of_tables_and_of_nothing():
    assert total([np.asarray(2.0), np.asarray(3.0)]) == 5.0
    assert_array_equal(total([np.eye(2), np.ones((2, 2))]), [[2, 1], [1, 2]])
    assert total([]).shape == (0,)


def test_a_block_knows_its_length_and_cannot_be_changed():
    block = Block(np.zeros((4, 2)), np.zeros(4, int), np.ones(4))
    assert len(block) == 4
    assert block.start == 0
    with pytest.raises(AttributeError):
        block.start = 3
