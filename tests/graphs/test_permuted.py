"""A permuted graph is P'LP: the same graph between other rows."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
import scipy.sparse as sp
from graphs import dense_graphs as dense
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse.csgraph import connected_components
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from marginfold import LPP, LSVA, LaplacianEigenmaps, LocallyLinearEmbedding
from marginfold.errors import GraphError, InvalidParameterError
from marginfold.graphs import (
    BetweenClassGraph,
    NeighborGraph,
    PermutedGraph,
    PrecomputedGraph,
    ReconstructionGraph,
    TotalGraph,
    WithinClassGraph,
    resolve_graph,
)

N = 12
RULES = {
    "knn": NeighborGraph(3),
    "knn within": NeighborGraph(2, within_class=True),
    "total": TotalGraph(),
    "within": WithinClassGraph(),
    "between": BetweenClassGraph(),
    "lle": ReconstructionGraph(3),
    "sum": 0.5 * NeighborGraph(2) + BetweenClassGraph(),
}
rng = np.random.default_rng(0)
X, y = rng.standard_normal((N, 2)), rng.integers(0, 3, N)


def matrix(graph, X=X, y=y, **options):
    """L as a dense matrix: its quadratic form of the unit vectors."""
    return graph.build(X, y, **options).scatter(np.eye(len(X)))


def permutation(X, seed):
    """The permutation of rows without copies: that of their order by content."""
    content = NeighborGraph(1).build(X).rows
    perm = np.empty(len(X), dtype=int)
    perm[content] = content[np.random.default_rng(seed).permutation(len(X))]
    return perm


@pytest.mark.parametrize("name", RULES)
def test_the_spectrum_is_that_of_the_graph(name):
    L, permuted = matrix(RULES[name]), matrix(PermutedGraph(RULES[name], 3))
    assert_allclose(np.linalg.eigvalsh(permuted), np.linalg.eigvalsh(L), atol=1e-12)
    if name != "total":  # which is the same for every order of the rows
        assert np.abs(permuted - L).max() > 0.01


@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_scatter_is_that_of_the_permuted_laplacian(name, seed):
    P = np.eye(N)[permutation(X, seed)]  # node i is row perm[i]: (PZ)_i = Z_perm[i]
    Z = np.random.default_rng(seed).standard_normal((N, 3))
    laplacian = PermutedGraph(RULES[name], seed).build(X, y)
    literal = P.T @ matrix(RULES[name]) @ P
    assert_allclose(laplacian.scatter(Z), Z.T @ literal @ Z, atol=1e-12)
    assert_allclose(laplacian.degrees, P.T @ RULES[name].build(X, y).degrees, atol=1e-12)


def test_the_edges_are_those_of_the_literal_graph():
    perm = permutation(X, 5)
    L = np.empty((N, N))
    L[np.ix_(perm, perm)] = dense.knn(X, 3)
    assert_allclose(matrix(PermutedGraph(NeighborGraph(3), 5)), L, atol=1e-12)


@pytest.mark.parametrize("name", RULES)
def test_the_identity_leaves_the_graph(name):
    few, labels = X[:3], np.array([0, 1, 1])
    seed = next(s for s in range(99) if (permutation(few, s) == np.arange(3)).all())
    assert_allclose(
        matrix(PermutedGraph(RULES[name], seed), few, labels),
        matrix(RULES[name], few, labels),
        atol=1e-12,
    )


def test_all_permutations_come_up_alike():
    few, graph = X[:3], PrecomputedGraph([[0, 1, 2], [1, 0, 4], [2, 4, 0]])
    degrees = [tuple(PermutedGraph(graph, seed).build(few).degrees) for seed in range(300)]
    counts = np.unique(degrees, axis=0, return_counts=True)[1]
    assert len(counts) == 6
    assert np.abs(counts - 50).max() < 25  # binomial: 50 with a standard deviation of 6.5


def test_the_mean_over_permutations_is_the_total_graph():
    few = X[:4]
    L = matrix(NeighborGraph(1), few, y[:4])
    mean = np.mean([L[np.ix_(p, p)] for p in permutations(range(4))], axis=0)
    assert_allclose(mean, np.trace(L) / 3 * matrix(TotalGraph(), few, y[:4]), atol=1e-12)


@pytest.mark.parametrize("name", ["knn", "knn within", "within", "lle", "sum"])
@given(
    seed=st.integers(0, 10**6),
    copies=st.lists(st.tuples(st.integers(0, N - 1), st.integers(0, N - 1)), max_size=4),
    w=arrays.arrays(np.int64, N, elements=st.integers(0, 3)).filter(lambda w: w.any()),
)
def test_weights_are_copies_and_the_order_does_not_matter(name, seed, copies, w):
    rng = np.random.default_rng(seed)
    X, y = rng.standard_normal((N, 2)), rng.integers(0, 3, N)
    Z = rng.standard_normal((N, 3))
    for i, j in copies:
        X[j], y[j], Z[j] = X[i], y[i], Z[i]
    rows = rng.permutation(np.repeat(np.arange(N), w))
    rule = PermutedGraph(RULES[name], seed)
    weighted, repeated = rule.build(X, y, sample_weight=w), rule.build(X[rows], y[rows])
    assert_allclose(weighted.scatter(Z), repeated.scatter(Z[rows]), rtol=1e-9, atol=1e-11)
    assert_allclose(weighted.degrees @ Z, repeated.degrees @ Z[rows], rtol=1e-9, atol=1e-11)


@given(seed=st.integers(0, 10**6))
def test_nodes_edges_and_components_of_a_graph_with_copies(seed):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 3, (N, 2)).astype(float)
    laplacian = PermutedGraph(NeighborGraph(1), seed).build(X)
    nodes = laplacian.on_nodes()
    assert_array_equal(X[nodes.rows[nodes.members]], X)  # a row is a copy of the row of its node
    Z = X[:, :1] ** 2 - X[:, 1:]
    points = Z[nodes.rows]
    assert_allclose(points.T @ nodes.L @ points, laplacian.scatter(Z), atol=1e-10)
    L = laplacian.scatter(np.eye(N))
    taking_part = np.sort(nodes.rows)
    count = connected_components(L[np.ix_(taking_part, taking_part)], directed=False)[0]
    description = PermutedGraph(NeighborGraph(1), seed).describe(X)
    assert description.n_components == count
    assert description.n_nodes == len(taking_part)
    assert description.n_edges == NeighborGraph(1).describe(X).n_edges


def test_a_row_that_holds_two_places_joins_their_parts():
    rows = np.array([[0.0], [0.0], [5.0], [6.0]])
    graph = PrecomputedGraph(np.array([[0, 0, 1, 0], [0, 0, 0, 1], [1, 0, 0, 0], [0, 1, 0, 0]]))
    assert graph.describe(rows).n_components == 2
    assert PermutedGraph(graph).describe(rows).n_components == 1


def test_sparse_rows_give_the_same_graph():
    rows = np.where(rng.random((N, 4)) < 0.5, rng.standard_normal((N, 4)), 0.0)
    rule = PermutedGraph(NeighborGraph(2), 4)
    L = rule.build(sp.csr_array(rows)).scatter(np.eye(N))
    assert_allclose(
        np.linalg.eigvalsh(L), np.linalg.eigvalsh(matrix(NeighborGraph(2), rows)), atol=1e-12
    )


def test_a_precomputed_graph_is_permuted_too():
    W = np.abs(X @ X.T)
    P = np.eye(N)[permutation(X, 7)]
    L = np.diag(W.sum(axis=1)) - W
    assert_allclose(matrix(PermutedGraph(PrecomputedGraph(W), 7)), P.T @ L @ P, atol=1e-12)


def test_it_clones_adds_scales_and_is_searched():
    rule = 0.5 * PermutedGraph(NeighborGraph(3), 1) + TotalGraph()
    copy = clone(rule).set_params(first__graph__graph__n_neighbors=2)
    expected = 0.5 * matrix(PermutedGraph(NeighborGraph(2), 1)) + matrix(TotalGraph())
    assert_allclose(matrix(copy), expected, atol=1e-12)
    assert not PermutedGraph(NeighborGraph()).uses_labels
    assert PermutedGraph(WithinClassGraph()).uses_labels
    search = GridSearchCV(
        LPP(1, graph=PermutedGraph(NeighborGraph())),
        {"graph__graph__n_neighbors": [1, 2], "graph__random_state": [0, 1]},
        scoring=lambda model, X, y=None: -model.eigenvalues_[0],
        cv=2,
    ).fit(X)
    assert len(set(search.cv_results_["mean_test_score"])) == 4


def test_estimators_take_it():
    model = LSVA(1, graph=PermutedGraph(NeighborGraph(3))).fit(X, y)
    assert np.isfinite(model.transform(X)).all()


@pytest.mark.parametrize(
    "estimator",
    [LaplacianEigenmaps(2, graph=NeighborGraph(4)), LocallyLinearEmbedding(2)],
    ids=lambda estimator: type(estimator).__name__,
)
def test_a_direct_embedding_is_that_of_the_graph_with_its_rows_exchanged(estimator):
    rows = np.random.default_rng(1).standard_normal((60, 2))
    plain = clone(estimator).fit(rows)
    graph = resolve_graph(estimator.graph)
    permuted = clone(estimator).set_params(graph=PermutedGraph(graph, 3)).fit(rows)
    assert_allclose(permuted.eigenvalues_, plain.eigenvalues_, atol=1e-9)
    perm = permutation(rows, 3)
    assert_allclose(np.abs(permuted.embedding_[perm]), np.abs(plain.embedding_), atol=1e-5)
    assert_allclose(permuted.transform(rows), permuted.embedding_, atol=1e-9)


@pytest.mark.parametrize("graph", ["knn", NeighborGraph, None])
def test_what_is_no_graph_is_refused(graph):
    with pytest.raises(InvalidParameterError, match=r"PermutedGraph got graph=.*NeighborGraph\(\)"):
        PermutedGraph(graph).build(X)


@pytest.mark.parametrize("seed", [None, -1, 0.5, True])
def test_a_seed_is_a_whole_number(seed):
    with pytest.raises(InvalidParameterError, match="random_state must be a whole number >= 0"):
        PermutedGraph(TotalGraph(), seed).build(X)


def test_bad_rows_are_refused_by_name():
    with pytest.raises(GraphError, match="PermutedGraph got X with NaN"):
        PermutedGraph(TotalGraph()).build(X * np.nan)


def test_copies_that_are_kept_apart_have_no_sparse_matrix():
    rule = PermutedGraph(NeighborGraph(2, merge_duplicates=False))
    with pytest.raises(GraphError, match="merge_duplicates=True"):
        rule.build(np.vstack([X, X])).on_nodes()
