"""The number of components by held-out entries: the literal loop, known ranks, copies, refusals."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_wine
from sklearn.preprocessing import scale

from marginfold import SVMPCA
from marginfold.errors import ExhaustedWarning, InvalidParameterError
from marginfold.estimators.svm_pca import FOLDS, entry_errors, fewest_of_the_best
from marginfold.graphs.neighbor_search import distinct_rows

WINE = scale(load_wine(return_X_y=True)[0])


def hidden(rank, n=120, d=9, noise=0.3, seed=0):
    """Return rows of a given rank, with noise."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, rank)) @ rng.normal(size=(rank, d)) + noise * rng.normal(size=(n, d))


def literal(X, k, centred):
    """Predict every entry by a regression on the others, with the covariance of the model."""
    X = X[distinct_rows(X, np.ones(len(X))).rows]  # in this order they are dealt to the folds
    folds = np.random.default_rng(0).permutation(len(X)) % min(FOLDS, len(X))
    squares, d = 0.0, X.shape[1]
    for fold in range(folds.max() + 1):
        train = X[folds != fold]
        mean = train.mean(axis=0) if centred else np.zeros(d)
        values, vectors = np.linalg.eigh((train - mean).T @ (train - mean) / len(train))
        values[: d - k] = values[: d - k].mean()
        S = vectors @ np.diag(values) @ vectors.T
        for x in X[folds == fold] - mean:
            for j in range(d):
                others = np.arange(d) != j
                slope = np.linalg.lstsq(S[np.ix_(others, others)], S[others, j], rcond=1e-12)[0]
                squares += (x[j] - slope @ x[others]) ** 2
    return squares / X.size


@pytest.mark.parametrize("centred", [True, False])
@pytest.mark.parametrize("shape", [(40, 6), (8, 5), (12, 20)])
def test_an_entry_is_predicted_by_the_other_entries_of_its_row(shape, centred):
    X = hidden(3, *shape) + 1.0
    errors = entry_errors(X, np.ones(len(X)), centred=centred)
    expected = [literal(X, k, centred) for k in range(len(errors))]
    assert_allclose(errors, expected, rtol=1e-8)


@pytest.mark.parametrize("rank", [1, 2, 4, 6])
def test_a_hidden_rank_is_found_or_hardly_exceeded(rank):
    """More components than the rank fit a little noise, which costs next to nothing."""
    found = []
    for seed in range(10):
        X = hidden(rank, d=12, n=300, noise=0.2, seed=seed)
        model = SVMPCA("cv").fit(X)
        found.append(model.n_components_)
        assert model.cv_errors_[rank] < 1.02 * model.cv_errors_.min()
    number = SVMPCA(found[-1]).fit(X)
    assert_array_equal(model.components_, number.components_)
    assert min(found) == rank == np.median(found)


def test_whole_rows_would_ask_for_every_component():
    """The pitfall: the error of held-out rows only falls."""
    X = hidden(2, d=8)
    V = np.linalg.svd(X[:60] - X[:60].mean(axis=0))[2]
    x = X[60:] - X[:60].mean(axis=0)
    rows = [((x - x @ V[:k].T @ V[:k]) ** 2).sum() for k in range(8)]
    assert (np.diff(rows) < 0).all()
    errors = entry_errors(X, np.ones(len(X)), centred=True)
    assert errors.argmin() == 2
    assert errors[-1] > 1.02 * errors[2]


@pytest.mark.parametrize("bias", [True, False])
def test_weights_are_copies_and_orders_change_nothing(bias):
    rng = np.random.default_rng(1)
    weights = rng.integers(0, 4, len(WINE))
    rows = rng.permutation(np.repeat(np.arange(len(WINE)), weights))
    weighted = SVMPCA("cv", bias=bias).fit(WINE, sample_weight=weights)
    copied = SVMPCA("cv", bias=bias).fit(sp.csr_array(WINE[rows]))
    assert_allclose(weighted.cv_errors_, copied.cv_errors_, rtol=1e-9)
    assert weighted.n_components_ == copied.n_components_


def test_units_are_units_of_the_errors():
    model, other = SVMPCA("cv").fit(WINE), SVMPCA("cv").fit(2.0**-20 * WINE)  # the same folds
    assert_allclose(other.cv_errors_, 2.0**-40 * model.cv_errors_, rtol=1e-9)
    assert model.n_components_ == other.n_components_


def test_unrelated_columns_have_no_component_that_predicts():
    X = np.random.default_rng(0).normal(size=(200, 6))
    with pytest.warns(ExhaustedWarning, match="better than their mean.*one is kept"):
        assert SVMPCA("cv").fit(X).n_components_ == 1


def test_a_column_of_its_own_is_predicted_by_its_mean():
    """The first component is nearly that column: no small number is divided by."""
    X = np.column_stack([hidden(1, d=4), 1e4 * np.where(np.arange(120) % 2, 1.0, -1.0)])
    errors = entry_errors(X, np.ones(len(X)), centred=True)
    assert_allclose(errors[1:3], errors[0], rtol=0.2)
    without_noise = np.column_stack([np.outer(np.arange(120.0), [1, 2, 3]), X[:, 4]])
    assert np.isfinite(entry_errors(without_noise, np.ones(120), centred=True)).all()


@pytest.mark.parametrize("X", [WINE[:2], WINE[:, :1], np.eye(3)])
def test_few_rows_and_columns_have_a_component(X):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExhaustedWarning)  # too little to predict anything
        model = SVMPCA("cv").fit(X)
    assert model.n_components_ >= 1
    assert np.isfinite(model.cv_errors_).all()


def test_the_fewest_of_equal_numbers():
    assert fewest_of_the_best(np.array([3.0, 1.0, 1.0 - 1e-12, 2.0])) == 1


@pytest.mark.parametrize("kernel", ["rbf", "precomputed"])
def test_a_kernel_has_no_entries(kernel):
    with pytest.raises(InvalidParameterError, match=r"n_components='cv'.*entries.*linear"):
        SVMPCA("cv", kernel=kernel).fit(WINE @ WINE.T)


def test_other_words_are_refused():
    with pytest.raises(InvalidParameterError, match="n_components must be one of None, 'cv'"):
        SVMPCA("mle").fit(WINE)
