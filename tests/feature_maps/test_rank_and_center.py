"""Leading coordinates only, and coordinates without centring."""

from __future__ import annotations

import tracemalloc
import warnings

import numpy as np
import pytest
import scipy.sparse
from numpy.testing import assert_allclose
from sklearn.decomposition import KernelPCA
from sklearn.kernel_approximation import Nystroem
from sklearn.metrics.pairwise import pairwise_kernels, rbf_kernel
from sklearn.preprocessing import PolynomialFeatures

from marginfold import ExactKernel, Linear
from marginfold.errors import InvalidInputError, InvalidParameterError, MarginfoldWarning
from marginfold.feature_maps import Transformed

rng = np.random.default_rng(5)
X = rng.standard_normal((40, 3)) + 0.5
NEW = rng.standard_normal((9, 3)) + 0.5
WIDE = rng.standard_normal((12, 50)) + 2.0
WEIGHTS = rng.random(40) + 0.2
COPIES = rng.integers(0, 4, 40)
COPIES[:3] = 1, 2, 0
MANY = rng.standard_normal((700, 3)) * [3.0, 2.0, 1.0]  # enough for the Krylov method

KERNELS = {
    "linear": {},
    "rbf": {"gamma": 0.3},
    "poly": {"gamma": 0.2, "degree": 2, "coef0": 0.7},
    "cosine": {},
    "laplacian": {"gamma": 0.3},
}
EVERY = pytest.mark.parametrize("name", KERNELS)
CENTRED = pytest.mark.parametrize("center", [True, False])
MAPS = {
    "linear": Linear(),
    "rbf": ExactKernel("rbf", gamma=0.3),
    "leading": ExactKernel("rbf", gamma=0.3, rank=4),
    "transformer": Transformed(PolynomialFeatures(2)),
}


def kernel_map(name, **options):
    return ExactKernel(name, **KERNELS[name], **options)


# ---------------------------------------------------------------- rank


@EVERY
@CENTRED
def test_leading_coordinates_are_the_first_of_all(name, center):
    whole = kernel_map(name, center=center).fit(X, sample_weight=WEIGHTS)
    some = kernel_map(name, center=center, rank=3).fit(X, sample_weight=WEIGHTS)
    assert_allclose(some.eigenvalues_, whole.eigenvalues_[:3], rtol=1e-10)
    assert_allclose(some.transform(NEW), whole.transform(NEW)[:, :3], atol=1e-8)
    assert some.trace_ == pytest.approx(whole.trace_)


@pytest.mark.parametrize("name", ["rbf", "poly", "laplacian"])
@CENTRED
def test_many_rows_give_the_same(name, center):
    whole = kernel_map(name, center=center).fit(MANY)
    some = kernel_map(name, center=center, rank=5).fit(MANY)
    assert_allclose(some.eigenvalues_, whole.eigenvalues_[:5], rtol=1e-10)
    assert_allclose(some.transform(X), whole.transform(X)[:, :5], atol=1e-8)


@pytest.mark.parametrize("k", [2, 12])
def test_leading_coordinates_are_the_scores_of_kernel_pca(k):
    found = ExactKernel("rbf", gamma=0.05, rank=k).fit(MANY)
    pca = KernelPCA(k, kernel="rbf", gamma=0.05, eigen_solver="dense").fit(MANY)
    assert_allclose(found.eigenvalues_, pca.eigenvalues_, rtol=1e-10)
    assert_allclose(np.abs(found.transform(X)), np.abs(pca.transform(X)), atol=1e-8)


@CENTRED
def test_fitted_coordinates_are_the_transformed_rows(center):
    found = ExactKernel("rbf", gamma=0.3, rank=5, center=center)
    for weights in (None, WEIGHTS, COPIES):
        Z = found.fit_coordinates(X, sample_weight=weights)
        assert_allclose(Z, found.transform(X), atol=1e-12)
    assert_allclose(found.fit_transform(X.tolist()), found.transform(X), atol=1e-12)


@pytest.mark.parametrize("found", [Linear(), Transformed(PolynomialFeatures(2))], ids=str)
def test_every_map_fits_and_returns_coordinates(found):
    Z = found.fit_coordinates(X, sample_weight=WEIGHTS)
    assert_allclose(Z, found.fit(X, sample_weight=WEIGHTS).transform(X))


@EVERY
@CENTRED
def test_a_weight_is_a_number_of_copies(name, center):
    found = kernel_map(name, center=center, rank=2)
    weighted = found.fit(X, sample_weight=COPIES)
    Z, share = weighted.transform(NEW), weighted.trace_ / (COPIES > 0).sum()
    repeated = found.fit(np.repeat(X, COPIES, axis=0))
    assert_allclose(Z, repeated.transform(NEW), atol=1e-8)
    assert share == pytest.approx(repeated.trace_ / COPIES.sum())


@EVERY
@CENTRED
def test_the_trace_is_the_sum_of_all_eigenvalues(name, center):
    found = kernel_map(name, center=center).fit(X, sample_weight=WEIGHTS)
    assert found.trace_ == pytest.approx(found.eigenvalues_.sum())


def test_fewer_coordinates_than_asked_for():
    assert ExactKernel("linear", rank=10).fit_transform(X).shape == (40, 3)
    assert ExactKernel("linear", rank=10).fit_transform(MANY).shape == (700, 3)
    assert ExactKernel("rbf", rank=10).fit_transform(X[:4]).shape == (4, 3)
    assert ExactKernel("rbf", rank=10).fit_transform(X[:1]).shape == (1, 0)
    assert ExactKernel("rbf", rank=2).fit_transform(np.full((700, 3), 2.5)).shape == (700, 0)


def test_repeated_eigenvalues_keep_their_inner_products():
    """On a regular polygon the first two coordinates span a plane, whichever basis it has."""
    angles = 2 * np.pi * np.arange(600) / 600
    Z = ExactKernel("rbf", gamma=0.5, rank=2).fit_transform(
        np.column_stack([np.cos(angles), np.sin(angles)])
    )
    assert_allclose(Z @ Z.T, (Z[0] @ Z[0]) * np.cos(angles - angles[:, None]), atol=1e-10)


def test_precomputed_and_functions():
    K = rbf_kernel(X, gamma=0.3)
    named = ExactKernel("rbf", gamma=0.3, rank=3).fit(X)
    given = ExactKernel("precomputed", rank=3).fit(K)
    called = ExactKernel(lambda A, B: rbf_kernel(A, B, gamma=0.3), rank=3).fit(X)
    across = rbf_kernel(NEW, X, gamma=0.3)
    assert_allclose(given.transform(across), named.transform(NEW), atol=1e-10)
    assert_allclose(called.transform(NEW), named.transform(NEW), atol=1e-10)


def test_an_asymmetric_rest_is_halved_as_without_rank():
    K = rbf_kernel(MANY, gamma=0.05)
    K[0, 1] += 1e-9
    whole = ExactKernel("precomputed").fit(K).eigenvalues_
    assert_allclose(ExactKernel("precomputed", rank=3).fit(K).eigenvalues_, whole[:3], rtol=1e-12)


def test_sparse_rows():
    sparse = scipy.sparse.csr_matrix(np.where(MANY > 0, MANY, 0.0))
    found = ExactKernel("rbf", gamma=0.1, rank=4)
    Z = found.fit_transform(sparse)
    assert_allclose(Z, found.fit_transform(sparse.toarray()), atol=1e-9)


def test_translation_does_not_matter_to_rbf():
    found = ExactKernel("rbf", gamma=0.1, rank=4)
    Z = found.fit(MANY).transform(X)
    assert_allclose(found.fit(MANY + 1e5).transform(X + 1e5), Z, atol=1e-8)


def test_order_of_the_rows_does_not_matter():
    found = ExactKernel("rbf", gamma=0.1, rank=4)
    Z = found.fit(MANY).transform(X)
    assert_allclose(found.fit(MANY[rng.permutation(700)]).transform(X), Z, atol=1e-9)


def test_one_square_matrix_is_all_that_is_stored():
    rows = rng.standard_normal((1500, 2))
    tracemalloc.start()
    try:
        ExactKernel("rbf", rank=3).fit(rows)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 1.5 * 8 * len(rows) ** 2


def test_only_leading_eigenvalues_can_show_that_a_kernel_is_indefinite():
    tilted = ExactKernel("sigmoid", gamma=1.0, coef0=-1.0, rank=2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert tilted.fit_transform(X).shape == (40, 2)
    with pytest.warns(MarginfoldWarning, match="not positive semi-definite"):
        ExactKernel(lambda A, B: -(A @ B.T), rank=40).fit(X)


@pytest.mark.parametrize("rank", [0, -1, 2.0, "all", True])
def test_ranks_that_are_refused(rank):
    with pytest.raises(InvalidParameterError, match="rank"):
        ExactKernel("rbf", rank=rank).fit(X)


@pytest.mark.parametrize("rank", [None, 2])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_kernel_that_overflows_is_named(rank):
    with pytest.raises(InvalidInputError, match="overflows"):
        ExactKernel("poly", gamma=1.0, rank=rank).fit(X * 1e120)


# ---------------------------------------------------------------- center


@EVERY
@pytest.mark.parametrize("rank", [None, 40])
def test_uncentred_inner_products_are_the_kernel(name, rank):
    found = kernel_map(name, center=False, rank=rank).fit(X)
    K = pairwise_kernels(X, metric=name, **KERNELS[name])
    across = pairwise_kernels(NEW, X, metric=name, **KERNELS[name])
    Z = found.transform(X)
    assert_allclose(Z @ Z.T, K, atol=1e-8 * np.abs(K).max())
    assert_allclose(found.transform(NEW) @ Z.T, across, atol=1e-7 * np.abs(K).max())
    assert_allclose(found.eigenvalues_[:3], np.linalg.eigvalsh(K)[:-4:-1])


@pytest.mark.parametrize("rank", [None, 40])
def test_uncentred_weighted_coordinates(rank):
    found = ExactKernel("rbf", gamma=0.3, center=False, rank=rank)
    Z = found.fit_transform(X, sample_weight=WEIGHTS)
    assert_allclose(Z @ Z.T, rbf_kernel(X, gamma=0.3), atol=1e-8)
    second = Z.T @ (Z * WEIGHTS[:, None]) * 40 / WEIGHTS.sum()
    assert_allclose(second, np.diag(found.eigenvalues_), atol=1e-8)


def test_linear_rows_as_they_are():
    found = Linear(center=False).fit(X, sample_weight=WEIGHTS)
    assert (found.mean_ == 0).all()
    assert (found.transform(X) == X).all()


def test_wide_rows_keep_their_own_span():
    found = Linear(center=False).fit(WIDE)
    Z, B = found.transform(WIDE), found.basis_
    assert B.shape == (50, 12)  # centring would take one dimension
    assert_allclose(Z @ Z.T, WIDE @ WIDE.T, atol=1e-10)
    assert_allclose(Z @ B.T, WIDE, atol=1e-11)
    assert_allclose(Z.T @ Z, np.diag(np.linalg.svd(WIDE, compute_uv=False) ** 2), atol=1e-9)


def test_rows_of_zeros_span_nothing():
    assert Linear(center=False).fit(np.zeros((3, 8))).transform(np.ones((2, 8))).shape == (2, 0)


def test_transformed_rows_as_they_are():
    found = Transformed(PolynomialFeatures(2), center=False).fit(X, sample_weight=WEIGHTS)
    assert_allclose(found.transform(NEW), PolynomialFeatures(2).fit_transform(NEW))


@pytest.mark.parametrize("found", MAPS.values(), ids=MAPS)
def test_center_must_be_a_truth_value(found):
    with pytest.raises(InvalidParameterError, match="center"):
        type(found)(**{**found.get_params(deep=False), "center": "yes"}).fit(X)


# ---------------------------------------------------------------- offsets


@CENTRED
@pytest.mark.parametrize("rows", [X, WIDE], ids=["tall", "wide"])
def test_linear_offsets(rows, center):
    found = Linear(center=center).fit(rows)
    W = rng.standard_normal((found.transform(rows).shape[1], 2))
    expected = rows @ found.in_input_units(W) + found.offsets(W)
    assert_allclose(found.project(rows, W), expected, atol=1e-10)


@CENTRED
@pytest.mark.parametrize("rank", [None, 3])
def test_kernel_offsets_are_those_of_explicit_features(center, rank):
    """A polynomial kernel of degree 2 has features that can be written down."""

    def features(A):
        pairs = [A[:, i] * A[:, j] * (1 if i == j else np.sqrt(2)) for i, j in ORDER]
        return np.column_stack([np.ones(len(A)), np.sqrt(2) * A, *pairs])

    found = ExactKernel("poly", gamma=1.0, degree=2, center=center, rank=rank)
    found.fit(X, sample_weight=WEIGHTS)
    W = rng.standard_normal((len(found.eigenvalues_), 2))
    phi, share = features(X), WEIGHTS / WEIGHTS.sum()
    assert_allclose(phi @ phi.T, pairwise_kernels(X, metric="poly", gamma=1.0, degree=2))
    centred = phi - share @ phi if center else phi
    directions = centred.T @ (found.dual_basis_ @ W)
    expected = features(NEW) @ directions + found.offsets(W)
    assert_allclose(found.project(NEW, W), expected, atol=1e-9)


ORDER = [(i, j) for i in range(3) for j in range(i + 1)]


@CENTRED
def test_transformer_offsets(center):
    found = Transformed(Nystroem(n_components=5, random_state=0), center=center).fit(X)
    W = rng.standard_normal((5, 2))
    expected = found.transformer_.transform(NEW) @ W + found.offsets(W)
    assert_allclose(found.project(NEW, W), expected)
