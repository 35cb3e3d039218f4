from __future__ import annotations

import numpy as np
import pytest
from graphs import dense_graphs as dense
from numpy.testing import assert_allclose
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from marginfold.errors import GraphError
from marginfold.graphs import BetweenClassGraph, TotalGraph, WithinClassGraph

rng = np.random.default_rng(5)
X = rng.standard_normal((20, 3))
y = rng.integers(0, 3, 20)


@pytest.mark.parametrize("rule", [WithinClassGraph(), BetweenClassGraph()])
@pytest.mark.parametrize("marker", [0, "x"])
def test_unlabelled_rows_are_isolated(rule, marker):
    labels = y if marker == 0 else np.array(["x", "y", "z"])[y]
    L = rule.build(X, labels, unlabeled=marker).scatter(np.eye(20))
    oracle = dense.within if isinstance(rule, WithinClassGraph) else dense.between
    assert_allclose(L, oracle(labels, marker), atol=1e-13)
    assert_allclose(L[y == 0], 0, atol=1e-13)


def test_total_ignores_labels():
    S = TotalGraph().build(X).scatter(X)
    assert_allclose(TotalGraph().build(X, y, unlabeled=0).scatter(X), S)
    assert_allclose(S, 20 * np.cov(X.T, ddof=0))


@pytest.mark.parametrize("rule", [WithinClassGraph(), BetweenClassGraph()])
def test_rows_without_any_label_give_zero(rule):
    assert_allclose(rule.build(X, np.zeros(20), unlabeled=0).scatter(X), 0)


def test_within_scatter_is_the_covariance_of_lda():
    lda = LinearDiscriminantAnalysis(solver="lsqr", store_covariance=True).fit(X, y)
    assert_allclose(WithinClassGraph().build(X, y).scatter(X), 20 * lda.covariance_)


@pytest.mark.parametrize("rule", [WithinClassGraph(), BetweenClassGraph()])
def test_labels_are_needed(rule):
    with pytest.raises(GraphError, match=f"{type(rule).__name__} got y=None; it needs labels"):
        rule.build(X)


@pytest.mark.parametrize("rule", [TotalGraph(), WithinClassGraph(), BetweenClassGraph()])
@pytest.mark.parametrize("unlabeled", [None, 1])
def test_description_counts_what_the_dense_weights_show(rule, unlabeled):
    w = rng.integers(0, 3, 20) * rng.random(20)
    laplacian = rule.build(X, y, unlabeled=unlabeled, sample_weight=w)
    L = laplacian.scatter(np.eye(20))
    i, j = np.triu_indices(20, 1)
    edges = -L[i, j][np.abs(L[i, j]) > 1e-12]
    reach = np.linalg.matrix_power((np.abs(L) > 1e-12) + np.eye(20), 20)[w > 0][:, w > 0] > 0
    description = rule.describe(X, y, unlabeled=unlabeled, sample_weight=w)
    assert description.n_nodes == np.count_nonzero(w)
    assert description.n_edges == len(edges)
    assert description.n_components == len(np.unique(reach, axis=0))
    assert description.n_isolated == np.count_nonzero(reach.sum(axis=1) == 1)
    assert_allclose(description.smallest_weight, edges.min())
    assert_allclose(description.largest_weight, edges.max())


def test_a_class_of_two_rows_has_an_edge():
    """Its weight is the smallest: 0.1 0.2 / 0.3, before 1 2 / 6 of the class of three."""
    labels, weights = [0, 0, 1, 1, 1, 2], np.array([0.1, 0.2, 1.0, 2.0, 3.0, 9.0])
    description = WithinClassGraph().describe(X[:6], labels, sample_weight=weights)
    assert description.n_edges == 4
    assert_allclose(description.smallest_weight, 0.1 * 0.2 / 0.3)
    assert_allclose(description.largest_weight, 2 * 3 / 6)


@pytest.mark.parametrize("rule", [TotalGraph(), WithinClassGraph(), BetweenClassGraph()])
def test_a_single_row_has_no_scatter(rule):
    laplacian = rule.build(X[:1], ["a"], sample_weight=[3.0])
    assert_allclose(laplacian.scatter(X[:1]), np.zeros((3, 3)), atol=1e-30)
    assert rule.describe(X[:1], ["a"]).n_edges == 0


def test_one_class_has_nothing_between():
    description = BetweenClassGraph().describe(X, np.zeros(20))
    assert (description.n_edges, description.n_isolated) == (0, 20)
    assert_allclose(BetweenClassGraph().build(X, np.zeros(20)).scatter(X), 0, atol=1e-12)


@pytest.mark.parametrize("rule", [TotalGraph(), WithinClassGraph(), BetweenClassGraph()])
@pytest.mark.parametrize("unlabeled", [None, 1])
def test_a_known_total_gives_the_same_scatter(rule, unlabeled):
    w = rng.random(20) + 0.1
    laplacian = rule.build(X, y, unlabeled=unlabeled, sample_weight=w)
    S = laplacian.scatter_with(X, X.T @ (w[:, None] * X))
    assert_allclose(S, laplacian.scatter(X), atol=1e-13)
    assert (S == S.T).all()


def test_a_difference_that_would_lose_digits_is_not_formed():
    """A column that tells the classes apart to ten digits, beside ordinary ones."""
    Z = X.copy()
    Z[:, 0] = 1e5 * y + 1e-5 * Z[:, 0]
    laplacian = WithinClassGraph().build(Z, y)
    S = laplacian.scatter_with(Z, Z.T @ Z)
    assert_allclose(S, laplacian.scatter(Z), rtol=1e-12)
    assert S[0, 0] < 1e-8


@pytest.mark.parametrize("weights", [[3.0, 1.0, 2.0], [4.0, 0.5, 0.25]])
def test_between_classes_of_one_row_the_weights_are_products_by_the_total(weights):
    graph = BetweenClassGraph().build(np.eye(3), np.arange(3), sample_weight=np.array(weights))
    products = np.outer(weights, weights)[np.triu_indices(3, 1)] / sum(weights)
    assert graph.weight_range == pytest.approx((products.min(), products.max()), rel=1e-14)
