"""What sifting rests on: the reduced problem is a relaxation, and the passes keep their word."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from svm.block_problems import Case, make_case, weighted, with_idle_rows

from marginfold.linalg.tall import LocalBlocks, SharedRows
from marginfold.svm import InteriorPoint, SVMBatch, screening
from marginfold.svm.problem import single
from marginfold.svm.screening import Zone, ZoneQuery, select_zone


def zone_of(case: Case, plane, delta, extra):
    """Return the zone of a plane, joined over several blocks."""
    p = case.problem
    query = ZoneQuery(plane, delta, p.signs, p.costs, extra)
    return Zone.joined([select_zone(block, [query])[0] for block in case.blocks(100).blocks])


@given(
    seed=st.integers(0, 10_000),
    delta=st.floats(0.0, 3.0),
    size=st.floats(0.0, 3.0),
    n_extra=st.integers(0, 30),
)
def test_the_reduced_problem_is_a_relaxation_for_any_sets(seed, delta, size, n_extra):
    """Its optimum never exceeds that of all rows: the bound that sifting rests on."""
    case = make_case(300, 3, seed, signal=0.5, cost=10 ** (seed % 5 - 2.0))
    rng = np.random.default_rng(seed)
    plane = size * rng.standard_normal(4)
    extra = np.sort(rng.choice(300, n_extra, replace=False))
    zone = zone_of(case, plane, delta, extra)
    inside = zone.mass > 0
    means = zone.sums[inside] / zone.mass[inside, None]
    y = np.append(case.problem.signs[zone.codes], np.array([1.0, -1.0])[inside])
    if len(set(y.tolist())) < 2:
        return
    c = np.append(zone.weights * case.problem.costs[zone.codes], zone.mass[inside])
    X = case.problem.features(np.concatenate([zone.Z, means]))
    r = X.shape[1]
    batch = SVMBatch(SharedRows(X), y[None], c[None], np.ones((1, r)), np.zeros((1, r, 0)))
    reduced, full = InteriorPoint().solve_batch(batch)[0], case.reference
    assert reduced.converged
    assert reduced.dual_objective <= full.objective * (1 + 1e-12)
    # at the full solution too, the reduced objective is nowhere above the true one
    hinge = np.maximum(0.0, 1.0 - y * (X @ full.coef + full.intercept))
    assert 0.5 * full.coef @ full.coef + c @ hinge <= full.objective * (1 + 1e-12)


@given(seed=st.integers(0, 10_000), delta=st.floats(0.0, 2.0))
def test_screening_parts_the_rows_by_the_definition(seed, delta):
    case = with_idle_rows(weighted(make_case(200, 3, seed), 2.0))
    plane = np.random.default_rng(seed).standard_normal(4)
    extra = np.flatnonzero(case.taken)[[3, 7]]
    zone = zone_of(case, plane, delta, extra)
    y, c = case.problem.signs[case.codes], case.costs
    t = y * (case.Z @ plane[:-1] + plane[-1]) - 1.0
    near = (np.abs(t) <= delta) & (c > 0)
    near[extra] = True
    assert_array_equal(zone.numbers, np.flatnonzero(near))
    assert_array_equal(zone.Z, case.Z[near])
    for side, label in enumerate((1.0, -1.0)):
        deep = (t < -delta) & ~near & (y == label)
        assert zone.mass[side] == pytest.approx(c[deep].sum())
        assert_allclose(zone.sums[side], c[deep] @ case.Z[deep], atol=1e-10 * c.sum())


def test_a_sample_keeps_the_weight_of_every_class():
    case = with_idle_rows(make_case(50_000, 2, seed=40, share=0.002))
    counts = np.array([np.count_nonzero(case.taken & (case.codes == k)) for k in (0, 1)])
    rates = np.append(np.maximum(0.1, np.minimum(1.0, 50 / counts)), 0.0)
    blocks = case.blocks(999)
    assert_array_equal(np.sum(blocks.map(screening.count, 2), axis=0), counts)
    _, codes, weights = (
        np.concatenate(column) for column in zip(*blocks.map(screening.sample, rates), strict=True)
    )
    for k in (0, 1):
        assert weights[codes == k].sum() == pytest.approx(counts[k], rel=0.05)
    assert (codes >= 0).all()
    assert np.count_nonzero(codes == 1) >= 40


def shifts(f, codes, weights, costs):
    """Return what centres the bias of a plane whose scores are those of the rows, in two blocks."""
    f, codes, weights = np.array(f)[:, None], np.array(codes), np.array(weights, dtype=float)
    blocks = LocalBlocks.cut(f - 0.25, codes, weights, 3)
    plane, signs = np.array([[1.0, 0.25]]), np.array([[-1.0, 1.0, 1.0, 0.0]])
    return screening.bias_shifts(blocks, plane, signs, np.array([[*costs, 0.0]])).tolist()


def test_a_bias_with_an_interval_goes_to_the_middle_of_that_of_the_rows_that_cost():
    """From -1 to 2; nearer rows have no weight, no class, or one that costs nothing."""
    assert shifts([-3.0, 2.0, 4.0], [0, 1, 1], [1.0, 2.0, 1.0], [3.0, 1.0, 1.0]) == [0.5]
    f, codes = [-3.0, 2.0, 1.5, -1.25, 1.125, -0.5], [0, 1, 1, 0, 2, -1]
    assert shifts(f, codes, [1.0, 1.0, 0.0, 0.0, 1.0, 1.0], [1.0, 1.0, 0.0]) == [0.5]


def test_a_bias_that_may_rise_without_limit_stays():
    """One side costs next to nothing: the slope is 0 up to rounding, and no row ends it."""
    assert shifts([0.0, 3.0], [0, 1], [1.0, 1.0], [1e-17, 1.0, 1.0]) == [0.0]


def test_the_distance_of_a_zone_is_that_of_the_row_nearest_to_the_margin():
    case = make_case(200, 3, 5)
    plane = np.array([0.3, -0.2, 0.5, 0.7])
    zone = zone_of(case, plane, 1.0, np.zeros(0, dtype=int))
    margins = case.problem.signs[zone.codes] * (zone.Z @ plane[:-1] + plane[-1])
    assert len(zone.Z) > 10
    assert zone.distance(case.problem, plane) == pytest.approx(np.abs(margins - 1.0).min())


@pytest.mark.parametrize("offset", [0.0, 30.0])
@pytest.mark.parametrize("spread", [1.0, 30.0])
def test_a_zone_is_solved_in_fewer_iterations_from_weights_that_are_nearly_right(offset, spread):
    """Wherever its rows are, and with costs that differ."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((400, 6)) + offset, np.where(np.arange(400) % 2, 1.0, -1.0)
    X[:, 0] += 0.7 * y
    costs = 10.0 * np.where(rng.random(400) < 0.1, spread, 1.0)
    problem, solver = single(X, y, costs).problem(0), InteriorPoint(tol=1e-10)
    cold = solver.solve_zone(problem, None, np.inf, 1e-10)
    near = np.append(1.001 * cold.coef, cold.intercept - 0.001 * X.mean(axis=0) @ cold.coef)
    warm = solver.solve_zone(problem, near, 0.01, 1e-10)
    assert cold.converged
    assert warm.converged
    assert warm.objective == pytest.approx(cold.objective, rel=1e-8)
    assert warm.n_iter < cold.n_iter


@pytest.mark.parametrize("offset", [0.0, 30.0])
def test_two_rows_that_stand_for_millions_do_not_spoil_a_start(offset):
    """The rows inside the margin, added up: they are as dear as all others a thousand times."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((400, 6)) + offset, np.where(np.arange(400) % 2, 1.0, -1.0)
    X[:, 0] += 0.7 * y
    X[:2] = offset
    X[:2, 0] -= 3.0 * y[:2]
    costs = np.where(np.arange(400) < 2, 1e6, 10.0)
    problem, solver = single(X, y, costs).problem(0), InteriorPoint(tol=1e-10)
    cold = solver.solve_zone(problem, None, np.inf, 1e-10)
    near = np.append(1.001 * cold.coef, cold.intercept - 0.001 * X.mean(axis=0) @ cold.coef)
    warm = solver.solve_zone(problem, near, 0.01, 1e-10)
    assert warm.converged
    assert warm.objective == pytest.approx(cold.objective, rel=1e-8)
    assert warm.n_iter <= 0.75 * cold.n_iter
