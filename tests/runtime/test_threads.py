"""Limits of threads: they hold inside, and nothing of them is left outside."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from sklearn.neighbors import NearestNeighbors
from threadpoolctl import threadpool_info, threadpool_limits

from marginfold.runtime.threads import one_thread, openmp_threads

NearestNeighbors().fit(np.eye(9))  # loads what searches use
KINDS = ["blas", "openmp", None]


def numbers(kind=None):
    """Threads of what NumPy, SciPy and scikit-learn use; faiss brings a BLAS of its own."""
    return [
        pool["num_threads"]
        for pool in threadpool_info()
        if kind in (None, pool["user_api"]) and "faiss_cpu.libs/libopenblas" not in pool["filepath"]
    ]


@pytest.fixture(autouse=True)
def two_threads():
    with threadpool_limits(2):
        yield


@pytest.mark.parametrize("kind", KINDS)
def test_one_thread_and_back(kind):
    assert numbers(kind)
    before = numbers()
    with one_thread(kind):
        assert set(numbers(kind)) == {1}
        with one_thread(kind):
            assert set(numbers(kind)) == {1}
        assert set(numbers(kind)) == {1}
    assert numbers() == before


@pytest.mark.parametrize("kind", KINDS)
def test_the_threads_come_back_after_an_error(kind):
    before = numbers()
    with pytest.raises(KeyError), one_thread(kind):
        raise KeyError
    assert numbers() == before


@pytest.mark.parametrize(("kind", "other"), [("blas", "openmp"), ("openmp", "blas")])
def test_the_other_kind_is_left_alone(kind, other):
    if any(pool.get("threading_layer") == "openmp" for pool in threadpool_info()):
        pytest.skip("a BLAS with the threads of OpenMP is loaded, as faiss brings it")
    before = numbers(other)
    with one_thread(kind):
        assert numbers(other) == before


def test_at_most_so_many_threads_are_never_more_than_there_were():
    for most, expected in ((1, 1), (2, 2), (5, 2)):
        with openmp_threads(most):
            assert set(numbers("openmp")) == {expected}
        assert set(numbers("openmp")) == {2}


@pytest.mark.parametrize(("outer", "inner"), [("openmp", "blas"), ("blas", "openmp")])
def test_one_kind_inside_the_other(outer, inner):
    before = numbers()
    with one_thread(outer), one_thread(inner):
        assert set(numbers()) == {1}
    assert numbers() == before


@pytest.mark.parametrize("first", ["blas", None])
@pytest.mark.parametrize("second", ["blas", None])
def test_limits_that_overlap_in_two_threads_are_lifted_by_the_last(first, second):
    """Fits and calls share one limit: none of them restores the limit of another."""
    before = numbers()
    entered, leave = threading.Event(), threading.Event()

    def hold():
        with one_thread(second):
            entered.set()
            leave.wait(10)

    other = threading.Thread(target=hold)
    with one_thread(first):
        other.start()
        assert entered.wait(10)
    assert set(numbers("blas")) == {1}
    leave.set()
    other.join()
    assert numbers() == before


def test_openmp_is_limited_for_the_calling_thread_only():
    with ThreadPoolExecutor(1) as pool:
        pool.submit(threadpool_limits, 2).result()
        with one_thread("openmp"):
            assert set(pool.submit(numbers, "openmp").result()) == {2}
