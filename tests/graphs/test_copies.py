"""A row of weight 2 is the row twice, a row of weight 0 is no row: for every rule."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from graphs import dense_graphs as dense
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from numpy.testing import assert_allclose

from marginfold.graphs import (
    BetweenClassGraph,
    NeighborGraph,
    PrecomputedGraph,
    ReconstructionGraph,
    TotalGraph,
    WithinClassGraph,
)

N = 12
RULES = {
    "knn": NeighborGraph(3),
    "knn mutual": NeighborGraph(3, mode="mutual", width=2.0),
    "knn within": NeighborGraph(2, within_class=True),
    "total": TotalGraph(),
    "within": WithinClassGraph(),
    "between": BetweenClassGraph(),
    "lle": ReconstructionGraph(3),
    "sum": 0.5 * NeighborGraph(2) + BetweenClassGraph(),
}
weights = arrays.arrays(np.int64, N, elements=st.integers(0, 3)).filter(lambda w: w.any())
pairs = st.lists(st.tuples(st.integers(0, N - 1), st.integers(0, N - 1)), max_size=4)
seeds = st.integers(0, 10**6)


def design(seed, copies):
    """Rows, labels and coordinates; each pair (i, j) makes row j a copy of row i."""
    rng = np.random.default_rng(seed)
    X, y = rng.standard_normal((N, 2)), rng.integers(0, 3, N)
    Z = rng.standard_normal((N, 3))
    for i, j in copies:
        X[j], y[j], Z[j] = X[i], y[i], Z[i]
    return X, y, Z


@pytest.mark.parametrize("name", RULES)
@given(seed=seeds, copies=pairs, w=weights)
def test_weights_are_copies(name, seed, copies, w):
    X, y, Z = design(seed, copies)
    rows = np.repeat(np.arange(N), w)
    weighted = RULES[name].build(X, y, sample_weight=w)
    repeated = RULES[name].build(X[rows], y[rows])
    assert_allclose(weighted.scatter(Z), repeated.scatter(Z[rows]), rtol=1e-9, atol=1e-11)
    assert_allclose(weighted.degrees @ Z, repeated.degrees @ Z[rows], rtol=1e-9, atol=1e-11)


@given(seed=seeds, copies=pairs, w=weights)
def test_weights_are_copies_of_the_dense_definition(seed, copies, w):
    X, y, Z = design(seed, copies)
    rows = np.repeat(np.arange(N), w)
    expected = {
        NeighborGraph(3): dense.knn(X[rows], 3),
        NeighborGraph(2, within_class=True): dense.knn(X[rows], 2, groups=y[rows]),
        ReconstructionGraph(3): dense.lle(X[rows], 3),
        BetweenClassGraph(): dense.between(y[rows]),
    }
    for rule, L in expected.items():
        S = rule.build(X, y, sample_weight=w).scatter(Z)
        assert_allclose(S, Z[rows].T @ L @ Z[rows], rtol=1e-8, atol=1e-10)


@given(seed=seeds, w=weights)
def test_weights_are_copies_in_a_precomputed_graph(seed, w):
    X, _, Z = design(seed, [])
    W = np.random.default_rng(seed).random((N, N))
    W = W + W.T
    rows = np.repeat(np.arange(N), w)
    weighted = PrecomputedGraph(W).build(X, sample_weight=w)
    repeated = PrecomputedGraph(W[np.ix_(rows, rows)]).build(X[rows])
    assert_allclose(weighted.scatter(Z), repeated.scatter(Z[rows]), rtol=1e-9, atol=1e-11)


def test_sparse_copies_merge_too():
    X, y, Z = design(3, [(0, 5), (0, 7), (2, 9)])
    X[0, 1] = X[5, 1] = X[7, 1] = 0.0
    S = sp.csr_matrix(X)
    for rule in RULES.values():
        built = rule.build(S, y, sample_weight=np.arange(N) % 3)
        expected = rule.build(X, y, sample_weight=np.arange(N) % 3)
        assert_allclose(built.scatter(Z), expected.scatter(Z), rtol=1e-9)
        assert_allclose(built.degrees, expected.degrees, rtol=1e-9)


def test_sparse_rows_are_equal_however_they_are_stored():
    # the row (3, 0, 1): plain, with a stored zero, out of order, with an entry in two halves
    data = [3.0, 1.0, 3.0, -0.0, 1.0, 1.0, 3.0, 1.5, 1.5, 1.0, 9.0]
    columns = [0, 2, 0, 1, 2, 2, 0, 0, 0, 2, 1]
    X = sp.csr_array((data, columns, [0, 2, 5, 7, 10, 11]), shape=(5, 3))
    assert_allclose(NeighborGraph(1, weights="binary").build(X).degrees, [4, 0, 0, 0, 4])
    assert (X.nnz, X.indices[5]) == (11, 2)  # the input keeps its storage


def test_copies_do_not_fill_the_neighbor_lists():
    X = np.repeat(np.arange(6.0)[:, None], 5, axis=0)
    kept = NeighborGraph(4, merge_duplicates=False).describe(X)
    merged = NeighborGraph(4).describe(X)
    assert (kept.n_nodes, kept.n_components) == (30, 6)  # nothing but copies of each other
    assert (merged.n_nodes, merged.n_components) == (6, 1)


def test_unmerged_rows_never_pick_themselves():
    X = np.zeros((20, 2))
    laplacian = NeighborGraph(3, merge_duplicates=False).build(X)
    assert laplacian.adjacency.diagonal().sum() == 0
    assert np.diff(laplacian.adjacency.indptr).min() >= 3
    assert_allclose(laplacian.adjacency.data, 1.0)  # width 0: binary


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
def test_zero_and_minus_zero_are_the_same_number(make):
    X = np.array([[0.0, 1.0], [-0.0, 1.0], [3.0, 1.0]])
    assert NeighborGraph(1).describe(make(X)).n_nodes == 2


@given(X=arrays.arrays(np.float64, (8, 2), elements=st.sampled_from([-1.0, 0.0, 0.5, 2.0])))
def test_nodes_are_the_distinct_rows_and_order_is_irrelevant_despite_ties(X):
    rule = NeighborGraph(2)
    assert rule.describe(X).n_nodes == len(np.unique(X, axis=0))
    S = rule.build(X).scatter(X)
    assert_allclose(rule.build(X[::-1]).scatter(X[::-1]), S, rtol=1e-10, atol=1e-12)
