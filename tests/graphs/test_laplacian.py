"""Every rule against the dense Laplacian of its definition."""

from __future__ import annotations

import numpy as np
import pytest
from graphs import dense_graphs as dense
from numpy.testing import assert_allclose

from marginfold.errors import GraphError
from marginfold.graphs import (
    BetweenClassGraph,
    NeighborGraph,
    PrecomputedGraph,
    ReconstructionGraph,
    TotalGraph,
    WithinClassGraph,
)

N = 30
rng = np.random.default_rng(7)
X = rng.standard_normal((N, 4))
X_WIDE = rng.standard_normal((N, 20)) + 100.0
y = np.array(["a", "b", "c"])[rng.integers(0, 3, N)]
Z = rng.standard_normal((N, 5)) + 3.0
W = rng.random((N, N))
W = W + W.T

CASES = {
    "knn": (NeighborGraph(4), X, dense.knn(X, 4)),
    "knn wide": (NeighborGraph(4), X_WIDE, dense.knn(X_WIDE, 4)),
    "knn width": (NeighborGraph(4, width=2.5), X, dense.knn(X, 4, width=2.5)),
    "knn binary": (NeighborGraph(3, weights="binary"), X, dense.knn(X, 3, weights="binary")),
    "knn distance": (NeighborGraph(4, weights="distance"), X, dense.knn(X, 4, weights="distance")),
    "knn 1/d": (
        NeighborGraph(3, weights="distance", width=1.0, mode="mutual"),
        X_WIDE,
        dense.knn(X_WIDE, 3, weights="distance", width=1.0, mode="mutual"),
    ),
    "knn mutual": (NeighborGraph(5, mode="mutual"), X, dense.knn(X, 5, mode="mutual")),
    "knn within": (NeighborGraph(3, within_class=True), X, dense.knn(X, 3, groups=y)),
    "knn rows": (NeighborGraph(4, merge_duplicates=False), X, dense.knn(X, 4)),
    "knn all": (NeighborGraph(500), X, dense.knn(X, N - 1)),
    "total": (TotalGraph(), X, dense.total(N)),
    "within": (WithinClassGraph(), X, dense.within(y)),
    "between": (BetweenClassGraph(), X, dense.between(y)),
    "lle": (ReconstructionGraph(4), X, dense.lle(X, 4)),
    "lle wide": (ReconstructionGraph(6, reg=0.1), X_WIDE, dense.lle(X_WIDE, 6, reg=0.1)),
    "precomputed": (PrecomputedGraph(W), X, dense.laplacian(W)),
    "sum": (
        0.3 * NeighborGraph(4) + 2 * WithinClassGraph(),
        X,
        0.3 * dense.knn(X, 4) + 2 * dense.within(y),
    ),
}


@pytest.fixture(params=CASES)
def case(request):
    rule, rows, L = CASES[request.param]
    return rule.build(rows, y), L


def test_scatter_is_the_quadratic_form_of_the_dense_laplacian(case):
    laplacian, L = case
    assert_allclose(laplacian.scatter(np.eye(N)), L, atol=1e-12)
    assert_allclose(laplacian.scatter(Z), Z.T @ L @ Z, rtol=1e-10, atol=1e-10)


def test_scatter_is_symmetric_semidefinite_and_blind_to_constants(case):
    laplacian, _ = case
    S = laplacian.scatter(Z)
    assert np.array_equal(S, S.T)
    L = laplacian.scatter(np.eye(N))
    assert_allclose(L.sum(axis=1), 0, atol=1e-12)
    assert np.linalg.eigvalsh(L)[0] > -1e-12
    assert_allclose(laplacian.scatter(Z + 1e4), S, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(("name", "diagonal"), [("knn", 0), ("within", None), ("lle", None)])
def test_degrees_are_the_row_sums_of_the_weights(name, diagonal):
    rule, rows, L = CASES[name]
    expected = np.diag(L) if diagonal == 0 else np.ones(N)  # D = I for the projectors and LLE
    assert_allclose(rule.build(rows, y).degrees, expected, rtol=1e-12)


def test_degrees_add_and_scale():
    laplacian = (0.3 * NeighborGraph(4) + 2 * WithinClassGraph()).build(X, y)
    assert_allclose(laplacian.degrees, 0.3 * NeighborGraph(4).build(X).degrees + 2)
    assert_allclose(BetweenClassGraph().build(X, y).degrees, 0)


def test_total_is_within_plus_between_with_weights():
    w = rng.random(N) + 0.1
    parts = (WithinClassGraph() + BetweenClassGraph()).build(X, y, sample_weight=w)
    assert_allclose(parts.scatter(Z), TotalGraph().build(X, sample_weight=w).scatter(Z))
    assert_allclose(
        TotalGraph().build(X, sample_weight=w).scatter(Z),
        np.cov(Z.T, aweights=w, ddof=0) * w.sum(),
    )


@pytest.mark.parametrize("name", CASES)
def test_row_order_does_not_matter(name):
    rule, rows, L = CASES[name]
    if name == "precomputed":
        order = np.arange(N)
    else:
        order = np.random.default_rng(1).permutation(N)
    laplacian = rule.build(rows[order], y[order])
    assert_allclose(laplacian.scatter(Z[order]), Z.T @ L @ Z, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("gap", [1.0, 1e4, 1e7, 1e9])
def test_the_scatter_between_far_groups_is_that_of_the_edges(gap):
    """``d z^2 - w z z'`` cancels where the groups are not joined; so do sizes of the columns."""
    far = X + gap * (np.arange(N) % 2)[:, None] * np.array([1.0, 0.0, -2.0, 0.0])
    adjacency = np.where(np.subtract.outer(np.arange(N), np.arange(N)) % 2, 0.0, W)
    expected = np.zeros((4, 4))
    for i, j in np.argwhere(np.triu(adjacency, 1)):
        expected += adjacency[i, j] * np.outer(far[i] - far[j], far[i] - far[j])
    for graph in (PrecomputedGraph(adjacency), 0.5 * PrecomputedGraph(2.0 * adjacency)):
        assert_allclose(graph.build(far).scatter(far), expected, rtol=1e-7)
    indicator = np.arange(N)[:, None] % 2 * 1e6
    assert PrecomputedGraph(adjacency).build(far).scatter(indicator) == 0.0


@pytest.mark.parametrize("offset", [64.0, 512.0])
def test_an_offset_of_all_rows_costs_no_digits(offset):
    """Whole numbers of 1/1024: the rows and their differences are exact, with the offset too."""
    rows = np.rint(1024 * Z) / 1024
    i, j = np.triu_indices(N, 1)
    edges = (rows[i] - rows[j]) * np.sqrt(W[i, j])[:, None]
    found = PrecomputedGraph(W).build(X).scatter(rows + offset)
    size = np.abs(found).max()
    assert_allclose(found, edges.T @ edges, rtol=0, atol=1e-14 * size)


@pytest.mark.parametrize("shape", [(N - 1, 2), (N,)])
def test_scatter_refuses_other_rows(shape):
    with pytest.raises(GraphError, match=f"EdgeLaplacian.*needs {N} rows"):
        NeighborGraph().build(X).scatter(np.zeros(shape))


def test_inputs_are_not_written_to():
    rows, weights, coordinates = X.copy(), np.ones(N), Z.copy()
    for rule, _, _ in CASES.values():
        rule.build(rows, y, sample_weight=weights).scatter(coordinates)
    assert np.array_equal(rows, X)
    assert np.array_equal(coordinates, Z)
    assert np.array_equal(weights, np.ones(N))
