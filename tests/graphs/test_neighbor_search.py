"""Every way to search neighbors against the exact one."""

from __future__ import annotations

import subprocess
import sys
import tracemalloc
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import BaseEstimator, clone
from sklearn.decomposition import PCA
from sklearn.neighbors import KNeighborsTransformer, NearestNeighbors, RadiusNeighborsTransformer
from threadpoolctl import threadpool_info, threadpool_limits

from marginfold.errors import CancelledError, GraphError, InvalidParameterError, MarginfoldWarning
from marginfold.graphs import NeighborGraph, PermutedGraph, ReconstructionGraph, TotalGraph
from marginfold.graphs.neighbor_search import (
    TREE_MAX_COLUMNS,
    entries_per_row,
    find_neighbors,
    matching_rows,
    nearest,
    nearest_points,
    pair_distances,
)
from marginfold.runtime.progress import watch

rng = np.random.default_rng(17)
X = rng.standard_normal((180, 12))
EXACT = {
    "distances": KNeighborsTransformer(mode="distance"),
    "connections": KNeighborsTransformer(mode="connectivity", n_neighbors=1),
    "tree": KNeighborsTransformer(mode="distance", algorithm="ball_tree"),
    "no transformer": NearestNeighbors(),
    "all": RadiusNeighborsTransformer(radius=1e3),
}


class Chosen(BaseEstimator):
    """A transformer that joins the rows it was told to."""

    def __init__(self, pairs):
        self.pairs = pairs

    def fit(self, X, y=None):
        return self

    def fit_transform(self, X, y=None):
        i, j = self.pairs
        return sp.csr_array((np.ones(len(i)), (i, j)), shape=(len(X), len(X)))


def pairs_of(indices):
    return np.repeat(np.arange(len(indices)), indices.shape[1]), indices.ravel()


@pytest.mark.parametrize("name", EXACT)
@pytest.mark.parametrize("rule", [NeighborGraph(6), ReconstructionGraph(6)])
def test_an_exact_transformer_gives_the_exact_graph(name, rule):
    search = EXACT[name]
    before = repr(search)
    built = clone(rule).set_params(search=search).build(X)
    assert_array_equal(built.scatter(X), rule.set_params(search="exact").build(X).scatter(X))
    assert built.recall == 1.0
    assert repr(search) == before
    assert not hasattr(search, "n_samples_fit_")


@pytest.mark.parametrize("name", ["distances", "no transformer"])
def test_sparse_rows_and_classes_go_through_a_transformer(name):
    rows = sp.csr_array(X * (rng.random(X.shape) < 0.5))
    y = np.arange(180) % 3
    for rule in (NeighborGraph(4), NeighborGraph(4, within_class=True)):
        built = clone(rule).set_params(search=EXACT[name]).build(rows, y)
        assert_allclose(built.scatter(X), rule.build(rows, y).scatter(X), rtol=1e-12)


def test_auto_is_exact_for_few_rows():
    assert NeighborGraph().build(X).recall is None
    a, b = (NeighborGraph(search=search).build(X).scatter(X) for search in ("auto", "exact"))
    assert_array_equal(a, b)


def test_the_recall_is_the_share_of_true_neighbors():
    true = nearest(X, 12)[0]
    pairs = pairs_of(np.hstack([true[:, :4], true[:, 6:8]]))  # four of the six nearest
    with pytest.warns(MarginfoldWarning, match=r"found 66\.7% of the true ones.*search='exact'"):
        laplacian = NeighborGraph(6, merge_duplicates=False, search=Chosen(pairs)).build(X)
    assert_allclose(laplacian.recall, 4 / 6)
    description = laplacian.describe("graph")
    assert_allclose(description.recall, 4 / 6)
    assert "recall 0.667" in str(description)


def test_just_enough_true_neighbors_are_no_cause_for_a_warning():
    """The warning says "at least 95%": here it is 19 of 20."""
    true = nearest(X, 25)[0]
    pairs = pairs_of(np.hstack([true[:, :19], true[:, 22:23]]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert find_neighbors(X, 20, Chosen(pairs)).recall == 0.95


def test_the_distances_of_found_pairs_are_exact():
    true, squared = nearest(X, 12)
    with pytest.warns(MarginfoldWarning):
        found = find_neighbors(X, 3, Chosen(pairs_of(true[:, [7, 2, 9, 4]])))
    assert_array_equal(found.indices, true[:, [2, 4, 7]])
    assert_array_equal(found.squared, squared[:, [2, 4, 7]])


def test_rows_that_were_found_too_few_neighbors_are_searched_again():
    true, _ = nearest(X, 5)
    i, j = pairs_of(true)
    lost = (i % 7 == 0) & (j % 2 == 0)
    found = find_neighbors(X, 5, Chosen((i[~lost], j[~lost])))
    assert_array_equal(found.indices, true)
    assert found.recall == 1.0


def test_sums_and_permutations_keep_the_recall():
    pairs = pairs_of(nearest(X, 12)[0][:, 2:8])
    rule = NeighborGraph(6, merge_duplicates=False, search=Chosen(pairs))
    other = NeighborGraph(search=NearestNeighbors())
    graphs = [rule, 0.5 * rule, rule + TotalGraph(), other + rule, PermutedGraph(rule)]
    with pytest.warns(MarginfoldWarning):
        recalls = [graph.build(X).recall for graph in graphs]
    assert_allclose(recalls, 4 / 6)
    assert TotalGraph().build(X).recall is None
    assert (TotalGraph() + NeighborGraph()).build(X).recall is None


def test_unusable_transformers_are_refused():
    few = Chosen(pairs_of(nearest(X, 2)[0]))
    with pytest.raises(GraphError, match=r"found 2 other rows for each of 180.*needs 5"):
        NeighborGraph(5, search=few).build(X)
    with pytest.raises(GraphError, match=r"PCA.*returned a ndarray of shape \(180, 12\)"):
        NeighborGraph(5, search=PCA()).build(X)


@pytest.mark.parametrize("value", ["annoy", None, 3, NearestNeighbors, object()])
@pytest.mark.parametrize("kind", [NeighborGraph, ReconstructionGraph])
def test_what_is_no_search_is_refused(kind, value):
    with pytest.raises(InvalidParameterError, match=rf"{kind.__name__}: search must be .*'faiss'"):
        kind(search=value).build(X)


def test_a_grid_search_reaches_the_transformer():
    rule = clone(NeighborGraph(search=KNeighborsTransformer()))
    assert rule.set_params(search__algorithm="brute").search.algorithm == "brute"


@pytest.fixture
def faiss():
    return pytest.importorskip("faiss", reason='needs pip install "marginfold[faiss]"')


@pytest.mark.parametrize("d", [3, 30])
def test_faiss_finds_the_neighbors(faiss, d):
    rows = rng.standard_normal((2000, d)) @ rng.standard_normal((d, d))
    found = find_neighbors(rows, 10, "faiss")
    true, squared = nearest(rows, 10)
    recall = np.mean([np.isin(a, b).mean() for a, b in zip(found.indices, true, strict=True)])
    assert recall > 0.97
    assert abs(found.recall - recall) < 0.03  # a sample of 200 rows
    same = found.indices == true
    assert_array_equal(found.squared[same], squared[same])
    again = find_neighbors(rows, 10, "faiss")
    assert_array_equal(again.indices, found.indices)


@pytest.mark.filterwarnings("ignore::marginfold.errors.MarginfoldWarning")
def test_faiss_looks_further_where_there_is_no_structure(faiss, monkeypatch):
    rows = rng.standard_normal((3000, 60))
    monkeypatch.setattr("marginfold.graphs.neighbor_search.LINKS", 5)
    monkeypatch.setattr("marginfold.graphs.neighbor_search.BUILD_DEPTH", 10)
    chosen = find_neighbors(rows, 10, "faiss").recall
    monkeypatch.setattr("marginfold.graphs.neighbor_search.SEARCH_DEPTHS", (30,))
    shallow = find_neighbors(rows, 10, "faiss").recall
    assert chosen > shallow + 0.1


def test_sparse_rows_are_searched_without_a_dense_copy():
    columns = rng.integers(0, 100_000, (150, 10))
    values = np.ones(columns.size), columns.ravel(), np.arange(0, columns.size + 1, 10)
    rows = sp.csr_array(values, shape=(150, 100_000))
    tracemalloc.start()
    try:
        nearest(rows, 3)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 0.1 * 8 * rows.shape[0] * rows.shape[1]


def test_faiss_survives_offsets_and_units(faiss):
    rows = rng.integers(0, 1000, (500, 20)) / 1024.0  # exact also after the shift
    found = find_neighbors(rows, 5, "faiss")
    assert found.recall > 0.97
    for moved in (rows + 2.0**30, rows * 2.0**400, rows * 2.0**-400):
        assert_array_equal(find_neighbors(moved, 5, "faiss").indices, found.indices)


def test_faiss_leaves_its_threads_as_they_were(faiss):
    before = faiss.omp_get_max_threads()
    try:
        faiss.omp_set_num_threads(2)
        NeighborGraph(search="faiss").build(X)
        assert faiss.omp_get_max_threads() == 2
        with pytest.raises(GraphError, match=r"search='faiss' got sparse rows"):
            NeighborGraph(search="faiss").build(sp.csr_array(X))
        assert faiss.omp_get_max_threads() == 2
    finally:
        faiss.omp_set_num_threads(before)


def test_auto_takes_faiss_for_many_rows_of_many_columns(faiss, monkeypatch):
    monkeypatch.setattr("marginfold.graphs.neighbor_search.EXACT_MAX_ROWS", 100)
    assert NeighborGraph().build(X).recall > 0.97
    assert ReconstructionGraph().build(X).recall > 0.97
    assert NeighborGraph(search="exact").build(X).recall is None
    assert NeighborGraph().build(X[:, :5]).recall is None  # a k-d tree is faster
    assert NeighborGraph().build(X[:100]).recall is None
    with pytest.warns(MarginfoldWarning, match=r"180 rows.*does not take sparse.*AnchorGraph\(\)"):
        assert NeighborGraph().build(sp.csr_array(X)).recall is None


def test_many_rows_without_faiss():
    program = """
import sys, warnings
sys.modules["faiss"] = None  # as if it were not installed
import numpy as np
from marginfold.graphs import NeighborGraph, neighbor_search
neighbor_search.EXACT_MAX_ROWS = 100
X = np.random.default_rng(0).standard_normal((150, 12))
try:
    NeighborGraph(search="faiss").build(X)
except ModuleNotFoundError as error:
    print(error)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    slow = NeighborGraph().build(X)
    NeighborGraph().build(X[:, :8])
    exact = NeighborGraph(search="exact").build(X)
print(len(caught), caught[0].message)
print(slow.recall, (slow.scatter(X) == exact.scatter(X)).all())
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    missing, warning, result = done.stdout.splitlines()
    assert missing == 'faiss is not installed: pip install "marginfold[faiss]"'
    assert warning.startswith("1 Neighbors of 150 rows with 12 columns are searched exactly")
    assert 'pip install "marginfold[faiss]"' in warning
    assert "AnchorGraph()" in warning
    assert result == "None True"


@pytest.mark.parametrize("search", ["exact", "faiss"])
def test_steps_are_reported_and_can_be_cancelled(search, monkeypatch):
    if search == "faiss":
        pytest.importorskip("faiss", reason='needs pip install "marginfold[faiss]"')
    expected = NeighborGraph(search=search).build(X)
    if search == "exact":
        monkeypatch.setattr("marginfold.graphs.neighbor_search.PAIRS_PER_STEP", 50 * 180)
    monkeypatch.setattr("marginfold.graphs.neighbor_search.ROWS_PER_STEP", 50)
    events = []
    with watch(events.append):
        built = NeighborGraph(search=search).build(X)
    steps = [event.done for event in events if event.stage == "neighbors"]
    assert steps[:4] == [0, 50, 100, 150]
    assert {event.total for event in events if event.done in steps} >= {180}
    if search == "exact":
        assert_array_equal(built.scatter(X), expected.scatter(X))
    with pytest.raises(CancelledError), watch(lambda event: event.cancel()):
        NeighborGraph(search=search).build(X)


@pytest.mark.parametrize(("small", "threads"), [(len(X) ** 2, 1), (len(X) ** 2 - 1, 2)])
def test_a_small_search_uses_one_thread_and_restores_the_others(small, threads, monkeypatch):
    monkeypatch.setattr("marginfold.graphs.neighbor_search.SMALL_SEARCH", small)
    monkeypatch.setattr("marginfold.graphs.neighbor_search.PAIRS_PER_STEP", 50 * len(X))
    inside = []
    with threadpool_limits(2), watch(lambda event: inside.extend(openmp_threads())):
        NeighborGraph(search="exact").build(X)
        assert set(openmp_threads()) == {2}
    assert set(inside) == {threads}


@pytest.mark.parametrize("rows_as", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("n_new", [None, 60, 1100])
def test_the_number_of_threads_does_not_choose_among_equal_distances(n_new, rows_as, monkeypatch):
    monkeypatch.setattr("marginfold.graphs.neighbor_search.SMALL_SEARCH", 0)
    rows = np.random.default_rng(0).integers(0, 2, (1500, 12)).astype(float)
    found = []
    for threads in (1, 2, 4):
        with threadpool_limits(threads):
            if n_new is None:
                found.append(nearest(rows_as(rows), 5)[0])
            else:
                found.append(nearest_points(rows_as(rows), rows_as(1 - rows[:n_new]), 5)[0])
    assert_array_equal(found[1], found[0])
    assert_array_equal(found[2], found[0])


def test_an_exact_search_warns_about_nothing():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        NeighborGraph().build(X)
        NeighborGraph(search=KNeighborsTransformer()).build(X)


@pytest.mark.parametrize("n_columns", [2, TREE_MAX_COLUMNS, TREE_MAX_COLUMNS + 1])
def test_sparse_rows_have_the_neighbors_of_dense_ones_whatever_their_columns(n_columns):
    """Trees are for few dense columns: of others scikit-learn would warn."""
    rows = np.random.default_rng(0).standard_normal((60, n_columns))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found, expected = (
            NeighborGraph(4, search="exact").build(part) for part in (sp.csr_array(rows), rows)
        )
    assert_allclose(found.scatter(rows), expected.scatter(rows), rtol=1e-12)


@pytest.mark.parametrize("n_columns", [3, 40])
def test_the_numbers_stored_for_a_row_are_those_of_its_columns_or_its_entries(n_columns):
    dense = np.ones((12, n_columns))
    assert entries_per_row(dense) == n_columns
    assert entries_per_row(sp.csr_array(dense[:, :2] @ np.eye(2, n_columns))) == 2
    assert entries_per_row(sp.csr_array((12, n_columns))) == 1


@pytest.mark.parametrize("rows_as", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("gap", [1.0, 1e4, 1e8, 1e9, 1e12])
@pytest.mark.parametrize("n_far", [1, 60])
def test_far_rows_do_not_hide_which_of_the_others_are_near(gap, n_far, rows_as):
    """|x|^2 - 2x'y + |y|^2 is off by a share of the sizes, which are those of the gap."""
    far = X[:120].copy()
    far[:n_far, 0] += gap
    between = far + 0.1 * X[60:]
    for rows, own in ((far, True), (between, False)):
        true = np.square(rows[:, None] - far).sum(axis=2)
        true[np.arange(120), np.arange(120)] += np.inf if own else 0.0
        order = np.argsort(true, axis=1, kind="stable")[:, :5]
        points, new = rows_as(far), rows_as(rows)
        indices, squared = nearest(points, 5) if own else nearest_points(points, new, 5)
        assert_array_equal(indices, order)
        assert_allclose(squared, np.take_along_axis(true, order, 1), rtol=1e-12)


@pytest.mark.parametrize("rows_as", [np.asarray, sp.csr_array])
def test_ordinary_rows_are_searched_once(rows_as, monkeypatch):
    rows = np.round(4 * X) * (rng.random(X.shape) < 0.7)  # with ties, and equal rows
    rows = np.vstack([rows, rows, rows, rows, rows, rows])
    calls = []

    def counted(*args):
        calls.append(args)
        return pair_distances(*args)

    monkeypatch.setattr("marginfold.graphs.neighbor_search.pair_distances", counted)
    for some in (rows, 1e3 * X, X + 1e3, np.exp(5 * X)):
        nearest(rows_as(some), 5)
    assert len(calls) == 4


def openmp_threads():
    return [info["num_threads"] for info in threadpool_info() if info["user_api"] == "openmp"]


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_a_row_matches_the_one_point_that_equals_it(kind):
    points = kind(np.array([[1.0, 0.0], [2.0, 3.0], [2.0, 3.0], [0.0, 5.0]]))
    rows = kind(np.array([[0.0, 5.0], [2.0, 3.0], [4.0, 4.0], [1.0, -0.0], [0.0, 5.0]]))
    assert matching_rows(points, rows).tolist() == [3, -1, -1, 0, 3]
