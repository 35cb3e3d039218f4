"""LocallyLinearEmbedding: scikit-learn, the definition written out, closed groups."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.linalg
from graphs import dense_graphs as dense
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_wine, make_swiss_roll
from sklearn.manifold import LocallyLinearEmbedding as Theirs
from sklearn.preprocessing import scale

from marginfold.errors import GraphError, MarginfoldWarning, SolverError
from marginfold.estimators.locally_linear import LocallyLinearEmbedding
from marginfold.graphs import NeighborGraph, ReconstructionGraph

WINE = scale(load_wine().data)
rng = np.random.default_rng(4)


def aligned(A, B):
    return A * np.sign((A * B).sum(axis=0))


def test_the_definition_written_out():
    fitted = LocallyLinearEmbedding(3, graph=ReconstructionGraph(8, reg=1e-2)).fit(WINE)
    values, vectors = scipy.linalg.eigh(dense.lle(WINE, 8, reg=1e-2))
    assert_allclose(fitted.eigenvalues_, values[1:4], atol=1e-12)
    Y = vectors[:, 1:4] * np.sqrt(len(WINE))
    assert_allclose(aligned(Y, fitted.embedding_), fitted.embedding_, atol=1e-7)


@pytest.mark.parametrize(("n_neighbors", "reg"), [(5, 1e-3), (12, 1e-2)])
def test_scikit_learn_agrees_up_to_the_documented_scale(n_neighbors, reg):
    theirs = Theirs(n_neighbors=n_neighbors, n_components=3, reg=reg, eigen_solver="dense")
    Y = theirs.fit_transform(WINE) * np.sqrt(len(WINE))
    ours = LocallyLinearEmbedding(3, graph=ReconstructionGraph(n_neighbors, reg=reg)).fit(WINE)
    assert_allclose(aligned(Y, ours.embedding_), ours.embedding_, atol=1e-6)
    assert_allclose(theirs.reconstruction_error_, ours.eigenvalues_.sum(), atol=1e-12)
    new = WINE[:40] + 0.3 * rng.standard_normal((40, WINE.shape[1]))
    found = theirs.transform(new) * np.sqrt(len(WINE))
    signs = np.sign((Y * ours.embedding_).sum(axis=0))
    assert_allclose(found * signs, ours.transform(new), atol=1e-6)


def test_scikit_learn_agrees_on_a_large_roll():
    X, t = make_swiss_roll(1200, random_state=0)
    ours = LocallyLinearEmbedding(2, graph=ReconstructionGraph(12)).fit(X)
    Y = Theirs(n_neighbors=12, eigen_solver="dense").fit_transform(X) * np.sqrt(1200)
    assert_allclose(aligned(Y, ours.embedding_), ours.embedding_, atol=1e-4)
    assert abs(np.corrcoef(ours.embedding_[:, 0], t)[0, 1]) > 0.9  # unrolled


def test_weights_enter_both_sides_of_the_problem():
    mass = rng.integers(1, 5, len(WINE)).astype(float)
    fitted = LocallyLinearEmbedding(3).fit(WINE, sample_weight=mass)
    M = np.eye(len(WINE)) - _rebuilding(WINE, 10)
    values, vectors = scipy.linalg.eigh(M.T @ np.diag(mass) @ M, np.diag(mass))
    assert_allclose(fitted.eigenvalues_, values[1:4], atol=1e-12)
    Y = vectors[:, 1:4] * np.sqrt(mass.sum())
    assert_allclose(aligned(Y, fitted.embedding_), fitted.embedding_, atol=1e-7)


def _rebuilding(X, k, reg=1e-3):
    """M, row by row."""
    M = np.zeros((len(X), len(X)))
    for i, x in enumerate(X):
        distances = ((X - x) ** 2).sum(axis=1)
        distances[i] = np.inf
        j = np.argsort(distances)[:k]
        D = X[j] - x
        G = D @ D.T
        w = np.linalg.solve(G + reg * np.trace(G) * np.eye(k), np.ones(k))
        M[i, j] = w / w.sum()
    return M


def test_new_rows_of_a_flat_sheet_lie_between_their_neighbors():
    """On a plane coordinates are affine functions, which barycentric weights carry over."""
    flat = rng.random((300, 2))
    basis = np.linalg.qr(rng.standard_normal((5, 2)))[0].T
    graph = ReconstructionGraph(8, reg=1e-9)
    fitted = LocallyLinearEmbedding(2, graph=graph).fit(flat @ basis)
    assert fitted.eigenvalues_.max() < 1e-12
    design = np.column_stack([flat, np.ones(300)])
    affine = np.linalg.lstsq(design, fitted.embedding_, rcond=None)[0]
    assert_allclose(design @ affine, fitted.embedding_, atol=1e-3)
    new = 0.2 + 0.6 * rng.random((20, 2))
    images = fitted.transform(new @ basis)
    assert_allclose(images, np.column_stack([new, np.ones(20)]) @ affine, atol=1e-2)


def test_groups_that_close_on_themselves_are_warned_of():
    """Rows in between hang on both groups, so that the graph is connected, but none needs them."""
    left = np.random.default_rng(0).random((20, 2))
    X = np.vstack([left, [[11.0, 1.0]] - left, [[5.5, 0.5]]])  # symmetric about the last row
    X[-1, 0] += 1e-3 * np.sign(X[-1, 0])
    graph = ReconstructionGraph(6)
    assert graph.describe(X).n_components == 1
    assert graph.build(X).n_closed == 2
    with pytest.warns(MarginfoldWarning, match="2 separate parts, so 1 of 2"):
        fitted = LocallyLinearEmbedding(graph=graph).fit(X)
    assert fitted.eigenvalues_[0] < 1e-14
    first = fitted.embedding_[:, 0]
    assert_allclose(first[:20], first[0], atol=1e-5)
    assert_allclose(first[20:40], first[20], atol=1e-5)
    assert abs(first[0] - first[20]) > 1


def test_a_connected_graph_has_one_closed_group():
    assert ReconstructionGraph().build(WINE).n_closed == 1
    assert ReconstructionGraph().build(np.ones((4, 2))).n_closed == 1


@pytest.mark.parametrize(
    "graph", ["knn", "within", NeighborGraph(), 2 * ReconstructionGraph()], ids=str
)
def test_other_graphs_are_refused(graph):
    with pytest.raises(GraphError, match=r"needs graph='lle'.*LaplacianEigenmaps"):
        LocallyLinearEmbedding(graph=graph).fit(WINE, load_wine().target)


def test_what_cannot_be_solved_is_an_error_with_advice(monkeypatch):
    for name, value in {"FACTORED_NODES": 0, "WIDE_FRONT": 0, "MAX_PRODUCTS": 100}.items():
        monkeypatch.setattr(f"marginfold.linalg.sparse.{name}", value)
    X = rng.standard_normal((600, 5))
    with pytest.raises(SolverError, match="larger reg"):
        LocallyLinearEmbedding(graph=ReconstructionGraph(10)).fit(X)


def test_all_other_rows_as_neighbors():
    X = rng.standard_normal((12, 4))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted = LocallyLinearEmbedding(graph=ReconstructionGraph(50)).fit(X)
    assert_array_equal(fitted.transform(X), fitted.embedding_)
    assert_allclose(fitted.eigenvalues_, np.linalg.eigvalsh(dense.lle(X, 11))[1:3], atol=1e-12)
