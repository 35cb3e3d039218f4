"""The duality gap that a solution carries is true, and it is small; NaN never comes out."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from svm.random_problems import Problem, judge, random_problem

from marginfold.errors import SolverError
from marginfold.svm import InteriorPoint, SVMSolution

TOL = 1e-8
HONEST = 1e-9
"""Largest amount by which a true gap may exceed the one that is reported."""

FEASIBLE = 1e-13
"""Largest ``|y'a| / sum(a)`` of a strictly feasible dual point: rounding of the sums only."""

BOTH_WAYS = pytest.mark.parametrize("compiled", ["auto", False])
"""Where numba is installed, "auto" is compiled."""


def check_feasible(problem: Problem, solution: SVMSolution) -> None:
    assert np.isfinite(solution.coef).all()
    assert np.isfinite(solution.intercept)
    assert np.isfinite([solution.objective, solution.dual_objective, solution.gap]).all()
    assert (solution.dual >= 0).all()
    assert (solution.dual <= problem.c).all()


def check_honest(problem: Problem, solution: SVMSolution) -> float:
    """Return the true gap of a solution whose report agrees with plain formulas.

    A gap may be reported larger than it is, by what rounding might have added, never smaller.
    """
    check_feasible(problem, solution)
    truth = judge(problem, solution.coef, solution.intercept, solution.dual)
    allowed = HONEST + truth.rounding
    assert truth.balance <= FEASIBLE
    assert truth.gap >= -allowed  # weak duality
    assert truth.gap - allowed <= solution.gap * (1 + 1e-3)
    assert solution.gap <= truth.gap * (1 + 1e-3) + allowed + truth.caution
    assert solution.objective == pytest.approx(truth.objective, rel=allowed + truth.caution)
    assert solution.dual_objective == pytest.approx(
        truth.dual_objective, abs=allowed * truth.objective
    )
    assert solution.converged == (solution.gap <= TOL)
    return truth.gap - truth.rounding


@pytest.mark.parametrize(
    ("seed", "compiled"),
    [*((seed, "auto") for seed in range(200)), *((k, False) for k in range(40))],
)
def test_random_problems_are_certified(seed, compiled):
    problem = random_problem(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        solution = InteriorPoint(tol=TOL, compiled=compiled).solve(problem.U, problem.y, problem.c)
    assert check_honest(problem, solution) <= TOL
    assert solution.converged


@pytest.mark.parametrize("C", [1.0, 1e2, 1e4, 1e6])
@pytest.mark.parametrize(
    ("n", "r", "compiled"),
    [
        (5000, 1, "auto"),
        (5000, 5, "auto"),
        (5000, 5, False),
        (20_000, 2, "auto"),
        (20_000, 20, "auto"),
    ],
)
def test_separable_classes_without_a_gap_are_certified(n, r, C, compiled):
    """The margin falls like 1/n: the path of the iteration is long."""
    rng = np.random.default_rng([n, r])
    U = rng.standard_normal((n, r))
    problem = Problem("no gap", U, np.sign(U[:, 0]), np.full(n, C))
    solution = InteriorPoint(tol=TOL, compiled=compiled).solve(problem.U, problem.y, problem.c)
    assert check_honest(problem, solution) <= TOL
    assert solution.converged


@pytest.mark.torture
@pytest.mark.parametrize(
    ("decades", "share"),
    [
        (6.0, 0.998),
        (12.0, 0.99),  # copies with both labels and such costs leave too few digits
    ],
)
@BOTH_WAYS
def test_a_thousand_problems_are_honest_and_nearly_all_certified(decades, share, compiled):
    n_problems, certified = 1000, 0
    for seed in range(10_000, 10_000 + n_problems):
        problem = random_problem(seed, decades=decades)
        solution = InteriorPoint(tol=TOL, compiled=compiled).solve(problem.U, problem.y, problem.c)
        check_honest(problem, solution)
        certified += solution.converged
    assert certified >= share * n_problems


@pytest.mark.parametrize("max_iter", [0, 1, 2, 3])
@pytest.mark.parametrize("seed", range(10, 20))
def test_too_few_iterations_are_admitted(seed, max_iter):
    problem = random_problem(seed)
    solution = InteriorPoint(tol=1e-15, max_iter=max_iter).solve(problem.U, problem.y, problem.c)
    check_feasible(problem, solution)
    truth = judge(problem, solution.coef, solution.intercept, solution.dual)
    assert solution.n_iter <= max_iter
    assert solution.converged == (solution.gap <= 1e-15)
    assert truth.gap <= solution.gap * (1 + 1e-3) + HONEST + truth.rounding


def test_one_iteration_does_not_solve_overlapping_classes():
    rng = np.random.default_rng(0)
    y = np.where(rng.random(300) < 0.5, 1.0, -1.0)
    U = rng.standard_normal((300, 5)) + 0.5 * y[:, None]
    first, last = (InteriorPoint(max_iter=k).solve(U, y, 10.0) for k in (1, 120))
    assert first.gap > TOL
    assert not first.converged
    assert last.gap <= TOL


rng = np.random.default_rng(3)
SIDES = np.where(np.arange(40) % 2, 1.0, -1.0)
OVERLAP = rng.standard_normal((40, 3))
OVERLAP[:, 0] += SIDES
SEPARABLE = OVERLAP.copy()
SEPARABLE[:, 0] = SIDES * (0.5 + np.abs(SEPARABLE[:, 0]))
SPREAD = 10.0 ** np.linspace(-1, 1, 40)  # powers of it give costs or rows over many orders
IMBALANCED = np.where(np.arange(2001) == 0, 1.0, -1.0)

SOLVABLE = {
    "two rows": ([[0.0], [1.0]], [1, -1], 1.0),
    "two equal rows": ([[1.0], [1.0]], [1, -1], 1.0),
    "two rows with costs 1e16 apart": ([[0.0], [1.0]], [1, -1], [1e-8, 1e8]),
    "two close rows": ([[0.0], [1e-8]], [1, -1], 1e30),
    "more columns than rows": (rng.standard_normal((10, 300)), SIDES[:10], 1e3),
    "no columns": (np.zeros((40, 0)), SIDES, 1.0),
    "all rows equal": (np.full((40, 3), 0.1), SIDES, 1e8),
    "all rows zero": (np.zeros((40, 3)), np.where(np.arange(40) < 3, 1, -1), 1.0),
    "constant column": (np.column_stack([OVERLAP, np.full(40, 1e15)]), SIDES, 1.0),
    "every row with both labels": (np.repeat(OVERLAP[:20], 2, axis=0), SIDES, 1e6),
    "exclusive or": ([[0, 0], [1, 1], [0, 1], [1, 0]], [1, 1, -1, -1], 1.0),
    "many rows on the margin": (
        np.repeat([[0.0], [1.0]], 500, axis=0),
        np.repeat([-1, 1], 500),
        1e4,
    ),
    "one against 2000": (rng.standard_normal((2001, 2)), IMBALANCED, 1.0),
    "one heavy against 2000": (
        rng.standard_normal((2001, 2)),
        IMBALANCED,
        np.where(IMBALANCED > 0, 2000.0, 1.0),
    ),
    "Hilbert matrix": (1.0 / (1 + np.arange(40)[:, None] + np.arange(20)), SIDES, 1e6),
    "rows over 6 orders": (OVERLAP * SPREAD[:, None] ** 3, SIDES, 1.0),
    "costs over 20 orders": (OVERLAP, SIDES, SPREAD**10),
    "tiny rows": (OVERLAP * 1e-100, SIDES, 1.0),
    "large rows": (OVERLAP * 1e10, SIDES, 1.0),
    "large separable rows": (SEPARABLE * 1e50, SIDES, 1.0),
    "tiny costs": (OVERLAP, SIDES, 1e-150),
    "large costs": (OVERLAP, SIDES, 1e20),
    "large costs on separable rows": (SEPARABLE, SIDES, 1e100),
    "shifted by 1e5": (SEPARABLE + 1e5, SIDES, 1e6),
}


@BOTH_WAYS
@pytest.mark.parametrize("name", SOLVABLE)
def test_extreme_problems_are_certified(name, compiled):
    problem = _problem(name, *SOLVABLE[name])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        solution = InteriorPoint(tol=TOL, compiled=compiled).solve(problem.U, problem.y, problem.c)
    assert check_honest(problem, solution) <= TOL
    assert solution.converged


HOPELESS = {
    "overlapping rows of size 1e20": (OVERLAP * 1e20, SIDES, 1.0),
    "overlapping rows of size 1e100": (OVERLAP * 1e100, SIDES, 1.0),
    "separable rows of size 1e120": (SEPARABLE * 1e120, SIDES, 1.0),
    "rows of size 1e160": (OVERLAP * 1e160, SIDES, 1.0),
    "rows of size 1e300": (OVERLAP * 1e300, SIDES, 1.0),
    "rows of size 1e-300": (OVERLAP * 1e-300, SIDES, 1.0),
    "costs 1e100": (OVERLAP, SIDES, 1e100),
    "costs 1e300": (OVERLAP, SIDES, 1e300),
    "costs 1e-300": (OVERLAP, SIDES, 1e-300),
    "costs that sum to infinity": (OVERLAP, SIDES, 1e308),
    "costs over 60 orders": (OVERLAP, SIDES, SPREAD**30),
    "costs over 300 orders": (OVERLAP, SIDES, SPREAD**150),
    "some costs 1e-300": (OVERLAP, SIDES, np.where(np.arange(40) < 20, 1e-300, 1.0)),
    "columns over 200 orders": (OVERLAP * [1e-100, 1.0, 1e100], SIDES, 1.0),
    "rows over 40 orders": (OVERLAP * SPREAD[:, None] ** 20, SIDES, 1.0),
    "an outlier at 1e12": (np.vstack([OVERLAP, [1e12, 0, 0]]), np.append(SIDES, -1), 1.0),
}


@BOTH_WAYS
@pytest.mark.parametrize("name", HOPELESS)
def test_hopeless_problems_end_finite_without_warnings(name, compiled):
    """Either a refusal, or a finite point no worse than w = 0 with a gap of at most 1."""
    problem = _problem(name, *HOPELESS[name])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            solution = InteriorPoint(tol=TOL, compiled=compiled).solve(
                problem.U, problem.y, problem.c
            )
        except SolverError:
            return
    check_feasible(problem, solution)
    sides = [problem.c[problem.y == side].sum() for side in (1, -1)]
    assert solution.objective <= 2 * min(sides) * (1 + 1e-12)
    assert 0 <= solution.gap <= 1
    assert solution.converged == (solution.gap <= TOL)


def test_a_row_that_wipes_out_the_others_in_the_mean_gives_no_false_certificate():
    """The mean of rows with an outlier at 1e100 cancels every digit of the others."""
    problem = _problem("", np.vstack([OVERLAP, [1e100, 0, 0]]), np.append(SIDES, -1), 1.0)
    solution = InteriorPoint(tol=TOL).solve(problem.U, problem.y, problem.c)
    truth = judge(problem, solution.coef, solution.intercept, solution.dual)
    assert truth.gap <= TOL or not solution.converged


def _problem(name, U, y, c):
    y = np.asarray(y, dtype=float)
    return Problem(name, np.asarray(U, dtype=float), y, np.full(y.shape, np.asarray(c, float)))
