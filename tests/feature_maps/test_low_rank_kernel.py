"""Low-rank coordinates against exact ones, the explicit residual and their own invariants."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.metrics.pairwise import laplacian_kernel, pairwise_kernels, rbf_kernel

from marginfold.errors import (
    InvalidInputError,
    InvalidParameterError,
    MarginfoldWarning,
    TooLargeError,
)
from marginfold.feature_maps import ExactKernel, LowRankKernel, is_pairwise

rng = np.random.default_rng(3)
X = rng.standard_normal((200, 3)) + 0.5
NEW = rng.standard_normal((15, 3)) + 0.5
WEIGHTS = rng.random(200) + 0.1

KERNELS = {
    "linear": {},
    "rbf": {"gamma": 0.3},
    "poly": {"gamma": 0.2, "degree": 2, "coef0": 0.7},
    "cosine": {},
    "laplacian": {"gamma": 0.3},
}
EVERY = pytest.mark.parametrize("name", KERNELS)


def projected(K, pivots, share, center=True):
    """The kernel that the pivots span, centred by weights: a second route to Z Z'."""
    A = K[:, pivots] @ np.linalg.lstsq(K[np.ix_(pivots, pivots)], K[pivots])[0]
    J = np.eye(len(K)) - np.outer(np.ones(len(K)), share) if center else np.eye(len(K))
    return J @ A @ J.T


@EVERY
@pytest.mark.parametrize("center", [True, False])
def test_inner_products_are_the_kernel_that_the_pivots_span(name, center):
    found = LowRankKernel(name, rank=20, center=center, **KERNELS[name])
    Z = found.fit_transform(X, sample_weight=WEIGHTS)
    K = pairwise_kernels(X, metric=name, **KERNELS[name])
    share = WEIGHTS / WEIGHTS.sum()
    assert_allclose(Z @ Z.T, projected(K, found.pivots_, share, center), atol=1e-8 * K.max())
    assert_allclose(found.transform(X), Z, atol=1e-8 * Z.max())
    weighted = (200 * share[:, None] * Z).T @ Z
    assert_allclose(weighted, np.diag(found.eigenvalues_), atol=1e-9 * found.eigenvalues_[0])
    assert (np.diff(found.eigenvalues_) <= 0).all()
    among = Z[found.pivots_]
    assert (among[np.abs(among).argmax(axis=0), range(Z.shape[1])] > 0).all()
    if center:
        assert_allclose(share @ Z, 0, atol=1e-10 * np.abs(Z).max())


@EVERY
@pytest.mark.parametrize("center", [True, False])
def test_without_loss_it_is_the_exact_kernel(name, center):
    weights = WEIGHTS if name != "laplacian" else None
    exact = ExactKernel(name, center=center, **KERNELS[name])
    low = LowRankKernel(name, rank=200, center=center, **KERNELS[name])
    Z, found = (m.fit_transform(X, sample_weight=weights) for m in (exact, low))
    assert low.relative_error_ <= 1e-12
    assert low.trace_ == pytest.approx(exact.trace_, rel=1e-9)
    assert found.shape == Z.shape
    size = np.abs(Z).max()
    k = min(4, Z.shape[1])
    signs = np.sign((found * Z).sum(axis=0))[:k]
    assert_allclose(found[:, :k] * signs, Z[:, :k], atol=1e-8 * size)
    new = low.transform(NEW)[:, :k] * signs
    assert_allclose(new, exact.transform(NEW)[:, :k], atol=1e-7 * size)
    assert_allclose(found @ found.T, Z @ Z.T, atol=1e-8 * size**2)
    assert_allclose(low.transform(NEW) @ found.T, exact.transform(NEW) @ Z.T, atol=1e-6 * size**2)


@pytest.mark.parametrize("center", [True, False])
def test_the_error_is_that_of_the_explicit_matrix(center):
    found = LowRankKernel("rbf", gamma=0.3, rank=15, center=center).fit(X)
    K = rbf_kernel(X, gamma=0.3)
    residual = np.trace(K - projected(K, found.pivots_, None, center=False))
    assert found.relative_error_ * found.trace_ == pytest.approx(residual, rel=1e-9)
    kept = found.eigenvalues_.sum() / found.trace_
    assert 1 - kept == pytest.approx(found.relative_error_, rel=1e-9)
    if not center:
        assert found.trace_ == pytest.approx(200)


def test_a_tolerance_chooses_the_rank():
    ranks = []
    for tol in (0.2, 0.05, 1e-2, 1e-3):
        found = LowRankKernel("rbf", gamma=0.3, tol=tol).fit(X)
        ranks.append(len(found.pivots_))
        assert found.relative_error_ <= tol
        fewer = LowRankKernel("rbf", gamma=0.3, rank=ranks[-1] - 1).fit(X)
        assert fewer.relative_error_ > tol
    assert ranks == sorted(ranks)


def test_a_tolerance_is_about_the_centred_kernel():
    """Nearly equal entries: one pivot has 99.9 % of the trace, and nothing of what varies."""
    found = LowRankKernel("rbf", gamma=1e-4, tol=0.01).fit(X)
    exact = ExactKernel("rbf", gamma=1e-4).fit(X)
    assert_allclose(found.eigenvalues_.sum(), exact.eigenvalues_.sum(), rtol=0.011)
    assert len(found.pivots_) >= 4


def test_max_rank_warns_with_the_error_reached():
    found = LowRankKernel("rbf", gamma=2.0, max_rank=5)
    with pytest.warns(MarginfoldWarning, match=r"max_rank=5 with a relative error of 0\.\d+"):
        found.fit(X)
    assert len(found.pivots_) == 5
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        LowRankKernel("rbf", gamma=2.0, rank=5).fit(X)


# ---------------------------------------------------------------- invariants


def test_the_same_seed_gives_the_same_map_and_others_do_not():
    one, two, other = (LowRankKernel(rank=30, random_state=seed).fit(X) for seed in (1, 1, 2))
    assert_array_equal(one.pivots_, two.pivots_)
    assert_array_equal(one.transform(NEW), two.transform(NEW))
    assert set(one.pivots_) != set(other.pivots_)


def test_the_order_of_the_rows_does_not_matter():
    order = rng.permutation(200)
    found = LowRankKernel("rbf", rank=30).fit(X)
    shuffled = LowRankKernel("rbf", rank=30).fit(X[order])
    assert_array_equal(order[shuffled.pivots_], found.pivots_)
    assert_allclose(shuffled.transform(NEW), found.transform(NEW), atol=1e-9)


@pytest.mark.parametrize("name", ["linear", "rbf", "poly"])
def test_a_weight_is_a_number_of_copies(name):
    copies = rng.integers(0, 4, 200)
    found = LowRankKernel(name, rank=25)
    expected = found.fit(X, sample_weight=copies).transform(NEW)
    error = found.relative_error_
    repeated = rng.permutation(np.repeat(X, copies, axis=0))
    assert_allclose(found.fit(repeated).transform(NEW), expected, atol=1e-8)
    assert found.relative_error_ == pytest.approx(error, abs=1e-12)
    assert_allclose(found.fit(X, sample_weight=7.5 * copies).transform(NEW), expected, atol=1e-8)


def test_rows_of_weight_zero_are_absent_but_mapped():
    weights = np.where(np.arange(200) % 3, 1.0, 0.0)
    found = LowRankKernel("rbf", gamma=0.3, rank=25)
    Z = found.fit_transform(X, sample_weight=weights)
    assert (weights[found.pivots_] > 0).all()
    assert Z.shape[0] == 200
    assert_allclose(Z, found.fit(X[weights > 0]).transform(X), atol=1e-10)


@EVERY
def test_factor_and_axes_are_the_coordinates(name):
    """Also where rounding leaves fewer axes than pivots."""
    rank = 20 if name != "poly" else 12  # of ten dimensions
    rows, axes = LowRankKernel(name, rank=rank, **KERNELS[name]).fit_factor(X)
    fitted = LowRankKernel(name, rank=rank, **KERNELS[name])
    Z = fitted.fit_transform(X)
    assert_allclose(axes.T @ axes, np.eye(Z.shape[1]), atol=1e-12)
    assert_allclose(rows @ axes, Z, atol=1e-12 * np.abs(Z).max())
    if name == "linear":
        assert axes.shape == (rows.shape[1], 3)


def test_rows_without_weight_have_no_factor():
    weights = np.where(np.arange(200) < 5, 0.0, 1.0)
    rows, axes = LowRankKernel("rbf", rank=10).fit_factor(X, sample_weight=weights)
    assert axes is None
    assert_allclose(rows, LowRankKernel("rbf", rank=10).fit_transform(X, sample_weight=weights))


@pytest.mark.parametrize("shift", [10.0, 1e6])
def test_rbf_does_not_notice_a_translation(shift):
    found = LowRankKernel("rbf", rank=30)
    near = found.fit(X).transform(NEW)
    assert_allclose(found.fit(X + shift).transform(NEW + shift), near, atol=1e-6)


def test_blocks_do_not_matter(monkeypatch):
    found = LowRankKernel("rbf", rank=30)
    Z = found.fit_transform(X)
    monkeypatch.setattr("marginfold.linalg.tall.BLOCK_BYTES", 1)
    monkeypatch.setattr("marginfold.feature_maps.kernel_map.BLOCK_BYTES", 8 * 30 * 7)
    assert_allclose(found.fit_transform(X), Z, atol=1e-10)
    assert_allclose(found.transform(X), Z, atol=1e-10)


@pytest.mark.parametrize("name", ["linear", "rbf", "poly", "cosine"])
def test_sparse_equals_dense(name):
    rows = np.where(X > 0, X, 0.0)
    found = LowRankKernel(name, rank=20, **KERNELS[name])
    expected = found.fit_transform(rows)
    new = found.transform(NEW)
    assert_allclose(found.fit_transform(scipy.sparse.csr_matrix(rows)), expected, atol=1e-7)
    assert_allclose(found.transform(scipy.sparse.csr_matrix(NEW)), new, atol=1e-7)


def test_precomputed_columns():
    K = rbf_kernel(X, gamma=0.3)
    weights = np.where(np.arange(200) % 3, WEIGHTS, 0.0)
    given = LowRankKernel("precomputed", rank=60)
    Z = given.fit_transform(K, sample_weight=weights)
    share = weights / weights.sum()
    assert_allclose(Z @ Z.T, projected(K, given.pivots_, share), atol=1e-7)
    across = rbf_kernel(NEW, X, gamma=0.3)
    assert_allclose(given.project(across, Z.T), given.transform(across) @ Z.T, atol=1e-8)
    exact = LowRankKernel("precomputed", rank=200).fit(K)
    named = ExactKernel("rbf", gamma=0.3).fit(X)
    assert_allclose(exact.transform(across)[:, :5], named.transform(NEW)[:, :5], atol=1e-7)
    assert is_pairwise(given)
    order = rng.permutation(200)
    moved = clone(given).fit(K[np.ix_(order, order)])
    assert_array_equal(order[moved.pivots_], clone(given).fit(K).pivots_)


def test_a_function_of_two_matrices():
    given = LowRankKernel(lambda A, B: laplacian_kernel(A, B, gamma=0.3), rank=40).fit(X)
    named = LowRankKernel("laplacian", gamma=0.3, rank=40).fit(X)
    assert_allclose(given.relative_error_, named.relative_error_, rtol=0.1)
    all_rows = LowRankKernel(given.kernel, rank=200).fit(X)
    exact = ExactKernel("laplacian", gamma=0.3).fit(X)
    assert_allclose(all_rows.transform(NEW)[:, :4], exact.transform(NEW)[:, :4], atol=1e-8)


# ---------------------------------------------------------------- degenerate and bad input


@pytest.mark.parametrize("rank", [None, 2, 50])
@pytest.mark.parametrize("kernel", ["linear", "rbf", "cosine", "poly", "laplacian"])
def test_constant_rows_leave_no_coordinates(kernel, rank):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = LowRankKernel(kernel, rank=rank)
        assert found.fit_transform(np.full((300, 3), 2.5)).shape == (300, 0)
    assert found.relative_error_ == 0.0
    assert found.transform(NEW).shape == (15, 0)


def test_zeros_leave_no_coordinates():
    found = LowRankKernel("linear")
    assert found.fit_transform(np.zeros((5, 2))).shape == (5, 0)
    assert found.transform(np.ones((3, 2))).shape == (3, 0)
    assert found.offsets(np.zeros((0, 2))).shape == (2,)
    assert (found.jacobian(np.ones((3, 2)), np.zeros((0, 1))) == 0).all()


def test_fewer_rows_than_the_rank():
    found = LowRankKernel("rbf", gamma=1.0, rank=500).fit(X[:10])
    exact = ExactKernel("rbf", gamma=1.0).fit(X[:10])
    assert len(found.pivots_) == 10
    assert_allclose(found.transform(NEW), exact.transform(NEW), atol=1e-7)


def test_an_indefinite_kernel_is_refused_and_leaves_the_map_as_it_was():
    found = LowRankKernel("rbf", rank=20).fit(X)
    before = found.transform(NEW)
    found.set_params(kernel="sigmoid", gamma=1.0, coef0=-1.0)
    with pytest.raises(InvalidInputError, match="not positive semi-definite"):
        found.fit(X)
    found.set_params(kernel="rbf")
    assert_array_equal(found.transform(NEW), before)


@pytest.mark.parametrize(
    "found",
    [
        LowRankKernel("gaussian"),
        LowRankKernel(gamma=-1.0),
        LowRankKernel(rank=0),
        LowRankKernel(rank=2.5),
        LowRankKernel(tol=-0.1),
        LowRankKernel(tol=1.0),
        LowRankKernel(tol=None),
        LowRankKernel(max_rank=0),
        LowRankKernel(random_state=-1),
        LowRankKernel(center="yes"),
    ],
    ids=repr,
)
def test_parameters_that_are_refused(found):
    with pytest.raises(InvalidParameterError, match="LowRankKernel"):
        found.fit(X)


def test_what_does_not_fit_is_refused_before_it_is_allocated(monkeypatch):
    monkeypatch.setenv("MARGINFOLD_MEMORY_LIMIT", "1MB")
    with pytest.raises(TooLargeError, match=r"kernel=LowRankKernel\('rbf', gamma=0.3, .*rank=500"):
        ExactKernel("rbf", gamma=0.3).fit(X)
    with pytest.raises(TooLargeError, match="rank 5000"):
        LowRankKernel("rbf", rank=5000).fit(np.zeros((9000, 1)))
