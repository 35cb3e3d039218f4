"""Sums over blocks: their definitions, whatever the cut."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from marginfold.geometry import moments
from marginfold.graphs import TotalGraph, WithinClassGraph
from marginfold.linalg.tall import Block, LocalBlocks, column_signs

RNG = np.random.default_rng(5)
CODES = RNG.integers(-1, 3, 60)
WEIGHTS = RNG.random(60) + 0.1
Z = RNG.normal(size=(60, 4)) + 1e5 * RNG.normal(size=(4, 4))[CODES]

CUTS = pytest.mark.parametrize("n_rows", [1, 7, 60])


def blocks(n_rows):
    return LocalBlocks.cut(Z, CODES, WEIGHTS, n_rows)


def centred(Z, codes):
    rows = Z.copy()
    for code in range(3):
        members = codes == code
        rows[members] -= np.average(Z[members], axis=0, weights=WEIGHTS[members])
    return rows[codes >= 0]


@CUTS
def test_class_means(n_rows):
    sizes, means = moments.class_means(blocks(n_rows), 4)
    for code in range(3):
        members = CODES == code
        assert_allclose(sizes[code], WEIGHTS[members].sum())
        assert_allclose(means[code], np.average(Z[members], axis=0, weights=WEIGHTS[members]))
    assert sizes[3] == 0  # a class without rows
    assert not means[3].any()


@CUTS
def test_scatters_are_those_of_the_class_graphs(n_rows):
    """Classes a hundred thousand deviations apart: nothing cancels."""
    some = blocks(n_rows)
    within = WithinClassGraph().build(Z, CODES, unlabeled=-1, sample_weight=WEIGHTS).scatter(Z)
    found = moments.within_scatter(some, moments.class_means(some, 3)[1])
    assert_allclose(found, within, rtol=1e-8, atol=1e-8)
    total = TotalGraph().build(Z, sample_weight=WEIGHTS).scatter(Z)
    assert_allclose(moments.spread(some), total, rtol=1e-12, atol=1e-3)
    assert_allclose(moments.scatter(some), (Z.T * WEIGHTS) @ Z, rtol=1e-12)


@CUTS
def test_fourth_powers(n_rows):
    some = blocks(n_rows)
    found = moments.within_fourth(some, moments.class_means(some, 3)[1])
    squares = (centred(Z, CODES) ** 2).sum(axis=1)
    assert_allclose(found, WEIGHTS[CODES >= 0] @ squares**2, rtol=1e-8)


@CUTS
def test_rows_without_a_class_or_weight(n_rows):
    nobody = LocalBlocks.cut(Z, np.full(60, -1), WEIGHTS, n_rows)
    assert not moments.within_scatter(nobody, np.zeros((0, 4))).any()
    weightless = LocalBlocks.cut(Z, CODES, np.zeros(60), n_rows)
    assert not moments.spread(weightless).any()


@CUTS
@pytest.mark.parametrize("seed", range(5))
def test_signs_are_those_of_the_scores(n_rows, seed):
    W = np.random.default_rng(seed).normal(size=(4, 6))
    assert (moments.score_signs(blocks(n_rows), W) == column_signs(Z @ W)).all()


@CUTS
def test_signs_of_ties(n_rows):
    """Largest entries that tie: by the cubes, else by the first; zero for a column of zeros."""
    half = RNG.normal(size=(30, 3))
    rows = np.column_stack([np.concatenate([half, -half]), np.zeros(60)])
    rows[10, 1], rows[50, 1] = -9.0, 9.0 * (1 + 1e-12)
    rows[20, 1] = 8.0
    some = LocalBlocks.cut(rows, np.zeros(60, dtype=int), np.ones(60), n_rows)
    for W in (np.eye(4), -np.eye(4)):
        assert (moments.score_signs(some, W) == column_signs(rows @ W)).all()


def test_an_empty_block_adds_nothing():
    empty = Block(np.zeros((0, 4)), np.zeros(0, dtype=int), np.zeros(0))
    whole = Block(Z, CODES, WEIGHTS)
    assert_allclose(
        moments.class_means(LocalBlocks([empty, whole]), 3)[1],
        moments.class_means(LocalBlocks([whole]), 3)[1],
    )


@CUTS
@pytest.mark.parametrize("turn", [None, np.linalg.qr(RNG.normal(size=(4, 4)))[0][:, :3]])
def test_variances_of_the_labelled_rows(n_rows, turn):
    known = CODES >= 0
    rows = Z[known] if turn is None else Z[known] @ turn
    away = rows - np.average(rows, axis=0, weights=WEIGHTS[known])
    expected = np.average(away**2, axis=0, weights=WEIGHTS[known])
    found = moments.label_variances(blocks(n_rows), 4, turn)
    assert_allclose(found, expected, rtol=1e-8)


@CUTS
@pytest.mark.parametrize("turn", [False, True])
def test_products_with_the_total_scatter(n_rows, turn):
    rotation = np.linalg.qr(RNG.normal(size=(4, 4)))[0][:, :3] if turn else None
    rows = Z if rotation is None else Z @ rotation
    rows = rows - np.average(rows, axis=0, weights=WEIGHTS)
    S = rows.T @ (WEIGHTS[:, None] * rows)
    scatter = moments.TotalScatter(blocks(n_rows), rotation)
    W = RNG.normal(size=(len(S), 2))
    assert_allclose(scatter.along(W), S @ W, rtol=1e-9)
    w = W[:, 0]
    assert_allclose(scatter.dual(w), S @ w / (w @ S @ w), rtol=1e-9)


def test_products_of_directions_that_vary_little_keep_their_digits():
    """The matrix S would have lost them: the variances differ by 24 orders of magnitude."""
    rows = RNG.normal(size=(60, 2)) * [1e6, 1e-6]
    turned = rows @ [[0.6, 0.8], [-0.8, 0.6]]
    scatter = moments.TotalScatter(LocalBlocks([Block(turned, CODES, np.ones(60))]))
    w = np.array([-0.8, 0.6])
    product = w @ scatter.along(w[:, None])
    expected = ((rows[:, 1] - rows[:, 1].mean()) ** 2).sum()
    assert product[0] == pytest.approx(expected, rel=1e-2)


@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("side", [1.0, -1.0])
def test_scores_as_large_on_both_sides_get_the_sign_of_their_skew_in_any_unit(side, unit):
    Z = unit * np.array([[1.0], [-1.0], [0.5 * side], [0.2]])
    cut = LocalBlocks.cut(Z, np.zeros(4, dtype=int), np.ones(4), n_rows=2)
    assert moments.score_signs(cut, np.eye(1)) == side
