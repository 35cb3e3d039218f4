"""A row of weight 2 is the row twice, a row of weight 0 is no row: for everything that is fitted.

Both sides are the same optimisation problem, solved from different arrays.  `CLOSE` is relative to
the size of the outputs; the methods reach 1e-8 (raw graph weights 1.4e-9, the others below 1e-9).
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.metrics.pairwise import rbf_kernel

from marginfold import (
    GESVC,
    LSVA,
    MMDA,
    WSVDA,
    ExactKernel,
    LapSVC,
    Linear,
    NeighborGraph,
    ReconstructionGraph,
    WithinClassGraph,
)
from marginfold.errors import ExhaustedWarning, InvalidInputError

pytestmark = pytest.mark.attack("relations between fits")

CLOSE = 1e-7

KNN = NeighborGraph(4)
MODELS = {
    "MMDA": MMDA(3),
    "MMDA greedy": MMDA(3, tasks="greedy"),
    "MMDA splits": MMDA(3, tasks="splits", scaling="margin"),
    "MMDA plain costs": MMDA(3, class_weight=None, on_exhausted="pca"),
    "MMDA own costs": MMDA(3, class_weight={0: 2.0}),
    "MMDA pca": MMDA(4, C=1e-4, on_exhausted="pca"),
    "MMDA rbf": MMDA(3, kernel="rbf", C=10.0),
    "MMDA poly": MMDA(3, kernel="poly"),
    "LSVA knn": LSVA(3, graph=KNN),
    "LSVA knn raw": LSVA(3, graph=KNN, normalize_graph=False),
    "LSVA mutual": LSVA(3, graph=NeighborGraph(4, mode="mutual", within_class=True)),
    "LSVA lle": LSVA(3, graph=ReconstructionGraph(4)),
    "LSVA within": LSVA(3, graph="within", tasks="splits"),
    "LSVA between": LSVA(3, graph="between", tasks="greedy"),
    "LSVA sum": LSVA(3, graph=0.3 * KNN + WithinClassGraph()),
    "LSVA rbf": LSVA(3, kernel="rbf", graph=KNN, C=10.0),
    "WSVDA": WSVDA(3),
    "WSVDA rbf": WSVDA(3, kernel="rbf"),
    "WSVDA automatic": WSVDA(3, C="auto"),
    "WSVDA splits": WSVDA(3, tasks="splits"),
    "GESVC": GESVC(graph=KNN),
    "GESVC balanced": GESVC(graph="total", class_weight="balanced"),
    "GESVC rbf": GESVC(kernel="rbf", graph="within", C=10.0),
    "LapSVC": LapSVC(graph=KNN, unlabeled=None),
}
SEMI_SUPERVISED = {
    "LapSVC": LapSVC(graph=KNN),
    "LapSVC rbf": LapSVC(graph=KNN, kernel="rbf", class_weight="balanced"),
    "LSVA": LSVA(3, graph=KNN, unlabeled=-1),
    "LSVA rbf": LSVA(3, graph=ReconstructionGraph(4), kernel="rbf", unlabeled=-1),
    "WSVDA": WSVDA(2, unlabeled=-1),
    "MMDA greedy": MMDA(3, unlabeled=-1, tasks="greedy"),
}

shapes = st.sampled_from([(14, 3), (20, 5), (12, 15)])  # the last: more columns than rows
seeds = st.integers(0, 10**6)


def weighted_rows(seed, shape, n_classes=3):
    """Return rows, labels, whole weights 0..3 and new rows; every class has a weight."""
    rng = np.random.default_rng(seed)
    n, d = shape
    y = np.arange(n) % n_classes
    X = rng.standard_normal((n, d)) + 1.5 * rng.standard_normal((n_classes, d))[y]
    X[-2:], y[-2:] = X[:2], y[:2]  # copies whose weights differ
    w = rng.integers(0, 4, n)
    w[n_classes : 2 * n_classes] = np.maximum(w[n_classes : 2 * n_classes], 1)
    return X, y, w, rng.standard_normal((8, d))


def outputs(model, X):
    """Return every number that a fitted model says about rows, one column each."""
    if not hasattr(model, "transform"):
        return model.decision_function(X).reshape(len(X), -1)
    return np.column_stack([model.transform(X), model.decision_function(X)])


def fit(model, *data, **weights):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExhaustedWarning)
        return clone(model).fit(*data, **weights)


def assert_same(model, expected, new):
    assert_allclose(model.gain_, expected.gain_, rtol=CLOSE, atol=CLOSE)
    values, wanted = outputs(model, new), outputs(expected, new)
    size = np.maximum(np.abs(wanted).max(axis=0), 1.0)
    assert_allclose(values / size, wanted / size, rtol=0, atol=CLOSE)


@pytest.mark.parametrize("name", MODELS)
@settings(max_examples=3)
@given(seed=seeds, shape=shapes)
@example(seed=790991, shape=(14, 3))  # with "MMDA poly" only copies of one row are on a margin
def test_weights_are_copies(name, seed, shape):
    X, y, w, new = weighted_rows(seed, shape)
    weighted = fit(MODELS[name], X, y, sample_weight=w)
    rows = np.repeat(np.arange(len(X)), w)
    repeated = fit(MODELS[name], X[rows], y[rows])
    assert_same(weighted, repeated, new)
    rows = np.flatnonzero(w)
    kept = fit(MODELS[name], X[rows], y[rows], sample_weight=w[rows])
    assert_same(kept, weighted, new)


@pytest.mark.parametrize("name", SEMI_SUPERVISED)
@settings(max_examples=3)
@given(seed=seeds, shape=shapes)
def test_weights_of_unlabelled_rows_are_copies(name, seed, shape):
    X, y, w, new = weighted_rows(seed, shape)
    y = np.where(np.arange(len(y)) % 4 == 3, -1, y)
    for code in range(3):
        w[np.flatnonzero(y == code)[0]] = 2
    rows = np.repeat(np.arange(len(X)), w)
    weighted = fit(SEMI_SUPERVISED[name], X, y, sample_weight=w)
    assert_same(weighted, fit(SEMI_SUPERVISED[name], X[rows], y[rows]), new)


def test_weights_of_unlabelled_rows_matter():
    X, y, w, new = weighted_rows(0, (20, 5))
    y = np.where(np.arange(len(y)) % 4 == 3, -1, y)
    more = np.where(y == -1, 5.0 * w, w)
    one, other = (
        fit(SEMI_SUPERVISED["LapSVC"], X, y, sample_weight=weights).decision_function(new)
        for weights in (w, more)
    )
    assert np.abs(one - other).max() > 1e-3


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("graph", [KNN, "within"])
def test_weights_are_copies_with_a_precomputed_kernel(seed, graph):
    X, y, w, new = weighted_rows(seed, (20, 3))
    rows = np.repeat(np.arange(len(X)), w)
    model = LSVA(3, kernel="precomputed", graph=graph, C=10.0)
    weighted = fit(model, rbf_kernel(X, X, 0.3), y, sample_weight=w)
    repeated = fit(model, rbf_kernel(X[rows], X[rows], 0.3), y[rows])
    values, expected = (
        fitted.transform(rbf_kernel(new, training, 0.3))
        for fitted, training in ((weighted, X), (repeated, X[rows]))
    )
    assert_allclose(values, expected, rtol=0, atol=CLOSE)


@pytest.mark.parametrize("seed", range(4))
def test_weights_are_copies_in_sparse_data(seed):
    X, y, w, new = weighted_rows(seed, (20, 5))
    X[X < 0], new[new < 0] = 0.0, 0.0
    rows = np.repeat(np.arange(len(X)), w)
    for model in (LSVA(2, graph=KNN), LSVA(2, graph=KNN, kernel="rbf")):
        weighted = fit(model, sp.csr_array(X), y, sample_weight=w)
        assert_same(weighted, fit(model, X[rows], y[rows]), new)


@settings(max_examples=25)
@given(seed=seeds, shape=shapes)
def test_linear_coordinates(seed, shape):
    X, _, w, new = weighted_rows(seed, shape)
    weighted = Linear().fit(X, sample_weight=w)
    repeated = Linear().fit(np.repeat(X, w, axis=0))
    assert_allclose(weighted.mean_, np.average(X, axis=0, weights=w), rtol=1e-12, atol=1e-12)
    assert_allclose(repeated.mean_, weighted.mean_, rtol=1e-12, atol=1e-12)
    # the basis may be another (copies can make wide data tall), inner products may not
    for A, B in [(X[w > 0], X[w > 0]), (new, X[w > 0])]:
        one, other = (m.transform(A) @ m.transform(B).T for m in (weighted, repeated))
        assert_allclose(other, one, rtol=0, atol=1e-10)


@pytest.mark.parametrize("kernel", ["rbf", "poly", "sigmoid", "cosine", "laplacian", "linear"])
@settings(max_examples=4)
@given(seed=seeds, shape=shapes)
@pytest.mark.filterwarnings("ignore:The kernel 'sigmoid' is not positive")
def test_kernel_coordinates(kernel, seed, shape):
    X, _, w, new = weighted_rows(seed, shape)
    weighted = ExactKernel(kernel).fit(X, sample_weight=w)
    repeated = ExactKernel(kernel).fit(np.repeat(X, w, axis=0))
    assert_allclose(repeated.gamma_, weighted.gamma_, rtol=1e-12)
    assert len(repeated.eigenvalues_) == len(weighted.eigenvalues_)
    Z = weighted.transform(new)
    size = np.abs(weighted.transform(X)).max()
    assert_allclose(repeated.transform(new), Z, rtol=0, atol=CLOSE * size)
    assert_allclose(w @ weighted.transform(X), 0.0, atol=1e-8 * size * w.sum())


def test_gamma_scale_is_that_of_the_repeated_rows():
    X, _, w, _ = weighted_rows(1, (14, 3))
    gamma = 1.0 / (3 * np.repeat(X, w, axis=0).var())
    for data in (X, sp.csr_array(X)):
        assert_allclose(ExactKernel().fit(data, sample_weight=w).gamma_, gamma, rtol=1e-12)


# ---------------------------------------------------------------------------- scale of weights


NOT_HOMOGENEOUS = ("LSVA knn raw", "LSVA sum")
"""An edge has the product of two weights, a scatter one of them: a sum or raw lam shows that."""


@pytest.mark.parametrize("factor", [1e-3, 7.0])
@pytest.mark.parametrize("name", [name for name in MODELS if name not in NOT_HOMOGENEOUS])
def test_a_common_factor_of_all_weights_is_a_factor_of_the_cost(name, factor):
    # ... and of S_W in WSVDA, so that nothing changes there
    X, y, w, new = weighted_rows(5, (20, 5))
    model = clone(MODELS[name])
    expected = fit(model, X, y, sample_weight=w)
    cost = expected.C_ if model.C == "auto" else model.C
    model.set_params(C=cost if isinstance(model, WSVDA) else cost / factor)
    assert_same(fit(model, X, y, sample_weight=factor * w), expected, new)


@pytest.mark.parametrize("name", MODELS)
def test_equal_weights_are_no_weights(name):
    X, y, _, new = weighted_rows(6, (20, 5))
    plain = fit(MODELS[name], X, y)
    assert_same(fit(MODELS[name], X, y, sample_weight=np.ones(len(y))), plain, new)
    assert_same(fit(MODELS[name], X, y, sample_weight=[1] * len(y)), plain, new)


def test_one_number_is_the_weight_of_every_row():
    X, y, _, new = weighted_rows(6, (20, 5))
    weighted = fit(MMDA(2), X, y, sample_weight=2.0)
    assert_same(weighted, fit(MMDA(2), X, y, sample_weight=np.full(len(y), 2.0)), new)


@pytest.mark.parametrize("name", ["MMDA", "LSVA within", "WSVDA", "GESVC balanced", "MMDA rbf"])
def test_a_tiny_weight_is_nearly_no_row(name):
    # not with a neighbor graph: a light node still takes a place in neighbor lists
    X, y, _, new = weighted_rows(7, (20, 5))
    light = np.where(np.arange(len(y)) % 5 == 0, 1e-12, 1.0)
    light[-2:] = 1.0
    none = np.where(light < 1, 0.0, light)
    a, b = (outputs(fit(MODELS[name], X, y, sample_weight=w), new) for w in (light, none))
    assert_allclose(a, b, rtol=1e-4, atol=1e-4)


# -------------------------------------------------------------------------- absent and refused


@pytest.mark.parametrize("name", MODELS)
def test_a_class_of_weight_zero_is_absent(name):
    X, y, w, new = weighted_rows(8, (24, 4), n_classes=4)
    w = np.where(y == 2, 0, w)
    weighted = fit(MODELS[name], X, y, sample_weight=w)
    kept = y != 2
    expected = fit(MODELS[name], X[kept], y[kept], sample_weight=w[kept])
    assert list(weighted.classes_) == [0, 1, 3]
    assert_same(weighted, expected, new)
    if hasattr(weighted, "tasks_"):
        assert weighted.tasks_ == expected.tasks_


def test_of_three_classes_two_remain_and_are_one_task():
    X, y, w, _ = weighted_rows(8, (24, 4))
    model = fit(MMDA(1), X, y, sample_weight=np.where(y == 0, 0, w))
    assert list(model.classes_) == [1, 2]
    assert model.tasks_ == [2]


ESTIMATORS = [MMDA(), LSVA(), WSVDA(), GESVC(), LapSVC(), MMDA(kernel="rbf")]
MAPS = [Linear(), ExactKernel()]


@pytest.mark.parametrize("model", ESTIMATORS + MAPS, ids=str)
@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (np.zeros(20), "zero"),
        (np.full(20, -1.0), "negative"),
        (np.ones(19), "shape"),
        (np.ones((20, 1)), "shape"),
        (np.where(np.arange(20) == 3, np.nan, 1.0), "NaN"),
        (np.where(np.arange(20) == 3, np.inf, 1.0), "infinity"),
    ],
)
def test_refused_weights(model, weights, message):
    X, y, _, _ = weighted_rows(0, (20, 3))
    with pytest.raises(ValueError, match=message):
        clone(model).fit(X, y, sample_weight=weights)


@pytest.mark.parametrize("model", ESTIMATORS, ids=str)
def test_one_class_with_weight_is_an_error_that_counts_classes(model):
    X, y, _, _ = weighted_rows(0, (20, 3))
    with pytest.raises(InvalidInputError, match="1 class"):
        clone(model).fit(X, y, sample_weight=(y == 1).astype(float))
