"""The check before every fit: what cannot fit is refused before anything is allocated."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from estimator_families import EVERY_ESTIMATOR
from sklearn.kernel_approximation import Nystroem

from marginfold import (
    GEPSVC,
    GESVC,
    KDA,
    LDA,
    LSVA,
    MMDA,
    MRGEPSVC,
    SVMPCA,
    ExactKernel,
    LaplacianEigenmaps,
    LowRankKernel,
    MarginMap,
    NeighborGraph,
    SubspaceSearchCV,
)
from marginfold.errors import TooLargeError
from marginfold.planner.check import _is_small, check_memory
from marginfold.planner.costs import peak_memory
from marginfold.planner.workload import Rows, rows_of, workload_of
from marginfold.runtime.memory import ALWAYS_THERE, LIMIT_VARIABLE

pytestmark = pytest.mark.attack("memory guards")

ALL = [cls for cls in EVERY_ESTIMATOR if cls is not MarginMap]  # whose classifier says it


def endless(n_rows, n_columns, dtype=np.float64):
    """Return rows that take no memory however many there are."""
    return np.broadcast_to(np.zeros((1, n_columns), dtype=dtype), (n_rows, n_columns))


@pytest.fixture(autouse=True)
def plenty(monkeypatch):
    """Let no test depend on the machine: the limit is 10 GB unless a test sets its own."""
    monkeypatch.setenv(LIMIT_VARIABLE, "10GB")
    monkeypatch.setattr("marginfold.runtime.memory._system_memory", lambda: 10**12)


@pytest.mark.parametrize("cls", ALL)
def test_a_fit_that_is_too_large_is_refused_before_anything_is_allocated(cls):
    X, y = endless(100_000_000, 30), np.broadcast_to(np.int8(1), 100_000_000)
    model = cls()
    tracemalloc.start()
    try:
        with pytest.raises(TooLargeError, match=f"{cls.__name__} on 100000000 x 30 .*Instead: "):
            model.fit(X, y)
        assert tracemalloc.get_traced_memory()[1] < 2_000_000
    finally:
        tracemalloc.stop()
    assert vars(model) == vars(cls())


def test_the_exact_kernel_is_refused_with_the_line_to_use_instead():
    with pytest.raises(TooLargeError) as e:
        LSVA(kernel=ExactKernel("rbf")).fit(endless(100_000, 20), np.arange(100_000) % 2)
    assert 'LSVA(..., kernel=LowRankKernel("rbf", rank=500))' in str(e.value)


def test_the_parameters_of_the_kernel_are_kept_in_the_line():
    kernel = ExactKernel("poly", degree=2, gamma=0.5)
    with pytest.raises(TooLargeError, match=r'"poly", degree=2, gamma=0.5, rank=500'):
        check_memory(KDA(kernel=kernel), endless(100_000, 20))


def test_a_smaller_rank_is_proposed_where_the_larger_does_not_fit(monkeypatch):
    monkeypatch.setenv(LIMIT_VARIABLE, "300MB")
    with pytest.raises(TooLargeError, match="rank=200"):
        check_memory(KDA(), endless(50_000, 20))


@pytest.mark.parametrize(
    ("kernel", "parameter"),
    [
        (LowRankKernel(rank=1000), "rank"),
        (LowRankKernel(), "rank"),
        (Nystroem(n_components=1000), "n_components"),
    ],
)
def test_fewer_coordinates_are_proposed_for_a_map_that_has_too_many(monkeypatch, kernel, parameter):
    monkeypatch.setenv(LIMIT_VARIABLE, "40MB")
    model, X = LSVA(2, kernel=kernel), endless(4000, 20)
    with pytest.raises(TooLargeError) as e:
        check_memory(model, X)
    assert f"LSVA(...).set_params(kernel__{parameter}=200)" in str(e.value)
    check_memory(model.set_params(**{f"kernel__{parameter}": 200}), X)


def test_proposed_chunks_are_several_and_small_in_coordinates_too():
    def rows_of_chunk(model, X):
        with pytest.raises(TooLargeError) as e:
            check_memory(model, X)
        return int(str(e.value).partition("chunks=(")[2].partition(",")[0])

    assert rows_of_chunk(MMDA(), endless(50_000_000, 20)) == 1e8 / (8 * 20)
    low = MMDA(kernel=LowRankKernel(rank=100))
    assert rows_of_chunk(low, endless(50_000_000, 20)) == 1e8 / (8 * 100)


def test_a_search_is_refused_before_its_folds():
    with pytest.raises(TooLargeError, match="LowRankKernel"):
        SubspaceSearchCV(LSVA(2, kernel=ExactKernel("rbf"))).fit(
            endless(100_000, 5), np.arange(100_000) % 2
        )


def test_sparse_rows_with_very_many_columns_are_refused_as_they_would_be_dense():
    X = sp.csr_array(([1.0], ([0], [0])), shape=(50_000, 400_000))
    with pytest.raises(TooLargeError, match="TruncatedSVD"):
        LDA().fit(X, np.arange(50_000) % 2)


def test_tall_rows_are_sent_to_dask():
    with pytest.raises(TooLargeError, match=r"MMDA\(...\).fit\(dask.array.from_array\(X, chunks="):
        check_memory(MMDA(), endless(50_000_000, 20))


def test_neighbor_graphs_are_replaced_by_anchors():
    with pytest.raises(TooLargeError, match='graph="anchors"'):
        check_memory(LSVA(), endless(20_000_000, 20))


def test_where_nothing_helps_fewer_rows_are_proposed_that_fit():
    rule, X = LaplacianEigenmaps(), endless(100_000_000, 20)
    with pytest.raises(TooLargeError) as e:
        check_memory(rule, X)
    step = int(str(e.value).partition("X[::")[2].partition("]")[0])
    check_memory(rule, X[::step])
    with pytest.raises(TooLargeError):
        check_memory(rule, X[:: step // 2])


@pytest.mark.parametrize(
    ("X", "copied"),
    [
        (np.zeros((100, 5)), 0),
        (np.asfortranarray(np.zeros((100, 5))), 0),
        (np.zeros((100, 5), dtype=np.float32), 4000),
        (np.zeros((100, 5), dtype=int), 4000),
        (pd.DataFrame(np.zeros((100, 5))), 4000),
        (sp.csr_array(np.eye(100, 5)), 0),
        (sp.csc_array(np.eye(100, 5)), 12 * 5 + 800),
        (sp.csr_array(np.eye(100, 5, dtype=np.float32)), 12 * 5 + 800),
    ],
)
def test_the_copy_that_reading_makes_is_counted(X, copied):
    assert rows_of(X).read_bytes == copied


def test_single_precision_can_tip_the_scales():
    n = 10_000_000
    needed = peak_memory(workload_of(MMDA(), Rows(n, 20)))
    assert peak_memory(workload_of(MMDA(), rows_of(endless(n, 20, np.float32)))) == pytest.approx(
        needed + 8 * n * 20
    )


def test_what_has_no_shape_is_left_to_validation():
    assert rows_of([[0.0, 1.0]]) is None
    check_memory(MMDA(), "rows")
    check_memory(MMDA(), np.zeros(3))


@pytest.mark.parametrize("kernel", ["wrong", 3, None, ExactKernel])
def test_an_unknown_kernel_is_left_to_its_own_error(kernel):
    check_memory(MMDA(kernel=kernel), endless(100_000_000, 20))


def test_an_unknown_graph_is_left_to_its_own_error():
    check_memory(LSVA(graph="wrong"), endless(1000, 20))


@pytest.mark.parametrize(
    ("estimator", "shape", "route", "rank"),
    [
        (MMDA(), (1000, 20), "primal", 20),
        (MMDA(), (20, 1000), "dual", 20),
        (LSVA(kernel="rbf"), (1000, 20), "exact kernel", 900),
        (LSVA(kernel=ExactKernel(rank=30)), (1000, 20), "exact kernel", 30),
        (SVMPCA(4, kernel="rbf"), (1000, 20), "exact kernel", 4),
        (LSVA(kernel=Nystroem(n_components=50)), (1000, 20), "low rank", 50),
        (LaplacianEigenmaps(), (1000, 20), "graph", 0),
    ],
)
def test_the_route_is_known_before(estimator, shape, route, rank):
    work = workload_of(estimator, Rows(*shape))
    assert (work.route, work.rank) == (route, rank)


def test_all_graphs_of_a_fit_are_counted():
    def graphs(estimator):
        work = workload_of(estimator, Rows(1000, 20))
        return [type(rule).__name__ for rule in work.graphs]

    assert graphs(MMDA()) == []
    assert graphs(LDA()) == ["WithinClassGraph", "BetweenClassGraph"]
    assert graphs(LSVA(graph=2 * NeighborGraph(5) + NeighborGraph(7))) == ["NeighborGraph"] * 2
    assert graphs(GESVC(graph_weight=0.0)) == []
    assert graphs(MRGEPSVC()) == ["NeighborGraph"]
    assert graphs(GEPSVC()) == []


@pytest.mark.parametrize("cls", ALL)
def test_the_need_grows_with_rows_and_columns(cls):
    model = KDA(kernel=ExactKernel("rbf")) if cls is KDA else cls()  # "rbf" changes its meaning
    needs = [
        peak_memory(workload_of(model, Rows(n, d)))
        for n, d in [(1000, 10), (1000, 40), (5000, 40), (50_000, 40)]
    ]
    assert needs == sorted(needs)
    assert needs[-1] > 2 * needs[0]


@pytest.mark.parametrize("n_columns", [1, 30, 600, 50_000])
def test_rows_that_are_not_looked_at_need_what_is_always_there(monkeypatch, n_columns):
    monkeypatch.delenv(LIMIT_VARIABLE)
    n_rows = max(n for n in range(1, 1000) if _is_small(endless(n, n_columns)))
    models = [cls() for cls in ALL]
    models += [cls(kernel="rbf") for cls in ALL if "kernel" in cls().get_params()]
    models += [GESVC(kernel="rbf", graph=NeighborGraph(n_rows))]
    for model in models:
        work = workload_of(model, Rows(n_rows, n_columns, 8.0 * n_rows * n_columns))
        assert peak_memory(work) < ALWAYS_THERE, model


def test_small_rows_are_looked_at_where_the_memory_is_limited(monkeypatch):
    monkeypatch.setenv(LIMIT_VARIABLE, "9MB")
    with pytest.raises(TooLargeError, match="KDA on 300 x 5"):
        check_memory(KDA(), np.zeros((300, 5)))
