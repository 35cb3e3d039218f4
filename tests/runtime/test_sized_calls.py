"""Small calls have one thread of linear algebra inside, large ones the user's, all of them after.

What a call sees is looked at through what users pass: a function as kernel, a graph, a classifier,
a scorer.
"""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from joblib import Parallel, delayed
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import make_classification
from sklearn.metrics.pairwise import rbf_kernel
from threadpoolctl import threadpool_info, threadpool_limits

import marginfold
from marginfold import (
    GEPSVC,
    GESVC,
    KDA,
    LDA,
    LPP,
    LSVA,
    MMDA,
    MRGEPSVC,
    NPE,
    SVMPCA,
    WSVDA,
    LapSVC,
    LowRankKernel,
    MarginMap,
    NeighborGraph,
    SubspaceSearchCV,
    TwinSVC,
    path,
)
from marginfold.feature_maps import ExactKernel
from marginfold.graphs import GraphRule
from marginfold.runtime.threads import FEW_COLUMNS, SMALL_WORK, coordinates_of, threads_for

X, Y = make_classification(90, 8, n_informative=5, n_classes=3, random_state=0)
LARGE_X, LARGE_Y = make_classification(1010, 8, n_informative=5, random_state=0)
SEVERAL = [LSVA, MMDA, WSVDA, GESVC, LapSVC, LDA, KDA, LPP, NPE, SVMPCA, MRGEPSVC, GEPSVC, TwinSVC]


def blas_threads():
    """Threads of NumPy's and SciPy's linear algebra; faiss brings a library of its own."""
    return {
        pool["num_threads"]
        for pool in threadpool_info()
        if pool["user_api"] == "blas" and "faiss" not in pool["filepath"]
    }


@pytest.fixture(autouse=True)
def two_threads():
    """Set in a thread that ends: threadpoolctl ignores others as long as it is alive."""
    limit = elsewhere(threadpool_limits, 2, user_api="blas")
    if blas_threads() != {2}:
        pytest.skip("this BLAS has one thread anyway")
    yield
    after = blas_threads()
    elsewhere(limit.restore_original_limits)
    assert after == {2}


def elsewhere(function, *args, **named):
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(function, *args, **named).result()


class Watching:
    """A kernel that remembers how many threads it was called with."""

    def __init__(self):
        self.seen = []

    def __call__(self, A, B):
        self.seen.append(blas_threads())
        return rbf_kernel(A, B, gamma=0.1)

    def __deepcopy__(self, memory):  # clones share it
        return self


@pytest.mark.filterwarnings("ignore::marginfold.errors.MarginfoldWarning")
@pytest.mark.parametrize("method", SEVERAL)
def test_a_small_fit_and_its_use_have_one_thread(method):
    kernel = Watching()
    model = method(kernel=kernel).fit(X, Y)
    assert kernel.seen
    for name in ("transform", "predict", "decision_function", "distances"):
        if hasattr(model, name):
            before = len(kernel.seen)
            getattr(model, name)(X[:5])
            assert len(kernel.seen) > before
    assert all(seen == {1} for seen in kernel.seen)


def test_a_large_fit_has_the_threads_of_the_user():
    for threads in (1, 2):
        kernel = Watching()
        with threadpool_limits(threads, user_api="blas"):
            SVMPCA(2, kernel=kernel).fit(LARGE_X)
            assert blas_threads() == {threads}
        assert kernel.seen
        assert all(seen == {threads} for seen in kernel.seen)


def test_a_small_fit_inside_a_large_call_has_one_thread():
    kernel = Watching()
    with threads_for(5000, 5000):
        assert blas_threads() == {2}
        MMDA(kernel=kernel).fit(X, Y)
        assert blas_threads() == {2}
    assert {1} == set.union(*kernel.seen)


def test_paths_and_feature_maps():
    kernel = Watching()
    path(LSVA(kernel=kernel), X, Y, C=[1, 10])
    ExactKernel(kernel).fit_transform(X)
    LowRankKernel(kernel, rank=5).fit(X).transform(X)
    assert {1} == set.union(*kernel.seen)


def test_graphs():
    seen = []

    class Watched(GraphRule):
        def build_on(self, rows):
            seen.append(blas_threads())
            return NeighborGraph().build_on(rows)

    Watched().build(X)
    Watched().describe(X)
    LPP(graph=Watched()).fit(X)
    LSVA(graph=Watched()).fit(X, Y)
    assert seen == 4 * [{1}]


def test_maps_of_a_classifier():
    seen = []

    class Nearest(ClassifierMixin, BaseEstimator):
        def fit(self, X, y):
            seen.append(blas_threads())
            self.classes_ = np.unique(y)
            self.means_ = np.array([X[y == label].mean(axis=0) for label in self.classes_])
            return self

        def decision_function(self, X):
            seen.append(blas_threads())
            return X @ self.means_.T - (self.means_**2).sum(axis=1) / 2

        def predict(self, X):
            return self.classes_[self.decision_function(X).argmax(axis=1)]

    MarginMap(Nearest()).fit(X, Y).transform(X)
    assert {1} == set.union(*seen)


def test_searches():
    seen = []

    def scorer(model, X, y):
        seen.append(blas_threads())
        return model.score(X, y)

    SubspaceSearchCV(MMDA(2), C=[1, 10], cv=2, scoring=scorer).fit(X, Y)
    assert {1} == set.union(*seen)


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_the_threads_come_back_after_errors_and_interrupts(error):
    def failing(A, B):
        assert blas_threads() == {1}
        raise error

    with pytest.raises(error):
        SVMPCA(2, kernel=failing).fit(X)
    assert blas_threads() == {2}


def test_fits_in_threads_of_the_user_share_the_limit():
    kernel = Watching()
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(lambda cost: GESVC(C=cost, kernel=kernel).fit(X, Y), [1, 2, 3, 4, 5, 6]))
    assert blas_threads() == {2}
    Parallel(2, "threading")(delayed(SVMPCA(2, kernel=kernel).fit)(X) for _ in range(4))
    assert {1} == set.union(*kernel.seen)


def test_a_limit_costs_less_than_a_tenth_of_a_millisecond():
    with threads_for(10, 10):
        pass
    times = []
    for _ in range(20):
        begun = time.perf_counter()
        with threads_for(10, 10):
            pass
        times.append(time.perf_counter() - begun)
    assert min(times) < 1e-4


@pytest.mark.parametrize(
    ("shape", "threads"),
    [
        ((1000, 1000), 1),
        ((1001, 1001), 2),
        ((10**7, FEW_COLUMNS), 1),
        ((SMALL_WORK / 500**2, 500), 1),
        ((SMALL_WORK / 500**2 + 1, 500), 2),
        ((500, SMALL_WORK / 500**2 + 1), 2),
        ((np.inf, 784), 2),
    ],
)
def test_the_rule_follows_the_largest_operation(shape, threads):
    with threads_for(*shape):
        assert blas_threads() == {threads}


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        (LSVA(), 8),
        (LSVA(kernel=marginfold.feature_maps.Linear()), 8),
        (GESVC(kernel="rbf"), 300),
        (TwinSVC(kernel=rbf_kernel), 300),
        (KDA(kernel=ExactKernel("linear", rank=3)), 300),
        (ExactKernel("linear"), 300),
        (LapSVC(kernel=LowRankKernel(rank=20)), 20),
        (LapSVC(kernel=LowRankKernel(max_rank=70)), 70),
        (LapSVC(kernel=LowRankKernel(rank=2000)), 300),
        (LapSVC(kernel=LowRankKernel(rank="nonsense")), 300),
        (SubspaceSearchCV(LSVA()), 8),
        (MarginMap(), 300),
        (marginfold.LaplacianEigenmaps(), 300),
    ],
)
def test_coordinates_follow_the_kernel(model, expected):
    assert coordinates_of(model, 300, 8) == expected


@pytest.mark.parametrize("rows", [[[0.0, 1.0], [1.0, 0.0], [2.0, 2.0]], ((0.0,), (1.0,), (4.0,))])
def test_lists_are_rows_too(rows):
    kernel = Watching()
    SVMPCA(1, kernel=kernel).fit(rows)
    assert {1} == set.union(*kernel.seen)
