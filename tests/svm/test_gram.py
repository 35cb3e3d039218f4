"""Machines given by a kernel matrix: exact, certified, the same as in coordinates."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import make_classification

from marginfold.feature_maps.kernel_values import KernelFunction
from marginfold.svm import Automatic, InteriorPoint
from marginfold.svm.certificate import feasible
from marginfold.svm.gram import (
    GivenGram,
    Multipliers,
    RowGram,
    certified,
    solve_gram,
    solve_in_coordinates,
)
from marginfold.svm.pairs import libsvm_pairs

RBF = KernelFunction("rbf", 0.2, 3, 1.0)


def noisy(n=300, seed=0):
    X, y = make_classification(n, 6, n_informative=4, flip_y=0.1, random_state=seed)
    return X, np.where(y == 1, 1.0, -1.0)


def values_of(gram, signs, costs, found):
    """P of the machine and D of its multipliers, from the definition."""
    K = gram.among(np.arange(len(signs)))
    f, dual = K @ found.coefs, signs * found.coefs
    primal = 0.5 * found.coefs @ f
    primal += costs @ np.maximum(0.0, 1.0 - signs * (f + found.intercept))
    return primal, dual.sum() - 0.5 * found.coefs @ f, dual


@pytest.mark.parametrize("C", [1e-3, 1.0, 100.0, 1e5])
@pytest.mark.parametrize("seed", range(3))
def test_the_gap_is_that_of_the_definition_and_closed(C, seed):
    X, signs = noisy(seed=seed)
    costs = C * np.random.default_rng(seed).uniform(0.5, 2.0, len(signs))
    for gram in (GivenGram(RBF(X, X)), RowGram(np.ones(len(X)), RBF, X)):
        found = solve_gram(gram, signs, costs, tol=1e-8)
        primal, dual_value, dual = values_of(gram, signs, costs, found)
        assert found.converged
        assert (dual >= -1e-9 * C).all()
        assert (dual <= costs * (1 + 1e-9)).all()
        assert abs(found.coefs.sum()) <= 1e-9 * np.abs(found.coefs).sum()
        assert_allclose(found.objective, primal, rtol=1e-8)
        assert (primal - dual_value) / primal <= 2e-8


@pytest.mark.parametrize("C", [0.1, 10.0])
def test_it_is_the_machine_in_coordinates(C):
    X, signs = noisy(150)
    costs = np.full(150, C)
    found = solve_gram(GivenGram(X @ X.T), signs, costs, tol=1e-8)
    expected = Automatic().solve(X, signs, costs)
    assert_allclose(found.coefs @ X, expected.coef, atol=1e-7)
    assert_allclose(found.intercept, expected.intercept, atol=1e-7)
    assert_allclose(found.objective, expected.objective, rtol=1e-10)


def test_a_solver_of_coordinates_finds_the_same_and_says_when_it_does_not_end():
    X, signs = noisy(80)
    gram, costs = GivenGram(RBF(X, X)), np.full(80, 5.0)
    found = solve_in_coordinates(gram, signs, costs, InteriorPoint())
    assert_allclose(found.coefs, solve_gram(gram, signs, costs, tol=1e-8).coefs, atol=1e-5)
    early = solve_in_coordinates(gram, signs, costs, InteriorPoint(max_iter=1))
    primal, dual_value, _ = values_of(gram, signs, costs, early)
    assert not early.converged
    assert early.gap >= (primal - dual_value) / primal - 1e-9


def test_rows_that_are_copies_of_one_give_a_constant():
    signs = np.array([1.0, -1.0, 1.0, -1.0, 1.0])
    found = solve_gram(GivenGram(np.ones((5, 5))), signs, np.ones(5), tol=1e-8)
    assert_allclose(found.objective, 4.0)
    assert found.intercept > 0


def test_what_libsvm_cannot_solve_has_no_iterations_and_is_not_called_solved():
    signs = np.array([1.0, -1.0, 1.0, -1.0, 1.0])
    with np.errstate(all="ignore"):
        found = solve_gram(GivenGram(np.full((5, 5), 1e300)), signs, np.ones(5), tol=1e-8)
    assert found.n_iter == 0
    assert not found.converged
    assert np.isfinite(found.coefs).all()


def test_sparse_rows_are_the_same_rows():
    X, signs = noisy(120)
    X, costs, ones = np.where(np.abs(X) > 0.3, X, 0.0), np.full(120, 2.0), np.ones(120)
    dense = solve_gram(RowGram(ones, RBF, X), signs, costs, tol=1e-8)
    sparse = solve_gram(RowGram(ones, RBF, sp.csr_array(X)), signs, costs, tol=1e-8)
    assert_allclose(sparse.coefs, dense.coefs, atol=1e-7)


def test_multipliers_of_all_pairs_in_one_call_are_those_of_each_pair():
    X, y = make_classification(200, 6, n_informative=6, n_redundant=0, n_classes=4, random_state=0)
    order = np.argsort(y, kind="stable")
    X, y, costs = X[order], y[order], np.random.default_rng(0).uniform(0.5, 3.0, 200)
    pairs = libsvm_pairs(RowGram(np.ones(200), RBF, X), y, costs)
    for first, second in ((0, 1), (1, 3), (2, 3)):
        rows = np.flatnonzero((y == first) | (y == second))
        signs = np.where(y[rows] == second, 1.0, -1.0)
        gram = RowGram(np.ones(len(rows)), RBF, X[rows])
        found = solve_gram(gram, signs, costs[rows], tol=1e-8)
        assert_allclose(pairs.of_pair(first, second).dual, signs * found.coefs, atol=0.05)


@pytest.mark.parametrize("C", [1.0, 1e7, 1e10])
def test_a_solver_in_coordinates_is_converged_only_if_the_kernel_says_so(C):
    """Coordinates lose digits of the kernel: with large costs their gap is not that of K."""
    X, signs = noisy(100)
    solver = InteriorPoint(tol=1e-8)
    found = solve_in_coordinates(GivenGram(RBF(X, X)), signs, np.full(100, C), solver)
    assert found.converged == (found.gap <= solver.tol)


@pytest.mark.parametrize("power", [-24, 24])
def test_the_unit_of_the_kernel_does_not_change_a_bit_of_the_gap(power):
    """Powers of 2: what rounding may add is counted in the unit of the values it is added to."""
    X, signs = noisy(60)
    K, unit = RBF(X, X), 2.0**power
    coefs = signs * np.random.default_rng(0).random(60)
    f, bias, costs = K @ coefs, np.array(0.1), np.full(60, 0.7)
    first = certified(np.diagonal(K), signs, costs, coefs, f, bias)
    other = certified(unit * np.diagonal(K), signs, costs / unit, coefs / unit, f, bias)
    assert_array_equal(other.objectives * unit, first.objectives)
    assert_array_equal(other.bounds * unit, first.bounds)
    assert_array_equal(other.gaps, first.gaps)


@pytest.mark.parametrize("n", [40, 700])
def test_the_spread_is_the_mean_squared_distance_from_the_mean_row(n):
    """Of all rows in memory, of some of them elsewhere."""
    X, _ = noisy(n)
    expected = ((X - X.mean(axis=0)) ** 2).sum(axis=1).mean()
    assert GivenGram(X @ X.T).spread == pytest.approx(expected)
    linear = KernelFunction("linear", 1.0, 1, 0.0)
    found = RowGram((X**2).sum(axis=1), linear, X).spread
    assert found == pytest.approx(expected, rel=1e-9 if n == 40 else 0.2)


@pytest.mark.parametrize("seed", range(5))
def test_the_bound_of_multipliers_that_are_not_feasible_is_one_all_the_same(seed):
    """It is that of feasible ones, whose quadratic part it may overestimate but not underrate."""
    rng = np.random.default_rng(seed)
    X, signs = noisy(40, seed=seed)
    K, costs = RBF(X, X), np.full(40, 2.0)
    exact = solve_gram(GivenGram(K), signs, costs, tol=1e-8)
    for size in (1e-6, 1e-3, 0.3, 3.0):
        coefs = exact.coefs + size * rng.standard_normal(40)
        found = certified(np.diag(K), signs, costs, coefs, K @ coefs, np.array(exact.intercept))
        moved = signs * feasible(signs, costs, signs * coefs) - coefs
        dual = signs * (coefs + moved)
        assert found.bounds <= exact.objective * (1 + 1e-12)
        quadratic = coefs @ K @ coefs + 2 * moved @ K @ coefs
        quadratic += (np.abs(moved) @ np.sqrt(np.diag(K))) ** 2
        assert_allclose(found.bounds, max(dual.sum() - quadratic / 2, 0.0), rtol=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_a_certificate_counts_what_rounding_may_have_done_to_the_values(seed):
    """Kernel values of 1e12 cancel to about 1: the last digits of f decide about the hinges."""
    rng = np.random.default_rng(seed)
    X, signs = noisy(40, seed=seed)
    rows, coefs = np.longdouble(1e6 + X), signs * rng.random(40)
    coefs -= coefs.mean()
    exact, costs = rows @ (rows.T @ coefs), np.full(40, 1e3)
    diagonal = np.asarray((rows**2).sum(axis=1), dtype=float)
    rounding = np.finfo(float).eps * (np.abs(coefs) @ np.sqrt(diagonal)) * np.sqrt(diagonal.max())
    for error in (0.9 * rounding * signs, -0.9 * rounding * signs):
        f = np.asarray(exact + error, dtype=float)
        for intercept in (0.0, 0.3):
            found = certified(diagonal, signs, costs, coefs, f, np.array(intercept))
            hinges = np.maximum(1 - signs * (exact + intercept), 0)
            truth = coefs @ exact / 2 + costs @ hinges
            assert found.objectives >= truth
            dual = feasible(signs, costs, signs * coefs)
            value = signs * dual
            assert found.bounds <= max(dual.sum() - value @ (rows @ (rows.T @ value)) / 2, 0)


@pytest.mark.parametrize("n_wrong", [1, 3])
def test_a_slightly_wrong_active_set_is_repaired_without_another_search(n_wrong):
    """Rows far to one side of the origin of f: what is wrong depends on the intercept."""
    X, signs = noisy(120)
    K, costs = RBF(X, X), np.where(signs > 0, 5.0, 0.5)
    right = solve_gram(GivenGram(K), signs, costs, tol=1e-8)
    assert abs(right.intercept) > 0.2
    dual = signs * right.coefs
    free = np.flatnonzero((dual > 1e-6) & (dual < costs - 1e-6))
    dual[free[:n_wrong]] = 0.0
    found = solve_gram(GivenGram(K), signs, costs, tol=1e-8, start=Multipliers(dual, 7))
    assert found.n_iter == 7
    assert found.gap <= 1e-10
    assert_allclose(found.objective, right.objective, rtol=1e-9)
