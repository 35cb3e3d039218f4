"""MMDA: its first component is a support vector machine; orthogonal ones need labelled rows."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.datasets import load_wine
from sklearn.preprocessing import scale
from sklearn.svm import SVC

from marginfold import MMDA
from marginfold.errors import ExhaustedWarning

X, Y = load_wine(return_X_y=True)
X = scale(X)


def test_the_first_component_is_the_normal_of_a_support_vector_machine():
    mmda = MMDA(1, C=0.5, tasks="one_vs_rest", class_weight=None).fit(X, Y)
    svc = SVC(kernel="linear", C=0.5, tol=1e-9).fit(X, Y == 0)
    normal = svc.coef_[0]
    assert_allclose(mmda.components_[0], normal / np.linalg.norm(normal), atol=1e-5)
    assert_allclose(mmda.norms_[0], np.linalg.norm(normal), rtol=1e-5)
    assert_allclose(mmda.decision_function(X)[:, 0], svc.decision_function(X), atol=1e-5)


def test_balanced_costs_are_those_of_scikit_learn_for_each_task():
    mmda = MMDA(1, C=0.5, tasks="one_vs_rest").fit(X, Y)
    svc = SVC(kernel="linear", C=0.5, class_weight="balanced", tol=1e-9).fit(X, Y == 0)
    assert_allclose(mmda.decision_function(X)[:, 0], svc.decision_function(X), atol=1e-5)


def test_class_weights_are_costs():
    mmda = MMDA(1, C=0.5, tasks="one_vs_rest", class_weight={0: 3.0, 1: 0.5}).fit(X, Y)
    costs = np.array([3.0, 0.5, 1.0])[Y]
    svc = SVC(kernel="linear", C=0.5, tol=1e-9).fit(X, Y == 0, sample_weight=costs)
    assert_allclose(mmda.decision_function(X)[:, 0], svc.decision_function(X), atol=1e-5)


def test_the_second_component_is_the_machine_in_the_complement():
    mmda = MMDA(2, C=0.5, tasks="one_vs_rest", class_weight=None, deflation="orthogonal").fit(X, Y)
    first = mmda.components_[0]
    deflated = X - np.outer(X @ first, first)
    svc = SVC(kernel="linear", C=0.5, tol=1e-9).fit(deflated, Y == 1)
    assert_allclose(mmda.decision_function(X)[:, 1], svc.decision_function(deflated), atol=1e-5)


@pytest.mark.parametrize("kernel", ["linear", "wide"])
def test_unlabelled_rows_change_the_mean_and_nothing_else(kernel):
    rows = X if kernel == "linear" else np.tile(X[::6], 5)
    labels = Y if kernel == "linear" else Y[::6]
    rng = np.random.default_rng(0)
    few = np.where(rng.random(len(rows)) < 0.4, labels, -1)
    known = few != -1
    with_all = MMDA(3, deflation="orthogonal", unlabeled=-1).fit(rows, few)
    with_few = MMDA(3, deflation="orthogonal").fit(rows[known], labels[known])
    assert_allclose(with_all.components_, with_few.components_, atol=1e-7)
    assert_allclose(with_all.norms_, with_few.norms_, rtol=1e-7)
    assert_allclose(with_all.decision_function(rows), with_few.decision_function(rows), atol=1e-6)
    assert_allclose(with_all.mean_, rows.mean(axis=0), atol=1e-12)
    assert_allclose(with_few.mean_, rows[known].mean(axis=0), atol=1e-12)
    assert with_all.tasks_ == with_few.tasks_


def test_unlabelled_rows_take_part_in_the_variance_that_fills_up():
    few = np.full(len(X), -1)
    few[[0, 100]] = Y[[0, 100]]
    with pytest.warns(ExhaustedWarning, match="1 of 3"):
        mmda = MMDA(3, deflation="orthogonal", unlabeled=-1, on_exhausted="pca").fit(X, few)
    first = mmda.components_[0]
    rest = (X - X.mean(axis=0)) - np.outer((X - X.mean(axis=0)) @ first, first)
    leading = np.linalg.svd(rest, full_matrices=False)[2][:2]
    assert_allclose(np.abs(leading @ mmda.components_[1:].T), np.eye(2), atol=1e-7)


def test_the_rows_may_move_and_turn():
    """Translation and rotation of the rows do the same to the directions."""
    rng = np.random.default_rng(0)
    Q = np.linalg.qr(rng.standard_normal((13, 13)))[0]
    plain, moved = MMDA(3).fit(X, Y), MMDA(3).fit(X @ Q + 5.0, Y)
    assert_allclose(moved.transform(X @ Q + 5.0), plain.transform(X), atol=1e-7)
    assert_allclose(moved.components_, plain.components_ @ Q, atol=1e-7)
