"""Beginning on few rows: whichever they are, the solution is that of all rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.linalg
from svm.judging import BOTH_WAYS, TOL, check_honest, check_within_certificates, chosen, seen
from svm.random_problems import Problem

from marginfold.linalg.tall import SharedRows
from marginfold.svm import Automatic, InteriorPoint, SVMBatch, policy, screening
from marginfold.svm.policy import solve_nearest

N_ROWS, R = 1200, 6
NOTHING = np.zeros((4, R, 0))

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


def nearest(batch, compiled=False, tol=EXACT):
    """Return what a working set of rows gives, and how many rows it had in each round."""
    solver, sizes, problem = InteriorPoint(tol=tol, compiled=compiled), [], batch.problem(0)
    iterations = []

    def solve(part, tol):
        found = solver.iterate(part, kernels, tol=tol)
        sizes.append(len(part.costs))
        iterations.append(found.n_iter)
        return found

    kernels = solver.kernels(*problem.features.shape)
    found = solve_nearest(problem, solve, kernels, tol=tol)
    assert found is None or found.n_iter == sum(iterations) > iterations[-1]  # of all rounds
    return (None if found is None else problem.uncentred(found)), sizes


def check_full(batch, solution):
    (expected,) = InteriorPoint(tol=EXACT, compiled=False).solve_batch(batch)
    assert solution is not None
    assert check_honest(seen(batch), solution, tol=EXACT) <= TOL
    assert solution.converged
    check_within_certificates(solution, expected)
    size = max(1.0, np.abs(expected.coef).max())
    assert np.abs(solution.coef - expected.coef).max() <= 1e-6 * size
    assert solution.intercept == pytest.approx(expected.intercept, abs=1e-5 * size)


@BOTH_WAYS
@pytest.mark.parametrize("cost", [1.0, 1e3, 1e6])
def test_separable_classes_are_solved_on_few_rows(cost, compiled):
    batch = batch_of(separable(cost=cost, gap=2.0, seed=5))
    solution, sizes = nearest(batch, compiled)
    check_full(batch, solution)
    assert sizes == sorted(sizes)
    assert max(sizes) < 0.1 * N_ROWS


def test_three_rows_of_each_side_are_enough_to_begin(monkeypatch):
    """Rows inside the margin join until none is left."""
    monkeypatch.setattr(policy, "FIRST_ROWS", 1)
    batch = batch_of(separable(gap=2.0, seed=1))
    solution, sizes = nearest(batch)
    check_full(batch, solution)
    assert sizes[0] == 6
    assert sizes[-1] > 6


@BOTH_WAYS
@pytest.mark.parametrize("cost", [1e-4, 1e-2])
def test_small_costs_leave_most_rows_inside_the_margin(cost, compiled, monkeypatch):
    monkeypatch.setattr(policy, "SMALL", 0)
    problem = separable(cost=cost, gap=2.0, seed=5)
    solution = Automatic(tol=EXACT, compiled=compiled).solve(problem.U, problem.y, problem.c)
    check_full(batch_of(problem), solution)


@BOTH_WAYS
def test_in_a_metric_and_with_a_deflated_direction(compiled):
    problem = separable(gap=4.0, seed=3)
    scale = 10 ** np.random.default_rng(1).uniform(-0.5, 0.5, R)
    free = batch_of(problem, scale=scale)
    (w,) = (solution.coef for solution in InteriorPoint().solve_batch(free))
    N = scipy.linalg.null_space(w[None])[:, :1] + 0.1 * w[:, None] / np.linalg.norm(w)
    batch = batch_of(problem, scale=scale, deflated=N / np.linalg.norm(N))
    solution, _ = nearest(batch, compiled)
    check_full(batch, solution)
    assert np.abs(batch.deflated[0].T @ solution.coef).max() <= 1e-12
    assert np.abs(solution.coef - w).max() > 1e-3


def test_classes_that_overlap_are_left_to_others():
    solution, sizes = nearest(batch_of(overlapping(cost=1e-3)))
    assert solution is None
    assert not sizes


def test_too_many_rows_leave_the_problem_to_others(monkeypatch):
    monkeypatch.setattr(policy, "APART", 1.0)  # whatever overlaps begins on few rows, too
    batch = batch_of(overlapping(cost=1e-3))
    solution, sizes = nearest(batch)
    assert solution is None
    assert 0 < max(sizes) <= screening.LARGEST_SHARE * N_ROWS


@BOTH_WAYS
def test_few_rows_that_are_not_solved_leave_it_too(compiled, monkeypatch):
    """Too few iterations for a working set: the answer is that of all rows, and certified."""
    monkeypatch.setattr(policy, "SMALL", 0)
    monkeypatch.setattr(policy, "solve_nearest", _badly(solve_nearest))
    problem = separable(gap=2.0, seed=4)
    solution = Automatic(tol=EXACT, compiled=compiled).solve(problem.U, problem.y, problem.c)
    check_full(batch_of(problem), solution)


def _badly(original):
    def solve(*args, **settings):
        found = original(*args, **settings)
        assert found is not None
        return replace(found, coef=-found.coef, gap=0.9, converged=False)

    return solve


@BOTH_WAYS
def test_a_batch_of_which_some_are_apart(compiled, monkeypatch):
    """Each problem has its own way and all come back in their order."""
    monkeypatch.setattr(policy, "SMALL", 0)
    problem = separable(gap=2.0, seed=6)
    mixed = np.where(np.random.default_rng(8).random(N_ROWS) < 0.5, 1.0, -1.0)
    signs = np.stack([mixed, problem.y, -mixed, -problem.y])
    together = SVMBatch(
        SharedRows(problem.U), signs, np.full((4, N_ROWS), 10.0), np.ones((4, R)), NOTHING
    )
    solutions = Automatic(tol=EXACT, compiled=compiled).solve_batch(together)
    for b, solution in enumerate(solutions):
        check_full(chosen(together, [b]), solution)


def _with_idle_rows(problem, seed=9):
    """Put rows without cost where they would be the worst: between the classes."""
    rng = np.random.default_rng(seed)
    idle = rng.random(len(problem.y)) < 0.3
    U = np.where(idle[:, None], problem.U.mean(axis=0) + 0.1 * rng.standard_normal(R), problem.U)
    return replace(problem, U=U, c=np.where(idle, 0.0, problem.c))


@BOTH_WAYS
def test_rows_without_cost_do_not_take_part(compiled, monkeypatch):
    monkeypatch.setattr(policy, "SMALL", 0)
    problem = _with_idle_rows(separable(gap=2.0, seed=10))
    solution = Automatic(tol=EXACT, compiled=compiled).solve(problem.U, problem.y, problem.c)
    idle = problem.c == 0
    assert not solution.dual[idle].any()
    expected = InteriorPoint(tol=EXACT, compiled=False).solve(
        problem.U[~idle], problem.y[~idle], problem.c[~idle]
    )
    check_within_certificates(solution, expected)
    assert solution.intercept == pytest.approx(expected.intercept, abs=1e-6)
