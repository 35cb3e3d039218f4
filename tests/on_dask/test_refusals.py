"""What a dask collection cannot be used for is refused in words, and never gathered in silence."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.preprocessing import StandardScaler

from marginfold import (
    GESVC,
    KDA,
    LDA,
    LPP,
    LSVA,
    MRGEPSVC,
    NPE,
    SVMPCA,
    ExactKernel,
    LaplacianEigenmaps,
    Linear,
    LocallyLinearEmbedding,
    LowRankKernel,
    MarginMap,
    SubspaceSearchCV,
)
from marginfold.errors import GraphError, InvalidInputError
from marginfold.feature_maps import Transformed
from marginfold.graphs import SHORTHANDS, AnchorGraph, NeighborGraph, WithinClassGraph
from marginfold.protocols.permutation import graph_permutation_test

pytestmark = pytest.mark.attack("Dask inputs")

dask = pytest.importorskip("dask", reason="dask is not installed")
da = pytest.importorskip("dask.array", reason="dask is not installed")
dd = pytest.importorskip("dask.dataframe", reason="dask is not installed")
pd = pytest.importorskip("pandas", reason="pandas is not installed")

REFUSED = [
    (LSVA(), r"AnchorGraph\(\)"),
    (GESVC(graph=0.5 * NeighborGraph()), r"AnchorGraph\(\)"),
    (LPP(), r"AnchorGraph\(\)"),
    (NPE(), r"AnchorGraph\(\)"),
    (MRGEPSVC(), r"AnchorGraph\(\)"),
    (MRGEPSVC(graph=AnchorGraph(), unlabeled=-1), "labelled rows alone"),
    (KDA(), "LowRankKernel"),
    (SVMPCA(kernel=ExactKernel("rbf", rank=5)), "LowRankKernel"),
    (SVMPCA(kernel="precomputed"), "kernel='linear'"),
    (LDA(kernel=StandardScaler()), "FrozenEstimator"),
    (SVMPCA(solver="dual"), "primal"),
    (SVMPCA("cv"), "some of the rows"),
    (LDA(reconstruct="linear"), "reconstruct=None"),
    (LSVA(graph="within", solver="libsvm"), "interior_point"),
    (LaplacianEigenmaps(), r"X\.compute\(\)"),
    (LocallyLinearEmbedding(), r"X\.compute\(\)"),
    (MarginMap(), r"X\.compute\(\)"),
]


def unreadable(n_rows=60, n_features=4):
    """Return a dask array that fails as soon as a chunk of it is read."""

    def fail(block):
        raise AssertionError("a chunk was read")

    rows = da.zeros((n_rows, n_features), chunks=(20, n_features))
    return rows.map_blocks(fail, dtype=float, meta=np.zeros((0, 0)))


@pytest.mark.parametrize(("model", "advice"), REFUSED, ids=lambda value: type(value).__name__)
def test_what_needs_all_rows_is_refused_before_any_is_read(model, advice):
    model = clone(model)
    before = dict(vars(model))
    with pytest.raises(InvalidInputError, match=advice):
        model.fit(unreadable(), np.arange(60) % 2)
    assert vars(model).keys() == before.keys()


@pytest.mark.parametrize("method", ["inverse_transform", "denoise", "loadings"])
def test_methods_without_a_lazy_route(method, data):
    X, y = data
    model = LDA().fit(X, y)
    rows = model.transform(X) if method == "inverse_transform" else X
    with pytest.raises(InvalidInputError, match=r"X\.compute\(\)"):
        getattr(model, method)(da.from_array(rows, chunks=(100, rows.shape[1])))


@pytest.mark.parametrize("model", [LaplacianEigenmaps(1), MarginMap()])
def test_maps_without_a_lazy_route(model, data):
    X, y = data
    model.fit(X[::9], y[::9])
    with pytest.raises(InvalidInputError, match="map_blocks"):
        model.transform(da.from_array(X, chunks=(100, 6)))


def with_entry(value):
    rows = np.random.default_rng(0).normal(size=(60, 4))
    rows[47, 2] = value
    return da.from_array(rows, chunks=(20, 4))


@pytest.mark.parametrize(
    ("value", "message"), [(np.nan, "NaN"), (np.inf, "infinity"), (-1e200, "overflow")]
)
def test_entries_that_no_method_can_use(value, message):
    for weights in (None, np.where(np.arange(60) == 47, 0.0, 1.0)):
        with pytest.raises(InvalidInputError, match=message):
            LDA().fit(with_entry(value), np.arange(60) % 2, sample_weight=weights)


def test_lengths_that_differ():
    X = da.random.default_rng(0).normal(size=(60, 4), chunks=(20, 4))
    with pytest.raises(InvalidInputError, match="60 rows and y has 59"):
        LDA().fit(X, da.from_array(np.arange(59) % 2))
    with pytest.raises(InvalidInputError, match="one weight per row"):
        LDA().fit(X, np.arange(60) % 2, sample_weight=da.ones(61))


def test_collections_that_are_no_rows():
    frame = dd.from_pandas(pd.DataFrame({"a": [1.0, 2.0], "b": ["x", "y"]}), npartitions=1)
    for wrong in (da.zeros(9), da.zeros((3, 3, 3)), frame["a"]):
        with pytest.raises(InvalidInputError, match="rows and features"):
            LDA().fit(wrong, [0, 1])
    with pytest.raises(InvalidInputError, match="column 'b'"):
        LDA().fit(frame, [0, 1])
    with pytest.raises(InvalidInputError, match="columns"):
        LDA().fit(da.zeros((5, 0)), np.arange(5) % 2)
    words = da.from_array(np.array([["a"], ["b"]], dtype=object), chunks=1)
    with pytest.raises(InvalidInputError, match="numbers"):
        LDA().fit(words, [0, 1])


def test_too_few_rows():
    with pytest.raises(InvalidInputError, match="at least 2"):
        SVMPCA().fit(da.zeros((1, 1)))
    with pytest.raises(InvalidInputError, match=r"X\.compute\(\)"):
        SVMPCA().fit(da.ones((3, 8)))
    with pytest.raises(InvalidInputError, match="1 class"):
        LDA().fit(da.random.default_rng(0).normal(size=(20, 2)), np.zeros(20))


def test_labels_are_needed():
    with pytest.raises(ValueError, match="requires y"):
        LDA().fit(da.zeros((10, 2)), None)
    with pytest.raises(ValueError, match="NaN"):
        LDA().fit(da.ones((10, 2)), np.where(np.arange(10) % 2, 1.0, np.nan))


def test_a_graph_error_is_a_graph_error():
    with pytest.raises(GraphError):
        LSVA().fit(unreadable(), np.arange(60) % 2)


@pytest.mark.parametrize(
    "feature_map",
    [Linear(), ExactKernel(), LowRankKernel(), Transformed(StandardScaler())],
    ids=lambda feature_map: type(feature_map).__name__,
)
def test_feature_maps_do_not_gather_rows_in_silence(feature_map, data):
    rows = data[0][:50]
    with pytest.raises(InvalidInputError, match="kernel of an estimator"):
        clone(feature_map).fit(unreadable())
    fitted = clone(feature_map).fit(rows[:, :4])
    with pytest.raises(InvalidInputError, match="map_blocks"):
        fitted.transform(unreadable())
    with pytest.raises(InvalidInputError, match="map_blocks"):
        fitted.project(unreadable(), np.ones((fitted.transform(rows[:2, :4]).shape[1], 1)))


@pytest.mark.parametrize(
    "rule", [*(make() for make in SHORTHANDS.values()), AnchorGraph(), 0.5 * NeighborGraph()]
)
def test_graphs_do_not_gather_rows_in_silence(rule):
    with pytest.raises(InvalidInputError, match=r"dask Array.*AnchorGraph\(\)"):
        rule.build(unreadable(), np.arange(60) % 2)


def test_a_search_does_not_gather_rows_in_silence():
    with pytest.raises(InvalidInputError, match="sample of the rows"):
        SubspaceSearchCV(LSVA(2)).fit(unreadable(), np.arange(60) % 2)


def test_protocols_do_not_gather_rows_in_silence():
    with pytest.raises(InvalidInputError, match="sample of the rows"):
        graph_permutation_test(LSVA(1), unreadable(), np.arange(60) % 2)


@pytest.mark.parametrize("kind", ["delayed", "series", "vector"])
def test_what_is_no_table_is_refused_in_words(kind, data):
    X, y = data
    rows = {
        "delayed": dask.delayed(X),
        "series": dd.from_pandas(pd.Series(X[:, 0]), npartitions=2),
        "vector": da.from_array(X[:, 0], chunks=300),
    }
    with pytest.raises(InvalidInputError, match="two dimensions"):
        LDA().fit(rows[kind], y)
    with pytest.raises(InvalidInputError, match="two dimensions"):
        LDA().fit(X, y).transform(rows[kind])


def test_labels_and_weights_of_a_graph_may_be_lazy(data, weights):
    X, y = data
    rule = WithinClassGraph() + NeighborGraph(5)
    lazy_y = dd.from_pandas(pd.Series(y), npartitions=2)
    lazy = rule.build(X, lazy_y, sample_weight=da.from_array(weights, chunks=100))
    assert np.array_equal(lazy.scatter(X), rule.build(X, y, sample_weight=weights).scatter(X))


def test_chunks_must_have_the_columns_that_the_collection_says(data):
    X, y = data
    narrow = da.from_array(X, chunks=(300, 6)).map_blocks(
        lambda rows: rows[:, :3], dtype=float, meta=np.zeros((0, 0))
    )
    with pytest.raises(InvalidInputError, match=r"3 to 3 columns .* says it has 6"):
        LDA().fit(narrow, y)
