"""A row of weight 2 is the row twice, a row of weight 0 is no row: planes and embeddings.

Both sides are the same eigenvalue problem, made from different arrays.  `CLOSE` is relative to the
size of the outputs.
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.linear_model import Ridge
from sklearn.metrics.pairwise import rbf_kernel

from marginfold import (
    GEPSVC,
    KDA,
    LDA,
    LPP,
    MRGEPSVC,
    NPE,
    SVMPCA,
    GraphEmbedding,
    NeighborGraph,
    ReconstructionGraph,
    TwinSVC,
    WithinClassGraph,
)
from marginfold.errors import ExhaustedWarning

pytestmark = pytest.mark.attack("relations between fits")

CLOSE = 1e-7
SEPARATE = 1e-3
"""Relative gap of eigenvalues below which their directions may turn into each other."""

KNN = NeighborGraph(4)
LLE = ReconstructionGraph(4)
PLANES = {
    "GEPSVC": GEPSVC(),
    "GEPSVC dual": GEPSVC(tikhonov="dual"),
    "GEPSVC raw": GEPSVC(normalize=False),
    "GEPSVC rbf": GEPSVC(kernel="rbf", class_weight="balanced"),
    "GEPSVC rbf dual": GEPSVC(kernel="rbf", tikhonov="dual"),
    "MRGEPSVC": MRGEPSVC(graph=NeighborGraph(4, mode="mutual")),
    "MRGEPSVC numerator": MRGEPSVC(graph=KNN, manifold="numerator", class_weight={0: 2.0}),
    "MRGEPSVC raw": MRGEPSVC(graph=KNN, normalize=False, graph_weight=0.1),
    "MRGEPSVC lle": MRGEPSVC(graph=LLE, kernel="rbf"),
    "TwinSVC": TwinSVC(),
    "TwinSVC costs": TwinSVC(C1=0.1, C2=10.0, class_weight="balanced"),
    "TwinSVC rbf": TwinSVC(kernel="rbf", tikhonov="dual"),
    "TwinSVC squares": TwinSVC(loss="least_squares", normalize=False),
}
EMBEDDINGS = {
    "SVMPCA": SVMPCA(2),
    "SVMPCA dual": SVMPCA(2, solver="dual"),
    "SVMPCA about 0": SVMPCA(2, bias=False),
    "SVMPCA rbf": SVMPCA(2, kernel="rbf"),
    "SVMPCA rbf about 0": SVMPCA(2, kernel="rbf", bias=False),
    "SVMPCA poly": SVMPCA(2, kernel="poly"),
    "GraphEmbedding": GraphEmbedding(2, intrinsic=KNN, penalty="total"),
    "GraphEmbedding sum": GraphEmbedding(2, intrinsic=0.3 * KNN + WithinClassGraph()),
    "GraphEmbedding margin": GraphEmbedding(
        2, intrinsic=NeighborGraph(3, within_class=True), penalty="between", scaling="intrinsic"
    ),
    "GraphEmbedding pca": GraphEmbedding(2, intrinsic=None, penalty="total", scaling="unit"),
    "LDA": LDA(shrinkage=1e-3),
    "LDA auto": LDA(shrinkage="auto"),
    "KDA": KDA(),
    "KDA auto": KDA(shrinkage="auto", kernel="poly"),
    "LPP": LPP(2, graph=KNN),
    "LPP rbf": LPP(2, graph=KNN, kernel="rbf"),
    "NPE": NPE(2, graph=LLE),
    "NPE rbf": NPE(2, graph=LLE, kernel="rbf"),
}
MODELS = PLANES | EMBEDDINGS

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


def fit(model, *data, **weights):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExhaustedWarning)
        return clone(model).fit(*data, **weights)


def outputs(model, X):
    return model.transform(X) if hasattr(model, "transform") else model.distances(X)


def separate(model):
    """Return whether no two eigenvalues are alike, so that the directions are determined."""
    if not hasattr(model, "transform"):
        return True
    values = model.eigenvalues_
    return len(values) == 1 or (-np.diff(values)).min() > SEPARATE * values[0]


def assert_same(model, expected, new):
    values, wanted = outputs(model, new), outputs(expected, new)
    size = np.maximum(np.abs(wanted).max(axis=0), np.abs(wanted).max() * 1e-2)
    assert_allclose(values / size, wanted / size, rtol=0, atol=CLOSE)


def assert_same_eigenvalues(model, expected):
    for name in ("eigenvalues_", "explained_variance_", "explained_variance_ratio_", "shrinkage_"):
        if hasattr(expected, name):
            value = getattr(expected, name)
            assert_allclose(getattr(model, name), value, rtol=CLOSE, atol=CLOSE * np.max(value))


@pytest.mark.parametrize("name", MODELS)
@settings(max_examples=3)
@given(seed=seeds, shape=shapes)
def test_weights_are_copies(name, seed, shape):
    X, y, w, new = weighted_rows(seed, shape)
    weighted = fit(MODELS[name], X, y, sample_weight=w)
    assume(separate(weighted))
    rows = np.repeat(np.arange(len(X)), w)
    repeated = fit(MODELS[name], X[rows], y[rows])
    assert_same(weighted, repeated, new)
    assert_same_eigenvalues(weighted, repeated)
    rows = np.flatnonzero(w)
    kept = fit(MODELS[name], X[rows], y[rows], sample_weight=w[rows])
    assert_same(kept, weighted, new)
    assert_same_eigenvalues(kept, weighted)


@pytest.mark.parametrize("model", [EMBEDDINGS["LDA"], EMBEDDINGS["KDA"]], ids=["LDA", "KDA"])
@pytest.mark.parametrize("seed", range(3))
def test_weights_of_unlabelled_rows_are_copies(model, seed):
    X, y, w, new = weighted_rows(seed, (20, 5))
    y = np.where(np.arange(len(y)) % 4 == 3, -1, y)
    for code in range(3):
        w[np.flatnonzero(y == code)[:2]] = 2
    rows = np.repeat(np.arange(len(X)), w)
    model = clone(model).set_params(unlabeled=-1)
    assert_same(fit(model, X, y, sample_weight=w), fit(model, X[rows], y[rows]), new)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    "model",
    [GEPSVC(), MRGEPSVC(graph=KNN), TwinSVC(), SVMPCA(2), KDA(), LPP(2, graph=KNN)],
    ids=lambda model: type(model).__name__,
)
def test_weights_are_copies_with_a_precomputed_kernel(model, seed):
    X, y, w, new = weighted_rows(seed, (20, 3))
    rows = np.repeat(np.arange(len(X)), w)
    model = clone(model).set_params(kernel="precomputed")
    weighted = fit(model, rbf_kernel(X, X, 0.3), y, sample_weight=w)
    repeated = fit(model, rbf_kernel(X[rows], X[rows], 0.3), y[rows])
    values = outputs(weighted, rbf_kernel(new, X, 0.3))
    expected = outputs(repeated, rbf_kernel(new, X[rows], 0.3))
    assert_allclose(values, expected, rtol=0, atol=CLOSE * np.abs(expected).max())


@pytest.mark.parametrize("seed", range(2))
def test_weights_are_copies_in_sparse_data(seed):
    X, y, w, new = weighted_rows(seed, (20, 5))
    X[X < 0], new[new < 0] = 0.0, 0.0
    rows = np.repeat(np.arange(len(X)), w)
    for name in ("MRGEPSVC", "TwinSVC rbf", "SVMPCA", "SVMPCA rbf", "KDA", "LPP", "NPE"):
        weighted = fit(MODELS[name], sp.csr_array(X), y, sample_weight=w)
        assert_same(weighted, fit(MODELS[name], X[rows], y[rows]), new)


@pytest.mark.parametrize("reconstruct", ["linear", "kernel_ridge", "fixed_point", Ridge()], ids=str)
def test_weights_are_copies_in_a_reconstruction(reconstruct):
    X, _, w, new = weighted_rows(3, (20, 5))
    model = SVMPCA(2, kernel="rbf", reconstruct=reconstruct)
    weighted = fit(model, X, sample_weight=w)
    repeated = fit(model, np.repeat(X, w, axis=0))
    assert_allclose(weighted.denoise(new), repeated.denoise(new), rtol=0, atol=1e-6)
    assert_allclose(weighted.denoise(new, [1]), repeated.denoise(new, [1]), rtol=0, atol=1e-6)


def test_dual_vectors_with_weights():
    """The alphas of copies add up: scores are the same, and the weighted norm is 1."""
    X, _, w, _ = weighted_rows(3, (20, 5))
    for kernel in ("linear", "rbf"):
        model = fit(SVMPCA(2, kernel=kernel), X, sample_weight=w)
        assert_allclose(w @ model.alphas_**2, 1.0, rtol=1e-9)
        assert_allclose(w @ model.alphas_, 0.0, atol=1e-9)
        assert_allclose(w @ model.scores_**2, model.eigenvalues_, rtol=1e-9)
        repeated = fit(SVMPCA(2, kernel=kernel), np.repeat(X, w, axis=0))
        assert_allclose(repeated.alphas_, np.repeat(model.alphas_, w, axis=0), atol=1e-8)


# ---------------------------------------------------------------------------- scale of weights

NOT_HOMOGENEOUS = {
    "an edge has the product of two weights, a scatter one": ["GraphEmbedding sum"],
    "a raw ridge has no weight": ["GEPSVC raw", "MRGEPSVC raw", "TwinSVC squares"],
    "the shrinkage goes by the number of rows": ["LDA auto", "KDA auto"],
}
HOMOGENEOUS = MODELS.keys() - {name for names in NOT_HOMOGENEOUS.values() for name in names}


def shape_of(model, new):
    """Return outputs without their units: of planes as they are, of embeddings for unit size."""
    values = outputs(model, new)
    return values / np.linalg.norm(values, axis=0) if hasattr(model, "transform") else values


@pytest.mark.parametrize("factor", [1e-3, 7.0, 1e12])
@pytest.mark.parametrize("name", sorted(HOMOGENEOUS))
def test_a_common_factor_of_all_weights_changes_nothing(name, factor):
    """... but the units in which forms are 1 on average."""
    X, y, w, new = weighted_rows(5, (20, 5))
    expected = fit(MODELS[name], X, y, sample_weight=w)
    model = fit(MODELS[name], X, y, sample_weight=factor * w)
    assert_allclose(shape_of(model, new), shape_of(expected, new), rtol=0, atol=CLOSE)


@pytest.mark.parametrize("name", MODELS)
def test_equal_weights_are_no_weights(name):
    X, y, _, new = weighted_rows(6, (20, 5))
    plain = fit(MODELS[name], X, y)
    assert_same(fit(MODELS[name], X, y, sample_weight=np.ones(len(y))), plain, new)
    assert_same(fit(MODELS[name], X, y, sample_weight=[1] * len(y)), plain, new)


@pytest.mark.parametrize("name", ["GEPSVC", "TwinSVC", "SVMPCA", "SVMPCA rbf", "LDA", "KDA"])
def test_a_tiny_weight_is_nearly_no_row(name):
    # not with a neighbor graph: a light node still takes a place in neighbor lists
    X, y, _, new = weighted_rows(7, (20, 5))
    light = np.where(np.arange(len(y)) % 5 == 0, 1e-12, 1.0)
    light[-2:] = 1.0
    none = np.where(light < 1, 0.0, light)
    a, b = (outputs(fit(MODELS[name], X, y, sample_weight=w), new) for w in (light, none))
    assert_allclose(a, b, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", [*PLANES, "LDA", "LDA auto", "KDA", "GraphEmbedding margin"])
def test_a_class_of_weight_zero_is_absent(name):
    X, y, w, new = weighted_rows(8, (24, 4), n_classes=4)
    w = np.where(y == 2, 0, w)
    weighted = fit(MODELS[name], X, y, sample_weight=w)
    kept = y != 2
    expected = fit(MODELS[name], X[kept], y[kept], sample_weight=w[kept])
    assert list(weighted.classes_) == [0, 1, 3]
    assert_same(weighted, expected, new)
