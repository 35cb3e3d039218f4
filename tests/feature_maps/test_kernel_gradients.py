"""Derivatives of projections against central differences."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
from numpy.testing import assert_allclose
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.preprocessing import PolynomialFeatures

from marginfold import ExactKernel, Linear
from marginfold.errors import InvalidInputError
from marginfold.feature_maps import Transformed

rng = np.random.default_rng(8)
X = rng.standard_normal((30, 4)) + 1.0
NEW = rng.standard_normal((6, 4)) + 1.0
WIDE = rng.standard_normal((10, 25)) + 1.0
WEIGHTS = rng.random(30) + 0.2
STEP = 1e-5

KERNELS = {
    "linear": {},
    "rbf": {"gamma": 0.3},
    "poly": {"gamma": 0.2, "degree": 3, "coef0": 0.7},
    "poly of degree 1": {"gamma": 0.2, "degree": 1},
    "sigmoid": {"gamma": 0.05, "coef0": -0.5},
    "cosine": {},
}
EVERY = pytest.mark.parametrize("name", KERNELS)
pytestmark = pytest.mark.filterwarnings("ignore:The kernel 'sigmoid'")


def kernel_map(name, **options):
    return ExactKernel(name.split()[0], **KERNELS[name], **options)


def directions(found, k=3):
    """Bounded weights for the smallest eigenvalues: differences divide their noise by the step."""
    shares = found.eigenvalues_ / found.eigenvalues_[0]
    return np.sqrt(shares)[:, None] * rng.standard_normal((len(shares), k))


def differences(found, rows, W):
    out = np.empty((len(rows), W.shape[1], rows.shape[1]))
    for j, shift in enumerate(STEP * np.eye(rows.shape[1])):
        difference = found.project(rows + shift, W) - found.project(rows - shift, W)
        out[:, :, j] = difference / (2 * STEP)
    return out


def assert_derivative(found, rows, W):
    expected = differences(found, rows, W)
    assert_allclose(found.jacobian(rows, W), expected, atol=1e-7 * np.abs(expected).max())


@EVERY
@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("rank", [None, 2])
def test_it_is_the_derivative_of_the_projection(name, center, rank):
    found = kernel_map(name, center=center, rank=rank).fit(X, sample_weight=WEIGHTS)
    assert_derivative(found, NEW, directions(found))


@EVERY
def test_it_is_the_derivative_at_training_rows(name):
    found = kernel_map(name).fit(X)
    assert_derivative(found, X, directions(found))


@EVERY
def test_it_is_the_derivative_of_the_coordinates(name):
    found = kernel_map(name, rank=2).fit(X)
    assert_derivative(found, NEW, np.eye(len(found.eigenvalues_)))


def test_far_from_zero_rbf_has_the_same_derivative():
    found = ExactKernel("rbf", gamma=0.3, rank=3)
    near = found.fit(X).jacobian(NEW, np.eye(3))
    assert_allclose(found.fit(X + 1e6).jacobian(NEW + 1e6, np.eye(3)), near, atol=1e-8)


@EVERY
def test_sparse_equals_dense(name):
    rows, new = np.where(X > 0.5, X, 0.0), np.where(NEW > 0, NEW, 0.0)
    found = kernel_map(name, rank=2)
    expected = found.fit(rows).jacobian(new, np.eye(2))
    sparse = found.fit(scipy.sparse.csr_matrix(rows))
    assert_allclose(sparse.jacobian(scipy.sparse.csr_matrix(new), np.eye(2)), expected, atol=1e-9)
    assert_allclose(sparse.jacobian(new, np.eye(2)), expected, atol=1e-9)


@EVERY
def test_blocks_do_not_matter(name, monkeypatch):
    found = kernel_map(name, rank=2).fit(X)
    whole = found.jacobian(NEW, np.eye(2))
    monkeypatch.setattr("marginfold.feature_maps.kernel_map.BLOCK_BYTES", 8 * 30 * 2)
    assert_allclose(found.jacobian(NEW, np.eye(2)), whole)


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("rows", [X, WIDE], ids=["tall", "wide"])
def test_of_the_linear_map_it_is_constant(rows, center):
    found = Linear(center=center).fit(rows)
    W = rng.standard_normal((found.transform(rows).shape[1], 2))
    assert_allclose(found.jacobian(rows, W), differences(found, rows, W), atol=1e-7)
    assert_allclose(found.jacobian(rows, W)[3], found.in_input_units(W).T)


def test_the_linear_kernel_agrees_with_the_linear_map():
    kernel, plain = ExactKernel("linear").fit(X), Linear().fit(X)
    axes = np.linalg.lstsq(plain.transform(X), kernel.transform(X))[0]
    assert_allclose(kernel.jacobian(NEW, np.eye(4)), plain.jacobian(NEW, axes), atol=1e-9)


def test_no_coordinates_have_no_derivatives():
    found = ExactKernel("rbf").fit(np.ones((5, 3)))
    assert found.jacobian(np.ones((2, 3)), np.zeros((0, 0))).shape == (2, 0, 3)
    assert (found.jacobian(np.ones((2, 3)), np.zeros((0, 1))) == 0).all()


def test_zero_has_no_direction():
    found = ExactKernel("cosine", rank=2).fit(X)
    with pytest.raises(InvalidInputError, match="Row 1 is zero"):
        found.jacobian(np.array([NEW[0], 0 * NEW[0]]), np.eye(2))


@pytest.mark.parametrize(
    ("found", "rows"),
    [
        (ExactKernel("laplacian"), X),
        (ExactKernel(lambda A, B: rbf_kernel(A, B)), X),
        (ExactKernel("precomputed"), rbf_kernel(X)),
        (Transformed(PolynomialFeatures(2)), X),
    ],
    ids=["laplacian", "function", "precomputed", "transformer"],
)
def test_what_has_no_derivative_says_what_has(found, rows):
    Z = found.fit_transform(rows)
    with pytest.raises(InvalidInputError, match="linear, rbf, poly, sigmoid, cosine"):
        found.jacobian(rows, np.eye(Z.shape[1]))
