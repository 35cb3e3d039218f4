"""All rows inside the margin: the closed form, and only where it holds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from marginfold.svm.small_costs import solve_small_costs
from numpy.testing import assert_allclose
from svm.random_problems import judge, random_problem

from marginfold import MMDA
from marginfold.linalg.tall import SharedRows
from marginfold.svm import Automatic, InteriorPoint, SVMBatch
from marginfold.svm.problem import single

TOL = 1e-8


def balanced(cost, *, n=60, r=4, seed=0, offset=5.0):
    """Return one problem whose sides have the same total cost but not the same size."""
    rng = np.random.default_rng(seed)
    y = np.where(np.arange(n) % 3, 1.0, -1.0)
    U = rng.normal(size=(n, r)) + offset
    U[:, 0] += y
    return U, y, np.where(y > 0, cost / (y > 0).sum(), cost / (y < 0).sum())


@pytest.mark.parametrize("seed", range(5))
def test_it_is_the_difference_of_the_means_and_what_a_solver_finds(seed):
    U, y, c = balanced(0.05, seed=seed)
    found = solve_small_costs(single(U, y, c), tol=TOL)[0]
    difference = U[y > 0].mean(axis=0) - U[y < 0].mean(axis=0)
    assert_allclose(found.coef, 0.05 * difference, atol=1e-14)
    expected = InteriorPoint(tol=1e-12, compiled=False).solve(U, y, c)
    assert_allclose(found.coef, expected.coef, atol=1e-9)
    assert found.intercept == pytest.approx(expected.intercept, abs=1e-9)
    assert found.gap <= 1e-12
    assert_allclose(found.dual, c)


def test_the_certificate_is_honest():
    U, y, c = balanced(0.05)
    problem = replace(random_problem(0), U=U, y=y, c=c)
    found = solve_small_costs(single(U, y, c), tol=TOL)[0]
    truth = judge(problem, found.coef, found.intercept, found.dual)
    assert truth.gap <= 1e-12


def test_larger_costs_are_left_to_others():
    U, y, c = balanced(50.0)
    assert solve_small_costs(single(U, y, c), tol=TOL) == {}
    inside = [bool(solve_small_costs(single(*balanced(cost)), tol=TOL)) for cost in (0.1, 1.0, 5.0)]
    assert inside == sorted(inside, reverse=True)


def test_sides_of_different_cost_are_left_to_others():
    U, y, c = balanced(0.05)
    assert solve_small_costs(single(U, y, np.where(y > 0, 2.0 * c, c)), tol=TOL) == {}
    assert solve_small_costs(single(U, y, c * (1 + 1e-6 * (y > 0))), tol=TOL) == {}


def test_rows_without_cost_and_deflated_directions():
    U, y, c = balanced(0.05)
    c = np.where(np.arange(len(y)) % 6 < 3, c, 0.0)  # half of each side
    U[c == 0] *= 100.0
    N = np.array([1.0, 0.0, 0.0, 0.0])[:, None]
    scale = np.array([1.0, 0.5, 2.0, 1.0])
    batch = SVMBatch(SharedRows(U), y[None], c[None], scale[None], N[None])
    found = solve_small_costs(batch, tol=TOL)[0]
    expected = InteriorPoint(tol=1e-12, compiled=False).solve_batch(batch)[0]
    assert found.coef[0] == 0.0
    assert_allclose(found.coef, expected.coef, atol=1e-9)
    assert found.intercept == pytest.approx(expected.intercept, abs=1e-9)


def test_a_batch_of_both_kinds():
    U, y, c = balanced(0.05)
    costs = np.stack([c, 1000.0 * c, c])
    ones = np.ones((3, 4))
    batch = SVMBatch(SharedRows(U), np.stack([y, y, -y]), costs, ones, np.zeros((3, 4, 0)))
    assert set(solve_small_costs(batch, tol=TOL)) == {0, 2}
    first, hard, mirrored = Automatic(tol=TOL).solve_batch(batch)
    assert hard.converged
    assert_allclose(mirrored.coef, -first.coef)
    assert mirrored.intercept == pytest.approx(-first.intercept)


def test_with_tiny_costs_the_first_direction_is_that_of_the_class_means():
    rng = np.random.default_rng(0)
    y = np.arange(90) % 2
    X = rng.normal(size=(90, 5)) + 2.0 * y[:, None]
    model = MMDA(1, C=1e-6, class_weight="balanced").fit(X, y)
    difference = X[y == 1].mean(axis=0) - X[y == 0].mean(axis=0)
    cosine = abs(model.components_[0] @ difference) / np.linalg.norm(difference)
    assert cosine == pytest.approx(1.0, abs=1e-12)
    assert model.n_iter_ == 0
