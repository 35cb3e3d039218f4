from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from sklearn.manifold import LocallyLinearEmbedding

from marginfold.errors import InvalidParameterError
from marginfold.graphs import ReconstructionGraph

rng = np.random.default_rng(2)


def test_smallest_eigenvalues_agree_with_scikit_learn():
    X = rng.standard_normal((60, 3))
    lle = LocallyLinearEmbedding(n_neighbors=6, n_components=3, reg=1e-2, eigen_solver="dense")
    error = lle.fit(X).reconstruction_error_
    L = ReconstructionGraph(6, reg=1e-2).build(X).scatter(np.eye(60))
    assert_allclose(np.linalg.eigvalsh(L)[1:4].sum(), error, rtol=1e-6)


def test_motions_and_scale_do_not_matter():
    X = rng.standard_normal((40, 3))
    L = ReconstructionGraph(5).build(X).scatter(np.eye(40))
    Q = np.linalg.qr(rng.standard_normal((3, 3)))[0]
    assert_allclose(
        ReconstructionGraph(5).build(1e-4 * X @ Q + 2).scatter(np.eye(40)), L, atol=1e-8
    )


def test_sparse_rows_give_the_same_graph():
    X = sp.csc_array(rng.random((60, 12)) * (rng.random((60, 12)) < 0.4))
    expected = ReconstructionGraph(5).build(X.toarray()).scatter(X.toarray())
    assert_allclose(ReconstructionGraph(5).build(X).scatter(X.toarray()), expected, rtol=1e-9)


def test_chunks_join_without_a_seam(monkeypatch):
    X = rng.standard_normal((50, 4))
    whole = ReconstructionGraph(5).build(X).scatter(X)
    monkeypatch.setattr("marginfold.graphs.neighbor_search.CHUNK_ENTRIES", 700)
    assert_allclose(ReconstructionGraph(5).build(X).scatter(X), whole, rtol=1e-12)
    assert_allclose(ReconstructionGraph(5).build(sp.csr_array(X)).scatter(X), whole, rtol=1e-9)


@pytest.mark.parametrize("X", [[[1.0, 2.0]], [[1.0], [1.0], [1.0]]])
def test_a_single_node_is_isolated(X):
    laplacian = ReconstructionGraph().build(X)
    assert_allclose(laplacian.scatter(np.array(X)), 0)
    description = ReconstructionGraph().describe(X)
    assert (description.n_nodes, description.n_edges, description.n_isolated) == (1, 0, 1)


def test_two_far_groups_are_two_components():
    X = np.concatenate([rng.standard_normal((10, 2)), rng.standard_normal((10, 2)) + 100])
    description = ReconstructionGraph(3).describe(X)
    assert (description.n_components, description.n_isolated) == (2, 0)
    assert 30 <= description.n_edges <= 60


@pytest.mark.parametrize(("parameter", "value"), [("n_neighbors", -1), ("reg", 0.0), ("reg", "a")])
def test_parameters_out_of_range(parameter, value):
    rule = ReconstructionGraph().set_params(**{parameter: value})
    message = f"ReconstructionGraph: {parameter} must be .*; got"
    with pytest.raises(InvalidParameterError, match=message):
        rule.build([[0.0], [1.0]])
