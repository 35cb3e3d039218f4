"""From a perturbed point to the exact solution of its face."""

from __future__ import annotations

import numpy as np
import pytest
from marginfold.svm.crossover import crossover
from numpy.testing import assert_allclose

from marginfold.svm import InteriorPoint
from marginfold.svm.problem import single


def overlapping(n=150, r=4, C=1.0, seed=0):
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    return rng.standard_normal((n, r)) + 0.6 * y[:, None], y, np.full(n, C)


def cross(U, y, c, lower, upper, dual, tol=1e-8):
    """Cross over from a guess of the face and of the multipliers."""
    return crossover(single(U, y, c), 0, lower, upper, dual, n_iter=3, tol=tol)


def faces(solution, c):
    return solution.dual <= 1e-9 * c, solution.dual >= (1 - 1e-9) * c


@pytest.mark.parametrize("C", [0.01, 1.0, 100.0, 1e6])
@pytest.mark.parametrize("seed", range(3))
def test_the_right_face_gives_the_exact_solution(C, seed):
    U, y, c = overlapping(C=C, seed=seed)
    exact = InteriorPoint(tol=1e-12).solve(U, y, c)
    noise = 1 + 1e-3 * np.random.default_rng(seed).standard_normal(len(y))
    crossed = cross(U, y, c, *faces(exact, c), exact.dual * noise)
    assert crossed.converged
    assert crossed.gap <= 1e-12
    assert crossed.objective == pytest.approx(exact.objective, rel=1e-12)
    assert_allclose(crossed.coef, exact.coef, atol=1e-8)


@pytest.mark.parametrize("n_wrong", [1, 2, 4])
@pytest.mark.parametrize("seed", range(3))
def test_a_face_with_a_few_wrong_rows_is_repaired(seed, n_wrong):
    U, y, c = overlapping(n=1000, seed=seed)  # many rows, so that the nearest ones are near
    exact = InteriorPoint(tol=1e-12).solve(U, y, c)
    lower, upper = faces(exact, c)
    margin = y * (U @ exact.coef + exact.intercept)
    nearest = np.argsort(np.where(lower, margin, np.inf))[:n_wrong]
    lower[nearest] = False  # their multipliers are now free, and come out negative
    crossed = cross(U, y, c, lower, upper, exact.dual)
    assert crossed.gap <= 1e-12
    assert_allclose(crossed.coef, exact.coef, atol=1e-8)


def test_a_wrong_face_is_not_called_converged():
    U, y, c = overlapping()
    nothing = np.zeros(len(y), dtype=bool)
    crossed = cross(U, y, c, ~nothing, nothing, np.zeros(len(y)))
    assert crossed.converged == (crossed.gap <= 1e-8)
    assert np.isfinite(crossed.gap)


def test_free_rows_of_a_solution_lie_on_the_margin():
    U, y, c = overlapping(r=5)
    solution = InteriorPoint(tol=1e-12).solve(U, y, c)
    lower, upper = faces(solution, c)
    free = ~(lower | upper)
    assert 1 <= np.count_nonzero(free) <= 6
    margin = y * (U @ solution.coef + solution.intercept)
    assert_allclose(margin[free], 1.0, atol=1e-12)
