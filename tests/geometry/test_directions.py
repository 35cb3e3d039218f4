"""Successive directions against the definition, component by component."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg
from numpy.testing import assert_allclose

from marginfold.geometry.directions import (
    gain_along,
    gain_of,
    gain_over_constant,
    successive_directions,
)
from marginfold.geometry.one_vs_rest import LabelledRows
from marginfold.linalg.tall import LocalBlocks, SharedRows
from marginfold.svm import InteriorPoint, LibSVM
from marginfold.svm.problem import BlockRows, single
from marginfold.validation.rows import UNLABELLED

SOLVER = InteriorPoint(tol=1e-12)
rng = np.random.default_rng(4)
N_ROWS, R, N_CLASSES = 90, 5, 3
CODES = np.arange(N_ROWS) % N_CLASSES
Z = rng.standard_normal((N_ROWS, R)) + 1.5 * rng.standard_normal((N_CLASSES, R))[CODES]
Z -= Z.mean(axis=0)
SCALES = [np.ones(R), np.linspace(0.3, 2.0, R), 10.0 ** np.linspace(-1, 1, R)]
COSTS = [1.0, 0.1, 20.0]


def labelled(*, balanced=True):
    return LabelledRows(CODES, np.ones(N_ROWS), N_CLASSES, balanced, np.ones(N_CLASSES))


def find(scales=SCALES, costs=COSTS, *, n_components=4, schedule="one_vs_rest", balanced=True):
    return successive_directions(
        SharedRows(Z),
        labelled(balanced=balanced),
        scales,
        costs,
        n_components=n_components,
        schedule=schedule,
        solver=SOLVER,
    )


def literal_directions(scale, C, n_components):
    """Solve each component in an explicit basis of the complement, whitened by Cholesky."""
    W = np.zeros((R, 0))
    for k in range(n_components):
        task = (k % N_CLASSES,)
        V = scipy.linalg.null_space(W.T) if k else np.eye(R)
        root = np.linalg.cholesky(V.T @ np.diag(scale**-2.0) @ V)
        X = np.linalg.solve(root, (Z @ V).T).T
        solution = SOLVER.solve(X, labelled().signs(task), labelled().costs(task, C))
        w = V @ np.linalg.solve(root.T, solution.coef)
        W = np.column_stack([W, w / np.linalg.norm(w)])
    return W


@pytest.mark.parametrize("b", range(3))
def test_directions_are_the_literal_ones(b):
    (space,) = find([SCALES[b]], [COSTS[b]])
    assert_allclose(space.W, literal_directions(SCALES[b], COSTS[b], 4), atol=1e-6)


@pytest.mark.parametrize("schedule", ["one_vs_rest", "by_size", "random", "greedy", "splits"])
def test_side_by_side_equals_one_by_one(schedule):
    together = find(schedule=schedule)
    for b, space in enumerate(together):
        (alone,) = find([SCALES[b]], [COSTS[b]], schedule=schedule)
        assert_allclose(space.W, alone.W, atol=1e-6)
        assert [part.task for part in space.components] == [part.task for part in alone.components]
        assert_allclose(
            [part.gain for part in space.components],
            [part.gain for part in alone.components],
            atol=1e-8,
        )
        assert space.exhausted.keys() == alone.exhausted.keys()


@pytest.mark.parametrize("schedule", ["one_vs_rest", "by_size", "random", "greedy", "splits"])
@pytest.mark.parametrize("balanced", [True, False])
def test_directions_are_orthonormal_and_described(schedule, balanced):
    for space in find(schedule=schedule, balanced=balanced):
        k = space.W.shape[1]
        assert k == len(space.components) <= 4
        assert_allclose(space.W.T @ space.W, np.eye(k), atol=1e-13)
        for part in space.components:
            assert 0 < part.gain <= 1
            assert part.norm > 0
            assert part.solution.converged


def test_a_component_carries_the_plane_of_its_task():
    (space,) = find([SCALES[1]], [COSTS[1]])
    for k, part in enumerate(space.components):
        scores = part.norm * (Z @ space.W[:, k]) + part.intercept
        signs, costs = labelled().signs(part.task), labelled().costs(part.task, COSTS[1])
        penalty = 0.5 * part.norm**2 * (space.W[:, k] / SCALES[1]) @ (space.W[:, k] / SCALES[1])
        hinge = costs @ np.maximum(0, 1 - signs * scores)
        assert penalty + hinge == pytest.approx(part.solution.objective, rel=1e-9)
        assert scores[signs > 0].mean() > scores[signs < 0].mean()


def test_gain_is_the_share_of_the_objective_that_is_saved():
    signs = labelled().signs((0,))
    solution = SOLVER.solve(Z, signs, 2.0)
    gain, enough = gain_of(single(Z, signs, 2.0), 0, solution)
    smaller = 2.0 * min((signs > 0).sum(), (signs < 0).sum())
    assert gain == pytest.approx(1 - solution.objective / (2 * smaller))
    assert enough


def test_greedy_takes_the_largest_gain_first():
    (space,) = find([SCALES[0]], [COSTS[0]], schedule="greedy", n_components=1)
    gains = {}
    for code in range(N_CLASSES):
        signs, costs = labelled().signs((code,)), labelled().costs((code,), COSTS[0])
        batch = single(Z, signs, costs)
        gains[(code,)] = gain_of(batch, 0, SOLVER.solve_batch(batch)[0])[0]
    assert space.components[0].task == max(gains, key=gains.get)
    assert space.components[0].gain == pytest.approx(max(gains.values()), abs=1e-9)


@pytest.mark.parametrize(("apart", "expected"), [(5e-3, False), (0.03, True)])
def test_means_less_than_a_hundredth_of_the_spread_apart_are_no_gain(apart, expected):
    """At a cost so small that all rows stay inside the margin: the gain is that of the means."""
    spread = np.repeat(np.linspace(-1.0, 1.0, 50), 2)
    spread /= np.sqrt(np.mean(spread**2))
    signs = np.tile([1.0, -1.0], 50)
    rows = (spread + 0.5 * apart * signs)[:, None]
    batch = single(rows, signs, 1e-6)
    gain, enough = gain_of(batch, 0, SOLVER.solve_batch(batch)[0])
    assert gain == pytest.approx(50 * 1e-6 * apart**2 / 4, rel=1e-3, abs=1e-15)
    assert enough == expected


@pytest.mark.parametrize("side", [8.0, 400.0])
def test_at_large_costs_a_gain_counts_from_a_ten_thousandth_on(side):
    """The rows spread by 1: means as far apart as that could gain more than all there is."""
    for share, expected in ((0.9e-4, False), (1.1e-4, True), (1.9e-4, True)):
        gain, enough = gain_over_constant(2.0 * side * (1.0 - share), side, 1.0)
        assert gain == pytest.approx(share, rel=1e-9)
        assert enough == expected


@pytest.mark.parametrize("turned", [False, True])
def test_the_gain_along_a_direction_is_that_of_its_scores_and_of_labelled_rows_alone(turned):
    direction, scale, C = rng.standard_normal(R), SCALES[1], 3.0
    scores = Z @ direction / np.linalg.norm(direction / scale)
    signs, costs = labelled().signs((1,)), labelled().costs((1,), C)
    batch = single(scores[:, None], signs, costs)
    expected = gain_of(batch, 0, SOLVER.solve_batch(batch)[0])[0]
    rotation = scipy.linalg.qr(rng.standard_normal((R, R)))[0] if turned else None
    rows = np.insert(Z if rotation is None else Z @ rotation.T, [0, 40, 90], 99.0, axis=0)
    codes = np.insert(CODES, [0, 40, 90], UNLABELLED)
    blocks = LocalBlocks.cut(rows, codes, np.ones(len(rows)), 17)
    for own in (SharedRows(Z), BlockRows.of(blocks, rotation, N_CLASSES)):
        found = gain_along(own, labelled(), SOLVER, direction, (1,), scale, C)
        assert found == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize("C", [1e-8, 1e-3, 1.0, 1e4])
def test_a_small_cost_does_not_look_like_exhausted_data(C):
    (space,) = find([np.ones(R)], [C], n_components=2)
    assert len(space.components) == 2


@pytest.mark.parametrize("schedule", ["one_vs_rest", "by_size", "random", "greedy", "splits"])
def test_the_end_is_reached_when_the_class_means_coincide(schedule):
    """Balanced tasks die with the difference of the means: at most classes - 1 directions."""
    pairs = np.vstack([Z, -Z])  # symmetric in every class, so only the added means remain
    codes = np.tile(CODES, 2)
    means = np.zeros((N_CLASSES, R))
    means[:, 0] = [0.0, 1.0, 3.0]
    rows = LabelledRows(codes, np.ones(len(codes)), N_CLASSES, True, np.ones(N_CLASSES))
    (space,) = successive_directions(
        SharedRows(pairs + means[codes]),
        rows,
        [np.ones(R)],
        [1e-3],
        n_components=R,
        schedule=schedule,
        solver=SOLVER,
    )
    assert 1 <= len(space.components) <= R
    assert all(gain < 1e-3 for gain in space.exhausted.values())


@pytest.mark.parametrize("schedule", ["one_vs_rest", "by_size", "random", "greedy", "splits"])
def test_no_signal_gives_no_direction(schedule):
    rows = LabelledRows(np.arange(12) % 3, np.ones(12), 3, True, np.ones(3))
    (space,) = successive_directions(
        SharedRows(np.repeat(Z[:4], 3, axis=0)),
        rows,
        [np.ones(R)],
        [1.0],
        n_components=2,
        schedule=schedule,
        solver=SOLVER,
    )
    assert space.W.shape == (R, 0)
    assert space.components == ()
    assert space.exhausted


def test_no_more_directions_than_coordinates():
    (space,) = find([np.ones(R)], [1.0], n_components=50)
    assert space.W.shape[1] <= R


def test_libsvm_finds_the_same_first_directions():
    rows = SharedRows(Z)
    (exact,), (other,) = (
        successive_directions(
            rows,
            labelled(),
            [np.ones(R)],
            [0.1],
            n_components=2,
            schedule="one_vs_rest",
            solver=solver,
        )
        for solver in (SOLVER, LibSVM(kkt_tol=1e-9))
    )
    assert_allclose(other.W, exact.W, atol=1e-3)
