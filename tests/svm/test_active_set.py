"""The equations of an active set against all of them written down, and from a guess to the point.

What is compiled is tested here too: it must answer as NumPy does.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from importlib import import_module

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from svm.judging import BOTH_WAYS, as_solution, check_certified, literal_equations, seen
from svm.random_problems import random_batch

from marginfold.linalg.tall import SharedRows
from marginfold.svm import InteriorPoint, SVMBatch, active_set
from marginfold.svm.active_set import (
    crossover,
    definite_solver,
    repaired,
    sets_of,
    solve_equations,
)
from marginfold.svm.interior_point import NUMPY
from marginfold.svm.problem import SVMProblem, gap_of, single

EXACT = 1e-12


def kernels_of(compiled):
    return import_module("marginfold.svm.kernels").KERNELS if compiled else NUMPY


def on_sets_of(compiled):
    return partial(active_set.on_sets_of, kernels=kernels_of(compiled))


def bias_of(problem, found):
    """Return the bias that the margins of a point have."""
    biases = problem.signs * (found.excess + 1.0) - problem.features @ (problem.scale * found.coef)
    size = 1.0 + np.abs(found.excess).max()
    assert_allclose(biases, biases[0], atol=1e-12 * size)
    return float(biases[0])


def overlapping(n=150, r=4, C=1.0, seed=0):
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    return rng.standard_normal((n, r)) + 0.6 * y[:, None], y, np.full(n, C)


def exact_point(problem: SVMProblem):
    """Return the multipliers of a problem, and which of them are at which bound."""
    batch = SVMBatch(
        SharedRows(problem.features),
        problem.signs[None],
        problem.costs[None],
        problem.scale[None],
        problem.deflated[None],
    )
    (solution,) = InteriorPoint(tol=EXACT, compiled=False).solve_batch(batch)
    return solution, *sets_of(solution.dual, problem.costs)


# ---------------------------------------------------------------- the equations


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("n_free", [1, 3, 6])
def test_the_equations_against_all_of_them_written_down(seed, n_free):
    """Of any set, also of one that is not that of the solution."""
    n_deflated = seed % 3
    cost = 10.0 ** (2 * (seed % 4) - 2)
    batch = random_batch(60, 8, n_problems=1, n_deflated=n_deflated, cost=cost, seed=seed)
    problem = batch.problem(0)
    rows = np.random.default_rng(seed).permutation(60)
    free, upper = np.sort(rows[:n_free]), np.isin(np.arange(60), rows[n_free:20])
    found = solve_equations(problem, free, upper)
    s, b, dual = literal_equations(problem, free, upper)
    size = np.abs(dual).max()
    assert_allclose(found.dual, dual, atol=1e-10 * size)
    assert_allclose(found.coef, s, atol=1e-10 * (1 + np.abs(s).max()))
    assert bias_of(problem, found) == pytest.approx(b, abs=1e-9 * (1 + np.abs(s).max()))
    assert_allclose(found.excess[free], 0.0, atol=1e-9)
    assert_allclose(problem.signs @ found.dual, 0.0, atol=1e-10 * size)
    assert np.abs(problem.deflated.T @ found.coef).max(initial=0.0) <= 1e-12 * (1 + size)


@BOTH_WAYS
@pytest.mark.parametrize("n_free", [1, 2, 5])
def test_compiled_equations_are_the_same(n_free, compiled):
    problem = random_batch(60, 8, n_problems=1, n_deflated=1).problem(0)
    rows = np.random.default_rng(n_free).permutation(60)
    free, upper = np.sort(rows[:n_free]), np.isin(np.arange(60), rows[n_free:20])
    found = kernels_of(compiled).solve_equations(problem, free, upper)
    s, b, dual = literal_equations(problem, free, upper)
    assert_allclose(found.dual, dual, atol=1e-10 * np.abs(dual).max())
    assert_allclose(found.coef, s, atol=1e-10 * (1 + np.abs(s).max()))
    assert bias_of(problem, found) == pytest.approx(b, abs=1e-9 * (1 + np.abs(s).max()))


@pytest.mark.parametrize("case", ["copies", "more rows than dimensions", "one place"])
def test_singular_equations_have_the_direction_of_least_squares(case):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((20, 3)), np.where(np.arange(20) % 2, 1.0, -1.0)
    free = np.arange(8 if case == "more rows than dimensions" else 4)
    if case == "copies":
        X[1], y[1] = X[0], y[0]
    elif case == "one place":
        X[:] = 1.0
    upper = np.isin(np.arange(20), [15, 16])
    problem = single(X, y, 1.0).problem(0)
    assert solve_equations(problem, free, upper) is None
    found = solve_equations(problem, free, upper, least_norm=True)
    assert np.isfinite(found.coef).all()
    assert np.isfinite(found.dual).all()
    if case == "copies":  # consistent: everything but the split between the copies is determined
        s, b, dual = literal_equations(problem, free, upper)
        assert_allclose(found.coef, s, atol=1e-9)
        assert bias_of(problem, found) == pytest.approx(b, abs=1e-9)
        assert_allclose(found.dual, dual, atol=1e-9)
    if case == "one place":
        assert_allclose(found.coef, 0.0, atol=1e-12)


@pytest.mark.parametrize("copies", [[], [0, 0, 0, 5], list(range(20))])
@pytest.mark.parametrize("rank", [6, 60])
def test_singular_equations_are_solved_by_the_pseudo_inverse(rank, copies):
    """Copies among the rows, too few dimensions, or both; copies may ask for different values."""
    rng = np.random.default_rng(rank + len(copies))
    rows = rng.standard_normal((20, rank))
    rows = np.vstack([rows, rows[copies]])[rng.permutation(20 + len(copies))]
    system, right = rows @ rows.T, rng.standard_normal(20 + len(copies))
    solve = definite_solver(system, least_norm=True)
    assert_allclose(solve(right), np.linalg.pinv(system, hermitian=True) @ right, atol=1e-11)
    singular = rank < 20 or len(copies) > 0
    assert (definite_solver(system, least_norm=False) is None) == singular


def test_without_free_rows_the_direction_is_that_of_the_bounds():
    problem = random_batch(n_problems=1, n_deflated=2).problem(0)
    upper = np.ones(len(problem.costs), dtype=bool)
    found = solve_equations(problem, np.empty(0, dtype=np.intp), upper)
    assert_allclose(found.coef, problem.pull(problem.costs))
    assert_allclose(found.dual, problem.costs)


def test_free_rows_of_a_solution_lie_on_the_margin():
    U, y, c = overlapping(r=5)
    solution = InteriorPoint(tol=EXACT).solve(U, y, c)
    lower, upper = sets_of(solution.dual, c)
    free = ~(lower | upper)
    assert 1 <= np.count_nonzero(free) <= 6
    assert_allclose(y[free] * (U[free] @ solution.coef + solution.intercept), 1.0, atol=1e-12)


def test_rows_move_by_their_signs_and_those_on_the_margin_stay():
    """Of every set: as it should be, on the margin with a multiplier at its bound, and wrong."""
    lower = np.array([True, True, True, False, False, False, False, False, False])
    upper = np.array([False, False, False, True, True, True, False, False, False])
    dual = np.array([0.0, 0.0, 0.0, 2.0, 2.0, 2.0, 1.0, -0.1, 2.1])
    excess = np.array([0.5, -1e-12, -0.5, -0.5, 1e-12, 0.5, 0.0, 0.0, 0.0])
    below, above = repaired(lower, upper, dual, np.full(9, 2.0), excess)
    assert np.flatnonzero(below).tolist() == [0, 1, 7]
    assert np.flatnonzero(above).tolist() == [3, 4, 8]


# ---------------------------------------------------------------- crossover


@pytest.mark.parametrize("C", [0.01, 1.0, 100.0, 1e6])
@pytest.mark.parametrize("seed", range(3))
def test_the_right_set_gives_the_exact_solution(C, seed):
    problem = single(*overlapping(C=C, seed=seed)).problem(0)
    exact, lower, upper = exact_point(problem)
    noise = 1 + 1e-3 * np.random.default_rng(seed).standard_normal(len(lower))
    crossed = crossover(problem, lower, upper, exact.dual * noise, NUMPY)
    assert gap_of(crossed) <= EXACT
    assert crossed.objective == pytest.approx(exact.objective, rel=1e-12)
    assert_allclose(crossed.coef, exact.coef, atol=1e-8)


@pytest.mark.parametrize("n_wrong", [1, 2, 4])
@pytest.mark.parametrize("seed", range(3))
def test_a_set_with_a_few_wrong_rows_is_repaired(seed, n_wrong):
    """Many rows, so that the nearest ones are near."""
    problem = single(*overlapping(n=1000, seed=seed)).problem(0)
    exact, lower, upper = exact_point(problem)
    scores = problem.features @ exact.coef + exact.intercept
    nearest = np.argsort(np.where(lower, problem.signs * scores, np.inf))[:n_wrong]
    lower[nearest] = False  # their multipliers are now free, and come out negative
    crossed = crossover(problem, lower, upper, exact.dual, NUMPY)
    assert gap_of(crossed) <= EXACT
    assert_allclose(crossed.coef, exact.coef, atol=1e-8)


def test_more_free_rows_than_dimensions_go_to_their_nearest_bounds():
    """As at an interior point that is not quite there: too many rows look free."""
    problem = single(*overlapping(n=60, r=3)).problem(0)
    exact, lower, upper = exact_point(problem)
    dual = np.clip(exact.dual, 0.01, 0.99)
    crossed = crossover(problem, lower & False, upper & False, dual, NUMPY)
    assert gap_of(crossed) <= EXACT
    assert_allclose(crossed.coef, exact.coef, atol=1e-8)


def test_a_wrong_set_has_an_honest_gap():
    problem = single(*overlapping()).problem(0)
    exact, *_ = exact_point(problem)
    nothing = np.zeros(150, dtype=bool)
    crossed = crossover(problem, ~nothing, nothing, np.zeros(150), NUMPY)
    assert np.isfinite(crossed.objective)
    assert crossed.objective >= exact.objective * (1 - EXACT)
    assert crossed.bound <= exact.objective * (1 + EXACT)


# ---------------------------------------------------------------- the set of another problem


def nearby(seed, *, step=1e-7, n_deflated=0, cost=1.0):
    """Return a problem in a metric that is slightly another, and the multipliers in the first."""
    batch = random_batch(80, 5, n_problems=1, n_deflated=n_deflated, cost=cost, seed=seed)
    (first,) = InteriorPoint(tol=EXACT, compiled=False).solve_batch(batch)
    other = replace(batch, scale=batch.scale * (1.0 + step * np.linspace(0.0, 1.0, 5)))
    return other, first.dual


@BOTH_WAYS
@pytest.mark.parametrize("n_deflated", [0, 2])
@pytest.mark.parametrize("cost", [1e-3, 1.0, 1e6])
@pytest.mark.parametrize("seed", range(3))
def test_a_problem_nearby_is_solved_on_the_same_set(seed, cost, n_deflated, compiled):
    batch, dual = nearby(seed, cost=cost, n_deflated=n_deflated)
    before = dual.copy()
    point = on_sets_of(compiled)(batch.problem(0), dual)
    assert (dual == before).all()
    (expected,) = InteriorPoint(tol=EXACT, compiled=False).solve_batch(batch)
    assert gap_of(point) <= EXACT
    check_certified(seen(batch), as_solution(batch, 0, point))
    size = max(1.0, np.abs(expected.coef).max())
    assert_allclose(point.coef, expected.coef, atol=1e-7 * size)
    assert point.objective == pytest.approx(expected.objective, rel=1e-11)


def test_a_wrong_set_is_repaired_before_it_costs_a_certificate():
    """Twelve problems nearby with some wrong sets on the way: a certificate for each solution."""
    certificates = []

    def dual_bound(*given):
        certificates.append(given)
        return NUMPY.dual_bound(*given)

    for seed in range(12):
        batch, dual = nearby(seed, step=0.01)
        point = active_set.on_sets_of(batch.problem(0), dual, NUMPY._replace(dual_bound=dual_bound))
        assert gap_of(point) <= EXACT
    assert len(certificates) == 12


@BOTH_WAYS
def test_a_set_that_is_not_the_right_one_gives_nothing(compiled):
    batch, dual = nearby(0, step=50.0)
    found = on_sets_of(compiled)
    assert found(batch.problem(0), dual) is None
    batch, dual = nearby(0)
    assert found(batch.problem(0), np.roll(dual, 1)) is None
    assert found(batch.problem(0), 0.5 * batch.costs[0]) is None
    assert found(batch.problem(0), np.zeros(len(dual))) is None


@BOTH_WAYS
def test_free_rows_that_are_copies_are_left_to_the_crossover(compiled):
    """Their equations are singular: a warm start takes a miss, the crossover finds the point."""
    batch, dual = nearby(0)
    twice = np.flatnonzero((dual > 1e-6) & (dual < (1 - 1e-6) * batch.costs[0]))[0]
    again = np.append(np.arange(len(dual)), twice)
    doubled = SVMBatch(
        SharedRows(batch.rows.features[again]),
        batch.signs[:, again],
        batch.costs[:, again],
        batch.scale,
        batch.deflated,
    )
    split = dual[again]
    split[[twice, -1]] *= 0.5
    problem = doubled.problem(0)
    assert on_sets_of(compiled)(problem, split) is None
    found = crossover(problem, *sets_of(split, problem.costs), split, kernels_of(compiled))
    assert gap_of(found) <= EXACT
    (expected,) = InteriorPoint(tol=EXACT, compiled=False).solve_batch(doubled)
    assert_allclose(found.coef, expected.coef, atol=1e-9)


@BOTH_WAYS
@pytest.mark.parametrize("seed", range(20))
def test_rows_that_differ_by_rounding_are_copies(seed, compiled):
    """One row on the margin, three times: no direction is read off their rounding errors."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((40, 5)) + 2.0
    y = np.where(X @ rng.standard_normal(5) + rng.standard_normal(40) > 0, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    X[-2:], y[-2:] = X[:1], y[0]
    near = X[[0, -2, -1]] * (1.0 + 1e-15 * rng.standard_normal((3, 5)))
    X[[0, -2, -1]] = near
    problem = SVMProblem.of(X, y, np.full(40, 0.3), np.ones(5), np.zeros((5, 0)), np.zeros(5))
    free, upper = np.array([0, 38, 39]), np.arange(40) % 3 == 1
    one = solve_equations(problem, free[:1], upper)
    assert kernels_of(compiled).solve_equations(problem, free, upper) is None
    found = solve_equations(problem, free, upper, least_norm=True)
    assert_allclose(found.coef, one.coef, rtol=0, atol=1e-12 * np.abs(one.coef).max())
    assert_allclose(found.dual[free], one.dual[0] / 3, rtol=1e-12)


@BOTH_WAYS
@pytest.mark.parametrize("unit", [1.0, 1e-5])
def test_equations_are_regular_whatever_the_lengths_of_the_rows(unit, compiled):
    """Corners of a simplex about 0, and rows a two-thousandth as long in other dimensions.

    In another unit the multipliers are those of costs in its inverse square.
    """
    rng = np.random.default_rng(0)
    y, free, nothing = np.where(np.arange(80) % 2, 1.0, -1.0), np.arange(60), np.zeros((60, 0))
    X = np.zeros((80, 60))
    corners = np.linalg.svd(np.eye(21) - 1.0 / 21)[0][:, :20]
    X[:21, :20], X[21:60, 20:59] = corners, 5e-4 * np.eye(39)
    X[60:] = rng.standard_normal((20, 60))
    X[60:] -= X[60:].mean(axis=0)  # the free rows are about the mean of all
    upper = np.arange(80) % 7 == 6
    upper[free] = False
    plain, other = (
        SVMProblem.of(u * X, y, np.full(80, u**-2), np.ones(60), nothing, np.zeros(60))
        for u in (1.0, unit)
    )
    s, _, dual = literal_equations(plain, free, upper)
    found = kernels_of(compiled).solve_equations(other, free, upper)
    assert found is not None
    assert_allclose(unit**2 * found.dual, dual, rtol=0, atol=1e-6 * np.abs(dual).max())
    assert_allclose(unit * found.coef, s, rtol=0, atol=1e-6 * np.abs(s).max())


@BOTH_WAYS
@pytest.mark.parametrize("apart", [1e-4, 1e-6, 1e-8])
def test_rows_that_are_close_to_each_other_are_no_copies(apart, compiled):
    """Their plane is that of the equations, however steep it is."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((30, 4)), np.where(np.arange(30) % 2, 1.0, -1.0)
    X[:3] = 3.0 + apart * rng.standard_normal((3, 4))
    problem = single(X, y, 1.0).problem(0)
    free, upper = np.arange(3), np.arange(30) % 5 == 4
    face = kernels_of(compiled).solve_equations(problem, free, upper)
    assert face is not None
    assert_allclose(face.excess[free], 0.0, atol=1e-13 / apart)
    assert_allclose(face.dual[upper], 1.0)
    size = np.abs(face.dual).max()
    assert abs(y @ face.dual) <= 1e-12 * size
    assert_allclose(face.coef, problem.pull(face.dual), rtol=0, atol=1e-13 * size)


@BOTH_WAYS
def test_the_set_without_free_rows(compiled):
    """All multipliers are at their bounds; with the sides in balance that is a solution."""
    batch = random_batch(80, 4, n_problems=1, cost=1e-6, decades=0.0)
    y = np.where(np.arange(80) % 2, 1.0, -1.0)
    problem = replace(batch, signs=y[None]).problem(0)
    point = on_sets_of(compiled)(problem, problem.costs)
    assert gap_of(point) <= EXACT
    assert_allclose(point.coef, problem.pull(problem.costs), rtol=1e-9)


@given(seed=st.integers(0, 10_000), share=st.floats(0.0, 1.0))
@example(seed=8198, share=0.0)  # weights of 0 are optimal: 36 free rows in three dimensions,
@example(seed=260, share=0.0)  # whose multipliers the equations do not determine
def test_a_random_set_gives_the_solution_or_nothing(seed, share):
    batch = random_batch(60, 3, n_problems=1, seed=seed)
    rng = np.random.default_rng(seed)
    (truth,) = InteriorPoint(tol=EXACT, compiled=False).solve_batch(batch)
    wrong = rng.random(60) < share
    dual = np.where(wrong, batch.costs[0] * rng.choice([0.0, 0.5, 1.0], 60), truth.dual)
    point = on_sets_of(False)(batch.problem(0), dual)
    free = ~np.logical_or(*sets_of(dual, batch.costs[0]))
    determined = np.count_nonzero(free) <= 3 + 1  # as many equations as weights and a bias
    if determined and not wrong.any():
        assert point is not None
    if point is not None:
        check_certified(seen(batch), as_solution(batch, 0, point))
        assert_allclose(point.coef, truth.coef, atol=1e-7)
