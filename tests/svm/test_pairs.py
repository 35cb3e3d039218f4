"""All pairs of classes at once: the same machines as pair after pair."""

from __future__ import annotations

import tracemalloc
from itertools import combinations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.datasets import make_classification

from marginfold.feature_maps.kernel_values import KernelFunction
from marginfold.svm.gram import GivenGram, RowGram, solve_gram
from marginfold.svm.pairs import class_products, exact_pairs, libsvm_pairs

RBF = KernelFunction("rbf", 0.2, 3, 1.0)


def overlapping(n=200, n_classes=4, seed=0):
    X, y = make_classification(
        n, 6, n_informative=6, n_redundant=0, n_classes=n_classes, random_state=seed
    )
    order = np.argsort(y, kind="stable")
    return X[order], y[order], np.random.default_rng(seed).uniform(0.5, 3.0, n)


def grams(X):
    """The kernel matrix, and the rows of which only some columns are evaluated."""
    return {"matrix": GivenGram(RBF.symmetric(X)), "columns": RowGram(np.ones(len(X)), RBF, X)}


def check_each(found, X, y, costs, C):
    """Machines are those of each pair by itself; None is a pair that is left to be solved so."""
    for pair, machine in zip(combinations(range(y.max() + 1), 2), found, strict=True):
        if machine is None:
            continue
        rows = np.flatnonzero(np.isin(y, pair))
        signs = np.where(y[rows] == pair[1], 1.0, -1.0)
        alone = solve_gram(GivenGram(RBF.symmetric(X[rows])), signs, costs[rows], tol=1e-8)
        assert machine.converged
        assert_allclose(machine.objective, alone.objective, rtol=1e-9)
        assert_allclose(machine.coefs, alone.coefs, atol=1e-6 * C)
        assert_allclose(machine.intercept, alone.intercept, atol=1e-6)


@pytest.mark.parametrize("kind", ["matrix", "columns"])
@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
@pytest.mark.parametrize("seed", range(3))
def test_machines_of_all_pairs_are_those_of_each_pair(C, seed, kind):
    X, y, costs = overlapping(seed=seed)
    gram, costs = grams(X)[kind], C * costs
    found = exact_pairs(gram, costs, libsvm_pairs(gram, y, costs))
    assert sum(machine is not None for machine in found) >= 4
    check_each(found, X, y, costs, C)


@pytest.mark.parametrize("kind", ["matrix", "columns"])
def test_pairs_of_small_and_large_classes_are_those_of_each_pair(kind):
    """They are solved in groups of about the same size: a class of one row is in all of them."""
    sizes = (1, 2, 3, 9, 30, 80, 300)
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(7), sizes)
    X, costs = rng.normal(size=(len(y), 6)) + 0.5 * y[:, None] * rng.normal(size=6), np.ones(len(y))
    gram = grams(X)[kind]
    found = exact_pairs(gram, costs, libsvm_pairs(gram, y, costs))
    assert sum(machine is not None for machine in found) >= 18
    check_each(found, X, y, costs, 1.0)


@pytest.mark.parametrize("kind", ["matrix", "columns"])
def test_the_gap_bounds_the_distance_of_the_objective_from_the_dual_value(kind):
    X, y, costs = overlapping()
    K, gram = RBF.symmetric(X), grams(X)[kind]
    found = exact_pairs(gram, costs, libsvm_pairs(gram, y, costs))
    for pair, machine in zip(combinations(range(4), 2), found, strict=True):
        if machine is None:
            continue
        rows = np.flatnonzero(np.isin(y, pair))
        dual = np.where(y[rows] == pair[1], 1.0, -1.0) * machine.coefs
        value = dual.sum() - 0.5 * machine.coefs @ K[np.ix_(rows, rows)] @ machine.coefs
        assert (dual > -1e-9).all()
        assert (dual <= costs[rows] * (1 + 1e-9)).all()
        assert (machine.objective - value) / machine.objective <= 1e-9


def test_copies_of_rows_are_as_good_as_their_weights():
    """Both copies of a row may be free: the equations alone do not tell how they share."""
    X, y, costs = overlapping(120)
    K, twice = RBF.symmetric(X), np.repeat(np.arange(120), 2)
    gram, doubled = GivenGram(K), GivenGram(K[np.ix_(twice, twice)])
    once = exact_pairs(gram, 2.0 * costs, libsvm_pairs(gram, y, 2.0 * costs))
    found = exact_pairs(doubled, costs[twice], libsvm_pairs(doubled, y[twice], costs[twice]))
    both = [(a, b) for a, b in zip(once, found, strict=True) if a is not None and b is not None]
    assert len(both) >= 4
    for single, double in both:
        assert_allclose(double.objective, single.objective, rtol=1e-9)
        assert_allclose(double.coefs.reshape(-1, 2).sum(axis=1), single.coefs, atol=1e-5)


def test_mean_products_of_classes_are_those_of_their_rows():
    X, y, _ = overlapping(90, 3)
    K, starts = RBF.symmetric(X), np.searchsorted(y, np.arange(4))
    means = class_products(GivenGram(K), starts)
    for a in range(3):
        for b in range(3):
            block = K[np.ix_(y == a, y == b)]
            expected = block[~np.eye(len(block), dtype=bool)] if a == b else block
            assert means[a, b] == pytest.approx(expected.mean())
    assert_allclose(class_products(RowGram(np.ones(90), RBF, X), starts), means)


def test_mean_products_of_many_rows_come_from_some_of_each_class():
    X, y, _ = overlapping(6000, 3)
    starts = np.searchsorted(y, np.arange(4))
    rows = RowGram(np.ones(6000), RBF, X)
    means = class_products(GivenGram(RBF.symmetric(X)), starts)
    assert_allclose(class_products(rows, starts), means, rtol=0.1)


def test_a_class_of_one_row_has_no_two_different_ones():
    X, y = np.array([[0.0], [1.0], [3.0]]), np.array([0, 1, 1])
    found = class_products(GivenGram(X @ X.T + 1.0), np.searchsorted(y, np.arange(3)))
    assert_allclose(found, [[0.0, 1.0], [1.0, 4.0]])


def test_multipliers_of_a_pair_are_those_of_libsvm_for_its_rows_alone():
    """Values, places and iterations; the classes differ in size."""
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(5), [3, 30, 8, 17, 24])
    X = rng.normal(size=(len(y), 4)) + rng.normal(size=(5, 4))[y]
    costs = rng.uniform(0.5, 3.0, len(y))
    together = libsvm_pairs(GivenGram(RBF.symmetric(X)), y, costs)
    for pair in combinations(range(5), 2):
        rows = np.flatnonzero(np.isin(y, pair))
        gram = GivenGram(RBF.symmetric(X[rows]))
        alone = libsvm_pairs(gram, (y[rows] == pair[1]).astype(int), costs[rows])
        found, expected = together.of_pair(*pair), alone.of_pair(0, 1)
        assert_allclose(found.dual, expected.dual, rtol=1e-9)
        assert found.n_iter == expected.n_iter


def test_many_pairs_with_many_free_rows_are_solved_a_few_at_a_time():
    """The equations of all of them at once would be 150 MB, and as much again for each copy."""
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(60), 50)
    X = rng.normal(size=(len(y), 30))
    gram, costs = GivenGram(KernelFunction("rbf", 0.05, 3, 1.0).symmetric(X)), np.full(len(y), 1e3)
    near = libsvm_pairs(gram, y, costs)
    tracemalloc.start()
    found = exact_pairs(gram, costs, near)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    n_free = np.array([np.count_nonzero(machine.coefs) for machine in found if machine is not None])
    assert len(n_free) > 1700
    assert 8 * np.sum((n_free + 1.0) ** 2) > 120e6
    assert peak < 60e6
