"""From ``kernel=...`` to a feature map, and any transformer as one."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
from numpy.testing import assert_allclose
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.kernel_approximation import Nystroem
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, PolynomialFeatures, StandardScaler

from marginfold.errors import InvalidInputError, InvalidParameterError
from marginfold.feature_maps import (
    ExactKernel,
    Linear,
    Transformed,
    is_linear,
    is_pairwise,
    resolve_feature_map,
)
from marginfold.feature_maps.kernel_values import KERNELS
from marginfold.validation.rows import check_weights

X = np.random.default_rng(2).standard_normal((20, 3))


def test_shorthands():
    assert isinstance(resolve_feature_map("linear"), Linear)
    for name in KERNELS[1:]:
        found = resolve_feature_map(name)
        assert isinstance(found, ExactKernel)
        assert found.kernel == name


def test_an_object_is_cloned():
    given = ExactKernel("rbf", gamma=0.1).fit(X)
    found = resolve_feature_map(given)
    assert found is not given
    assert found.gamma == 0.1
    assert not hasattr(found, "gamma_")


def test_a_function_is_a_kernel_and_a_transformer_is_wrapped():
    assert isinstance(resolve_feature_map(lambda A, B: A @ B.T), ExactKernel)
    found = resolve_feature_map(make_pipeline(StandardScaler(), PolynomialFeatures(2)))
    assert isinstance(found, Transformed)


@pytest.mark.parametrize(
    "kernel", ["", "RBF", "gaussian", None, 3, ExactKernel, StandardScaler, []]
)
def test_refusals_name_the_choices(kernel):
    with pytest.raises(InvalidParameterError, match="kernel must be one of linear, rbf"):
        resolve_feature_map(kernel)


def test_what_is_linear_and_what_is_pairwise():
    assert is_linear("linear")
    assert is_linear(Linear())
    assert not is_linear(ExactKernel("linear"))
    assert not is_linear("rbf")
    assert is_pairwise("precomputed")
    assert is_pairwise(ExactKernel("precomputed"))
    assert not is_pairwise("rbf")
    assert not is_pairwise(np.ones((2, 2)))


def test_transformed_is_the_centred_output():
    raw = PolynomialFeatures(2).fit_transform(X)
    found = Transformed(PolynomialFeatures(2)).fit(X)
    assert_allclose(found.transform(X), raw - raw.mean(axis=0))
    W = np.random.default_rng(3).standard_normal((raw.shape[1], 2))
    assert_allclose(found.project(X, W), (raw - raw.mean(axis=0)) @ W)


def test_transformed_leaves_the_given_transformer_unfitted():
    given = StandardScaler()
    Transformed(given).fit(X)
    assert not hasattr(given, "mean_")


def test_transformed_weights_are_copies_for_a_fixed_transformer():
    copies = np.arange(20) % 3
    weighted = Transformed(PolynomialFeatures(2)).fit(X, sample_weight=copies)
    repeated = Transformed(PolynomialFeatures(2)).fit(np.repeat(X, copies, axis=0))
    assert_allclose(weighted.transform(X), repeated.transform(X), atol=1e-12)


def test_transformed_ignores_rows_of_weight_zero():
    weights = np.where(np.arange(20) < 15, 1.0, 0.0)
    weighted = Transformed(StandardScaler()).fit(X, sample_weight=weights)
    assert_allclose(weighted.transform(X), Transformed(StandardScaler()).fit(X[:15]).transform(X))


def test_a_frozen_transformer_stays_as_it_was_fitted():
    scaler = StandardScaler().fit(10 * X + 3)
    Z = resolve_feature_map(FrozenEstimator(scaler)).fit_transform(X)
    assert_allclose(Z, (X - X.mean(axis=0)) / scaler.scale_, atol=1e-12)


def test_transformed_takes_frames_with_weights():
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    weights = np.arange(20) % 2
    frame = Transformed(StandardScaler()).fit(pd.DataFrame(X), sample_weight=weights)
    assert_allclose(
        frame.mean_, Transformed(StandardScaler()).fit(X, sample_weight=weights).mean_, atol=1e-12
    )


def test_transformed_makes_sparse_output_dense():
    categories = (X[:, :1] > 0).astype(int)
    Z = Transformed(OneHotEncoder()).fit_transform(categories)
    assert not scipy.sparse.issparse(Z)
    assert_allclose(Z.mean(axis=0), 0, atol=1e-15)


def test_transformed_takes_what_its_transformer_takes():
    texts = np.array(["a cat", "a dog", "the cat"], dtype=object)
    assert Transformed(CountVectorizer()).fit(texts).transform(texts).shape[0] == 3


def test_nystroem_with_all_rows_is_the_exact_kernel():
    sampled = Nystroem(kernel="rbf", gamma=0.3, n_components=20, random_state=0)
    approximate = Transformed(sampled).fit_transform(X)
    exact = ExactKernel("rbf", gamma=0.3).fit_transform(X)
    assert_allclose(approximate @ approximate.T, exact @ exact.T, atol=1e-8)


@pytest.mark.parametrize(
    ("weights", "says"),
    [([1, 2], "one weight per row"), ([1, -1, 1], "negative"), ([0, 0, 0], "zero")],
)
def test_weights_that_are_refused(weights, says):
    with pytest.raises(InvalidInputError, match=says):
        check_weights(weights, 3)


def test_weights_of_every_accepted_form():
    assert_allclose(check_weights(None, 3), 1)
    assert_allclose(check_weights(2.5, 3), 2.5)
    assert_allclose(check_weights([1, 0, 2], 3), [1, 0, 2])
