"""What every solution must satisfy, by plain formulas in extended precision."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.util import find_spec

import numpy as np
import pytest
import scipy.linalg
from svm.random_problems import Problem, judge

from marginfold.svm import SVMBatch, SVMSolution
from marginfold.svm.problem import Point, SVMProblem

TOL = 1e-8
HONEST = 1e-9
"""Largest amount by which a true gap may exceed the one that is reported."""

FEASIBLE = 1e-13
"""Largest ``|y'a| / sum(a)`` of a strictly feasible dual point: rounding of the sums only."""

NEEDS_NUMBA = pytest.mark.skipif(find_spec("numba") is None, reason="numba is not installed")
BOTH_WAYS = pytest.mark.parametrize("compiled", [False, pytest.param(True, marks=NEEDS_NUMBA)])


def check_feasible(problem: Problem, solution: SVMSolution) -> None:
    assert np.isfinite(solution.coef).all()
    assert np.isfinite(solution.intercept)
    assert np.isfinite([solution.objective, solution.dual_objective, solution.gap]).all()
    assert (solution.dual >= 0).all()
    assert (solution.dual <= problem.c).all()


def check_honest(
    problem: Problem, solution: SVMSolution, *, tol: float = TOL, feasible: float = FEASIBLE
) -> float:
    """Return the true gap of a solution whose report agrees with plain formulas.

    A gap may be reported larger than it is, by what rounding might have added, never smaller.
    """
    check_feasible(problem, solution)
    truth = judge(problem, solution.coef, solution.intercept, solution.dual)
    allowed = HONEST + truth.rounding
    assert truth.balance <= feasible
    assert truth.gap >= -allowed  # weak duality
    assert truth.gap - allowed <= solution.gap * (1 + 1e-3)
    assert solution.gap <= truth.gap * (1 + 1e-3) + allowed + truth.caution
    assert solution.objective == pytest.approx(truth.objective, rel=allowed + truth.caution)
    assert solution.dual_objective == pytest.approx(
        truth.dual_objective, abs=allowed * truth.objective
    )
    assert solution.converged == (solution.gap <= tol)
    return truth.gap - truth.rounding


def check_certified(problem: Problem, solution: SVMSolution) -> None:
    """Check that a solution is what it says, and optimal."""
    assert check_honest(problem, solution) <= TOL
    assert solution.converged


def check_within_certificates(first: SVMSolution, second: SVMSolution) -> None:
    """Both weights are near the optimum: ``1/2 |s - s*|^2 <= P(s) - P* <= gap P``."""
    radius = sum(np.sqrt(2.0 * (s.gap + 1e-12) * s.objective) for s in (first, second))
    assert np.linalg.norm(first.coef - second.coef) <= radius
    assert first.objective == pytest.approx(second.objective, rel=3 * TOL)


def problem_of(name: str, U: object, y: object, c: object) -> Problem:
    """Return a problem of anything like arrays, with one cost or one for each row."""
    signs = np.asarray(y, dtype=float)
    costs = np.full(signs.shape, np.asarray(c, dtype=float))
    return Problem(name, np.asarray(U, dtype=float), signs, costs)


def seen(batch: SVMBatch, b: int = 0) -> Problem:
    """Return problem b in the features that it sees: scaled, without what is deflated."""
    X = (batch.rows.features + batch.rows.centre).astype(np.longdouble) * batch.scale[b]
    N = batch.deflated[b].astype(np.longdouble)
    for _ in range(2):
        X = X - (X @ N) @ N.T
    return Problem(f"problem {b}", X, batch.signs[b], batch.costs[b])


def chosen(batch: SVMBatch, problems: Iterable[int]) -> SVMBatch:
    """Return a batch of some problems."""
    index = list(problems)
    parts = (part[index] for part in (batch.signs, batch.costs, batch.scale, batch.deflated))
    return SVMBatch(batch.rows, *parts)


def literal_equations(
    problem: SVMProblem, free: np.ndarray, upper: np.ndarray
) -> tuple[np.ndarray, float, np.ndarray]:
    """Return s, b and the multipliers of the equations of an active set, all unknowns at once.

    The rows are (s, a of the free rows, b) of ``s = P X'(y a)``, ``y (x's + b) = 1`` and
    ``y'a = 0``; the solution of least squares is that of least norm if they are singular.
    """
    N, y, c = problem.deflated, problem.signs, problem.costs
    r, m = len(problem.scale), len(free)
    X = (problem.features * problem.scale) @ (np.eye(r) - N @ N.T)
    K = np.zeros((r + m + 1, r + m + 1))
    K[:r, :r] = np.eye(r)
    K[:r, r : r + m] = -(X[free] * y[free, None]).T
    K[r : r + m, :r] = X[free] * y[free, None]
    K[r : r + m, -1] = y[free]
    K[-1, r : r + m] = y[free]
    at_upper = np.where(upper, c, 0.0)
    right = np.concatenate([X.T @ (y * at_upper), np.ones(m), [-(y @ at_upper)]])
    found = scipy.linalg.lstsq(K, right)[0]
    dual = at_upper.copy()
    dual[free] = found[r : r + m]
    return found[:r], float(found[-1]), dual


def as_solution(batch: SVMBatch, b: int, point: Point, *, tol: float = TOL) -> SVMSolution:
    """Return a point of the centred rows as a solution of the rows as they were given."""
    return batch.problem(b).uncentred(SVMSolution.of(point, n_iter=0, tol=tol))
