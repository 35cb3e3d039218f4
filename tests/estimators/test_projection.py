"""Loadings against finite differences of transform, and what all transformers share."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.datasets import load_wine
from sklearn.exceptions import NotFittedError
from sklearn.kernel_approximation import Nystroem
from sklearn.preprocessing import scale

from marginfold import (
    KDA,
    LDA,
    LPP,
    LSVA,
    MMDA,
    NPE,
    SVMPCA,
    WSVDA,
    ExactKernel,
    GraphEmbedding,
    Linear,
)
from marginfold.errors import InvalidInputError

WINE, Y = load_wine(return_X_y=True)
X = scale(WINE)[::3, :6]
Y = Y[::3]
NEW = X[:5] + 0.3 * np.random.default_rng(0).standard_normal((5, 6))
METHODS = {
    "MMDA": MMDA(2),
    "MMDA margin": MMDA(2, scaling="margin"),
    "LSVA": LSVA(2),
    "LSVA margin": LSVA(2, scaling="margin"),
    "WSVDA": WSVDA(2),
    "SVMPCA": SVMPCA(3),
    "SVMPCA without bias": SVMPCA(3, bias=False),
    "LDA": LDA(),
    "KDA": KDA(),
    "LPP": LPP(2),
    "NPE": NPE(2),
    "GraphEmbedding": GraphEmbedding(2, intrinsic="within", penalty="total", scaling="unit"),
}
KERNELS = {
    "linear": "linear",
    "linear kernel": ExactKernel("linear"),
    "rbf": ExactKernel("rbf", gamma=0.1),
    "poly": ExactKernel("poly", degree=3, gamma=0.2, coef0=0.7),
    "cosine": ExactKernel("cosine"),
}
EVERY_METHOD = pytest.mark.parametrize("method", METHODS)


def fitted(method, kernel="linear", rows=X, weights=None):
    model = clone(METHODS[method]).set_params(kernel=KERNELS.get(kernel, kernel))
    return model.fit(rows, Y, sample_weight=weights)


def differences(model, rows, step=1e-4):
    """Differentiate transform by central differences of fourth order."""
    n, d = rows.shape
    steps = step * np.array([1, -1, 2, -2])[:, None, None] * np.eye(d)
    moved = rows[:, None, None] + steps  # row, step, feature moved, features
    images = model.transform(moved.reshape(-1, d)).reshape(n, 4, d, -1)
    slopes = (8 * (images[:, 0] - images[:, 1]) - images[:, 2] + images[:, 3]) / (12 * step)
    return slopes.transpose(0, 2, 1)


@EVERY_METHOD
@pytest.mark.parametrize("kernel", KERNELS)
def test_loadings_are_derivatives_of_transform(method, kernel):
    model = fitted(method, kernel)
    found, expected = model.loadings(NEW), differences(model, NEW)
    assert found.shape == (5, model.n_components_, 6)
    assert_allclose(found, expected, atol=1e-7 * np.abs(expected).max())


@EVERY_METHOD
def test_loadings_of_weighted_fits(method):
    weights = np.arange(len(X)) % 4 + 0.5
    model = fitted(method, "rbf", weights=weights)
    expected = differences(model, NEW)
    assert_allclose(model.loadings(NEW), expected, atol=1e-7 * np.abs(expected).max())


def test_loadings_with_more_features_than_rows():
    wide = X @ np.random.default_rng(1).standard_normal((6, 150))
    for kernel in ("linear", ExactKernel("rbf", gamma=1e-3)):
        model = fitted("SVMPCA", kernel, wide)
        expected = differences(model, wide[:2])
        assert_allclose(model.loadings(wide[:2]), expected, atol=1e-7 * np.abs(expected).max())


@EVERY_METHOD
def test_linear_loadings_are_the_directions_of_transform(method):
    """The same at every row, and with them transform is affine."""
    model = fitted(method)
    loadings = model.loadings(NEW)
    assert_allclose(loadings, np.broadcast_to(loadings[0], loadings.shape))
    assert_allclose(
        NEW @ loadings[0].T - X[:1] @ loadings[0].T,
        model.transform(NEW) - model.transform(X[:1]),
        atol=1e-10,
    )


@pytest.mark.parametrize("scaling", ["unit", "margin"])
def test_the_margin_is_a_factor_of_loadings(scaling):
    model = LSVA(2, kernel=KERNELS["rbf"], scaling=scaling).fit(X, Y)
    unit = LSVA(2, kernel=KERNELS["rbf"]).fit(X, Y)
    factor = model.norms_ if scaling == "margin" else np.ones(2)
    assert_allclose(model.loadings(NEW), unit.loadings(NEW) * factor[:, None], atol=1e-8)


@EVERY_METHOD
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_contributions_are_mean_sizes_of_loadings(method, kernel):
    model = fitted(method, kernel)
    found = model.feature_contributions(X)
    assert found.shape == (model.n_components_, 6)
    assert_allclose(found, np.abs(model.loadings(X)).mean(axis=0))


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_a_feature_that_does_not_matter_contributes_nothing(kernel):
    """A constant column, for kernels of differences."""
    rows = np.column_stack([X, np.full(len(X), 3.0)])
    model = fitted("SVMPCA", kernel, rows)
    found = model.feature_contributions(rows)
    assert_allclose(found[:, 6], 0.0, atol=1e-12)
    assert (found[:, :6] > 1e-3).all()


@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly", "cosine"])
@pytest.mark.parametrize("storage", [sp.csr_array, pd.DataFrame])
def test_storage_does_not_matter(kernel, storage):
    stored = storage(X) if storage is not pd.DataFrame else storage(X).rename(columns=str)
    model = SVMPCA(2, kernel=KERNELS[kernel]).fit(stored)
    expected = SVMPCA(2, kernel=KERNELS[kernel]).fit(X).loadings(X)
    assert_allclose(model.loadings(stored), expected, atol=1e-9)


@pytest.mark.parametrize(
    "kernel",
    ["laplacian", "precomputed", lambda A, B: np.asarray(A @ B.T), Nystroem(n_components=9)],
    ids=["laplacian", "precomputed", "function", "transformer"],
)
@pytest.mark.parametrize("ask", ["loadings", "feature_contributions"])
def test_kernels_without_a_derivative_say_which_have_one(kernel, ask):
    rows = X @ X.T if isinstance(kernel, str) and kernel == "precomputed" else X
    model = SVMPCA(2, kernel=kernel).fit(rows)
    with pytest.raises(InvalidInputError, match=r"rbf, poly"):
        getattr(model, ask)(rows)


@pytest.mark.parametrize(
    "ask", ["inverse_transform", "denoise", "reconstruction_error", "feature_contributions"]
)
@EVERY_METHOD
def test_before_fit(method, ask):
    model = clone(METHODS[method]).set_params(kernel="linear")
    with pytest.raises(NotFittedError):
        getattr(model, ask)(X)


@EVERY_METHOD
@pytest.mark.parametrize("ask", ["denoise", "reconstruction_error", "loadings"])
def test_another_number_of_features_is_refused(method, ask):
    with pytest.raises(ValueError, match="features"):
        getattr(fitted(method), ask)(X[:, :5])


@EVERY_METHOD
def test_linear_attributes_agree_with_transform(method):
    """components_ and mean_ are all that a linear transform needs."""
    model = fitted(method)
    factor = model.norms_ if "margin" in method else 1.0
    assert_allclose(model.transform(NEW), (NEW - model.mean_) @ model.components_.T * factor)
    assert model.components_.shape == (model.n_components_, 6)
    assert list(model.get_feature_names_out()) == [
        f"{type(model).__name__.lower()}{k}" for k in range(model.n_components_)
    ]


@EVERY_METHOD
def test_a_linear_map_as_an_object_is_the_shorthand(method):
    plain, named = fitted(method), fitted(method, Linear())
    assert_allclose(named.transform(NEW), plain.transform(NEW), atol=1e-10)
    assert_allclose(named.inverse_transform(plain.transform(NEW)), plain.denoise(NEW), atol=1e-9)


@EVERY_METHOD
def test_a_second_fit_forgets_the_first(method):
    """Also its reconstruction."""
    model = clone(METHODS[method]).set_params(kernel="linear", reconstruct="linear").fit(X, Y)
    assert hasattr(model, "reconstruction_")
    model.set_params(reconstruct=None).fit(X[:, :4], Y)
    assert not hasattr(model, "reconstruction_")
    assert model.denoise(X[:, :4]).shape == (len(X), 4)


@EVERY_METHOD
def test_a_fit_that_fails_leaves_the_old_one(method):
    model = fitted(method)
    before = model.transform(NEW)
    model.set_params(reconstruct="fixed_point")
    with pytest.raises(ValueError, match="rbf"):
        model.fit(X[:, :3], Y)
    assert_allclose(model.set_params(reconstruct=None).transform(NEW), before)
