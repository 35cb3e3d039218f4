"""Scaling: scikit-learn's pipelines, and nothing of the test rows where that is promised."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler

from marginfold.errors import InvalidParameterError
from marginfold.papers.paper_data import SCALINGS, split_scaled


def rows(seed, *, missing=0.2):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((40, 6)) * 10.0 ** np.arange(-3, 3) + 5.0 * np.arange(6)
    X[rng.random(X.shape) < missing] = np.nan
    order = rng.permutation(40)
    return X, order[:25], order[25:]


def filled(X):
    return SimpleImputer(strategy="mean").fit_transform(X)


@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize("seed", [0, 1])
def test_by_the_training_rows_it_is_the_pipeline_fitted_on_them(seed, missing):
    X, train, test = rows(seed, missing=missing)
    pipeline = make_pipeline(SimpleImputer(strategy="mean"), MinMaxScaler((-1, 1))).fit(X[train])
    for ours, part in zip(split_scaled(X, train, test, "train"), (train, test), strict=True):
        np.testing.assert_allclose(ours, pipeline.transform(X[part]), rtol=0, atol=1e-11)


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_on_the_whole_it_is_the_pipeline_fitted_on_all(missing):
    X, train, test = rows(2, missing=missing)
    scaled = MinMaxScaler((-1, 1)).fit_transform(filled(X))
    for ours, part in zip(split_scaled(X, train, test, "whole"), (train, test), strict=True):
        np.testing.assert_allclose(ours, scaled[part], rtol=0, atol=1e-12)


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_global_scaling_takes_the_matrix_as_one_feature(missing):
    X, train, test = rows(3, missing=missing)
    column = filled(X).reshape(-1, 1)
    scaled = MinMaxScaler((-1, 1)).fit_transform(column).reshape(X.shape)
    for ours, part in zip(split_scaled(X, train, test, "global"), (train, test), strict=True):
        np.testing.assert_allclose(ours, scaled[part], rtol=0, atol=1e-12)


def test_test_rows_have_no_say_in_training():
    X, train, test = rows(5)
    other = X.copy()
    other[test] = np.random.default_rng(0).standard_normal((len(test), X.shape[1])) * 1e6
    other[test[0]] = np.nan
    before, after = (split_scaled(Y, train, test, "train") for Y in (X, other))
    np.testing.assert_array_equal(before[0], after[0])
    expected = np.nanmean(X[train], axis=0)  # and a missing test value is a mean of training rows
    alone = split_scaled(np.vstack([X[train], expected]), np.arange(len(train)), np.array([-1]))
    np.testing.assert_allclose(after[1][0], alone[1][0], rtol=0, atol=1e-12)


def test_each_test_row_is_scaled_alone():
    X, train, test = rows(6)
    together = split_scaled(X, train, test)[1]
    for i, row in enumerate(test):
        np.testing.assert_array_equal(split_scaled(X, train, np.array([row]))[1][0], together[i])


def test_the_other_scalings_do_see_the_test_rows():
    X, train, test = rows(7)
    other = X.copy()
    other[test[0]] = 1e6
    for scaling in ("whole", "global"):
        before, after = (split_scaled(Y, train, test, scaling)[0] for Y in (X, other))
        assert np.abs(before - after).max() > 0.1


@pytest.mark.parametrize("scaling", ["train", "whole"])
def test_a_constant_feature_becomes_zero(scaling):
    X, train, test = rows(8)
    X[:, 2] = 1e9
    for part in split_scaled(X, train, test, scaling):
        assert np.all(part[:, 2] == 0.0)


def test_a_feature_constant_in_training_keeps_its_differences_in_the_test():
    X, train, test = rows(9, missing=0.0)
    X[:, 1] = 7.0
    X[test[0], 1] = 9.5
    ours_train, ours_test = split_scaled(X, train, test)
    assert np.all(ours_train[:, 1] == 0.0)
    assert ours_test[0, 1] == 2.5
    assert np.all(ours_test[1:, 1] == 0.0)


@pytest.mark.parametrize("scaling", ["train", "whole"])
def test_a_feature_without_any_value_is_zero_and_spoils_no_other(scaling):
    X, train, test = rows(10)
    X[:, 3] = np.nan
    kept = [0, 1, 2, 4, 5]
    without = split_scaled(X[:, kept], train, test, scaling)
    for part, rest in zip(split_scaled(X, train, test, scaling), without, strict=True):
        assert np.all(part[:, 3] == 0.0)
        np.testing.assert_allclose(part[:, kept], rest, rtol=0, atol=1e-12)


def test_a_feature_without_any_value_spoils_no_global_range():
    X = np.array([[10.0, 12.0, np.nan], [20.0, 18.0, np.nan], [14.0, 11.0, np.nan]])
    train, test = np.array([0, 1]), np.array([2])
    without = split_scaled(X[:, :2], train, test, "global")
    for part, rest in zip(split_scaled(X, train, test, "global"), without, strict=True):
        np.testing.assert_array_equal(part[:, :2], rest)


def test_a_feature_missing_in_training_only_is_finite():
    X, train, test = rows(11)
    X[train, 0] = np.nan
    for part in split_scaled(X, train, test):
        assert np.isfinite(part).all()


@pytest.mark.parametrize("scaling", SCALINGS)
def test_the_input_is_left_as_it_was(scaling):
    X, train, test = rows(12)
    copy = X.copy()
    ours_train, _ = split_scaled(X, train, test, scaling)
    ours_train[:] = 0.0
    np.testing.assert_array_equal(X, copy)


def test_another_scaling_is_refused_with_the_names_of_all():
    X, train, test = rows(0)
    with pytest.raises(InvalidParameterError, match=r"'train', 'whole', 'global'\].*'std'"):
        split_scaled(X, train, test, "std")
