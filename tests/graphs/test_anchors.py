"""The anchor graph against its n x n definition, and its blocks against the whole."""

from __future__ import annotations

import tracemalloc
import warnings
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from graphs import dense_graphs as dense
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse.csgraph import connected_components
from scipy.stats import ortho_group
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier

from marginfold import GESVC, LPP, LSVA, LaplacianEigenmaps
from marginfold.errors import GraphError, InvalidParameterError
from marginfold.graphs import (
    AnchorGraph,
    NeighborGraph,
    PermutedGraph,
    TotalGraph,
    WithinClassGraph,
)
from marginfold.graphs.anchor_graph import (
    AnchorLaplacian,
    Anchors,
    anchor_means,
    block_scatter,
    block_sums,
    sample_rows,
)
from marginfold.linalg.tall import Block, LocalBlocks, total
from marginfold.runtime.progress import watch

N = 60
rng = np.random.default_rng(5)
X = rng.standard_normal((N, 4))
X_WIDE = rng.standard_normal((N, 12)) + 100.0
Z = rng.standard_normal((N, 5)) + 3.0
RULES = {
    "auto": (AnchorGraph(), X),
    "wide": (AnchorGraph(15, 3, random_state=2), X_WIDE),
    "width": (AnchorGraph(9, width=0.7), X),
    "narrow": (AnchorGraph(9, width=1e-3), X),
    "binary": (AnchorGraph(12, 4, weights="binary"), X),
    "all anchors": (AnchorGraph(6, 50), X),
    "all rows": (AnchorGraph(500), X),
    "one": (AnchorGraph(1), X),
}


@pytest.fixture(params=RULES)
def case(request):
    rule, rows = RULES[request.param]
    laplacian = rule.build(rows)
    anchors = laplacian.anchors
    return laplacian, dense.anchors(rows, anchors.points, anchors.n_neighbors, anchors.width)


def given_anchors(anchors, X, weights):
    return AnchorLaplacian(len(X), anchors, anchors.weights(X), np.asarray(weights, dtype=float))


def cut(X, weights, size):
    return LocalBlocks.cut(X, np.zeros(len(X)), weights, size)


def test_scatter_is_the_quadratic_form_of_the_dense_laplacian(case):
    laplacian, L = case
    assert_allclose(laplacian.scatter(np.eye(N)), L, atol=1e-12)
    assert_allclose(laplacian.scatter(Z), Z.T @ L @ Z, rtol=1e-11, atol=1e-11)


def test_laplacian_is_positive_semidefinite_with_constants_in_its_kernel(case):
    L = case[0].scatter(np.eye(N))
    assert np.linalg.eigvalsh(L).min() > -1e-14
    assert_allclose(L.sum(axis=1), 0, atol=1e-14)
    assert_allclose(case[0].degrees, 1)


def test_the_auto_width_is_the_mean_squared_distance_to_the_anchors():
    anchors = AnchorGraph(12, 3).build(X).anchors
    D = ((X[:, None] - anchors.points) ** 2).sum(axis=2)
    assert_allclose(anchors.width, np.sort(D, axis=1)[:, :3].mean(), rtol=1e-12)


@given(
    seed=st.integers(0, 10**6),
    weights=st.lists(st.integers(0, 3), min_size=N, max_size=N).filter(any),
)
def test_weights_are_copies_given_the_anchors(seed, weights):
    points = np.random.default_rng(seed).standard_normal((8, 4))
    anchors = Anchors(points, 3, 1.5)
    rows = np.repeat(np.arange(N), weights)
    weighted = given_anchors(anchors, X, weights)
    repeated = given_anchors(anchors, X[rows], np.ones(len(rows)))
    L = dense.anchors(X[rows], points, 3, 1.5)
    assert_allclose(weighted.scatter(Z), Z[rows].T @ L @ Z[rows], rtol=1e-10, atol=1e-10)
    assert_allclose(repeated.scatter(Z[rows]), weighted.scatter(Z), rtol=1e-10, atol=1e-10)
    assert_allclose(weighted.degrees, weights)
    a, b = weighted.describe("a"), repeated.describe("a")
    assert (a.n_components, a.n_nodes) == (b.n_components, np.count_nonzero(weights))


def test_rows_without_weight_have_no_part_in_the_anchors():
    weights = np.arange(N) % 3.0
    far = np.where(weights[:, None] > 0, X, 1e6)
    a, b = (AnchorGraph(8).build(rows, sample_weight=weights) for rows in (X, far))
    assert_array_equal(a.anchors.points, b.anchors.points)
    assert a.anchors.width == b.anchors.width
    assert_allclose(a.scatter(Z), b.scatter(Z), rtol=1e-12)


@pytest.mark.parametrize("size", [3, 40, 1000])
@pytest.mark.parametrize("n_anchors", [5, 40])  # a sample of the rows, and all of them
def test_the_cut_into_blocks_does_not_matter(size, n_anchors):
    rows = np.random.default_rng(0).standard_normal((300, 10)) + 1e4
    weights = np.arange(300) % 4.0
    rule = AnchorGraph(n_anchors, 3)
    whole = rule.build(rows, sample_weight=weights)
    anchors = rule.choose(cut(rows, weights, size), weights)
    assert_allclose(anchors.points, whole.anchors.points, rtol=1e-14)
    assert_allclose(anchors.width, whole.anchors.width, rtol=1e-12)
    blocks = cut(rows, weights, size)
    means = anchor_means(blocks.map(lambda b: block_sums(anchors.weights(b.Z), b.Z**2, b.weights)))
    parts = blocks.map(
        lambda b, M: block_scatter(anchors.weights(b.Z), b.Z**2, b.weights, M), means
    )
    expected = whole.scatter(rows**2)
    assert_allclose(total(parts), expected, atol=1e-10 * np.abs(expected).max())


def test_a_block_without_rows_adds_nothing():
    weights = np.ones(N)
    empty = Block(X[:0], np.zeros(0), weights[:0], 20)
    blocks = LocalBlocks(
        [
            Block(X[:20], np.zeros(20), weights[:20]),
            empty,
            Block(X[20:], np.zeros(40), weights[20:], 20),
        ]
    )
    anchors = AnchorGraph(7).choose(blocks, weights)
    assert_allclose(anchors.points, AnchorGraph(7).build(X).anchors.points, rtol=1e-13)
    S = anchors.weights(empty.Z)
    sums, mass = block_sums(S, Z[:0], empty.weights)
    assert not sums.any()
    assert not mass.any()
    assert not block_scatter(S, Z[:0], empty.weights, np.zeros((7, 5))).any()


def test_a_sample_has_different_rows_of_positive_weight_in_order():
    weights = (np.arange(1000) % 2).astype(float)
    rows = sample_rows(weights, 100, np.random.default_rng(0))
    assert len(np.unique(rows)) == 100
    assert (np.diff(rows) > 0).all()
    assert weights[rows].all()
    assert 350 < rows.mean() < 650
    assert_array_equal(sample_rows(weights, 500, np.random.default_rng(0)), np.arange(1, 1000, 2))


def test_motions_and_scale_do_not_matter():
    Q = ortho_group.rvs(4, random_state=0)
    L = AnchorGraph(10).build(X).scatter(np.eye(N))
    assert_allclose(AnchorGraph(10).build(1e3 * X @ Q + 7).scatter(np.eye(N)), L, atol=1e-9)
    assert_allclose(AnchorGraph(10).build(1e140 * X).scatter(np.eye(N)), L, atol=1e-9)


def test_far_parts_and_offsets_do_not_cancel():
    rows = np.vstack([X, X + 1e7])
    rule = AnchorGraph(20, 3)
    laplacian = rule.build(rows)
    assert laplacian.describe("a").n_components == 2
    own = np.vstack([X, (X + 1e7) - 1e7])  # L is blind to what is constant on a part
    assert_allclose(laplacian.scatter(rows), laplacian.scatter(own), rtol=1e-7)
    assert_allclose(laplacian.scatter(own + 1e8), laplacian.scatter(own), rtol=1e-6)
    assert np.linalg.eigvalsh(laplacian.scatter(rows)).min() > 0


def test_components_are_those_of_the_rows():
    rows = rng.standard_normal((80, 2)) + 6.0 * rng.integers(0, 4, (80, 1))
    laplacian = AnchorGraph(25, 1).build(rows)
    count, labels = connected_components(np.abs(laplacian.scatter(np.eye(80))) > 1e-14)
    description = laplacian.describe("a")
    assert description.n_components == count == len(np.unique(laplacian.components))
    same = laplacian.components[:, None] == laplacian.components
    assert_array_equal(same, labels[:, None] == labels)
    assert description.n_edges == 80


def test_the_description_counts_links_to_anchors():
    laplacian = AnchorGraph(9, 4, width=1e-3).build(X)
    S = dense.anchor_weights(X, laplacian.anchors.points, 4, 1e-3)
    description = AnchorGraph(9, 4, width=1e-3).describe(X)
    assert description.n_edges == np.count_nonzero(S)
    assert description.n_underflowed == 4 * N - np.count_nonzero(S > 2.3e-16)
    assert_allclose(description.largest_weight, S.max())
    assert (description.n_rows, description.n_nodes, description.recall) == (N, N, None)


def test_anchors_lie_where_the_rows_are():
    rows = load_digits().data
    for seed in (0, 1):
        points = AnchorGraph(50, random_state=seed).build(rows).anchors.points
        inertia = ((rows[:, None, :] - points) ** 2).sum(axis=2).min(axis=1).sum()
        best = KMeans(50, n_init=1, random_state=0).fit(rows).inertia_
        assert inertia < 1.1 * best
    again = AnchorGraph(50, random_state=1).build(rows).anchors.points
    assert_array_equal(points, again)


def test_heavy_rows_draw_the_anchors():
    rows = np.random.default_rng(0).random((4000, 1))
    weights = np.where(rows[:, 0] < 0.1, 50.0, 1.0)
    plain, heavy = (AnchorGraph(40).build(rows, sample_weight=w).anchors for w in (None, weights))
    assert (heavy.points < 0.1).sum() > 2 * (plain.points < 0.1).sum()


@pytest.mark.parametrize("place", [0, 1, 2])
@pytest.mark.parametrize("seed", range(3))
def test_a_row_far_from_all_others_is_an_anchor_wherever_it_stands(seed, place):
    """Without it the anchors would stay at both heavy rows."""
    rows = np.insert([[0.0], [1.0]], place, 1e4, axis=0)
    weights = np.where(rows[:, 0] > 1.0, 1.0, 1e5)
    anchors = AnchorGraph(2, 1, random_state=seed, width=1.0).build(rows, sample_weight=weights)
    assert_allclose(np.sort(anchors.anchors.points[:, 0]), [0.5, 1e4], rtol=1e-12)


def test_the_second_anchor_is_drawn_by_squared_distance():
    """The first one is the heavy row; the last row moves the mean, and is too light to be drawn."""
    rows, weights = np.array([[0.0], [-1.4], [1.43], [3.97]]), [1e9, 1.0, 1.0, 1e-12]
    drawn = np.zeros(2)
    for seed in range(30):
        rule = AnchorGraph(2, 1, random_state=seed, weights="binary")
        points = rule.build(rows, sample_weight=weights).anchors.points
        drawn += np.isclose(points, [-1.4, 1.43], rtol=1e-6).any(axis=0)
    assert drawn.sum() == 30
    share = 1.43**2 / (1.4**2 + 1.43**2)
    assert abs(drawn[1] - 30 * share) < 4 * np.sqrt(30 * share * (1 - share))


def test_an_anchor_without_rows_adds_nothing():
    near, far = Anchors(X[:5], 2, 1.0), Anchors(np.vstack([X[:5], [[1e3] * 4]]), 2, 1.0)
    first, second = (given_anchors(anchors, X, np.ones(N)) for anchors in (near, far))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert_allclose(second.scatter(Z), first.scatter(Z), rtol=1e-14)
        means = anchor_means([block_sums(second.weights_to_anchors, Z, np.ones(N))])
    assert_array_equal(means[5], 0.0)


@pytest.mark.parametrize("d", [3, 30])
def test_sparse_rows_give_the_same_graph(d):
    rows = rng.standard_normal((90, d)) * (rng.random((90, d)) < 0.4)
    weights = np.arange(90) % 3
    built, expected = (
        AnchorGraph(20).build(make(rows), sample_weight=weights)
        for make in (sp.csr_array, np.array)
    )
    assert_allclose(built.scatter(rows), expected.scatter(rows), rtol=1e-10)


def test_few_distinct_rows_are_the_anchors():
    rows = np.repeat([[0.0, 1.0], [2.0, 2.0], [5.0, 0.0]], [4, 1, 3], axis=0)
    laplacian = AnchorGraph(6, 1).build(rows)
    assert_allclose(np.unique(laplacian.anchors.points, axis=0), np.unique(rows, axis=0))
    assert_allclose(laplacian.scatter(rows), 0, atol=1e-14)
    description = laplacian.describe("a")
    assert (description.n_components, description.n_isolated) == (3, 1)


@pytest.mark.parametrize("seed", range(4))
def test_copies_of_a_row_are_one_anchor_whatever_its_digits(seed):
    """Of squared lengths and products, the distance between copies would be a rounding error."""
    places = np.random.default_rng(seed).standard_normal((9, 3)) + 2.0
    points = AnchorGraph(30, 2).build(np.repeat(places, 7, axis=0)).anchors.points
    assert_allclose(points[np.lexsort(points.T)], places[np.lexsort(places.T)], rtol=1e-13)


@pytest.mark.parametrize("rows", [[[1.0, 2.0]], [[3.0, 3.0]] * 5])
def test_a_single_place_is_a_graph_without_differences(rows):
    laplacian = AnchorGraph().build(rows)
    assert_allclose(laplacian.scatter(rows), 0)
    assert_allclose(laplacian.scatter(np.eye(len(rows))), dense.total(len(rows)), atol=1e-15)


def test_sums_multiples_and_permutations():
    y = rng.integers(0, 3, N)
    rule = 0.5 * AnchorGraph(10) + WithinClassGraph()
    L = AnchorGraph(10).build(X).scatter(np.eye(N))
    assert_allclose(rule.build(X, y).scatter(np.eye(N)), 0.5 * L + dense.within(y), atol=1e-12)
    changed = clone(rule).set_params(first__graph__n_anchors=N, first__graph__n_neighbors=1)
    assert np.abs(changed.build(X, y).scatter(np.eye(N)) - 0.5 * L - dense.within(y)).max() > 0.01
    mixed = (AnchorGraph(10) + NeighborGraph(3)).describe(X)
    assert mixed.n_components == 1
    permuted = PermutedGraph(AnchorGraph(10), 3).build(X).scatter(np.eye(N))
    assert_allclose(np.linalg.eigvalsh(permuted), np.linalg.eigvalsh(L), atol=1e-12)
    assert np.abs(permuted - L).max() > 0.01


def test_there_is_no_sparse_matrix_of_the_rows():
    for rule in (AnchorGraph(), AnchorGraph() + NeighborGraph(), PermutedGraph(AnchorGraph())):
        with pytest.raises(
            GraphError, match=r"AnchorGraph has no sparse matrix.*NeighborGraph\(\)"
        ):
            rule.build(X).on_nodes()
    with pytest.raises(GraphError, match="AnchorGraph has no sparse matrix"):
        LaplacianEigenmaps(2, graph="anchors").fit(X)


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        ("n_anchors", 0),
        ("n_anchors", "many"),
        ("n_anchors", 3.0),
        ("n_neighbors", 0),
        ("random_state", None),
        ("weights", "cosine"),
        ("width", 0.0),
        ("width", "wide"),
    ],
)
def test_parameters_out_of_range(parameter, value):
    rule = AnchorGraph().set_params(**{parameter: value})
    for work in (rule.build, lambda X: rule.choose(cut(X, np.ones(N), N), np.ones(N))):
        with pytest.raises(
            InvalidParameterError, match=f"AnchorGraph: {parameter} must be .*; got"
        ):
            work(X)


def test_bad_rows_are_refused_by_name():
    with pytest.raises(GraphError, match="AnchorGraph got X with NaN"):
        AnchorGraph().build(X * np.nan)


@pytest.fixture(scope="module")
def digits():
    rows, y = load_digits(return_X_y=True)
    return train_test_split(rows / 16.0, y, test_size=0.5, random_state=0, stratify=y)


@pytest.mark.parametrize("kind", [LSVA, LPP])
def test_subspaces_of_digits_are_as_good_as_with_neighbors(kind, digits):
    train, test, y_train, y_test = digits
    scores = []
    for graph in ("anchors", "knn"):
        model = kind(9, graph=graph).fit(train, y_train)
        nearest = KNeighborsClassifier(1).fit(model.transform(train), y_train)
        scores.append(nearest.score(model.transform(test), y_test))
    assert scores[0] > scores[1] - 0.02


def test_unlabelled_digits_help_as_much_as_with_neighbors(digits):
    train, test, y_train, y_test = digits
    labels = np.where(np.arange(len(y_train)) < 100, y_train, -1)
    scores = [
        GESVC(graph=graph, unlabeled=-1).fit(train, labels).score(test, y_test)
        for graph in ("anchors", "knn", TotalGraph())
    ]
    assert scores[0] > scores[1] - 0.03
    assert scores[0] > scores[2] - 0.01


def test_progress_counts_the_rows_of_all():
    rows = np.random.default_rng(0).standard_normal((2500, 1000))
    seen = []
    with watch(seen.append):
        AnchorGraph(3, 1).build(rows)
    assert {(event.stage, event.total) for event in seen} == {
        ("anchors", 2500),
        ("weights on anchors", 2500),
    }
    for before, event in pairwise(seen):
        assert before.done < event.done < 2500 or event.done == 0


def test_memory_is_linear_in_the_rows():
    rows = np.random.default_rng(0).standard_normal((200_000, 20))
    tracemalloc.start()
    try:
        laplacian = AnchorGraph(100).build(rows)
        scatter = laplacian.scatter(rows)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 8 * rows.nbytes
    assert 0 < np.linalg.eigvalsh(scatter).min() < np.linalg.eigvalsh(scatter).max() < 2.2e5


def test_rows_without_weight_have_no_edges():
    weights = np.where(np.arange(len(X)) % 5 == 0, 0.0, 1.5)
    all_rows, some = AnchorGraph(8), X[weights > 0]
    found = all_rows.describe(X, sample_weight=weights)
    expected = all_rows.describe(some, sample_weight=weights[weights > 0])
    assert (found.n_nodes, found.n_edges) == (len(some), expected.n_edges)
    assert found.n_components == expected.n_components
    assert_allclose(found.smallest_weight, expected.smallest_weight)
    assert_allclose(found.largest_weight, expected.largest_weight)
