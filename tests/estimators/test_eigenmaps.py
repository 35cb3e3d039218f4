"""LaplacianEigenmaps: two oracles, Nystroem's formula by hand, every kind of graph."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse as sp
from graphs import dense_graphs as dense
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_iris, load_wine, make_swiss_roll
from sklearn.manifold import SpectralEmbedding
from sklearn.preprocessing import scale

from marginfold.errors import GraphError, InvalidInputError, MarginfoldWarning
from marginfold.estimators.eigenmaps import LaplacianEigenmaps
from marginfold.graphs import (
    BetweenClassGraph,
    NeighborGraph,
    PrecomputedGraph,
    ReconstructionGraph,
    TotalGraph,
)

WINE, CLASSES = load_wine(return_X_y=True)
WINE = scale(WINE)
rng = np.random.default_rng(3)


def aligned(A, B):
    return A * np.sign((A * B).sum(axis=0))


def literal(L, k):
    """Bottom eigenvectors of (L, D) with mean 0 and variance 1 by degree, and their values."""
    d = np.diag(L).copy()
    values, vectors = scipy.linalg.eigh(L, np.diag(d))
    return values[1 : k + 1], vectors[:, 1 : k + 1] * np.sqrt(d.sum())


@pytest.mark.parametrize(
    "options",
    [{}, {"weights": "binary"}, {"width": 9.0}, {"mode": "mutual", "n_neighbors": 25}],
    ids=str,
)
def test_the_definition_written_out(options):
    k = options.get("n_neighbors", 10)
    rest = {name: value for name, value in options.items() if name != "n_neighbors"}
    fitted = LaplacianEigenmaps(3, graph=NeighborGraph(k, **rest)).fit(WINE)
    values, Y = literal(dense.knn(WINE, k, **rest), 3)
    assert_allclose(fitted.eigenvalues_, values, atol=1e-12)
    assert_allclose(aligned(Y, fitted.embedding_), fitted.embedding_, atol=1e-8)


def test_scikit_learn_agrees_up_to_the_documented_scale():
    L = NeighborGraph().build(WINE).scatter(np.eye(len(WINE)))
    W = np.diag(np.diag(L)) - L
    theirs = SpectralEmbedding(3, affinity="precomputed", random_state=0).fit_transform(W)
    theirs *= np.sqrt(W.sum())
    ours = LaplacianEigenmaps(3).fit(WINE).embedding_
    assert_allclose(aligned(theirs, ours), ours, atol=1e-6)


def test_scikit_learn_agrees_on_a_sparse_graph():
    X, _ = make_swiss_roll(900, random_state=0)
    graph = NeighborGraph(8)
    built = graph.build(X)
    rows = np.argsort(built.rows)
    W = sp.csr_matrix(built.adjacency)[rows][:, rows]
    theirs = SpectralEmbedding(2, affinity="precomputed", random_state=0).fit_transform(W)
    theirs *= np.sqrt(W.sum())
    ours = LaplacianEigenmaps(graph=graph).fit(X).embedding_
    assert_allclose(aligned(theirs, ours), ours, atol=1e-4)


def test_a_roll_is_unrolled():
    X, t = make_swiss_roll(1500, random_state=0)
    first = LaplacianEigenmaps(graph=NeighborGraph(10)).fit(X).embedding_[:, 0]
    ranks = np.argsort(np.argsort(first)), np.argsort(np.argsort(t))
    assert abs(np.corrcoef(*ranks)[0, 1]) > 0.99


@pytest.mark.parametrize("weights", ["heat", "distance", "binary"])
def test_new_rows_by_nystroems_formula(weights):
    mass = rng.integers(1, 4, len(WINE))
    new = WINE[:25] + 0.2 * rng.standard_normal((25, WINE.shape[1]))
    rule = NeighborGraph(6, weights=weights)
    fitted = LaplacianEigenmaps(4, graph=rule).fit(WINE, sample_weight=mass)
    squared = ((WINE[:, None] - WINE) ** 2).sum(axis=2)
    np.fill_diagonal(squared, np.inf)
    near = np.argsort(squared, axis=1)[:, :6]
    pair = mass[:, None] * mass[near]
    width = np.average(np.take_along_axis(squared, near, 1), weights=pair)
    for x, image in zip(new, fitted.transform(new), strict=True):
        distances = ((WINE - x) ** 2).sum(axis=1)
        j = np.argsort(distances)[:6]
        W = mass[j] * dense.edge_weight(weights, distances[j], width)
        mean = W @ fitted.embedding_[j] / W.sum()
        assert_allclose(image, mean / np.maximum(1 - fitted.eigenvalues_, 0.5), rtol=1e-9)


def test_inverse_distances_place_a_row_beside_a_node_there_and_a_far_one_among_the_nearest():
    fitted = LaplacianEigenmaps(graph=NeighborGraph(6, weights="distance")).fit(WINE)
    gain = np.maximum(1 - fitted.eigenvalues_, 0.5)
    beside = fitted.transform(WINE + 1e-7) * gain
    assert np.abs(beside - fitted.embedding_).max() < 0.01
    direction = np.linspace(1, 2, WINE.shape[1])  # no two rows are equally far along it
    near = np.argsort(-WINE @ direction)[:6]
    means = fitted.embedding_[near].mean(axis=0) / gain
    assert_allclose(fitted.transform([1e6 * direction])[0], means, rtol=1e-4)
    assert np.isfinite(fitted.transform([1e120 * direction])).all()


def test_coordinates_that_alternate_are_not_amplified():
    n = 12
    W = np.ones((n, n)) - np.eye(n)  # complete graph: every eigenvalue is n / (n - 1) > 1
    X = np.eye(n)
    fitted = LaplacianEigenmaps(2, graph=NeighborGraph(n - 1, weights="binary")).fit(X)
    assert_allclose(fitted.eigenvalues_, n / (n - 1))
    assert_allclose(literal(np.diag(W.sum(axis=1)) - W, 2)[0], n / (n - 1))
    image = fitted.transform(X[:1] + 0.01)
    assert (np.abs(image) <= 2 * np.abs(fitted.embedding_).max()).all()


def test_an_eigenvector_extends_itself():
    """Nystroem's formula is an identity on the nodes: with all rows as neighbors it is exact."""
    X = rng.standard_normal((40, 2))
    graph = NeighborGraph(39)
    fitted = LaplacianEigenmaps(3, graph=graph).fit(X)
    L = graph.build(X).scatter(np.eye(40))
    W = np.diag(np.diag(L)) - L
    means = W @ fitted.embedding_ / W.sum(axis=1, keepdims=True)
    assert_allclose(means / (1 - fitted.eigenvalues_), fitted.embedding_, atol=1e-9)


def test_a_precomputed_graph_embeds_its_rows_only():
    L = NeighborGraph().build(WINE).scatter(np.eye(len(WINE)))
    graph = PrecomputedGraph(np.diag(np.diag(L)) - L)
    fitted = LaplacianEigenmaps(graph=graph).fit(WINE)
    assert_allclose(fitted.embedding_, LaplacianEigenmaps().fit(WINE).embedding_, atol=1e-8)
    assert_array_equal(fitted.transform(WINE[::-1]), fitted.embedding_[::-1])
    with pytest.raises(InvalidInputError, match=r"1 rows that equal no training row.*Precomputed"):
        fitted.transform(np.vstack([WINE[:2], WINE[:1] + 1e-9]))


def test_a_precomputed_graph_keeps_equal_rows_apart():
    W = np.diag(np.ones(5), 1) + np.diag(np.ones(5), -1)
    fitted = LaplacianEigenmaps(1, graph=PrecomputedGraph(W)).fit(np.zeros((6, 1)))
    assert_allclose(fitted.eigenvalues_, 1 - np.cos(np.pi / 5))
    with pytest.raises(InvalidInputError, match="several of them"):
        fitted.transform(np.zeros((2, 1)))


def test_rows_without_a_rule_are_placed_at_the_mean():
    W = np.diag([1.0, 1, 1, 0], 1) + np.diag([1.0, 1, 1, 0], -1)
    X = np.arange(5.0)[:, None]
    with pytest.warns(MarginfoldWarning, match=r"1 distinct rows have no neighbor.* at 0"):
        fitted = LaplacianEigenmaps(1, graph=PrecomputedGraph(W)).fit(X)
    assert fitted.embedding_[4] == 0
    assert_array_equal(fitted.transform(X), fitted.embedding_)
    weights = [1, 1, 1, 1, 0]
    with pytest.warns(MarginfoldWarning, match=r"1 distinct rows have no neighbor.* at 0"):
        absent = LaplacianEigenmaps(1, graph=PrecomputedGraph(W)).fit(X, sample_weight=weights)
    assert_array_equal(absent.embedding_, fitted.embedding_)


def test_rows_without_a_neighbor_are_placed_like_new_ones():
    X = np.vstack([rng.random((40, 2)), [[3.0, 3.0]]])
    graph = NeighborGraph(12, mode="mutual", width=2.0)
    assert graph.describe(X).n_isolated == 1
    assert graph.describe(X).n_components == 2
    with pytest.warns(MarginfoldWarning, match=r"1 distinct rows have no neighbor.*like new rows"):
        fitted = LaplacianEigenmaps(graph=graph).fit(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        absent = LaplacianEigenmaps(graph=graph).fit(X, sample_weight=[1] * 40 + [0])
        without = LaplacianEigenmaps(graph=graph).fit(X[:40])
    assert_array_equal(fitted.transform(X), fitted.embedding_)
    assert_allclose(fitted.embedding_, absent.embedding_, atol=1e-10)
    assert_allclose(fitted.embedding_, without.transform(X), atol=1e-10)


def test_a_graph_within_classes_tells_them_apart():
    X, y = load_iris(return_X_y=True)
    graph = NeighborGraph(8, within_class=True)
    with pytest.warns(MarginfoldWarning, match="3 separate parts, so 2 of 2"):
        fitted = LaplacianEigenmaps(graph=graph).fit(X, y)
    assert_array_equal(fitted.eigenvalues_, 0.0)
    assert len(np.unique(fitted.embedding_, axis=0)) == 3
    new = fitted.transform(X[[10, 60, 120]] + 0.001)  # neighbors of every class count
    assert_allclose(new[0], fitted.embedding_[10])
    with pytest.raises(GraphError, match="y=None"):
        LaplacianEigenmaps(graph=graph).fit(X)


def test_copies_with_other_labels_are_other_nodes():
    X = np.repeat(rng.standard_normal((15, 2)), 2, axis=0)
    y = np.tile([0, 1], 15)
    X, y = np.vstack([X, X[:4]]), np.append(y, y[:4])
    with pytest.warns(MarginfoldWarning, match="2 separate parts"):
        fitted = LaplacianEigenmaps(1, graph=NeighborGraph(3, within_class=True)).fit(X, y)
    sides = fitted.embedding_[:, 0] > 0
    assert len(set(sides[y == 0])) == len(set(sides[y == 1])) == 1
    assert sides[0] != sides[1]
    assert_array_equal(fitted.embedding_[30:], fitted.embedding_[:4])


def test_a_wide_gap_with_a_narrow_width_is_a_gap():
    """Weights that underflow, to 0 or below rounding, join nothing."""
    X = np.append(np.arange(12.0), 40 + np.arange(12.0))[:, None]
    with pytest.warns(MarginfoldWarning, match="2 separate parts"):
        fitted = LaplacianEigenmaps(1, graph=NeighborGraph(12, width=8.0)).fit(X)
    assert_allclose(fitted.eigenvalues_, 0.0)


def test_multiples_and_sums_of_graphs():
    first, second = NeighborGraph(5), NeighborGraph(12, weights="binary")
    alone = LaplacianEigenmaps(graph=first).fit(WINE)
    multiple = LaplacianEigenmaps(graph=7.0 * first).fit(WINE)
    assert_allclose(multiple.embedding_, alone.embedding_, atol=1e-9)
    assert_allclose(multiple.transform(WINE + 0.1), alone.transform(WINE + 0.1), atol=1e-9)
    graph = 0.5 * first + second
    both = LaplacianEigenmaps(3, graph=graph).fit(WINE)
    values, Y = literal(graph.build(WINE).scatter(np.eye(len(WINE))), 3)
    assert_allclose(both.eigenvalues_, values, atol=1e-12)
    assert_allclose(aligned(Y, both.embedding_), both.embedding_, atol=1e-8)
    assert_array_equal(both.transform(WINE), both.embedding_)
    with pytest.raises(InvalidInputError, match="does not say how they are joined"):
        both.transform(WINE + 0.1)


def test_a_sum_finds_nodes_in_another_order():
    graph = NeighborGraph(5) + NeighborGraph(5, within_class=True)
    fitted = LaplacianEigenmaps(graph=graph).fit(WINE, CLASSES)
    values, Y = literal(graph.build(WINE, CLASSES).scatter(np.eye(len(WINE))), 2)
    assert_allclose(fitted.eigenvalues_, values, atol=1e-12)
    assert_allclose(aligned(Y, fitted.embedding_), fitted.embedding_, atol=1e-8)


def test_a_sum_on_other_nodes_is_refused():
    X = np.vstack([WINE, WINE[:1]])
    graph = NeighborGraph() + NeighborGraph(merge_duplicates=False)
    with pytest.raises(GraphError, match="178 and 179 nodes"):
        LaplacianEigenmaps(graph=graph).fit(X)


def test_unmerged_copies_are_nodes_of_their_own():
    X = np.vstack([WINE, WINE[:9]])
    fitted = LaplacianEigenmaps(graph=NeighborGraph(merge_duplicates=False)).fit(X)
    assert fitted.embedding_.shape == (187, 2)
    assert_array_equal(fitted.transform(X[50:60]), fitted.embedding_[50:60])
    assert np.isfinite(fitted.transform(X[:9])).all()


@pytest.mark.parametrize("graph", ["within", "total", BetweenClassGraph(), 2 * TotalGraph()])
def test_graphs_of_classes_are_refused(graph):
    with pytest.raises(GraphError, match=r"no sparse matrix.*NeighborGraph"):
        LaplacianEigenmaps(graph=graph).fit(WINE, CLASSES)


def test_a_mixed_sum_is_refused():
    with pytest.raises(GraphError, match="no sparse matrix"):
        LaplacianEigenmaps(graph=NeighborGraph() + TotalGraph()).fit(WINE)


def test_negative_weights_are_allowed_if_the_graph_is():
    W = np.array([[0, 3, -1.0], [3, 0, 3], [-1, 3, 0]])
    fitted = LaplacianEigenmaps(graph=PrecomputedGraph(W)).fit(np.eye(3))
    values, Y = literal(np.diag(W.sum(axis=1)) - W, 2)
    assert_allclose(fitted.eigenvalues_, values)
    assert_allclose(aligned(Y, fitted.embedding_), fitted.embedding_, atol=1e-12)


def test_a_graph_without_weights_is_refused():
    with pytest.raises(GraphError, match="without edges"):
        LaplacianEigenmaps(graph=0.0 * NeighborGraph()).fit(WINE)


def test_a_reconstruction_graph_gives_locally_linear_coordinates():
    fitted = LaplacianEigenmaps(graph="lle").fit(WINE)
    L = ReconstructionGraph().build(WINE).scatter(np.eye(len(WINE)))
    values, vectors = np.linalg.eigh(L)
    assert_allclose(fitted.eigenvalues_, values[1:3], atol=1e-12)
    Y = vectors[:, 1:3] * np.sqrt(len(WINE))
    assert_allclose(aligned(Y, fitted.embedding_), fitted.embedding_, atol=1e-6)
