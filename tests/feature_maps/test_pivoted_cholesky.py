"""The factor against the literal decomposition, its error against the explicit matrix."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import chi2

from marginfold.errors import CancelledError, InvalidInputError
from marginfold.feature_maps.factor_rows import (
    GivenColumns,
    LocalFactor,
    RowColumns,
    kernel_diagonal,
)
from marginfold.feature_maps.kernel_values import KERNELS, KernelFunction
from marginfold.feature_maps.low_rank_kernel import Pivots, choose_pivots
from marginfold.runtime.progress import watch

rng = np.random.default_rng(5)
X = rng.standard_normal((150, 3))
UNIFORM = np.full(150, 1 / 150)
RBF = KernelFunction("rbf", 0.4, 3, 1.0)
K = RBF(X, X)


@dataclass(frozen=True)
class Found:
    F: np.ndarray
    chosen: Pivots

    def __getattr__(self, name):
        return getattr(self.chosen, name)

    @property
    def pivots(self):
        return self.chosen.rows


def factor(kernel=None, share=UNIFORM, *, rank=20, tol=None, center=False, seed=0, space=16):
    rows = LocalFactor(RowColumns(RBF, X) if kernel is None else kernel, share, space, rank)
    rng = np.random.default_rng(seed)
    chosen = choose_pivots(rows, share, rank=rank, tol=tol, center=center, rng=rng)
    return Found(rows.first_columns(len(chosen.rows)), chosen)


def one_column_at_a_time(K, pivots):
    """Algorithm 2.1 of the paper, with given pivots."""
    F = np.zeros((len(K), len(pivots)))
    for i, s in enumerate(pivots):
        g = K[:, s] - F @ F[s]
        F[:, i] = g / np.sqrt(g[s])
    return F


@pytest.mark.parametrize("seed", range(3))
def test_blocks_give_the_columns_of_one_at_a_time(seed):
    found = factor(rank=60, seed=seed)
    assert len(set(found.pivots)) == 60
    assert_allclose(found.F, one_column_at_a_time(K, found.pivots), atol=1e-10)
    S = found.pivots
    nystroem = K[:, S] @ np.linalg.solve(K[np.ix_(S, S)], K[S])
    assert_allclose(found.F @ found.F.T, nystroem, atol=1e-9)
    assert_allclose(np.triu(found.F[S], 1), 0, atol=1e-10)


@pytest.mark.parametrize("rank", [1, 7, 60])
def test_the_error_is_the_trace_of_the_residual(rank):
    found = factor(rank=rank)
    residual = np.trace(K - found.F @ found.F.T)
    assert found.residual == pytest.approx(residual, rel=1e-10)
    assert found.trace == pytest.approx(150)
    assert found.relative_error == pytest.approx(residual / 150, rel=1e-10)


@pytest.mark.parametrize("rank", [1, 7, 60])
def test_with_centring_the_error_bounds_the_lost_share_of_the_centred_trace(rank):
    weights = rng.random(150) + 0.2
    share = weights / weights.sum()
    found = factor(share=share, rank=rank, center=True)
    assert_allclose(found.mean, share @ found.F)
    J = np.eye(150) - np.outer(np.ones(150), share)

    def variance(A):
        return 150 * share @ np.diagonal(J @ A @ J.T)

    E = K - found.F @ found.F.T
    assert found.residual == pytest.approx(150 * share @ np.diagonal(E), rel=1e-9)
    assert found.trace - found.residual == pytest.approx(variance(found.F @ found.F.T))
    lost = variance(E) / variance(K)
    assert lost <= found.relative_error <= lost + 150 * share @ E @ share / variance(K)


@pytest.mark.parametrize("center", [False, True])
@pytest.mark.parametrize("tol", [0.3, 0.1, 1e-2, 1e-4])
def test_the_tolerance_is_reached_with_no_more_columns_than_needed(tol, center):
    found = factor(rank=150, tol=tol, center=center)
    r = len(found.pivots)
    assert found.relative_error <= tol
    assert factor(rank=r - 1, center=center).relative_error > tol
    assert_allclose(factor(rank=r).F, found.F, atol=1e-10)
    values = np.linalg.eigvalsh(K)[::-1]
    best = int(np.argmax(1 - np.cumsum(values) / values.sum() <= tol)) + 1
    assert r <= 2.5 * best


def test_pivots_are_drawn_by_residual_one_after_the_other():
    """Three rows, two pivots: all six sequences, with the probabilities of the paper."""
    A = np.array([[2.0, 0.6, 0.1], [0.6, 1.0, 0.5], [0.1, 0.5, 0.5]])
    share = np.array([0.2, 0.3, 0.5])
    counts: dict[tuple[int, ...], int] = {}
    for seed in range(1500):
        pivots = factor(GivenColumns(A), share, rank=2, seed=seed).pivots
        key = tuple(int(pivot) for pivot in pivots)
        counts[key] = counts.get(key, 0) + 1
    statistic = 0.0
    first = share * np.diag(A)
    for i in range(3):
        left = share * (np.diag(A) - A[:, i] ** 2 / A[i, i])
        for j in {0, 1, 2} - {i}:
            expected = 1500 * first[i] / first.sum() * left[j] / left.sum()
            statistic += (counts.get((i, j), 0) - expected) ** 2 / expected
    assert statistic < chi2.ppf(0.999, 5)


def test_a_small_far_cluster_is_found():
    """Uniform pivots miss six rows of two thousand in most draws; their residual calls for one."""
    rows = np.vstack([0.05 * rng.standard_normal((2000, 2)), rng.uniform(8, 9, (6, 2))])
    share = np.full(2006, 1 / 2006)
    found, uniform = [], []
    for seed in range(10):
        ours = factor(RowColumns(RBF, rows), share, rank=8, seed=seed)
        found.append(ours.relative_error)
        S = np.random.default_rng(seed).choice(2006, 8, replace=False)
        L = np.linalg.cholesky(RBF(rows[S], rows[S]) + 1e-12 * np.eye(8))
        F = np.linalg.solve(L, RBF(rows[S], rows))
        uniform.append(1 - (F**2).sum() / 2006)
    assert max(found) < 0.1 * np.median(uniform)


def test_a_kernel_of_low_rank_is_exhausted():
    linear = RowColumns(KernelFunction("linear", 1.0, 3, 1.0), X)
    found = factor(linear, rank=100)
    assert len(found.pivots) == 3
    assert found.relative_error == 0.0
    assert_allclose(found.F @ found.F.T, X @ X.T, atol=1e-12)


def test_zeros_have_no_columns():
    found = factor(GivenColumns(np.zeros((4, 4))), np.full(4, 0.25), rank=3, center=True)
    assert found.F.shape == (4, 0)
    assert found.relative_error == 0.0


@pytest.mark.parametrize("tol", [0.0, 1e-9])
def test_copies_are_no_second_pivots(tol):
    rows = np.repeat(X[:10], 15, axis=0)
    found = factor(RowColumns(RBF, rows), rank=150, tol=tol)
    assert len(found.pivots) == 10
    assert len(np.unique(rows[found.pivots], axis=0)) == 10


@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_an_indefinite_kernel_is_refused(sign):
    A = sign * np.array([[1.0, 2.0], [2.0, 1.0]])
    with pytest.raises(InvalidInputError, match=r"not positive semi-definite.*ExactKernel"):
        factor(GivenColumns(A), np.full(2, 0.5), rank=2)


def test_an_overflow_is_refused():
    with pytest.raises(InvalidInputError, match="overflows"):
        factor(RowColumns(KernelFunction("poly", 1.0, 40, 1.0), 1e10 * X))


@pytest.mark.parametrize("name", [name for name in KERNELS if name != "precomputed"])
def test_diagonals(name):
    function = KernelFunction(name, 0.3, 2, 0.7)
    rows = np.vstack([X, np.zeros(3)])
    assert_allclose(kernel_diagonal(function, rows), np.diagonal(function(rows, rows)), atol=1e-14)


def test_the_diagonal_of_a_function_needs_no_matrix_of_all_rows():
    sizes = []

    def kernel(A, B):
        sizes.append(len(A) * len(B))
        return (1 + A @ B.T) ** 2

    assert_allclose(
        kernel_diagonal(KernelFunction(kernel, 1.0, 3, 1.0), X), (1 + (X**2).sum(axis=1)) ** 2
    )
    assert max(sizes) <= 64**2


def test_progress_is_reported_and_a_fit_can_be_cancelled():
    events = []
    with watch(events.append):
        factor(rank=140)
    done = [event.done for event in events if event.stage == "kernel columns"]
    assert done[0] == 0
    assert done[-1] == 140
    assert done == sorted(done)
    with pytest.raises(CancelledError), watch(lambda event: event.cancel()):
        factor(rank=140)
