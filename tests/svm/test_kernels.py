"""The seam: what numba compiles gives the same points as its reference in NumPy."""

from __future__ import annotations

import ast
import inspect
from dataclasses import replace
from importlib import import_module
from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from svm.judging import (
    BOTH_WAYS,
    TOL,
    as_solution,
    check_honest,
    check_within_certificates,
    problem_of,
    seen,
)
from svm.random_problems import random_batch, random_problem
from svm.test_certificate import biases, whole_numbers

from marginfold.errors import CancelledError
from marginfold.linalg.tall import SharedRows
from marginfold.runtime.progress import watch
from marginfold.svm import InteriorPoint, interior_point
from marginfold.svm import problem as problems
from marginfold.svm.active_set import on_sets_of
from marginfold.svm.interior_point import COLD, NUMPY, Scaled, Start, State, solve
from marginfold.svm.problem import SVMProblem, gap_of, single

pytest.importorskip("numba")
kernels = import_module("marginfold.svm.kernels")
KERNELS = kernels.KERNELS

EXACT = 1e-12


def both(problem: SVMProblem, start: Start = COLD, *, tol=TOL, max_iter=120):
    """Return point and iterations of both implementations."""
    with np.errstate(all="ignore"):
        return [
            solve(problem, start, implementation, tol=tol, max_iter=max_iter)
            for implementation in (KERNELS, NUMPY)
        ]


def check_point(found, expected, *, rel=1e-10):
    """Compare two certified points: the point itself and its bounds."""
    size = max(1.0, float(np.abs(expected.coef).max(initial=0.0)))
    assert_allclose(found.coef, expected.coef, atol=rel * size)
    assert found.intercept == pytest.approx(expected.intercept, rel=10 * rel, abs=10 * rel * size)
    cost = max(float(expected.dual.max()), np.finfo(float).tiny)
    assert_allclose(found.dual, expected.dual, atol=rel * cost)
    assert found.objective == pytest.approx(expected.objective, rel=rel)
    assert found.bound == pytest.approx(expected.bound, rel=rel, abs=rel * expected.objective)


def check_solved(problem, start=COLD, **settings):
    (found, n_iter), (expected, its) = both(problem, start, **settings)
    assert abs(n_iter - its) <= 1
    assert gap_of(found) <= TOL
    check_point(found, expected)


# ---------------------------------------------------------------- to the solution

BATCHES = {
    "plain": random_batch(),
    "one feature": random_batch(200, 1),
    "deflated": random_batch(n_deflated=2),
    "all but one direction deflated": random_batch(n_deflated=4),
    "everything deflated": replace(random_batch(), deflated=np.tile(np.eye(5), (3, 1, 1))),
    "a zero column among the deflated": replace(
        random_batch(), deflated=np.eye(5)[None, :, :2].repeat(3, axis=0) * [1.0, 0.0]
    ),
    "apart": random_batch(signal=np.inf),
    "in an uneven metric": replace(
        random_batch(), scale=10.0 ** np.random.default_rng(0).uniform(-3, 3, (3, 5))
    ),
    "huge costs": random_batch(cost=1e8),
    "huge costs, apart": random_batch(cost=1e10, signal=np.inf, decades=0.0),
    "tiny costs": random_batch(cost=1e-8),
    "costs over eight decades": random_batch(decades=8.0),
    "far from the origin": replace(
        random_batch(), rows=SharedRows(random_batch().rows.features + 1e4)
    ),
    "many features": random_batch(150, 80),
    "more features than rows": random_batch(20, 40),
    "two rows": random_batch(2, 3),
}


@pytest.mark.parametrize("name", BATCHES)
def test_the_same_points_in_as_many_iterations(name):
    batch = BATCHES[name]
    for b in range(len(batch)):
        check_solved(batch.problem(b))


@pytest.mark.parametrize("seed", range(20))
def test_the_same_points_of_random_batches(seed):
    rng = np.random.default_rng(seed)
    n, r = int(rng.integers(5, 600)), int(rng.integers(1, 12))
    batch = random_batch(
        n, r, n_problems=1, n_deflated=int(rng.integers(0, r)), cost=10 ** rng.uniform(-4, 4)
    )
    check_solved(batch.problem(0))


COPIES = np.repeat(np.random.default_rng(41).standard_normal((12, 4)), 5, axis=0)
SIDES = np.where(np.arange(60) % 3, 1.0, -1.0)
SINGULAR = {
    "every row five times": (COPIES, np.repeat(SIDES[:12], 5), 2.0),
    "copies with both labels": (COPIES, SIDES, 2.0),
    "ties": (np.rint(COPIES[:, :1]), SIDES, 0.5),
    "one place": (np.full((60, 2), 7.0), SIDES, 1.0),
    "a constant column": (np.column_stack([COPIES, np.full(60, 7.0)]), SIDES, 1.0),
    "a column twice": (np.column_stack([COPIES, COPIES[:, 0]]), SIDES, 1.0),
    "on a grid": (np.rint(2 * COPIES), SIDES, 30.0),
    "no free row": ([[-1.0], [1.0]], [-1.0, 1.0], 0.1),
    "two equal rows": ([[3.0], [3.0]], [1.0, -1.0], 5.0),
}


@pytest.mark.parametrize("name", SINGULAR)
def test_singular_equations_end_at_the_same_direction(name):
    """The split of multipliers between copies is not unique, everything else is."""
    given = problem_of(name, *SINGULAR[name])
    batch = single(given.U, given.y, given.c)
    (found, n_iter), (expected, its) = both(batch.problem(0))
    assert abs(n_iter - its) <= 1
    assert_allclose(found.coef, expected.coef, atol=1e-9)
    assert found.intercept == pytest.approx(expected.intercept, abs=1e-9)
    for point in (found, expected):
        assert check_honest(given, as_solution(batch, 0, point)) <= TOL


# ---------------------------------------------------------------- on the way


@pytest.mark.parametrize("n", [4, 255, 256, 257, 700])
@pytest.mark.parametrize("r", [1, 2, 3, 4, 5, 8])
def test_few_iterations_end_at_the_same_point_whatever_the_shape(n, r):
    """Rows are cut into chunks and features into tiles: none may be lost at an edge."""
    problem = random_batch(n, r, n_problems=1).problem(0)
    for max_iter in (1, 3):
        (found, n_iter), (expected, its) = both(problem, tol=1e-3, max_iter=max_iter)
        assert n_iter == its
        check_point(found, expected, rel=1e-9)


@pytest.mark.parametrize("n_deflated", [0, 2])
@pytest.mark.parametrize("mu", [1e-4, 1e-2, 1.0, 100.0])
def test_the_same_steps_from_given_weights(mu, n_deflated):
    problem = random_batch(n_problems=1, n_deflated=n_deflated).problem(0)
    weights = np.random.default_rng(1).normal(size=6)
    for max_iter in (0, 2, 5):
        (found, n_iter), (expected, its) = both(
            problem, Start(mu, weights), tol=1e-3, max_iter=max_iter
        )
        assert n_iter == its
        check_point(found, expected, rel=1e-8)
    if mu >= 1e-2:  # nearer to the boundary, far from the solution, neither of them gets away
        check_solved(problem, Start(mu, weights))


@pytest.mark.parametrize("max_iter", [8, 9, 17])
def test_margins_are_recomputed_and_solves_refined_alike(max_iter):
    problem = random_batch(80, n_problems=1, decades=0.0, signal=np.inf).problem(0)
    (found, n_iter), (expected, its) = both(problem, tol=1e-15, max_iter=max_iter)
    assert abs(n_iter - its) <= 1
    check_point(found, expected)


@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e300, -1e300])
def test_absurd_weights_to_begin_with_end_honestly(bad):
    """A start at nonsense is given up; it must not end in an endless loop or a false report."""
    batch = random_batch(n_problems=1)
    (expected,) = InteriorPoint(compiled=False).solve_batch(batch)
    for point, n_iter in both(batch.problem(0), Start(1e-2, np.full(6, bad)), max_iter=50):
        assert np.isfinite(point.coef).all()
        assert n_iter <= 50
        assert point.bound <= expected.objective * (1 + 1e-9)
        assert point.objective >= expected.objective * (1 - 1e-9)


@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e300])
def test_an_iteration_that_cannot_move_is_given_up_at_once(bad):
    problem = random_batch(n_problems=1).problem(0)
    for _, n_iter in both(problem, Start(1e-2, np.full(6, bad)), max_iter=50):
        assert n_iter <= 2


def test_an_iteration_that_stands_still_is_ended():
    """Rounding leaves a gap above 1e-15: then the number of iterations is not that allowed."""
    for point, n_iter in both(random_batch(n_problems=1).problem(0), tol=1e-15, max_iter=1000):
        assert 1e-15 < gap_of(point) <= EXACT
        assert n_iter < 60


@BOTH_WAYS
def test_margins_stay_those_of_the_weights_on_the_way_from_far_off(compiled):
    """Changes of 1e8 leave errors of 1e-8 in margins that are only added up."""
    scaled = Scaled.of(random_batch(n_problems=1).problem(0))
    state = State.of(scaled, Start(1e8, 1e8 * np.random.default_rng(1).standard_normal(6)))
    (KERNELS if compiled else NUMPY).iterate(scaled, state, 0.0, 16)
    margins = scaled.signs * (state.u @ scaled.columns) - 1.0
    assert np.abs(margins).max() < 100
    assert_allclose(state.t, margins, atol=1e-12)
    assert_allclose(state.Q[0] - state.Q[1], margins, atol=1e-6)


@BOTH_WAYS
@pytest.mark.parametrize("seed", range(3))
def test_a_column_twice_is_a_column_of_root_two_whatever_the_units(seed, compiled):
    """Newton matrices of equal columns are singular next to entries of 1e16."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((80, 3))
    y, X = np.where(X[:, 0] + rng.standard_normal(80) > 0, 1.0, -1.0), 1e6 * X
    solver = InteriorPoint(compiled=compiled)
    once, twice = solver.solve(np.sqrt(2) * X, y, 1e4), solver.solve(np.hstack([X, X]), y, 1e4)
    assert once.converged
    assert twice.converged
    assert twice.objective == pytest.approx(once.objective, rel=1e-9)
    both_columns = twice.coef[:3] + twice.coef[3:]
    assert_allclose(both_columns, np.sqrt(2) * once.coef, atol=1e-6 * np.abs(once.coef).max())


# ---------------------------------------------------------------- the certificate of any point


def certified(implementation, problem, coef, intercept=0.0, mu=1.0):
    """Return the certificate of the point above given weights, without iteration or crossover."""
    start = Start(mu, np.append(coef, intercept))
    with np.errstate(all="ignore"):
        return solve(problem, start, implementation, tol=0.5, max_iter=0)[0]


@pytest.mark.parametrize("seed", range(20))
def test_certificates_of_any_point_are_those_of_numpy(seed):
    batch = random_batch(n_problems=1, n_deflated=seed % 3, seed=seed, cost=10.0 ** (seed % 5 - 2))
    rng = np.random.default_rng(seed)
    coef, intercept = rng.standard_normal(5) * 10 ** rng.uniform(-2, 1), rng.standard_normal()
    for mu in (1e-6, 1.0, 1e6):
        found, expected = (
            certified(one, batch.problem(0), coef, intercept, mu) for one in (KERNELS, NUMPY)
        )
        check_point(found, expected)
        check_honest(seen(batch), as_solution(batch, 0, found))


@pytest.mark.parametrize("seed", range(30))
def test_certificates_of_hostile_problems_are_honest(seed):
    problem = random_problem(seed)
    batch = single(problem.U, problem.y, problem.c)
    rng = np.random.default_rng(seed)
    coef = rng.standard_normal(problem.U.shape[1]) * 10 ** rng.uniform(-3, 1)
    point = certified(KERNELS, batch.problem(0), coef, mu=10 ** rng.uniform(-6, 2))
    check_honest(problem, as_solution(batch, 0, point))


@pytest.mark.parametrize("seed", range(60))
def test_the_best_bias_is_the_middle_of_its_interval(seed):
    """The bias of a direction that is kept, or of none, in exact arithmetic.

    The scores are whole numbers, exactly: a power of two is the scale and its inverse the weight.
    """
    f, y, c = whole_numbers(seed)
    taken = c > 0  # rows without cost do not come here
    f, y, c = f[taken], y[taken], c[taken]
    unit = 2.0**20
    table = np.column_stack([f, np.ones(len(f))]).astype(float)
    arrays = y.astype(float), c.astype(float), np.array([unit]), np.zeros((1, 0))
    problem = SVMProblem(table, np.zeros(1), *arrays)
    for sign in (1, -1):
        point = certified(KERNELS, problem, np.array([sign / unit]))
        kept = round(float(point.coef[0]) * unit)
        assert kept in (-1, 0, 1)
        best = biases(kept * f, y, c)
        middle = float((best[0] + best[-1]) / 2)
        assert point.intercept == pytest.approx(middle, rel=1e-9, abs=1e-12)


# ---------------------------------------------------------------- the set of another problem


def path(seed, n_deflated):
    """Yield a problem whose metric changes little by little, until rows leave their sets."""
    rng = np.random.default_rng(seed)
    batch = random_batch(n_problems=1, n_deflated=n_deflated, seed=seed)
    direction = rng.random(5)
    for step in np.append(0.0, np.logspace(-5, 0, 12)):
        yield replace(batch, scale=batch.scale * (1.0 + step * direction)).problem(0)


@pytest.mark.parametrize("n_deflated", [0, 1, 3])
def test_sets_of_neighbors_are_answered_as_by_numpy(n_deflated):
    answers = []
    for seed in range(4):
        for first, second in pairwise(path(seed, n_deflated)):
            dual = solve(first, COLD, NUMPY, tol=EXACT, max_iter=120)[0].dual
            found, expected = (on_sets_of(second, dual, one) for one in (KERNELS, NUMPY))
            assert (found is None) == (expected is None)
            answers.append(found is not None)
            if found is not None and expected is not None:
                check_point(found, expected)
    assert any(answers)
    assert not all(answers)


# ---------------------------------------------------------------- what is compiled, and how often


def test_the_same_bits_each_time():
    problem = random_batch(n_deflated=1).problem(0)
    (first, _), (second, _) = (solve(problem, COLD, KERNELS, tol=TOL, max_iter=99) for _ in "ab")
    assert (first.coef == second.coef).all()
    assert (first.dual == second.dual).all()
    assert first.intercept == second.intercept


def _read_only(batch):
    for array in (batch.signs, batch.costs, batch.scale, batch.deflated, batch.rows.table):
        array.flags.writeable = False
    return batch


def _dwarfed(batch):
    """Let the rows vary along a deflated direction far more than elsewhere."""
    rows = batch.rows.features * [1e6, 1.0, 1.0, 1.0, 1.0]
    deflated = np.eye(5)[None, :, :1].repeat(len(batch), axis=0)
    return replace(batch, rows=SharedRows(rows), deflated=deflated)


GIVEN = {
    "as usual": lambda batch: batch,
    "a dwarfing direction": _dwarfed,
    "columns first": lambda batch: replace(
        batch, signs=np.asfortranarray(batch.signs), costs=np.asfortranarray(batch.costs)
    ),
    "read only": _read_only,
    "whole numbers": lambda batch: replace(batch, signs=batch.signs.astype(int)),
    "rows without cost": lambda batch: replace(
        batch, costs=np.where(np.arange(batch.costs.shape[1]) % 3, batch.costs, 0.0)
    ),
}


def entries():
    """Return the functions that Python calls, which numba compiles for each kind of argument."""
    return [part for part in vars(kernels).values() if hasattr(part, "signatures")]


@pytest.mark.parametrize("how", GIVEN)
def test_however_the_arrays_lie_nothing_is_compiled_twice(how):
    """For another kind of array numba compiles everything again, which takes seconds."""
    kernels.first_call()
    before = [len(entry.signatures) for entry in entries()]
    assert InteriorPoint(compiled=True).solve_batch(GIVEN[how](random_batch(n=60)))[0].converged
    assert [len(entry.signatures) for entry in entries()] == before


def test_what_is_compiled_depends_on_its_own_file_only():
    """numba compiles again when that file changes, and the numbers in it are compiled in."""
    tree = ast.parse(inspect.getsource(kernels))
    imported = {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if (alias.asname or alias.name).isupper()
    }
    compiled = [
        node for node in tree.body if isinstance(node, ast.FunctionDef) and node.decorator_list
    ]
    used = {
        name.id
        for function in compiled
        for name in ast.walk(function)
        if isinstance(name, ast.Name) and name.id in imported
    }
    assert used <= {"EPS", "TINY", "PASSES"}  # of the machine, or of the mathematics
    assert len(compiled) > 10


def test_users_arrays_are_left_alone():
    batch = random_batch(n=60, n_deflated=1)
    arrays = (batch.signs, batch.costs, batch.scale, batch.deflated, batch.rows.table)
    before = [array.copy() for array in arrays]
    InteriorPoint(compiled=True).solve_batch(_read_only(batch))
    for array, copy in zip(arrays, before, strict=True):
        assert_array_equal(array, copy)


# ---------------------------------------------------------------- long work


@pytest.fixture
def long_work(monkeypatch):
    """Let small problems report as large ones do."""
    for module in (interior_point, problems):
        monkeypatch.setattr(module, "LONG_WORK", 10)
    monkeypatch.setattr(interior_point, "LONG_PAUSE", 10)


@BOTH_WAYS
def test_long_work_reports_its_iterations_and_stays_the_same(compiled, request):
    batch, solver = random_batch(n_problems=1), InteriorPoint(tol=TOL, compiled=compiled)
    seen = []
    with watch(seen.append):
        (silent,) = solver.solve_batch(batch)
    assert not seen
    request.getfixturevalue("long_work")
    with watch(seen.append):
        (told,) = solver.solve_batch(batch)
    assert {event.stage for event in seen} == {"iterations"}
    done = [event.done for event in seen]
    assert done == sorted(done)
    assert done[0] == 0
    assert done[-1] in (told.n_iter - 1, told.n_iter)
    assert len(set(done)) >= told.n_iter
    assert told.n_iter == silent.n_iter
    assert_allclose(told.coef, silent.coef, rtol=1e-12, atol=1e-12)


@BOTH_WAYS
@pytest.mark.parametrize("after", [0, 1, 4])
def test_long_work_can_be_cancelled(compiled, after, long_work):
    seen = []

    def cancel(event):
        seen.append(event.done)
        if event.done >= after:
            event.cancel()

    solver = InteriorPoint(compiled=compiled)
    with watch(cancel), pytest.raises(CancelledError, match="iterations"):
        solver.solve_batch(random_batch(n_problems=1))
    assert max(seen) == after


@BOTH_WAYS
@pytest.mark.parametrize("max_iter", [0, 1, 3])
def test_reporting_does_not_change_the_number_of_iterations(max_iter, compiled, long_work):
    solver = InteriorPoint(tol=1e-12, max_iter=max_iter, compiled=compiled)
    (solution,) = solver.solve_batch(random_batch(n_problems=1))
    assert solution.n_iter == max_iter
    assert not solution.converged


@BOTH_WAYS
def test_many_problems_report_and_can_be_cancelled(compiled, monkeypatch):
    monkeypatch.setattr(interior_point, "LONG_WORK", 3000)
    seen = []

    def cancel(event):
        seen.append((event.stage, event.done, event.total))
        if event.done == 2:
            event.cancel()

    with watch(cancel), pytest.raises(CancelledError, match="problems"):
        InteriorPoint(compiled=compiled).solve_batch(random_batch(n_problems=5))
    assert seen == [("problems", b, 5) for b in range(3)]


@pytest.mark.parametrize("seed", range(300, 310))
def test_random_problems_have_one_solution(seed):
    problem = random_problem(seed, decades=3.0)
    found = [
        InteriorPoint(tol=TOL, compiled=compiled).solve(problem.U, problem.y, problem.c)
        for compiled in (True, False)
    ]
    check_within_certificates(*found)


def test_a_start_near_the_solution_saves_iterations():
    batch = random_batch()
    for problem in map(batch.problem, range(len(batch))):
        cold = both(problem)
        weights = np.append(cold[0][0].coef, cold[0][0].intercept)
        warm = both(problem, Start(1e-9 * problem.costs.mean(), weights))
        for (point, n_iter), (_, n_cold) in zip(warm, cold, strict=True):
            assert gap_of(point) <= TOL
            assert 2 * n_iter <= n_cold
