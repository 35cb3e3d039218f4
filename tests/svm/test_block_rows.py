"""Labelled rows in blocks against NumPy on one array, and every batch against the same on it."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.linalg
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from marginfold.errors import SolverError
from marginfold.geometry.directions import batch_of, gain_of, successive_directions
from marginfold.geometry.one_vs_rest import LabelledRows
from marginfold.linalg.tall import LocalBlocks, SharedRows
from marginfold.svm import Automatic, BlockRows, InteriorPoint, LibSVM, screening

N_CLASSES, R = 4, 5
SOLVER = InteriorPoint(tol=1e-8)


def data(n=900, *, weighted=True, idle=True, offset=20.0, seed=0):
    """Return coordinates, codes and weights; some rows have no class or no weight."""
    rng = np.random.default_rng([90, seed])
    codes = rng.integers(0, N_CLASSES, n)
    codes[:N_CLASSES] = np.arange(N_CLASSES)
    Z = rng.standard_normal((n, R)) + 1.2 * rng.standard_normal((N_CLASSES, R))[codes] + offset
    weights = rng.uniform(0.2, 3.0, n) if weighted else np.ones(n)
    if idle:
        codes[N_CLASSES + rng.choice(n - N_CLASSES, n // 5, replace=False)] = -1
        weights[N_CLASSES + rng.choice(n - N_CLASSES, n // 10, replace=False)] = 0.0
    return Z, codes, weights


def turned(seed=0):
    return scipy.linalg.qr(np.random.default_rng([91, seed]).standard_normal((R, R)))[0]


def both(Z, codes, weights, rotation, n_rows=130, *, balanced=True):
    """Return the rows in blocks and in an array, and the labels of either."""
    block_rows = BlockRows.of(LocalBlocks.cut(Z, codes, weights, n_rows), rotation, N_CLASSES)
    taken = (codes >= 0) & (weights > 0)
    features = Z[taken] if rotation is None else Z[taken] @ rotation
    labelled = LabelledRows(
        codes[taken], weights[taken], N_CLASSES, balanced, np.linspace(0.5, 2.0, N_CLASSES)
    )
    return block_rows, SharedRows(features), labelled


@given(
    seed=st.integers(0, 1000),
    n_rows=st.integers(1, 400),
    rotate=st.booleans(),
    weighted=st.booleans(),
    idle=st.booleans(),
)
def test_moments_are_those_of_the_labelled_rows(seed, n_rows, rotate, weighted, idle):
    Z, codes, weights = data(200, weighted=weighted, idle=idle, seed=seed)
    rotation = turned(seed) if rotate else np.eye(R)
    rows, _, _ = both(Z, codes, weights, rotation if rotate else None, n_rows)
    taken = (codes >= 0) & (weights > 0)
    X = (Z[taken] - Z[taken].mean(axis=0)) @ rotation
    assert rows.n_columns == R
    assert_allclose(rows.centre, Z[taken].mean(axis=0), rtol=1e-13)
    assert_allclose(rows.variances, X.var(axis=0), rtol=1e-11)
    for k in range(N_CLASSES):
        own = codes[taken] == k
        assert rows.class_weights[k] == pytest.approx(weights[taken][own].sum(), rel=1e-13)
        mean = np.average(X[own], axis=0, weights=weights[taken][own])
        assert_allclose(rows.class_means[k], mean, atol=1e-12)


def test_variances_far_from_the_origin_keep_their_digits():
    Z, codes, weights = data(offset=1e6)
    rows, _, _ = both(Z, codes, weights, None)
    taken = (codes >= 0) & (weights > 0)
    assert_allclose(rows.variances, Z[taken].var(axis=0), rtol=1e-8)


@pytest.fixture(params=["all rows", "sifted"])
def route(request, monkeypatch):
    """Solve on all rows at once, or from a sample as very many rows are solved."""
    if request.param == "sifted":
        monkeypatch.setattr(screening, "SAMPLE_ROWS", 150)
        monkeypatch.setattr(screening, "SMALL_CLASS", 30)


@pytest.mark.parametrize(
    ("schedule", "rotate"),
    [("one_vs_rest", False), ("one_vs_rest", True), ("greedy", True), ("splits", True)],
)
def test_successive_directions_are_those_of_an_array(schedule, rotate, route):
    rows, array, labelled = both(*data(), turned() if rotate else None)
    scales, costs = [np.ones(R), 10.0 ** np.linspace(-1, 1, R)], [1.0, 0.03]
    spaces, expected = (
        successive_directions(
            kind, labelled, scales, costs, n_components=4, schedule=schedule, solver=SOLVER
        )
        for kind in (rows, array)
    )
    for space, other in zip(spaces, expected, strict=True):
        assert [c.task for c in space.components] == [c.task for c in other.components]
        assert space.worst_gap == 0.0
        assert_allclose(space.W, other.W, atol=1e-10)
        for mine, its in zip(space.components, other.components, strict=True):
            assert mine.gain == pytest.approx(its.gain, abs=1e-11)
            assert mine.norm == pytest.approx(its.norm, rel=1e-9)
            assert mine.solution.objective == pytest.approx(its.solution.objective, rel=1e-11)


@pytest.mark.parametrize("balanced", [False, True])
def test_a_batch_of_one_against_rest_problems_is_that_of_an_array(balanced, route):
    """As a classifier stacks them: every task at several costs and metrics."""
    rotation = turned()
    rows, array, labelled = both(*data(), rotation, balanced=balanced)
    tasks = [(k,) for k in range(N_CLASSES)] * 3
    costs = np.repeat([0.01, 1.0, 30.0], N_CLASSES)
    scale = np.repeat(10.0 ** np.array([[0.0], [-0.5], [0.5]]) * np.ones((3, R)), N_CLASSES, axis=0)
    nothing = np.zeros((len(tasks), R, 0))
    batches = [batch_of(kind, labelled, tasks, costs, scale, nothing) for kind in (rows, array)]
    for b, (mine, its) in enumerate(zip(*map(SOLVER.solve_batch, batches), strict=True)):
        size = max(1.0, np.abs(its.coef).max())
        assert mine.converged
        assert len(mine.dual) == 0
        assert_allclose(mine.coef, its.coef, atol=1e-10 * size)
        # the intercept of rows in blocks belongs to the rows as they are, like that of an array
        assert mine.intercept == pytest.approx(its.intercept, abs=1e-8 * size)
        assert mine.objective == pytest.approx(its.objective, rel=1e-11)
        sides = [batch.smaller_sides[b] for batch in batches]
        assert sides[0] == pytest.approx(sides[1], rel=1e-12)
        gains = [gain_of(batch, b, s) for batch, s in zip(batches, (mine, its), strict=True)]
        assert gains[0][0] == pytest.approx(gains[1][0], abs=1e-11)
        assert gains[0][1] == gains[1][1]


def test_the_score_of_a_plane_by_hand():
    """The coefficients and the intercept of a solution give the objective on the rows as given."""
    Z, codes, weights = data()
    rotation = turned()
    rows, _, labelled = both(Z, codes, weights, rotation)
    scale = np.linspace(0.5, 2.0, R)[None]
    batch = batch_of(rows, labelled, [(1, 2)], [0.7], scale, np.zeros((1, R, 0)))
    (solution,) = SOLVER.solve_batch(batch)
    taken = (codes >= 0) & (weights > 0)
    scores = Z[taken] @ rotation @ (scale[0] * solution.coef) + solution.intercept
    hinge = np.maximum(0.0, 1.0 - labelled.signs((1, 2)) * scores)
    objective = 0.5 * solution.coef @ solution.coef + labelled.costs((1, 2), 0.7) @ hinge
    assert solution.objective == pytest.approx(objective, rel=1e-11)


def test_automatic_leaves_rows_in_blocks_to_the_interior_point_method():
    rows, _, labelled = both(*data(), None)
    batch = batch_of(rows, labelled, [(0,)], [1.0], np.ones((1, R)), np.zeros((1, R, 0)))
    (mine,), (its,) = Automatic().solve_batch(batch), SOLVER.solve_batch(batch)
    assert_array_equal(mine.coef, its.coef)
    assert mine.intercept == its.intercept


def test_libsvm_refuses_rows_in_blocks_and_names_the_remedy():
    rows, _, labelled = both(*data(), None)
    batch = batch_of(rows, labelled, [(0,)], [1.0], np.ones((1, R)), np.zeros((1, R, 0)))
    with pytest.raises(SolverError, match="solver='interior_point'"):
        LibSVM().solve_batch(batch)


def test_no_warning_escapes():
    rows, _, labelled = both(*data(), None)
    batch = batch_of(rows, labelled, [(0,)], [1e-3], np.ones((1, R)), np.zeros((1, R, 0)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        SOLVER.solve_batch(batch)
