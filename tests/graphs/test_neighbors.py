from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from scipy.stats import ortho_group
from sklearn.neighbors import kneighbors_graph

from marginfold.errors import GraphError, GraphUnderflowWarning, InvalidParameterError
from marginfold.graphs import NeighborGraph
from marginfold.graphs.neighbor_search import nearest

rng = np.random.default_rng(11)


@pytest.mark.parametrize("d", [3, 25])
@pytest.mark.parametrize("mode", ["union", "mutual"])
def test_edges_agree_with_scikit_learn(d, mode):
    X = rng.standard_normal((200, d))
    A = kneighbors_graph(X, 7).toarray()
    A = np.maximum(A, A.T) if mode == "union" else np.minimum(A, A.T)
    L = NeighborGraph(7, weights="binary", mode=mode).build(X).scatter(np.eye(200))
    assert_allclose(L, np.diag(A.sum(axis=1)) - A, atol=1e-12)


@pytest.mark.parametrize("d", [4, 20])
def test_motions_and_scale_do_not_matter(d):
    X = rng.standard_normal((60, d))
    Q = ortho_group.rvs(d, random_state=0)
    S = NeighborGraph(5).build(X).scatter(np.eye(60))
    assert_allclose(NeighborGraph(5).build(X @ Q + 7).scatter(np.eye(60)), S, atol=1e-10)
    assert_allclose(NeighborGraph(5).build(1e-3 * X).scatter(np.eye(60)), S, atol=1e-10)
    fixed = NeighborGraph(5, width=float(d))
    assert (
        np.abs(fixed.build(2 * X).scatter(np.eye(60)) - fixed.build(X).scatter(np.eye(60))).max()
        > 0.01
    )


def test_inverse_distances_are_free_of_units_unless_the_width_is_fixed():
    X = rng.standard_normal((60, 4))
    rule = NeighborGraph(5, weights="distance")
    S = rule.build(X).scatter(np.eye(60))
    assert_allclose(rule.build(1e-3 * X).scatter(np.eye(60)), S, rtol=1e-9, atol=1e-10)
    fixed = NeighborGraph(5, weights="distance", width=1.0)
    S = fixed.build(X).scatter(np.eye(60))
    assert_allclose(fixed.build(1e-2 * X).scatter(np.eye(60)), 100 * S, rtol=1e-9, atol=1e-8)


def test_equal_rows_that_are_nodes_of_their_own_have_the_largest_inverse_distance():
    X = np.array([[0.0], [0.0], [1.0], [1.0 + 1e-9], [3.0]])
    rows = NeighborGraph(1, weights="distance", width=1.0, merge_duplicates=False)
    assert_allclose(rows.build(X).degrees, [1000, 1000, 1000, 1000.5, 0.5], rtol=1e-8)
    merged = NeighborGraph(1, weights="distance", width=1.0).build(X)
    assert_allclose(merged.degrees, [2, 0, 1002, 1000.5, 0.5], rtol=1e-8)
    assert_allclose(merged.scatter(X), [[2 * 1 + 1e-18 * 1000 + 0.5 * 4]], rtol=1e-8)


@pytest.mark.parametrize("d", [5, 40])
def test_sparse_rows_give_the_same_graph(d):
    X = sp.csr_array(rng.standard_normal((80, d)) * (rng.random((80, d)) < 0.3))
    for rule in (NeighborGraph(4), NeighborGraph(4, merge_duplicates=False, mode="mutual")):
        built, expected = rule.build(X), rule.build(X.toarray())
        Z = X.toarray()
        assert_allclose(built.scatter(Z), expected.scatter(Z), rtol=1e-10, atol=1e-10)


def test_search_survives_an_offset_that_swallows_the_distances():
    X = rng.integers(0, 1000, (300, 20)) / 1024.0  # exact also after the shift
    near, squared = nearest(X, 6)
    far, far_squared = nearest(X + 2.0**30, 6)
    assert np.array_equal(near, far)
    assert_allclose(squared, far_squared, rtol=1e-12)


def test_neighbors_come_nearest_first_with_exact_distances():
    X = rng.standard_normal((50, 3))
    indices, squared = nearest(X, 4)
    D = ((X[:, None] - X) ** 2).sum(axis=2)
    np.fill_diagonal(D, np.inf)
    assert np.array_equal(indices, np.argsort(D, axis=1)[:, :4])
    assert_allclose(squared, np.sort(D, axis=1)[:, :4], rtol=1e-13)


@pytest.mark.parametrize("d", [1, 3, 8])
def test_neighbors_within_parts_far_from_each_other_are_exact_in_few_columns(d):
    """At 1e9 the squared lengths of the rows have no digit left for the distances."""
    part = rng.standard_normal((60, d))
    X = np.vstack([part, part + 1e9])
    D = ((X[:, None] - X) ** 2).sum(axis=2)
    np.fill_diagonal(D, np.inf)
    assert_allclose(nearest(X, 4)[1], np.sort(D, axis=1)[:, :4], rtol=1e-13)


@pytest.mark.parametrize("marker", [-1, "none", np.nan])
def test_unlabelled_rows_are_isolated_within_classes_only(marker):
    X = rng.standard_normal((20, 2))
    if isinstance(marker, str):
        y = np.array(["p", "q"] * 10, dtype=object)
    else:
        y = np.array([0.0, 1.0] * 10)
    y[:5] = marker
    laplacian = NeighborGraph(3, within_class=True).build(X, y, unlabeled=marker)
    assert_allclose(laplacian.degrees[:5], 0)
    assert laplacian.degrees[5:].min() > 0
    labelled = NeighborGraph(3, within_class=True).build(X[5:], y[5:])
    assert_allclose(laplacian.scatter(X), labelled.scatter(X[5:]))
    assert NeighborGraph(3).build(X, y, unlabeled=marker).degrees.min() > 0


def test_a_class_of_one_row_is_isolated():
    laplacian = NeighborGraph(within_class=True).build([[0.0], [1.0], [5.0]], ["a", "a", "b"])
    assert_allclose(laplacian.degrees, [np.exp(-1), np.exp(-1), 0])


def test_a_single_row_is_a_graph_without_edges():
    description = NeighborGraph().describe([[1.0, 2.0]])
    assert (description.n_nodes, description.n_edges, description.n_isolated) == (1, 0, 1)


def test_a_class_without_weight_is_absent():
    X, y = np.arange(4.0)[:, None], ["a", "a", "b", "b"]
    rule = NeighborGraph(within_class=True)
    assert rule.describe(X, y, sample_weight=[1, 1, 0, 0]).n_nodes == 2


def test_fixed_width_underflows_on_many_columns_and_says_so():
    X = rng.standard_normal((1000, 50))
    with pytest.warns(GraphUnderflowWarning, match=r"NeighborGraph.*width=1.*width='auto'"):
        description = NeighborGraph(width=1.0).describe(X)
    assert description.n_underflowed > 0.8 * description.n_edges
    assert "underflowed" in str(description)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        description = NeighborGraph().describe(X)
    assert description.n_underflowed == 0
    assert description.smallest_weight > 0.05


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        ("n_neighbors", 0),
        ("n_neighbors", 2.0),
        ("n_neighbors", True),
        ("weights", "cosine"),
        ("width", 0.0),
        ("width", np.inf),
        ("width", "wide"),
        ("mode", "both"),
        ("within_class", 1),
        ("merge_duplicates", None),
    ],
)
def test_parameters_out_of_range(parameter, value):
    rule = NeighborGraph().set_params(**{parameter: value})
    with pytest.raises(InvalidParameterError, match=f"NeighborGraph: {parameter} must be .*; got"):
        rule.build([[0.0], [1.0]])


def test_within_class_needs_labels():
    with pytest.raises(GraphError, match="NeighborGraph got y=None"):
        NeighborGraph(within_class=True).build([[0.0], [1.0]])


def test_distances_that_are_too_small_to_square_give_equal_weights():
    rows = 1e-170 * np.arange(4.0)[:, None]
    description = NeighborGraph(1).describe(rows)
    assert (description.n_underflowed, description.n_nodes) == (0, 4)
    assert (description.smallest_weight, description.largest_weight) == (1.0, 1.0)
