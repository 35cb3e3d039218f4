"""The leading pairs of dense matrices against LAPACK, also of clusters and repeated values."""

from __future__ import annotations

import tracemalloc
from functools import cache

import numpy as np
import pytest
import scipy.linalg
from numpy.testing import assert_allclose
from sklearn.metrics.pairwise import rbf_kernel

from marginfold.linalg import leading_pairs
from marginfold.linalg.leading import SMALL

rng = np.random.default_rng(0)
N = SMALL + 100
ROTATION = np.linalg.qr(rng.standard_normal((N, N)))[0]


def with_spectrum(values):
    values = np.concatenate([values, np.zeros(N - len(values))])
    A = (ROTATION * values) @ ROTATION.T
    return 0.5 * (A + A.T)


DECAY = 0.9 ** np.arange(N)
SPECTRA = {
    "decay": DECAY,
    "fast decay": 0.3 ** np.arange(N),
    "slow decay": 1.0 / (1 + np.arange(N)),
    "flat": np.linspace(1.0, 0.9, N),
    "negative part": DECAY - 3.0 * DECAY[::-1],
    "only negative": -1.0 - np.arange(N),
    "one": np.ones(1),
    "low rank": np.array([5.0, 3.0, 1.0]),
    "zero": np.zeros(1),
    "identity": np.ones(N),
    "six times": np.concatenate([[3.0], np.full(6, 2.0), 0.5 * DECAY[: N - 7]]),
    "cluster": np.concatenate([1.0 + 1e-9 * np.arange(5), 0.5 * DECAY[: N - 5]]),
    "pairs": np.repeat(DECAY[: N // 2], 2),
    "huge": 1e150 * DECAY,
    "tiny": 1e-150 * DECAY,
}


@cache
def known(name):
    """A matrix with a spectrum and what LAPACK makes of it, the largest value first."""
    A = with_spectrum(SPECTRA[name])
    A.flags.writeable = False
    return A, np.linalg.eigvalsh(A)[::-1]


class Shown:
    """A matrix that can only be multiplied and written out, and counts how often it is."""

    def __init__(self, A):
        self.A, self.shape = A, A.shape
        self.products = self.written = 0

    def __matmul__(self, V):
        self.products += 1
        return self.A @ V

    def __array__(self, dtype=None, copy=None):
        self.written += 1
        return self.A


@pytest.mark.parametrize("name", SPECTRA)
@pytest.mark.parametrize("k", [1, 2, 10])
def test_pairs_are_those_of_the_matrix(name, k):
    A, expected = known(name)
    size = max(np.abs(expected).max(), np.finfo(float).tiny)
    values, vectors = leading_pairs(A, k)
    assert_allclose(values / size, expected[:k] / size, atol=1e-13)
    assert (np.linalg.norm(A @ vectors / size - vectors * values / size, axis=0) <= 1e-12).all()
    assert_allclose(vectors.T @ vectors, np.eye(k), atol=1e-13)


@pytest.mark.parametrize("k", [3, 12, 40])
def test_vectors_are_those_of_lapack_up_to_sign(k):
    A = with_spectrum(DECAY)
    _, vectors = leading_pairs(A, k)
    _, expected = scipy.linalg.eigh(A)
    assert_allclose(np.abs(vectors.T @ expected[:, : -k - 1 : -1]), np.eye(k), atol=1e-11)


def test_repeated_eigenvalues_are_found_as_often_as_they_occur():
    """Points on a regular polygon: every eigenvalue of the kernel but two is double."""
    angles = 2 * np.pi * np.arange(N) / N
    K = rbf_kernel(np.column_stack([np.cos(angles), np.sin(angles)]), gamma=2.0)
    expected = np.linalg.eigvalsh(K)[::-1]
    for k in (1, 2, 3, 8):
        values, vectors = leading_pairs(K, k)
        assert_allclose(values, expected[:k], rtol=1e-12)
        assert_allclose(vectors.T @ vectors, np.eye(k), atol=1e-13)


def test_the_kernel_of_a_square_grid():
    """Symmetric and with a product structure: double eigenvalues between single ones."""
    axis = np.arange(25.0)
    grid = np.array([(a, b) for a in axis for b in axis])
    K = rbf_kernel(grid, gamma=0.05)
    values, _ = leading_pairs(K, 10)
    one = np.linalg.eigvalsh(rbf_kernel(axis[:, None], gamma=0.05))
    assert_allclose(values, np.sort(np.outer(one, one).ravel())[::-1][:10], rtol=1e-12)


def test_an_object_is_only_multiplied():
    A = Shown(with_spectrum(DECAY))
    values, vectors = leading_pairs(A, 5)
    assert A.products > 0
    assert A.written == 0
    assert_allclose(values, DECAY[:5], atol=1e-13)
    assert_allclose(A.A @ vectors, vectors * values, atol=1e-12)


@pytest.mark.parametrize(("name", "k"), [("flat", 10), ("decay", N), ("decay", N // 2)])
def test_what_does_not_converge_is_written_out(name, k):
    A = Shown(with_spectrum(SPECTRA[name]))
    values, _ = leading_pairs(A, k)
    assert A.written == 1
    assert_allclose(values, SPECTRA[name][:k], atol=1e-13)


def test_the_same_matrix_gives_the_same_pairs():
    A = with_spectrum(DECAY)
    first, second = leading_pairs(A, 4), leading_pairs(A, 4)
    assert (first[0] == second[0]).all()
    assert (first[1] == second[1]).all()


def test_rows_in_another_order_give_rows_in_another_order():
    A = with_spectrum(DECAY)
    order = rng.permutation(N)
    values, vectors = leading_pairs(A, 4)
    others, permuted = leading_pairs(A[np.ix_(order, order)], 4)
    assert_allclose(others, values, atol=1e-13)
    assert_allclose(np.abs((vectors[order] * permuted).sum(axis=0)), 1, atol=1e-12)


@pytest.mark.parametrize("n", [1, 2, 7])
def test_small_matrices_and_too_many_pairs(n):
    A = with_spectrum(DECAY)[:n, :n]
    values, vectors = leading_pairs(A, n + 3)
    assert_allclose((vectors * values) @ vectors.T, A, atol=1e-13)
    assert (np.diff(values) <= 0).all()


def test_no_pairs():
    for n in (0, 3):
        values, vectors = leading_pairs(np.eye(n), 0)
        assert values.shape == (0,)
        assert vectors.shape == (n, 0)
    assert leading_pairs(np.zeros((0, 0)), 2)[0].shape == (0,)


def test_the_matrix_is_not_written_to_and_not_copied():
    n = 1500
    X = np.random.default_rng(1).standard_normal((n, 2))
    A = rbf_kernel(X, gamma=0.5)
    before = A.copy()
    tracemalloc.start()
    try:
        leading_pairs(A, 5)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (before == A).all()
    assert peak < 0.25 * A.nbytes
