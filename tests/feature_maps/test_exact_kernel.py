"""Kernel coordinates against kernel values, distances and kernel PCA."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pytest
import scipy.sparse
from numpy.testing import assert_allclose
from sklearn.decomposition import KernelPCA
from sklearn.metrics.pairwise import laplacian_kernel, pairwise_kernels, rbf_kernel

from marginfold.errors import InvalidInputError, InvalidParameterError, MarginfoldWarning
from marginfold.feature_maps import ExactKernel
from marginfold.feature_maps.kernel_values import KERNELS, KernelFunction

rng = np.random.default_rng(1)
X = rng.standard_normal((25, 4)) + 0.5
NEW = rng.standard_normal((7, 4)) + 0.5

MAPS = {
    "linear": (ExactKernel("linear"), {}),
    "rbf": (ExactKernel("rbf", gamma=0.3), {"gamma": 0.3}),
    "poly": (
        ExactKernel("poly", gamma=0.2, degree=2, coef0=0.7),
        {"gamma": 0.2, "degree": 2, "coef0": 0.7},
    ),
    "sigmoid": (ExactKernel("sigmoid", gamma=0.01, coef0=-1.0), {"gamma": 0.01, "coef0": -1.0}),
    "cosine": (ExactKernel("cosine"), {}),
    "laplacian": (ExactKernel("laplacian", gamma=0.3), {"gamma": 0.3}),
}
EVERY = pytest.mark.parametrize("name", MAPS)


def centred(K, share=None):
    share = np.full(len(K), 1 / len(K)) if share is None else share
    J = np.eye(len(K)) - np.outer(np.ones(len(K)), share)
    return J @ K @ J.T


def positive_part(K):
    values, vectors = np.linalg.eigh(K)
    return (vectors * np.maximum(values, 0)) @ vectors.T


def test_every_kernel_name_is_covered_here():
    assert {*MAPS, "precomputed"} == set(KERNELS)


@EVERY
@pytest.mark.filterwarnings("ignore:The kernel 'sigmoid'")
def test_inner_products_are_the_centred_kernel(name):
    found, params = MAPS[name]
    Z = found.fit_transform(X)
    K = positive_part(centred(pairwise_kernels(X, metric=name, **params)))
    assert_allclose(Z @ Z.T, K, atol=1e-8 * np.abs(K).max())
    assert_allclose(found.transform(X), Z)
    assert_allclose((Z**2).sum(axis=0), found.eigenvalues_, rtol=1e-6)


@pytest.mark.parametrize("name", ["linear", "rbf", "poly", "cosine", "laplacian"])
def test_inner_products_with_new_rows_are_centred_kernel_values(name):
    found, params = MAPS[name]
    Z, new = found.fit(X).transform(X), found.transform(NEW)
    K = pairwise_kernels(X, metric=name, **params)
    across = pairwise_kernels(NEW, X, metric=name, **params)
    expected = across - across.mean(axis=1)[:, None] - K.mean(axis=0) + K.mean()
    assert_allclose(new @ Z.T, expected, atol=1e-8 * np.abs(K).max())


@pytest.mark.parametrize(("name", "degree"), [("linear", 1), ("poly", 2)])
def test_distances_out_of_sample_are_kernel_distances(name, degree):
    """25 rows span the whole feature space of these kernels, so nothing of a new row is lost."""
    found, params = MAPS[name]
    Z, new = found.fit(X).transform(X), found.transform(NEW)
    own = [pairwise_kernels(NEW[i : i + 1], metric=name, **params)[0, 0] for i in range(7)]
    across = pairwise_kernels(NEW, X, metric=name, **params)
    diagonal = np.diag(pairwise_kernels(X, metric=name, **params))
    expected = np.array(own)[:, None] - 2 * across + diagonal
    assert_allclose(((new[:, None] - Z) ** 2).sum(axis=2), expected, rtol=1e-6, atol=1e-8)


def test_linear_coordinates_are_principal_components():
    Z = ExactKernel("linear").fit_transform(X)
    U, S, _ = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)
    assert Z.shape == (25, 4)
    assert_allclose(np.abs(Z), np.abs(U * S), atol=1e-9)


@pytest.mark.parametrize("name", ["rbf", "poly", "cosine"])
def test_coordinates_are_the_scores_of_kernel_pca(name):
    found, params = MAPS[name]
    Z, new = found.fit(X).transform(X), found.transform(NEW)
    pca = KernelPCA(n_components=4, kernel=name, eigen_solver="dense", **params).fit(X)
    assert_allclose(np.abs(Z[:, :4]), np.abs(pca.transform(X)), atol=1e-7)
    assert_allclose(np.abs(new[:, :4]), np.abs(pca.transform(NEW)), atol=1e-7)


@EVERY
@pytest.mark.filterwarnings("ignore:The kernel 'sigmoid'")
def test_signs_and_order_are_fixed(name):
    Z = MAPS[name][0].fit_transform(X)
    assert (np.diff((Z**2).sum(axis=0)) <= 1e-12).all()
    assert (Z[np.abs(Z).argmax(axis=0), range(Z.shape[1])] > 0).all()


@EVERY
@pytest.mark.filterwarnings("ignore:The kernel 'sigmoid'")
def test_projection_skips_the_coordinates(name):
    found = MAPS[name][0].fit(X)
    W = rng.standard_normal((len(found.eigenvalues_), 2))
    assert_allclose(found.project(NEW, W), found.transform(NEW) @ W, atol=1e-6)


def test_blocks_do_not_matter(monkeypatch):
    found = ExactKernel("rbf", gamma=0.3).fit(X)
    whole = found.transform(NEW)
    monkeypatch.setattr("marginfold.feature_maps.kernel_map.BLOCK_BYTES", 8 * 25 * 2)
    assert_allclose(found.transform(NEW), whole)


# ---------------------------------------------------------------- gamma


def test_gamma_scale_and_auto():
    assert ExactKernel("rbf").fit(X).gamma_ == pytest.approx(1 / (4 * X.var()))
    assert ExactKernel("rbf", gamma="auto").fit(X).gamma_ == pytest.approx(0.25)
    assert ExactKernel("rbf", gamma=2).fit(X).gamma_ == 2.0


def test_gamma_scale_of_weighted_and_sparse_rows():
    copies = rng.integers(0, 3, 25)
    repeated = np.repeat(X, copies, axis=0)
    weighted = ExactKernel("rbf").fit(X, sample_weight=copies).gamma_
    sparse = ExactKernel("rbf").fit(scipy.sparse.csr_matrix(repeated)).gamma_
    assert weighted == pytest.approx(1 / (4 * repeated.var()))
    assert sparse == pytest.approx(1 / (4 * repeated.var()))


@pytest.mark.parametrize("mean", [1e5, 1e8, 1e11])
def test_gamma_scale_of_sparse_rows_with_a_large_mean(mean):
    rows, weights = X + mean, rng.integers(1, 3, 25)
    sparse = ExactKernel("laplacian").fit(scipy.sparse.csr_matrix(rows), sample_weight=weights)
    assert sparse.gamma_ == pytest.approx(1 / (4 * np.repeat(rows, weights, axis=0).var()))


@pytest.mark.parametrize("gap", [1.0, 1e5, 1e8, 1e10])
def test_far_rows_leave_the_kernel_of_the_others_as_it_is(gap):
    """|x|^2 - 2x'y + |y|^2 is off by a share of the sizes, which are those of the gap."""
    far = X + np.where(np.arange(25) % 2, gap, 0.0)[:, None]
    expected = np.exp(-0.3 * np.square(far[:, None] - far).sum(axis=2))
    function = KernelFunction("rbf", 0.3, 3, 1.0)
    kinds = (np.asarray, scipy.sparse.csr_array)
    for rows, others in itertools.product(kinds, kinds):
        assert_allclose(function(rows(far), others(far)), expected, rtol=1e-9, atol=1e-14)
    Z = ExactKernel("rbf", gamma=0.3).fit_transform(far)
    assert_allclose(Z @ Z.T, centred(expected), atol=1e-8 + 1e-15 * gap)  # of the origin


# ---------------------------------------------------------------- weights and copies


@pytest.mark.parametrize("name", ["linear", "rbf", "poly"])
def test_a_weight_is_a_number_of_copies(name):
    copies = rng.integers(0, 4, 25)
    copies[:3] = 1, 2, 0
    found = MAPS[name][0]
    weighted = found.fit(X, sample_weight=copies).transform(NEW)
    repeated = found.fit(np.repeat(X, copies, axis=0)).transform(NEW)
    k = 4  # later ones have eigenvalues that are too close to compare one by one
    assert_allclose(weighted[:, :k], repeated[:, :k], atol=1e-6)
    assert_allclose(weighted @ weighted.T, repeated @ repeated.T, atol=1e-5)


def test_weighted_inner_products_are_centred_by_weights():
    weights = rng.random(25) + 0.1
    Z = ExactKernel("rbf", gamma=0.3).fit_transform(X, sample_weight=weights)
    K = centred(rbf_kernel(X, gamma=0.3), weights / weights.sum())
    assert_allclose(Z @ Z.T, K, atol=1e-8)
    assert_allclose(weights @ Z, 0, atol=1e-8)


def test_rank_is_that_of_distinct_rows():
    assert ExactKernel("rbf", gamma=0.3).fit_transform(np.repeat(X, 2, axis=0)).shape == (50, 24)
    assert ExactKernel("linear").fit_transform(np.column_stack([X, X])).shape == (25, 4)


@pytest.mark.parametrize("shift", [1e2, 1e4, 1e6])
def test_rounding_of_a_large_kernel_is_no_coordinate(shift):
    """Centring cancels the digits of x'y + shift^2: what is left below them is noise."""
    assert ExactKernel("linear").fit_transform(X + shift).shape == (25, 4)


@pytest.mark.parametrize("rank", [None, 2])
@pytest.mark.parametrize("n", [6, 300, 700])
def test_constant_rows_leave_no_coordinates(n, rank):
    """The sums that centre many equal entries are not exact."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for kernel in ("linear", "rbf", "cosine", "poly", "laplacian"):
            Z = ExactKernel(kernel, rank=rank).fit_transform(np.full((n, 3), 2.5))
            assert Z.shape == (n, 0)


# ---------------------------------------------------------------- other kernels


def test_precomputed_equals_the_kernel_it_holds():
    K = rbf_kernel(X, gamma=0.3)
    given = ExactKernel("precomputed").fit(K)
    named = ExactKernel("rbf", gamma=0.3).fit(X)
    across = rbf_kernel(NEW, X, gamma=0.3)
    assert_allclose(given.transform(K), named.transform(X), atol=1e-8)
    assert_allclose(given.transform(across), named.transform(NEW), atol=1e-6)


def test_precomputed_with_rows_of_weight_zero():
    weights = np.where(np.arange(25) % 5, 1.0, 0.0)
    K, across = rbf_kernel(X, gamma=0.3), rbf_kernel(NEW, X, gamma=0.3)
    given = ExactKernel("precomputed").fit(K, sample_weight=weights)
    kept = weights > 0
    named = ExactKernel("rbf", gamma=0.3).fit(X[kept])
    assert_allclose(given.transform(K), named.transform(X), atol=1e-6)
    assert_allclose(given.transform(across), named.transform(NEW), atol=1e-6)


def test_precomputed_must_be_square():
    with pytest.raises(InvalidInputError, match="square"):
        ExactKernel("precomputed").fit(rbf_kernel(X, NEW))


def test_a_function_of_two_matrices():
    found = ExactKernel(lambda A, B: laplacian_kernel(A, B, gamma=0.3)).fit(X)
    named = ExactKernel("laplacian", gamma=0.3).fit(X)
    assert_allclose(found.transform(NEW), named.transform(NEW), atol=1e-8)


def test_a_function_of_the_wrong_shape_is_named():
    with pytest.raises(InvalidInputError, match=r"returned .* of shape \(25,\)"):
        ExactKernel(lambda A, B: A[:, 0]).fit(X)


def test_an_indefinite_kernel_warns_and_keeps_its_positive_part():
    found = ExactKernel("sigmoid", gamma=1.0, coef0=-1.0)
    with pytest.warns(MarginfoldWarning, match="not positive semi-definite"):
        Z = found.fit_transform(X)
    K = centred(pairwise_kernels(X, metric="sigmoid", gamma=1.0, coef0=-1.0))
    assert np.linalg.eigvalsh(K)[0] < -1e-3
    assert_allclose(Z @ Z.T, positive_part(K), atol=1e-8)


def test_a_negative_kernel_warns_too():
    with pytest.warns(MarginfoldWarning, match="not positive semi-definite"):
        Z = ExactKernel(lambda A, B: -(A @ B.T)).fit_transform(X)
    assert Z.shape == (25, 0)


def test_definite_kernels_do_not_warn():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for name in ("linear", "rbf", "poly", "cosine", "laplacian"):
            MAPS[name][0].fit(X)


@pytest.mark.parametrize("name", ["linear", "rbf", "poly", "cosine"])
def test_sparse_equals_dense(name):
    dense = np.where(X > 0, X, 0.0)
    sparse = scipy.sparse.csr_matrix(dense)
    found = MAPS[name][0]
    assert_allclose(found.fit_transform(sparse), found.fit_transform(dense), atol=1e-7)
    assert_allclose(
        found.fit(sparse).transform(dense), found.fit(dense).transform(sparse), atol=1e-7
    )


@pytest.mark.parametrize(
    "found",
    [
        ExactKernel("gaussian"),
        ExactKernel(None),
        ExactKernel(3.0),
        ExactKernel(gamma="sale"),
        ExactKernel(gamma=0.0),
        ExactKernel(gamma=-1.0),
        ExactKernel(gamma=np.nan),
        ExactKernel(gamma=None),
        ExactKernel("poly", degree=0),
        ExactKernel("poly", degree=1.5),
        ExactKernel("poly", coef0=np.inf),
    ],
    ids=repr,
)
def test_parameters_that_are_refused(found):
    with pytest.raises(InvalidParameterError, match="ExactKernel"):
        found.fit(X)


def test_nan_in_a_function_kernel_is_refused():
    with pytest.raises(ValueError, match=r"(?i)nan|finite"):
        ExactKernel(lambda A, B: np.full((len(A), len(B)), np.nan)).fit(X)
