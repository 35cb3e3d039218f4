"""Compiled or not: the same solutions, the same honesty, and nothing is compiled twice."""

from __future__ import annotations

import ast
import inspect
import warnings
from dataclasses import replace
from importlib import import_module

import numpy as np
import pytest
from numpy.testing import assert_allclose
from svm.random_problems import Problem, random_batch, random_problem
from svm.test_certificate import HONEST, TOL, check_feasible, check_honest, judge
from svm.test_policy import check_within_certificates

from marginfold.errors import CancelledError, SolverError
from marginfold.runtime.progress import watch
from marginfold.svm import InteriorPoint, iterations

pytest.importorskip("numba")
kernels = import_module("marginfold.svm.kernels")

COMPILED, NUMPY = InteriorPoint(tol=TOL, compiled=True), InteriorPoint(tol=TOL, compiled=False)


# ---------------------------------------------------------------- the same solutions


def solve_both(problem: Problem, **settings):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return [
            replace(solver, **settings).solve(problem.U, problem.y, problem.c)
            for solver in (COMPILED, NUMPY)
        ]


def check_agree(first, second, rows_size=1.0):
    """Compare two certified solutions: the error of weights is bounded by their gaps."""
    check_within_certificates(first, second)
    size = max(1.0, float(np.abs(second.coef).max(initial=0.0)))
    assert_allclose(first.coef, second.coef, rtol=0, atol=1e-4 * size)
    assert first.intercept == pytest.approx(second.intercept, abs=1e-4 * size * rows_size)


@pytest.mark.parametrize("seed", range(300, 340))
def test_random_problems_have_one_solution(seed):
    problem = random_problem(seed, decades=3.0)
    compiled, plain = solve_both(problem)
    for solution in (compiled, plain):
        assert check_honest(problem, solution) <= TOL
        assert solution.converged
    check_within_certificates(compiled, plain)


rng = np.random.default_rng(41)
SIDES = np.where(np.arange(60) % 3, 1.0, -1.0)
ROWS = rng.standard_normal((60, 4)) + 0.5 * SIDES[:, None]
APART = np.column_stack([SIDES * (1.0 + np.abs(ROWS[:, 0])), ROWS[:, 1:]])
COPIES = np.repeat(ROWS[:12], 5, axis=0)
LINE = np.linspace(-1.0, 1.0, 60)[:, None]

DEGENERATE = {
    "overlapping": (ROWS, SIDES, 1.0),
    "apart": (APART, SIDES, 1.0),
    "every row five times": (COPIES, np.repeat(SIDES[:12], 5), 2.0),
    "copies with both labels": (COPIES, SIDES, 2.0),
    "one feature": (ROWS[:, :1], SIDES, 1.0),
    "one feature, ties": (np.rint(ROWS[:, :1]), SIDES, 0.5),
    "constant column": (np.column_stack([ROWS, np.full(60, 7.0)]), SIDES, 1.0),
    "constant column only": (np.full((60, 1), 7.0), SIDES, 1.0),
    "zero column first": (np.column_stack([np.zeros(60), ROWS]), SIDES, 1.0),
    "huge costs, overlapping": (ROWS, SIDES, 1e8),
    "huge costs, apart": (APART, SIDES, 1e12),
    "tiny costs": (ROWS, SIDES, 1e-10),
    "costs over ten decades": (ROWS, SIDES, 10 ** rng.uniform(-5, 5, 60)),
    "some rows without cost": (ROWS, SIDES, np.where(np.arange(60) % 4, 1.0, 0.0)),
    "more features than rows": (rng.standard_normal((12, 30)), SIDES[:12], 1.0),
    "as many features as rows": (rng.standard_normal((12, 12)), SIDES[:12], 10.0),
    "two rows": ([[0.0, 1.0], [2.0, 1.0]], [1.0, -1.0], 5.0),
    "two equal rows": ([[3.0], [3.0]], [1.0, -1.0], 5.0),
    "one free row": ([[-1.0], [0.0], [2.0]], [-1.0, -1.0, 1.0], [0.01, 0.5, 0.2]),
    "no free row": ([[-1.0], [1.0]], [-1.0, 1.0], 0.1),
    "many rows at their bounds, none free": (LINE, np.sign(LINE[:, 0]), 1e-3),
    "far from the origin": (APART + 1e4, SIDES, 1.0),
}


@pytest.mark.parametrize("name", DEGENERATE)
def test_degenerate_problems_have_one_solution(name):
    problem = _problem(*DEGENERATE[name])
    compiled, plain = solve_both(problem)
    for solution in (compiled, plain):
        assert check_honest(problem, solution) <= TOL
        assert solution.converged
    check_agree(compiled, plain, rows_size=1.0 + np.abs(problem.U).max())


@pytest.mark.parametrize("n_deflated", [0, 1, 4])
@pytest.mark.parametrize("signal", [1.0, np.inf], ids=["overlapping", "apart"])
def test_batches_have_one_solution_each(signal, n_deflated):
    batch = random_batch(n_problems=4, n_deflated=n_deflated, signal=signal, seed=1)
    features, centre = batch.rows.features, batch.rows.centre
    found = [solver.solve_batch(batch) for solver in (COMPILED, NUMPY)]
    for b, (compiled, plain) in enumerate(zip(*found, strict=True)):
        X, N = (features + centre) * batch.scale[b], batch.deflated[b]
        X = X - (X @ N) @ N.T
        for solution in (compiled, plain):
            assert np.abs(N.T @ solution.coef).max(initial=0.0) <= 1e-12
            check_honest(Problem("", X, batch.signs[b], batch.costs[b]), solution)
            assert solution.converged
        check_agree(compiled, plain)


def test_everything_deflated_leaves_the_bias():
    batch = replace(random_batch(n_problems=2), deflated=np.tile(np.eye(5), (2, 1, 1)))
    for compiled, plain in zip(COMPILED.solve_batch(batch), NUMPY.solve_batch(batch), strict=True):
        assert compiled.converged
        assert not compiled.coef.any()
        assert compiled.objective == pytest.approx(plain.objective, rel=1e-12)
        assert compiled.intercept == pytest.approx(plain.intercept, abs=1e-12)


@pytest.mark.parametrize("max_iter", [0, 1, 3])
@pytest.mark.parametrize("seed", range(350, 360))
def test_too_few_iterations_are_admitted_by_both(seed, max_iter):
    problem = random_problem(seed)
    for solution in solve_both(problem, tol=1e-15, max_iter=max_iter):
        check_feasible(problem, solution)
        truth = judge(problem, solution.coef, solution.intercept, solution.dual)
        assert solution.n_iter <= max_iter
        assert solution.converged == (solution.gap <= 1e-15)
        assert truth.gap <= solution.gap * (1 + 1e-3) + HONEST + truth.rounding


@pytest.mark.parametrize("max_iter", [1, 3])
def test_few_iterations_end_at_the_same_point(max_iter):
    """Without a face to cross over to, the certified points themselves agree."""
    batch = random_batch(n_problems=2)
    found = [
        InteriorPoint(tol=1e-3, max_iter=max_iter, compiled=compiled).solve_batch(batch)
        for compiled in (True, False)
    ]
    for compiled, plain in zip(*found, strict=True):
        assert not compiled.converged
        assert compiled.n_iter == plain.n_iter
        assert compiled.gap == pytest.approx(plain.gap, rel=1e-6)
        assert_allclose(compiled.coef, plain.coef, rtol=1e-7, atol=1e-7)
        assert_allclose(compiled.dual, plain.dual, rtol=1e-6, atol=1e-9)


def test_as_many_iterations_as_with_numpy():
    batch = random_batch(n_problems=6, n_deflated=1)
    compiled, plain = (
        [solution.n_iter for solution in solver.solve_batch(batch)] for solver in (COMPILED, NUMPY)
    )
    assert_allclose(compiled, plain, atol=1)


OVERFLOWING = {
    "costs 1e200": (ROWS, SIDES, 1e200),
    "costs 1e-200": (ROWS, SIDES, 1e-200),
    "costs 1e306": (ROWS, SIDES, 1e306),
    "features 1e150": (ROWS * 1e150, SIDES, 1.0),
    "features 1e300": (ROWS * 1e300, SIDES, 1.0),
    "features 1e-200": (ROWS * 1e-200, SIDES, 1.0),
    "features 1e150 apart": (APART * 1e150, SIDES, 1.0),
    "features 1e150, costs 1e200": (ROWS * 1e150, SIDES, 1e200),
    "costs over 400 decades": (ROWS, SIDES, 10.0 ** np.linspace(-200, 200, 60)),
    "one cost 1e200": (ROWS, SIDES, np.where(np.arange(60) == 7, 1e200, 1.0)),
    "one row at 1e200": (np.vstack([ROWS[:59], np.full((1, 4), 1e200)]), SIDES, 1.0),
    "one feature at 1e150": (ROWS * [1.0, 1e150, 1.0, 1e-150], SIDES, 1.0),
}


@pytest.mark.parametrize("name", OVERFLOWING)
def test_what_overflows_ends_finite_and_is_not_called_converged_wrongly(name):
    problem = _problem(*OVERFLOWING[name])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            solution = COMPILED.solve(problem.U, problem.y, problem.c)
        except SolverError:
            return
    check_feasible(problem, solution)
    sides = [problem.c[problem.y == side].sum() for side in (1, -1)]
    assert solution.objective <= 2 * min(sides) * (1 + 1e-12)
    assert 0 <= solution.gap <= 1
    assert solution.converged == (solution.gap <= TOL)
    with np.errstate(all="ignore"):
        truth = judge(problem, solution.coef, solution.intercept, solution.dual)
    if solution.converged:
        assert truth.gap <= TOL + HONEST + truth.rounding


@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e300, -1e300])
def test_absurd_weights_to_begin_with_end_honestly(bad):
    """A start at nonsense is given up; it must not end in an endless loop or a false report."""
    batch = random_batch(n_problems=1).marked(compiled=True)
    weights = np.full((1, 6), bad)
    run = iterations.Iterations(TOL, 50).run
    with np.errstate(all="ignore"):
        (solution,) = run(batch, 1e-2, weights)
    (expected,) = NUMPY.solve_batch(batch)
    assert np.isfinite(solution.coef).all()
    assert solution.n_iter <= 50
    assert solution.dual_objective <= expected.objective * (1 + 1e-9)
    assert solution.objective >= expected.objective * (1 - 1e-9)
    assert solution.converged == (solution.gap <= TOL)


def _problem(U, y, c):
    y = np.asarray(y, dtype=float)
    return Problem("", np.asarray(U, dtype=float), y, np.full(y.shape, np.asarray(c, float)))


# ---------------------------------------------------------------- what is compiled, and how often


def test_it_is_compiled_where_numba_is_installed():
    assert InteriorPoint().is_compiled
    assert COMPILED.is_compiled
    assert not NUMPY.is_compiled


def test_the_same_bits_each_time():
    batch = random_batch(n_deflated=1)
    first, second = (COMPILED.solve_batch(batch) for _ in range(2))
    for one, other in zip(first, second, strict=True):
        assert (one.coef == other.coef).all()
        assert (one.dual == other.dual).all()
        assert one.intercept == other.intercept


@pytest.fixture
def calls(monkeypatch):
    """Refuse arrays of another kind before anything is compiled for them; note the calls."""
    noted = []

    def guarded(name, function):
        def call(*args):
            noted.append(name)
            for array in (array for array in args if isinstance(array, np.ndarray)):
                assert array.dtype == np.float64
                assert array.flags.c_contiguous
                assert array.flags.writeable
            return function(*args)

        return call

    for name in ("start", "iterate"):
        monkeypatch.setattr(kernels, name, guarded(name, getattr(kernels, name)))
    return noted


def _read_only(batch):
    for array in (batch.signs, batch.costs, batch.scale, batch.deflated, batch.rows.table):
        array.flags.writeable = False
    return batch


GIVEN = {
    "as usual": lambda batch: batch,
    "columns first": lambda batch: replace(
        batch, signs=np.asfortranarray(batch.signs), costs=np.asfortranarray(batch.costs)
    ),
    "read only": _read_only,
    "whole numbers": lambda batch: replace(batch, signs=batch.signs.astype(int)),
    "rows without cost": lambda batch: replace(
        batch, costs=np.where(np.arange(batch.costs.shape[1]) % 3, batch.costs, 0.0)
    ),
}


@pytest.mark.parametrize(
    "how",
    [
        "as usual",
        "columns first",
        "read only",
        "whole numbers",
        "rows without cost",
    ],
)
def test_however_the_arrays_lie_nothing_is_compiled_twice(how, calls):
    """For another kind of array numba compiles everything again, which takes seconds."""
    COMPILED.solve_batch(GIVEN[how](random_batch(n=60)))
    assert {"start", "iterate"} <= set(calls)


def test_what_is_compiled_depends_on_its_own_file_only():
    """numba compiles again when that file changes, and numbers are compiled in."""
    nodes = ast.walk(ast.parse(inspect.getsource(kernels)))
    names = [a.name for node in nodes if isinstance(node, ast.ImportFrom) for a in node.names]
    assert [name for name in names if name.isupper()] == ["OPTIONS"]


def test_inputs_are_left_alone():
    batch = random_batch(n=60, n_deflated=1)
    arrays = (batch.signs, batch.costs, batch.scale, batch.deflated, batch.rows.table)
    before = [array.copy() for array in arrays]
    COMPILED.solve_batch(_read_only(batch))
    for array, copy in zip(arrays, before, strict=True):
        assert (array == copy).all()


# ---------------------------------------------------------------- long work


@pytest.mark.parametrize("solver", [COMPILED, NUMPY], ids=["compiled", "numpy"])
def test_long_work_reports_its_iterations_and_stays_the_same(solver, monkeypatch):
    batch = random_batch(n_problems=1)
    (silent,) = solver.solve_batch(batch)
    seen = []
    with watch(seen.append):
        solver.solve_batch(batch)
    assert not seen
    monkeypatch.setattr(iterations, "LONG_WORK", 10)
    monkeypatch.setattr(iterations, "LONG_PAUSE", 10)
    with watch(seen.append):
        (told,) = solver.solve_batch(batch)
    assert {event.stage for event in seen} == {"iterations"}
    done = [event.done for event in seen]
    assert done == sorted(done)
    assert done[0] == 0
    assert done[-1] in (told.n_iter - 1, told.n_iter)
    assert len(set(done)) >= told.n_iter
    assert told.n_iter == silent.n_iter
    assert told.gap <= TOL
    assert_allclose(told.coef, silent.coef, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("solver", [COMPILED, NUMPY], ids=["compiled", "numpy"])
@pytest.mark.parametrize("after", [0, 1, 4])
def test_long_work_can_be_cancelled(solver, after, monkeypatch):
    monkeypatch.setattr(iterations, "LONG_WORK", 10)
    monkeypatch.setattr(iterations, "LONG_PAUSE", 10)
    seen = []

    def cancel(event):
        seen.append(event.done)
        if event.done >= after:
            event.cancel()

    with watch(cancel), pytest.raises(CancelledError, match="iterations"):
        solver.solve_batch(random_batch(n_problems=1))
    assert max(seen) == after


def test_many_problems_report_and_can_be_cancelled(monkeypatch):
    monkeypatch.setattr(iterations, "LONG_WORK", 3000)
    seen = []

    def cancel(event):
        seen.append((event.stage, event.done, event.total))
        if event.done == 2:
            event.cancel()

    with watch(cancel), pytest.raises(CancelledError, match="problems"):
        COMPILED.solve_batch(random_batch(n_problems=5))
    assert seen == [("problems", b, 5) for b in range(3)]


@pytest.mark.parametrize("max_iter", [0, 1, 3])
def test_reporting_does_not_change_the_number_of_iterations(max_iter, monkeypatch):
    monkeypatch.setattr(iterations, "LONG_WORK", 10)
    monkeypatch.setattr(iterations, "LONG_PAUSE", 10)
    batch = random_batch(n_problems=1)
    solver = InteriorPoint(tol=1e-12, max_iter=max_iter, compiled=True)
    (solution,) = solver.solve_batch(batch)
    assert solution.n_iter == max_iter
    assert not solution.converged
