"""LSVA: its metric is that of the graph, a path is a row of fits, unlabelled rows are nodes."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.datasets import load_wine
from sklearn.preprocessing import scale
from sklearn.svm import SVC

from marginfold import LSVA, MMDA, ExactKernel, NeighborGraph, PrecomputedGraph, TotalGraph
from marginfold.errors import ExhaustedWarning

X, Y = load_wine(return_X_y=True)
X = scale(X)


def test_without_weight_the_graph_is_gone():
    assert_allclose(LSVA(3, graph_weight=0).fit(X, Y).transform(X), MMDA(3).fit(X, Y).transform(X))


@pytest.mark.parametrize("graph_weight", [0.01, 0.1])
def test_the_first_component_is_a_machine_in_the_metric_of_the_graph(graph_weight):
    """Whiten with A = I + lam X'LX and let libsvm find the direction."""
    rule = NeighborGraph(5)
    raw = {"graph_weight": graph_weight, "normalize_graph": False}
    lsva = LSVA(1, C=1.0, graph=rule, tasks="one_vs_rest", **raw).fit(X, Y)
    A = np.eye(13) + graph_weight * rule.build(X).scatter(X)
    root = np.linalg.cholesky(np.linalg.inv(A))
    svc = SVC(kernel="linear", class_weight="balanced", tol=1e-9).fit(X @ root, Y == 0)
    normal = root @ svc.coef_[0]
    assert_allclose(lsva.components_[0], normal / np.linalg.norm(normal), atol=1e-5)
    assert_allclose(lsva.decision_function(X)[:, 0], svc.decision_function(X @ root), atol=1e-5)


def test_the_normalised_weight_is_in_the_documented_units():
    rule = NeighborGraph(5)
    M, total = rule.build(X).scatter(X), X.T @ X
    raw = 0.7 * np.trace(total) / np.trace(M @ total)
    expected = LSVA(graph=rule, graph_weight=raw, normalize_graph=False).fit(X, Y)
    assert_allclose(
        LSVA(graph=rule, graph_weight=0.7).fit(X, Y).transform(X), expected.transform(X)
    )


def test_the_normalised_weight_does_not_see_the_size_of_the_graph():
    plain = LSVA(graph=NeighborGraph(5)).fit(X, Y).transform(X)
    assert_allclose(LSVA(graph=1000.0 * NeighborGraph(5)).fit(X, Y).transform(X), plain, atol=1e-7)
    copies = LSVA(graph=NeighborGraph(5) + NeighborGraph(5)).fit(X, Y).transform(X)
    assert_allclose(copies, plain, atol=1e-7)


def test_a_precomputed_graph_is_the_graph_it_was_taken_from():
    rule = NeighborGraph(5, merge_duplicates=False)
    copy = PrecomputedGraph(rule.build(X).adjacency)
    assert_allclose(
        LSVA(graph=copy).fit(X, Y).transform(X), LSVA(graph=rule).fit(X, Y).transform(X), atol=1e-8
    )


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_a_path_is_a_row_of_fits(kernel):
    weights = [0.0, 0.1, 1.0, 30.0]
    base = LSVA(3, kernel=kernel, C=5.0)
    weights_of_rows = np.random.default_rng(0).uniform(0.5, 2, len(X))
    path = base.fit_path(X, Y, weights, sample_weight=weights_of_rows)
    assert [member.graph_weight for member in path] == weights
    assert not hasattr(base, "components_")
    for weight, member in zip(weights, path, strict=True):
        single = LSVA(3, kernel=kernel, C=5.0, graph_weight=weight)
        single.fit(X, Y, sample_weight=weights_of_rows)
        assert vars(member).keys() == vars(single).keys()
        assert_allclose(member.transform(X), single.transform(X), atol=1e-6)
        assert_allclose(member.gain_, single.gain_, atol=1e-8)
        assert member.tasks_ == single.tasks_


def test_a_path_takes_any_iterable_and_nothing_is_an_empty_path():
    assert len(LSVA().fit_path(X, Y, (w for w in (0.1, 1.0)))) == 2
    assert len(LSVA().fit_path(X, Y, np.logspace(-1, 1, 3))) == 3
    assert LSVA().fit_path(X, Y, []) == []


def test_a_path_of_one_number_is_one_fit():
    (only,) = LSVA().fit_path(X, Y, 0.5)
    assert_allclose(only.components_, LSVA(graph_weight=0.5).fit(X, Y).components_, atol=1e-9)


def test_unlabelled_rows_act_through_the_graph():
    rng = np.random.default_rng(0)
    few = np.where(rng.random(len(X)) < 0.3, Y, -1)
    known = few != -1
    semi = LSVA(C=1.0, graph_weight=3.0, tasks="one_vs_rest", unlabeled=-1).fit(X, few)
    supervised = LSVA(C=1.0, graph_weight=3.0, tasks="one_vs_rest").fit(X[known], Y[known])
    assert not np.allclose(semi.components_, supervised.components_, atol=1e-3)
    rule = NeighborGraph()
    A = rule.build(X).scatter(X - X.mean(axis=0))
    total = (X - X.mean(axis=0)).T @ (X - X.mean(axis=0))
    lam = 3.0 * np.trace(total) / np.trace(A @ total)
    root = np.linalg.cholesky(np.linalg.inv(np.eye(13) + lam * A))
    svc = SVC(kernel="linear", class_weight="balanced", tol=1e-9)
    svc.fit(X[known] @ root, Y[known] == 0)
    normal = root @ svc.coef_[0]
    assert_allclose(semi.components_[0], normal / np.linalg.norm(normal), atol=1e-5)


def test_the_graph_lives_on_the_rows_and_not_on_the_coordinates():
    """With a kernel the neighbors are those of the input; with a precomputed one of the map."""
    gamma = 0.05
    rows = LSVA(kernel=ExactKernel(gamma=gamma), graph=NeighborGraph(3)).fit(X, Y)
    K = np.exp(-gamma * ((X[:, None] - X[None]) ** 2).sum(axis=2))
    coordinates = LSVA(kernel="precomputed", graph=NeighborGraph(3)).fit(K, Y)
    assert rows.directions_.shape[1] == coordinates.directions_.shape[1]
    same = LSVA(kernel=ExactKernel(gamma=gamma), graph=TotalGraph()).fit(X, Y).transform(X)
    other = LSVA(kernel="precomputed", graph=TotalGraph()).fit(K, Y).transform(K)
    assert_allclose(np.abs(other), np.abs(same), atol=1e-5)


def test_a_path_warns_once_for_all_weights():
    with pytest.warns(ExhaustedWarning, match="3 of 3 fits; first: LSVA found") as caught:
        LSVA(40).fit_path(X, Y, [0.1, 1.0, 10.0])
    assert len(caught) == 1
