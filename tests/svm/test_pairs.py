"""All pairs of classes at once: the same machines as pair after pair."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.datasets import make_classification

from marginfold.feature_maps.kernel_values import KernelFunction
from marginfold.svm.gram import GivenGram, RowGram, solve_gram
from marginfold.svm.pairs import exact_pairs, libsvm_pairs

RBF = KernelFunction("rbf", 0.2, 3, 1.0)


def overlapping(n=200, n_classes=4, seed=0):
    X, y = make_classification(
        n, 6, n_informative=6, n_redundant=0, n_classes=n_classes, random_state=seed
    )
    return X, y, np.random.default_rng(seed).uniform(0.5, 3.0, n)


@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
@pytest.mark.parametrize("seed", range(3))
def test_machines_of_all_pairs_are_those_of_each_pair(C, seed):
    X, y, costs = overlapping(seed=seed)
    K, costs = RBF.symmetric(X), C * costs
    found = exact_pairs(K, costs, libsvm_pairs(GivenGram(K), y, costs))
    assert sum(machine is not None for machine in found) >= 4
    for (first, second), machine in zip(combinations(range(4), 2), found, strict=True):
        if machine is None:
            continue
        rows = np.flatnonzero((y == first) | (y == second))
        signs = np.where(y[rows] == second, 1.0, -1.0)
        alone = solve_gram(GivenGram(K[np.ix_(rows, rows)]), signs, costs[rows], tol=1e-8)
        others = np.setdiff1d(np.arange(len(y)), rows)
        assert machine.converged
        assert not machine.coefs[others].any()
        assert_allclose(machine.objective, alone.objective, rtol=1e-9)
        assert_allclose(machine.coefs[rows], alone.coefs, atol=1e-6 * C)
        assert_allclose(machine.intercept, alone.intercept, atol=1e-6)


def test_the_gap_bounds_the_distance_of_the_objective_from_the_dual_value():
    X, y, costs = overlapping()
    K = RBF.symmetric(X)
    found = exact_pairs(K, costs, libsvm_pairs(GivenGram(K), y, costs))
    for (_, second), machine in zip(combinations(range(4), 2), found, strict=True):
        if machine is None:
            continue
        taken = machine.coefs != 0
        dual = np.where(y == second, 1.0, -1.0)[taken] * machine.coefs[taken]
        value = dual.sum() - 0.5 * machine.coefs @ K @ machine.coefs
        assert (dual > -1e-9).all()
        assert (dual <= costs[taken] * (1 + 1e-9)).all()
        assert (machine.objective - value) / machine.objective <= 1e-9


def test_copies_of_rows_are_as_good_as_their_weights():
    """Both copies of a row may be free: the equations alone do not tell how they share."""
    X, y, costs = overlapping(120)
    K, twice = RBF.symmetric(X), np.repeat(np.arange(120), 2)
    doubled = K[np.ix_(twice, twice)]
    once = exact_pairs(K, 2.0 * costs, libsvm_pairs(GivenGram(K), y, 2.0 * costs))
    found = exact_pairs(
        doubled, costs[twice], libsvm_pairs(GivenGram(doubled), y[twice], costs[twice])
    )
    both = [(a, b) for a, b in zip(once, found, strict=True) if a is not None and b is not None]
    assert len(both) >= 4
    for single, double in both:
        assert_allclose(double.objective, single.objective, rtol=1e-9)
        assert_allclose(double.coefs.reshape(-1, 2).sum(axis=1), single.coefs, atol=1e-5)


def test_multipliers_of_all_rows_hold_those_of_each_pair():
    X, y, costs = overlapping(150, 5)
    near = libsvm_pairs(RowGram(np.ones(150), RBF, X), y, costs)
    for number, pair in enumerate(combinations(range(5), 2)):
        own = near.of_pair(*pair)
        rows = np.flatnonzero(np.isin(y, pair))
        assert_allclose(near.of_all()[number, rows], own.dual)
        assert near.of_all()[number].sum() == pytest.approx(own.dual.sum())
        assert own.n_iter == near.n_iter[number]
