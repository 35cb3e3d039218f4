"""A fit on a dask collection is the fit on the same rows in an array."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from same_fit import assert_same_fit
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from marginfold import (
    GEPSVC,
    GESVC,
    LDA,
    LPP,
    LSVA,
    MMDA,
    MRGEPSVC,
    SVMPCA,
    WSVDA,
    GraphEmbedding,
    LapSVC,
    LowRankKernel,
    TwinSVC,
)
from marginfold.graphs import AnchorGraph, TotalGraph, WithinClassGraph

da = pytest.importorskip("dask.array", reason="dask is not installed")
dd = pytest.importorskip("dask.dataframe", reason="dask is not installed")
pd = pytest.importorskip("pandas", reason="pandas is not installed")

SUM = 0.3 * AnchorGraph(40) + WithinClassGraph()

MODELS = {
    "LSVA within": LSVA(3, graph="within"),
    "LSVA anchors": LSVA(2, graph=AnchorGraph(60), C=10.0, tasks="greedy"),
    "LSVA sum": LSVA(2, graph=SUM, scaling="margin"),
    "LSVA orthogonal": LSVA(3, graph="within", deflation="orthogonal"),
    "WSVDA": WSVDA(2),
    "WSVDA automatic": WSVDA(2, C="auto"),
    "MMDA": MMDA(4, on_exhausted="pca", tasks="splits", class_weight=None),
    "GESVC": GESVC(graph="within"),
    "GESVC balanced": GESVC(graph=0.5 * TotalGraph(), class_weight="balanced"),
    "SVMPCA": SVMPCA(3),
    "SVMPCA about 0": SVMPCA(2, bias=False, solver="primal"),
    "LPP": LPP(2, graph=AnchorGraph(60)),
    "LDA": LDA(),
    "LDA shrunk": LDA(1, shrinkage="auto"),
    "GraphEmbedding": GraphEmbedding(3, intrinsic=SUM, penalty="total", scaling="unit"),
    "GraphEmbedding degrees": GraphEmbedding(2, intrinsic="within"),
    "GEPSVC": GEPSVC(),
    "GEPSVC dual": GEPSVC(tikhonov="dual", class_weight="balanced"),
    "MRGEPSVC": MRGEPSVC(graph=AnchorGraph(30)),
    "MRGEPSVC numerator": MRGEPSVC(graph="total", manifold="numerator", normalize=False),
    "TwinSVC": TwinSVC(C1=0.5),
    "TwinSVC least squares": TwinSVC(loss="least_squares", C2=2.0),
}


def fitted(model, X, y, weights=None):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return clone(model).fit(X, y, sample_weight=weights)


@pytest.mark.parametrize("name", MODELS)
def test_every_method_on_a_cluster(name, data, client, small_blocks):
    X, y = data
    chunks = da.from_array(X, chunks=((150, 150, 300, 300), 4))
    expected = fitted(MODELS[name], X, y)
    found = fitted(MODELS[name], chunks, da.from_array(y, chunks=(200,)))
    assert_same_fit(found, expected)
    assert found.n_features_in_ == 6


@pytest.mark.parametrize("name", MODELS)
def test_weights_without_a_client(name, data, weights, small_blocks):
    """Dask's own scheduler; rows of weight 0 fill a whole chunk, whole numbers are copies."""
    X, y = data
    expected = fitted(MODELS[name], X, y, weights)
    found = fitted(MODELS[name], da.from_array(X, chunks=(150, 6)), y, da.from_array(weights))
    assert_same_fit(found, expected)


@pytest.mark.parametrize("cut", [(900,), (1, 449, 0, 449, 1), (13,) * 69 + (3,), (300, 600)])
@pytest.mark.parametrize("name", ["LSVA anchors", "LDA shrunk", "MRGEPSVC"])
def test_the_cut_does_not_matter(name, cut, data, small_blocks):
    X, y = data
    found = fitted(MODELS[name], da.from_array(X, chunks=(cut, (6,))), y)
    assert_same_fit(found, fitted(MODELS[name], X, y))


@pytest.mark.parametrize("name", ["LSVA within", "LDA", "GEPSVC"])
def test_a_frame_with_text_labels(name, data, client, small_blocks):
    X, y = data
    frame = pd.DataFrame(X, columns=list("abcdef"))
    frame["kind"] = np.array(["one", "two", "three"])[y]
    lazy = dd.from_pandas(frame, npartitions=5)
    features = lazy.drop(columns="kind")
    expected = fitted(MODELS[name], frame.drop(columns="kind"), frame["kind"])
    found = fitted(MODELS[name], features, lazy["kind"])
    assert_same_fit(found, expected)
    assert found.feature_names_in_.tolist() == list("abcdef")
    assert found.classes_.tolist() == ["one", "three", "two"]


def test_chunks_of_unknown_size(data, client, small_blocks):
    X, y = data
    chunks = da.from_array(X, chunks=(150, 6))
    kept = X[:, 0] > np.median(X[:, 0])
    found = fitted(LDA(), chunks[chunks[:, 0] > float(np.median(X[:, 0]))], y[kept])
    assert_same_fit(found, fitted(LDA(), X[kept], y[kept]))


@pytest.mark.parametrize(
    "model", [LapSVC(graph=AnchorGraph(60)), LSVA(2, graph=AnchorGraph(60), unlabeled=-1)]
)
def test_unlabelled_rows_act_through_the_graph(model, data, client, small_blocks):
    X, y = data
    few = np.where(np.random.default_rng(0).random(len(y)) < 0.7, -1, y)
    assert_same_fit(fitted(model, da.from_array(X, chunks=(150, 6)), few), fitted(model, X, few))


def test_missing_labels_of_a_dask_array(data, small_blocks):
    X, y = data
    few = np.where(np.arange(len(y)) % 3 == 0, y.astype(float), np.nan)
    model = LSVA(2, graph="total", unlabeled=np.nan)
    found = fitted(model, da.from_array(X, chunks=(150, 6)), da.from_array(few))
    assert_same_fit(found, fitted(model, X, few))


def test_two_classes(data, small_blocks):
    X, y = data
    for name in ("LSVA within", "GESVC", "TwinSVC", "LDA"):
        found = fitted(MODELS[name], da.from_array(X, chunks=(150, 6)), y > 0)
        assert_same_fit(found, fitted(MODELS[name], X, y > 0))


@pytest.mark.parametrize(
    "kernel",
    [
        Nystroem(gamma=0.05, n_components=40, random_state=5),
        RBFSampler(gamma=0.05, n_components=50, random_state=5),
        PolynomialFeatures(2, include_bias=False),
        LowRankKernel("rbf", rank=40),
    ],
    ids=["Nystroem", "RBFSampler", "PolynomialFeatures", "LowRankKernel"],
)
@pytest.mark.parametrize("name", ["LSVA within", "LDA", "GEPSVC"])
def test_explicit_features(name, kernel, data, small_blocks):
    X, y = data
    X = StandardScaler().fit_transform(X)
    model = clone(MODELS[name]).set_params(kernel=kernel)
    found = fitted(model, da.from_array(X, chunks=(150, 6)), y)
    assert_same_fit(found, fitted(model, X, y))


def test_a_low_rank_kernel_on_a_cluster(data, weights, client, small_blocks):
    X, y = data
    model = LSVA(2, graph=AnchorGraph(40), kernel=LowRankKernel("rbf", tol=0.1))
    found = fitted(model, da.from_array(X, chunks=(300, 6)), y, weights)
    expected = fitted(model, X, y, weights)
    assert_same_fit(found, expected)
    assert np.allclose(found.transform(X), expected.transform(X), rtol=1e-8, atol=1e-10)


def test_a_frozen_transformer_is_used_as_it_is(data, small_blocks):
    X, y = data
    scaler = StandardScaler().fit(X)
    found = fitted(LDA(kernel=FrozenEstimator(scaler)), da.from_array(X, chunks=(150, 6)), y)
    expected = fitted(LDA(), scaler.transform(X), y)
    assert np.allclose(found.transform(X), expected.transform(scaler.transform(X)), rtol=1e-8)


def test_offsets_cost_no_digits(data, small_blocks):
    """Rows a million deviations from the origin: the scatter is taken about the means."""
    X, y = data
    far = X + 1e6
    for name in ("LDA", "LSVA within", "SVMPCA"):
        found = fitted(MODELS[name], da.from_array(far, chunks=(150, 6)), y)
        assert_same_fit(found, fitted(MODELS[name], far, y))


def test_other_types_of_numbers(data, small_blocks):
    X, y = data
    whole = np.rint(X * 100).astype(np.int32)
    for rows in (whole, X.astype(np.float32), whole > np.median(whole, axis=0)):
        found = fitted(SVMPCA(2), da.from_array(rows, chunks=(150, 6)), y)
        assert_same_fit(found, fitted(SVMPCA(2), rows, y))


def test_a_path_shares_its_passes(data, client, small_blocks):
    X, y = data
    chunks = da.from_array(X, chunks=(150, 6))
    weights = [0.1, 1.0, 10.0]
    found = LSVA(2, graph="within").fit_path(chunks, y, graph_weight=weights)
    for one, expected in zip(
        found, LSVA(2, graph="within").fit_path(X, y, graph_weight=weights), strict=True
    ):
        assert_same_fit(one, expected)
