"""The linear map: centred rows, in a basis of their span when they are few."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
import scipy.sparse
from numpy.testing import assert_allclose

from marginfold.errors import InvalidInputError
from marginfold.feature_maps import Linear

rng = np.random.default_rng(0)
TALL = rng.standard_normal((30, 6)) + 5.0
WIDE = rng.standard_normal((12, 50)) + 5.0
BOTH = pytest.mark.parametrize("X", [TALL, WIDE], ids=["tall", "wide"])


def centred_gram(X):
    Xc = X - X.mean(axis=0)
    return Xc @ Xc.T


@BOTH
def test_inner_products_are_those_of_the_centred_rows(X):
    Z = Linear().fit_transform(X)
    assert_allclose(Z @ Z.T, centred_gram(X), atol=1e-10)
    assert_allclose(Z.mean(axis=0), 0, atol=1e-12)


def test_tall_rows_are_only_centred():
    assert_allclose(Linear().fit_transform(TALL), TALL - TALL.mean(axis=0))
    assert Linear().fit(TALL).basis_ is None


def test_basis_of_wide_rows_is_orthonormal_and_spans_them():
    found = Linear().fit(WIDE)
    B = found.basis_
    assert B.shape == (50, 11)  # centring takes one dimension
    assert_allclose(B.T @ B, np.eye(11), atol=1e-13)
    centred = WIDE - found.mean_
    assert_allclose(centred @ B @ B.T, centred, atol=1e-11)


def test_basis_holds_the_principal_axes_with_fixed_signs():
    found = Linear().fit(WIDE)
    variances = (found.transform(WIDE) ** 2).sum(axis=0)
    singular = np.linalg.svd(WIDE - found.mean_, compute_uv=False)[:11]
    assert_allclose(variances, singular**2)
    B = found.basis_
    assert (B[np.abs(B).argmax(axis=0), range(11)] > 0).all()


def test_duplicated_wide_rows_shrink_the_basis():
    assert Linear().fit(np.repeat(WIDE[:4], 3, axis=0)).basis_.shape == (50, 3)


def test_distances_out_of_sample_hold_within_the_span():
    found = Linear().fit(WIDE)
    mixture = rng.dirichlet(np.ones(12), size=5) @ WIDE
    Z, new = found.transform(WIDE), found.transform(mixture)
    expected = np.linalg.norm(mixture[:, None] - WIDE, axis=2)
    assert_allclose(np.linalg.norm(new[:, None] - Z, axis=2), expected, atol=1e-10)


@BOTH
def test_sparse_equals_dense(X):
    X = np.where(X > 5.0, X, 0.0)
    sparse = scipy.sparse.csr_matrix(X)
    dense, other = Linear().fit(X), Linear().fit(sparse)
    assert_allclose(other.transform(sparse), dense.transform(X), atol=1e-10)
    assert_allclose(other.transform(X), dense.transform(X), atol=1e-10)
    W = rng.standard_normal((dense.transform(X).shape[1], 2))
    assert_allclose(other.project(sparse, W), dense.project(X, W), atol=1e-10)


def test_sparse_arrays_are_welcome():
    assert_allclose(
        Linear().fit_transform(scipy.sparse.csr_array(WIDE)), Linear().fit_transform(WIDE)
    )


@BOTH
def test_a_weight_is_a_number_of_copies(X):
    copies = rng.integers(0, 4, len(X))
    copies[:3] = 1, 2, 0
    weighted = Linear().fit(X, sample_weight=copies)
    repeated = Linear().fit(np.repeat(X, copies, axis=0))
    assert_allclose(weighted.mean_, repeated.mean_)
    assert_allclose(weighted.transform(X), repeated.transform(X), atol=1e-9)


@BOTH
def test_projection_skips_the_coordinates(X):
    found = Linear().fit(X)
    Z = found.transform(X)
    W = rng.standard_normal((Z.shape[1], 3))
    assert_allclose(found.project(X, W), Z @ W, atol=1e-10)
    assert_allclose((X - found.mean_) @ found.in_input_units(W), Z @ W, atol=1e-10)


def test_thousands_of_features_do_not_make_a_square_matrix():
    """72 x 7129 is the leukemia data; a square of the features would be 407 MB."""
    X = rng.standard_normal((72, 7129))
    tracemalloc.start()
    try:
        Z = Linear().fit(X).transform(X)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert Z.shape == (72, 71)
    assert_allclose(Z @ Z.T, centred_gram(X), atol=1e-8)
    assert peak < 12 * X.nbytes


@pytest.mark.parametrize("shape", [(5, 3), (3, 8), (7, 20)], ids=str)
@pytest.mark.parametrize("value", [0.1, 1 / 3, 1.0, 1e8 + 0.1])
def test_constant_rows_are_all_zero(shape, value):
    Z = Linear().fit_transform(np.full(shape, value))
    assert_allclose(Z, 0, atol=1e-15 * value)
    assert Z.shape[1] == (0 if shape[0] < shape[1] else shape[1])  # no basis made of rounding


def test_one_wide_row_has_no_coordinates_left():
    Z = Linear().fit_transform(WIDE[:1])
    assert np.isfinite(Z).all()
    assert_allclose(Z, 0, atol=1e-12)


def test_the_input_is_left_alone():
    X = WIDE.copy()
    X.flags.writeable = False
    Linear().fit(X).transform(X)


@pytest.mark.parametrize(
    ("weights", "says"),
    [
        (np.zeros(30), "zero"),
        (np.where(np.arange(30) == 3, -1.0, 1.0), "negative"),
        (np.ones(29), "shape"),
        (np.ones((30, 2)), "shape"),
    ],
)
def test_weights_that_are_refused(weights, says):
    with pytest.raises(InvalidInputError, match=says):
        Linear().fit(TALL, sample_weight=weights)


def test_nan_weights_are_refused():
    with pytest.raises(ValueError, match="NaN"):
        Linear().fit(TALL, sample_weight=np.full(30, np.nan))
