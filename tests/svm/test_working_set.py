"""Beginning on few rows: whichever they are, the solution is that of all rows."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest
import scipy.linalg
from svm.random_problems import Problem
from svm.test_certificate import check_honest
from svm.test_policy import check_within_certificates

from marginfold.linalg.tall import SharedRows
from marginfold.svm import Automatic, InteriorPoint, SVMBatch
from marginfold.svm import policy as automatic

COMPILED = pytest.mark.parametrize("compiled", ["auto", False])
N_ROWS, R = 1200, 6

EXACT = 1e-12
"""Tolerance at which weights can be compared: their error is the root of the gap."""


def separable(*, cost=10.0, gap=0.3, n=N_ROWS, r=R, seed=0, offset=5.0):
    """Return rows on both sides of a plane, far from the origin."""
    rng = np.random.default_rng([111, seed])
    y = np.where(rng.random(n) < 0.4, 1.0, -1.0)
    U = rng.standard_normal((n, r))
    U[:, 0] = y * (gap + np.abs(U[:, 0]))
    turn = scipy.linalg.qr(rng.standard_normal((r, r)))[0]
    return Problem("separable", U @ turn + offset, y, np.full(n, cost))


def overlapping(**options):
    problem = separable(**options)
    rng = np.random.default_rng(112)
    return replace(problem, U=problem.U + rng.standard_normal(problem.U.shape))


def batch_of(problem, *, scale=None, deflated=None):
    r = problem.U.shape[1]
    return SVMBatch(
        SharedRows(problem.U),
        problem.y[None],
        problem.c[None],
        np.ones((1, r)) if scale is None else scale[None],
        np.zeros((1, r, 0)) if deflated is None else deflated[None],
    )


def seen(batch):
    """Return the problem in the features that it sees."""
    X = (batch.rows.features + batch.rows.centre) * batch.scale[0]
    N = batch.deflated[0]
    return Problem("", X - (X @ N) @ N.T, batch.signs[0], batch.costs[0])


def both_sides(y, chosen, count=10):
    """Return the first rows of each side in the order given."""
    return np.concatenate([[i for i in chosen if y[i] == side][:count] for side in (1.0, -1.0)])


def first_rows(problem, how):
    """Return ten rows of each side, by where they are to the solution."""
    rng = np.random.default_rng(7)
    solution = InteriorPoint().solve(problem.U, problem.y, problem.c)
    excess = problem.y * (problem.U @ solution.coef + solution.intercept) - 1.0
    order = {
        "nearest": np.argsort(np.abs(excess)),
        "farthest": np.argsort(-excess),
        "at random": rng.permutation(len(excess)),
    }[how]
    return both_sides(problem.y, order).astype(np.intp)


def check_full(batch, solution, compiled="auto"):
    (expected,) = InteriorPoint(tol=EXACT, compiled=compiled).solve_batch(batch)
    assert solution is not None
    check_honest(seen(batch), solution)
    assert solution.converged
    check_within_certificates(solution, expected)
    size = max(1.0, np.abs(expected.coef).max())
    assert np.abs(solution.coef - expected.coef).max() <= 1e-6 * size
    assert solution.intercept == pytest.approx(expected.intercept, abs=1e-5 * size)


@COMPILED
@pytest.mark.parametrize("how", ["nearest", "farthest", "at random"])
@pytest.mark.parametrize("cost", [1e-1, 10.0, 1e5])
def test_the_first_rows_do_not_matter(cost, how, compiled):
    """Not even if all of them are far from the margin."""
    problem = separable(cost=cost)
    batch = batch_of(problem)
    rows = first_rows(problem, how)
    solution = InteriorPoint(tol=EXACT, compiled=compiled).solve_from(batch, 0, rows)
    check_full(batch, solution, compiled)


@COMPILED
def test_one_row_of_each_side_is_enough_to_begin(compiled):
    problem = separable(seed=1)
    rows = both_sides(problem.y, np.arange(N_ROWS), count=1).astype(np.intp)
    batch = batch_of(problem)
    check_full(batch, InteriorPoint(tol=EXACT, compiled=compiled).solve_from(batch, 0, rows))


def test_the_order_of_the_first_rows_does_not_matter():
    problem = separable(seed=2)
    rows = first_rows(problem, "at random")
    batch = batch_of(problem)
    first, second = (InteriorPoint().solve_from(batch, 0, chosen) for chosen in (rows, rows[::-1]))
    assert (first.coef == second.coef).all()


@COMPILED
def test_in_a_metric_and_with_a_deflated_direction(compiled):
    problem = separable(seed=3)
    scale = 10 ** np.random.default_rng(1).uniform(-0.5, 0.5, R)
    free = batch_of(problem, scale=scale)
    (w,) = (solution.coef for solution in InteriorPoint().solve_batch(free))
    N = scipy.linalg.null_space(w[None])[:, :1] + 0.1 * w[:, None] / np.linalg.norm(w)
    batch = batch_of(problem, scale=scale, deflated=N / np.linalg.norm(N))
    rows = both_sides(problem.y, np.arange(N_ROWS), count=40).astype(np.intp)
    solution = InteriorPoint(tol=EXACT, compiled=compiled).solve_from(batch, 0, rows)
    check_full(batch, solution)
    assert np.abs(batch.deflated[0].T @ solution.coef).max() <= 1e-12
    assert np.abs(solution.coef - w).max() > 1e-3


@COMPILED
def test_most_rows_matter_when_classes_overlap(compiled):
    problem = overlapping(cost=1e-3)
    rows = both_sides(problem.y, np.arange(N_ROWS)).astype(np.intp)
    solver = InteriorPoint(tol=EXACT, compiled=compiled)
    assert solver.solve_from(batch_of(problem), 0, rows) is None


@pytest.fixture
def asked(monkeypatch):
    """Note what beginning on few rows gave."""
    answers, original = [], InteriorPoint.solve_from

    def noted(self, batch, b, rows):
        answers.append(original(self, batch, b, rows))
        return answers[-1]

    monkeypatch.setattr(InteriorPoint, "solve_from", noted)
    monkeypatch.setattr(automatic, "SMALL", 0)
    monkeypatch.setattr(automatic, "FEW_ROWS", 0)
    return answers


def solve_automatically(problem, compiled):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return Automatic(tol=EXACT, compiled=compiled).solve(problem.U, problem.y, problem.c)


@COMPILED
def test_too_many_rows_leave_the_problem_to_the_interior_point_method(compiled, asked, monkeypatch):
    monkeypatch.setattr(automatic, "APART", 1.0)  # whatever overlaps begins on few rows, too
    problem = overlapping(cost=1e-3)
    solution = solve_automatically(problem, compiled)
    assert asked == [None]
    check_full(batch_of(problem), solution)


@COMPILED
def test_few_rows_that_are_not_certified_leave_it_too(compiled, asked, monkeypatch):
    problem = separable(seed=4)
    expected = InteriorPoint(tol=EXACT).solve(problem.U, problem.y, problem.c)
    noted = InteriorPoint.solve_from

    def uncertified(self, batch, b, rows):
        solution = noted(self, batch, b, rows)
        return replace(solution, coef=-solution.coef, gap=0.9, converged=False)

    monkeypatch.setattr(InteriorPoint, "solve_from", uncertified)
    solution = solve_automatically(problem, compiled)
    assert len(asked) == 1
    check_honest(problem, solution)
    check_within_certificates(solution, expected)


@COMPILED
@pytest.mark.parametrize("cost", [1e-3, 1.0, 1e6])
def test_separable_classes_begin_on_few_rows(cost, compiled, asked):
    problem = separable(cost=cost, gap=2.0, seed=5)
    solution = solve_automatically(problem, compiled)
    assert len(asked) == 1
    check_full(batch_of(problem), solution)


@COMPILED
def test_a_batch_of_which_some_are_apart(compiled, asked):
    """Each problem has its own way and all come back in their order."""
    problem = separable(gap=2.0, seed=6)
    rng = np.random.default_rng(8)
    mixed = np.where(rng.random(N_ROWS) < 0.5, 1.0, -1.0)
    signs = np.stack([mixed, problem.y, -mixed, -problem.y])
    batch = batch_of(problem)
    together = SVMBatch(
        batch.rows, signs, np.full((4, N_ROWS), 10.0), np.ones((4, R)), np.zeros((4, R, 0))
    )
    solutions = Automatic(tol=EXACT, compiled=compiled).solve_batch(together)
    assert len(asked) == 2
    for b, solution in enumerate(solutions):
        check_full(together.take([b]), solution)


def _with_idle_rows(problem, seed=9):
    """Put rows without cost where they would be the worst: between the classes."""
    rng = np.random.default_rng(seed)
    idle = rng.random(len(problem.y)) < 0.3
    U = np.where(idle[:, None], problem.U.mean(axis=0) + 0.1 * rng.standard_normal(R), problem.U)
    return replace(problem, U=U, c=np.where(idle, 0.0, problem.c))


@COMPILED
def test_rows_without_cost_do_not_take_part(compiled, asked):
    problem = _with_idle_rows(separable(gap=2.0, seed=10))
    solution = solve_automatically(problem, compiled)
    idle = problem.c == 0
    assert not solution.dual[idle].any()
    expected = InteriorPoint(tol=EXACT).solve(problem.U[~idle], problem.y[~idle], problem.c[~idle])
    check_within_certificates(solution, expected)
    assert solution.intercept == pytest.approx(expected.intercept, abs=1e-6)


@COMPILED
def test_rows_without_cost_never_join_the_working_set(compiled, asked):
    problem = _with_idle_rows(separable(gap=2.0, seed=10))
    solve_automatically(problem, compiled)
    (solution,) = asked
    assert solution is not None
    assert solution.converged
