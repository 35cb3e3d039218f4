"""What Laplacian eigenmaps and locally linear embedding share: one contract for both."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from estimator_families import DIRECT
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import ortho_group
from sklearn.base import clone
from sklearn.datasets import load_wine
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler, scale
from sklearn.utils.estimator_checks import parametrize_with_checks

from marginfold.errors import (
    ExhaustedWarning,
    GraphError,
    InvalidInputError,
    InvalidParameterError,
    MarginfoldWarning,
)
from marginfold.estimators.eigenmaps import LaplacianEigenmaps
from marginfold.estimators.locally_linear import LocallyLinearEmbedding
from marginfold.graphs import NeighborGraph, ReconstructionGraph

RULES = {LaplacianEigenmaps: NeighborGraph, LocallyLinearEmbedding: ReconstructionGraph}
WINE = scale(load_wine().data)
rng = np.random.default_rng(5)


@pytest.fixture(params=DIRECT, ids=lambda cls: cls.__name__)
def cls(request):
    return request.param


def cloud(n, d, seed=0):
    return np.random.default_rng(seed).standard_normal((n, d))


def aligned(A, B):
    """A with the signs of B: a symmetric pair of extreme entries leaves the sign open."""
    return A * np.sign((A * B).sum(axis=0))


@parametrize_with_checks([LaplacianEigenmaps(), LocallyLinearEmbedding()])
def test_scikit_learn_contract(estimator, check):
    check(estimator)


def test_weighted_mean_0_and_variance_1(cls):
    weights = rng.integers(1, 4, len(WINE))
    fitted = cls(3).fit(WINE, sample_weight=weights)
    graph = RULES[cls]().build(WINE, sample_weight=weights)
    d, Y = graph.degrees, fitted.embedding_
    assert_allclose(d @ Y, 0.0, atol=1e-8 * d.sum())
    assert_allclose(Y.T @ (d[:, None] * Y), d.sum() * np.eye(3), atol=1e-8 * d.sum())
    assert_allclose(graph.scatter(Y), d.sum() * np.diag(fitted.eigenvalues_), atol=1e-9 * d.sum())


def test_the_largest_entry_is_positive(cls):
    Y = cls(4).fit(WINE).embedding_
    assert (Y.max(axis=0) >= -Y.min(axis=0)).all()


def test_components_are_nested_and_ordered(cls):
    few, many = cls(2).fit(WINE), cls(5).fit(WINE)
    assert_allclose(many.embedding_[:, :2], few.embedding_, atol=1e-7)
    assert (np.diff(many.eigenvalues_) >= 0).all()
    assert many.eigenvalues_[0] > 0


@pytest.mark.parametrize("d", [3, 20])
def test_motions_and_order_do_not_matter(cls, d):
    X, new = cloud(150, d), cloud(20, d, seed=1)
    Q, order = ortho_group.rvs(d, random_state=0), rng.permutation(150)
    fitted = cls().fit(X)
    moved = cls().fit((X @ Q + 3)[order])
    assert_allclose(moved.embedding_, fitted.embedding_[order], atol=1e-6)
    assert_allclose(moved.transform(new @ Q + 3), fitted.transform(new), atol=1e-6)
    assert_allclose(cls().fit(1e-5 * X).embedding_, fitted.embedding_, atol=1e-6)


@given(seed=st.integers(0, 10**6))
@pytest.mark.parametrize("embedding", DIRECT)
def test_a_weight_is_a_number_of_copies(embedding, seed):
    generator = np.random.default_rng(seed)
    X, weights = generator.standard_normal((40, 3)), generator.integers(0, 4, 40)
    copies = np.repeat(np.arange(40), weights)
    weighted = embedding(3).fit(X, sample_weight=weights)
    repeated = embedding(3).fit(X[copies])
    assert_allclose(weighted.eigenvalues_, repeated.eigenvalues_, atol=1e-12)
    gaps = np.diff(np.append(0, weighted.eigenvalues_))
    found, expected = weighted.embedding_, repeated.transform(X)  # rows of weight 0 among them
    assert_allclose(aligned(found, expected)[:, :2], expected[:, :2], atol=1e-10 / gaps.min())
    assert_array_equal(expected[copies], repeated.embedding_)


def test_weights_may_be_scaled(cls):
    weights = rng.random(len(WINE)) + 0.1
    first = cls().fit(WINE, sample_weight=weights).embedding_
    assert_allclose(cls().fit(WINE, sample_weight=50 * weights).embedding_, first, atol=1e-7)


def test_copies_share_a_place(cls):
    X = np.vstack([WINE, WINE[:30], WINE[:5]])
    Y = cls().fit(X).embedding_
    assert_array_equal(Y[:30], Y[178:208])
    assert_array_equal(Y[:5], Y[208:])


def test_training_rows_are_placed_where_they_were(cls):
    X = np.vstack([WINE, WINE[3:9]])
    fitted = cls()
    result = fitted.fit_transform(X)
    assert_array_equal(result, fitted.embedding_)
    assert_array_equal(fitted.transform(X), fitted.embedding_)
    assert_array_equal(fitted.transform(X[::-1]), fitted.embedding_[::-1])
    result[:] = 0  # the result is a copy
    assert fitted.embedding_.any()


def test_minus_zero_is_zero(cls):
    X = cloud(30, 3)
    X[:, 0] = np.where(X[:, 0] > 0, X[:, 0], 0.0)
    fitted = cls().fit(X)
    assert_array_equal(fitted.transform(np.where(X == 0, -0.0, X)), fitted.embedding_)


@pytest.mark.parametrize("d", [3, 20])
def test_one_row_at_a_time_is_the_same_as_all(cls, d):
    fitted = cls(3).fit(cloud(200, d))
    new = np.vstack([cloud(200, d)[:5], cloud(30, d, seed=1)])
    together = fitted.transform(new)
    single = np.vstack([fitted.transform(row[None]) for row in new])
    assert_allclose(single, together, rtol=1e-12, atol=1e-13)


def test_sparse_rows_give_the_same(cls):
    X = np.where(cloud(120, 12) > 0.3, cloud(120, 12), 0.0)
    new = np.where(cloud(20, 12, seed=1) > 0.3, cloud(20, 12, seed=1), 0.0)
    expected = cls().fit(X)
    for matrix in (sp.csr_array, sp.csc_matrix):
        found = cls().fit(matrix(X))
        assert_allclose(
            aligned(found.embedding_, expected.embedding_), expected.embedding_, atol=1e-6
        )
        assert_array_equal(found.transform(matrix(X)), found.embedding_)
        assert_array_equal(found.transform(X), found.embedding_)
        assert_allclose(found.transform(new), found.transform(matrix(new)), atol=1e-12)
        assert_allclose(expected.transform(matrix(new)), expected.transform(new), atol=1e-12)
    messy = sp.csr_array(X)
    messy.data = np.append(messy.data, 0.0)  # a stored zero
    messy.indices, messy.indptr = np.append(messy.indices, 11), messy.indptr.copy()
    messy.indptr[-1] += 1
    assert_array_equal(found.transform(messy)[:100], found.embedding_[:100])


def test_more_columns_than_rows(cls):
    X = cloud(30, 200)
    fitted = cls(2).fit(X)
    assert_array_equal(fitted.transform(X), fitted.embedding_)
    assert np.isfinite(fitted.transform(cloud(3, 200, seed=1))).all()


@pytest.mark.parametrize("n", [2, 3, 5])
def test_no_more_components_than_rows(cls, n):
    X = np.repeat(cloud(n, 3), 2, axis=0)
    with pytest.warns(ExhaustedWarning, match=rf"found {n - 1} of 7 components.*only {n} nodes"):
        fitted = cls(7).fit(X)
    assert fitted.n_components_ == n - 1 == len(fitted.eigenvalues_)
    assert fitted.embedding_.shape == (2 * n, n - 1)
    assert fitted.get_feature_names_out().shape == (n - 1,)


def test_equal_rows_have_no_embedding(cls):
    with pytest.raises(GraphError, match="without edges on 1 distinct rows"):
        cls().fit(np.ones((10, 3)))


def test_one_row_is_refused(cls):
    with pytest.raises(ValueError, match="1 sample"):
        cls().fit(np.ones((1, 3)))


@pytest.mark.parametrize("value", [0, 1.5, "2", None, True])
def test_bad_numbers_of_components(cls, value):
    with pytest.raises(InvalidParameterError, match="n_components"):
        cls(value).fit(WINE)


def test_a_failed_fit_leaves_the_former_one(cls):
    fitted = cls().fit(WINE)
    before = fitted.embedding_
    with pytest.raises(InvalidInputError):
        fitted.fit(WINE[:20], sample_weight=-np.ones(20))
    assert fitted.embedding_ is before
    assert_array_equal(fitted.transform(WINE), before)


def test_labels_are_not_read_unless_the_graph_uses_them(cls):
    labels = np.array(["a", None, 3.0] * 50 + ["b"] * 28, dtype=object)
    assert_array_equal(cls().fit(WINE, labels).embedding_, cls().fit(WINE).embedding_)


def test_pipelines_clones_pickles_and_frames(cls):
    pipeline = make_pipeline(StandardScaler(), cls(3)).set_output(transform="pandas")
    table = pipeline.fit_transform(load_wine(as_frame=True).data)
    assert list(table.columns) == [f"{cls.__name__.lower()}{i}" for i in range(3)]
    assert_allclose(table, cls(3).fit(WINE).embedding_, atol=1e-6)
    copy = pickle.loads(pickle.dumps(pipeline))
    new = load_wine(as_frame=True).data[:9] * 1.1
    assert_allclose(copy.transform(new), pipeline.transform(new))
    assert clone(cls(graph=RULES[cls](7))).graph.n_neighbors == 7


def test_changing_the_graph_afterwards_does_not_change_the_fit(cls):
    rule = RULES[cls](5)
    fitted = cls(graph=rule).fit(WINE)
    new = WINE * 1.05
    before = fitted.transform(new)
    rule.set_params(n_neighbors=20)
    assert_array_equal(fitted.transform(new), before)


def test_two_parts_are_told_apart_and_warned_of(cls):
    X = np.vstack([cloud(40, 2), cloud(25, 2, seed=1) + 100])
    part = np.repeat([0, 1], [40, 25])
    with pytest.warns(MarginfoldWarning, match=r"2 separate parts, so 1 of 3 .* more neighbors"):
        fitted = cls(3, graph=RULES[cls](5)).fit(X)
    first = fitted.embedding_[:, 0]
    assert_allclose(fitted.eigenvalues_[0], 0.0, atol=1e-14)
    for p in (0, 1):
        assert_allclose(first[part == p], first[part == p][0], rtol=1e-9)
    assert first[0] < 0 < first[-1]  # the smaller part lies further from the mean
    assert_allclose(fitted.transform(X[:3] + 0.01)[:, 0], first[:3], rtol=1e-8)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cls(3, graph=RULES[cls](45)).fit(X)


def test_more_parts_than_coordinates(cls):
    X = np.vstack([cloud(12, 2, seed=i) + 100 * i for i in range(5)])
    with pytest.warns(MarginfoldWarning, match=r"5 separate parts, so 2 of 2"):
        fitted = cls(2, graph=RULES[cls](4)).fit(X)
    assert len(np.unique(fitted.embedding_.round(9), axis=0)) == 3


def test_a_far_row_is_placed_by_the_nearest(cls):
    fitted = cls().fit(WINE)
    far = fitted.transform(np.full((1, WINE.shape[1]), 1e120))
    assert (np.abs(far) <= 2 * np.abs(fitted.embedding_).max(axis=0)).all()
