from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from marginfold.errors import GraphError
from marginfold.graphs import NeighborGraph, PrecomputedGraph

X = np.arange(4.0)[:, None]
PATH = np.array([[0.0, 1, 0, 0], [1, 0, 2, 0], [0, 2, 0, 0], [0, 0, 0, 0]])


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array, sp.coo_matrix, np.ndarray.tolist])
def test_any_matrix_will_do_and_the_diagonal_is_ignored(kind):
    W = PATH + np.diag([5.0, 0, -3, 1])
    graph = clone(PrecomputedGraph(kind(W)))
    assert_allclose(graph.build(X).scatter(np.eye(4)), np.diag([1.0, 3, 2, 0]) - PATH)
    description = graph.describe(X)
    assert (description.n_edges, description.n_components, description.n_isolated) == (2, 2, 1)
    assert (description.smallest_weight, description.largest_weight) == (1, 2)


@pytest.mark.parametrize("kind", [np.array, sp.csr_array])
def test_the_matrix_that_was_given_stays_as_it_was(kind):
    given = kind(PATH + np.diag([5.0, 0, -3, 1]))
    before = given.copy()
    PrecomputedGraph(given).build(X, sample_weight=[2, 1, 1, 1])
    assert abs(given - before).max() == 0


def test_a_matrix_with_entries_in_parts_and_out_of_order_stays_as_it_was():
    """SciPy adds up the parts of an entry in place, where it needs them."""
    parts = [1.0, 1.5, 0.5, 1.0, 2.0], [1, 2, 2, 0, 1], [0, 1, 4, 5, 5]
    given = sp.csr_array(parts, shape=(4, 4))
    before = given.data.copy(), given.indices.copy(), given.indptr.copy()
    L = PrecomputedGraph(given).build(X).scatter(np.eye(4))
    assert_allclose(L, np.diag([1.0, 3, 2, 0]) - PATH)
    for array, copy in zip((given.data, given.indices, given.indptr), before, strict=True):
        assert_array_equal(array, copy)


def test_weights_of_zero_that_are_stored_join_nothing():
    stored = sp.csr_array(PATH + np.eye(4)[::-1])
    stored[0, 3] = stored[3, 0] = stored[1, 2] = stored[2, 1] = 0.0
    built, expected = PrecomputedGraph(stored).build(X), PATH * (PATH == 1)
    assert_allclose(built.scatter(np.eye(4)), np.diag(expected.sum(axis=0)) - expected)


def test_it_reproduces_the_graph_it_was_taken_from():
    rows = np.random.default_rng(0).standard_normal((40, 3))
    built = NeighborGraph(5, merge_duplicates=False).build(rows)
    copy = PrecomputedGraph(built.adjacency).build(rows)
    assert_allclose(copy.scatter(rows), built.scatter(rows))


def test_rows_without_weight_are_no_nodes():
    description = PrecomputedGraph(PATH).describe(X, sample_weight=[1, 0, 1, 1])
    assert (description.n_nodes, description.n_edges, description.n_isolated) == (3, 0, 3)


def test_another_number_of_rows_is_refused():
    with pytest.raises(GraphError, match=r"PrecomputedGraph.*\(4, 4\) for 3 rows.*cross-valid"):
        PrecomputedGraph(PATH).build(X[:3])


def test_asymmetry_is_refused_and_measured():
    W = PATH.copy()
    W[0, 1] += 0.25
    with pytest.raises(GraphError, match=r"PrecomputedGraph.*up to 0.25.*\(W \+ W.T\) / 2"):
        PrecomputedGraph(W).build(X)
    W[0, 1] = 1 + 1e-14
    L = PrecomputedGraph(W).build(X).scatter(np.eye(4))
    assert np.array_equal(L, L.T)


def test_weights_that_are_not_finite_are_refused():
    W = PATH.copy()
    W[1, 2] = W[2, 1] = np.nan
    with pytest.raises(GraphError, match="PrecomputedGraph got NaN"):
        PrecomputedGraph(W).build(X)


@pytest.mark.parametrize("unit", [1e-200, 1e200])
def test_weights_whose_products_would_leave_the_numbers_are_refused(unit):
    with pytest.raises(GraphError, match=r"PrecomputedGraph got weights of size 2e.*by a constant"):
        PrecomputedGraph(unit * PATH).build(X)


def ring(n, chord):
    """Edges of weight 1 around a ring and a chord: PSD until -chord is 1 / resistance."""
    i = np.arange(n)
    W = sp.coo_array((np.ones(n), (i, (i + 1) % n)), shape=(n, n)).tolil()
    W[0, n // 2] += chord
    return sp.csr_array(W + W.T)


@pytest.mark.parametrize("n", [4, 2002])
def test_negative_weights_are_judged_by_the_smallest_eigenvalue(n):
    rows = np.arange(float(n))[:, None]
    limit = 4 / n  # one over the resistance of the ring between its two ends
    accepted = PrecomputedGraph(ring(n, -0.9 * limit)).build(rows)
    assert accepted.weight_range[0] < 0
    with pytest.raises(GraphError, match=r"PrecomputedGraph.*not positive semi-definite.*is -"):
        PrecomputedGraph(ring(n, -1.1)).build(rows)
