"""The estimators with data and files as users have them: frames, labels, copies, layouts."""

from __future__ import annotations

import copy
import io
import pickle

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
import sklearn
from estimator_families import (
    CLASSIFIERS,
    ESTIMATORS,
    MACHINES,
    PLANES,
    SUBSPACES,
    TRANSFORMERS,
    every,
    images,
)
from sklearn.base import clone, is_classifier
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_iris
from sklearn.decomposition import PCA
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LinearRegression
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import (
    StratifiedKFold,
)
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import OneHotEncoder, PolynomialFeatures, StandardScaler
from sklearn.utils import estimator_html_repr

from marginfold import (
    GEPSVC,
    GESVC,
    KDA,
    LDA,
    LPP,
    LSVA,
    MMDA,
    MRGEPSVC,
    NPE,
    SVMPCA,
    ExactKernel,
    GraphEmbedding,
    Linear,
    NeighborGraph,
    TotalGraph,
    TwinSVC,
    WithinClassGraph,
)
from marginfold.errors import (
    ExhaustedWarning,
    GraphUnderflowWarning,
    MarginfoldWarning,
    UncertifiedWarning,
)

FOLDS = StratifiedKFold(3, shuffle=True, random_state=0)

IRIS = load_iris()
X, Y = StandardScaler().fit_transform(IRIS.data), IRIS.target
TWO = Y != 2


# ----------------------------------------------------------------------------- frames and names


@every(TRANSFORMERS)
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_set_output_to_pandas(cls, kernel):
    frame = pd.DataFrame(X, columns=IRIS.feature_names, index=np.arange(150)[::-1])
    pipeline = make_pipeline(StandardScaler(), cls(kernel=kernel)).set_output(transform="pandas")
    result = pipeline.fit(frame, Y).transform(frame)
    assert list(result.columns) == [f"{cls.__name__.lower()}{i}" for i in range(2)]
    assert result.index.equals(frame.index)
    np.testing.assert_array_equal(pipeline[-1].feature_names_in_, frame.columns)
    np.testing.assert_array_equal(result.columns, pipeline.get_feature_names_out())
    expected = make_pipeline(StandardScaler(), cls(kernel=kernel)).fit(X, Y).transform(X)
    np.testing.assert_allclose(result, expected, rtol=1e-7, atol=1e-9 * max(1, expected.max()))


@every(TRANSFORMERS)
def test_set_output_to_polars(cls):
    frame = pl.DataFrame(X, schema=IRIS.feature_names)
    pipeline = make_pipeline(StandardScaler(), cls()).set_output(transform="polars")
    result = pipeline.fit(frame, Y).transform(frame)
    assert isinstance(result, pl.DataFrame)
    assert result.columns == list(pipeline.get_feature_names_out())


@pytest.mark.parametrize("feature_map", [Linear(), ExactKernel("rbf")])
@pytest.mark.parametrize("container", ["pandas", "polars"])
def test_feature_maps_have_set_output_too(feature_map, container):
    pipeline = make_pipeline(StandardScaler(), clone(feature_map), MMDA())
    result = pipeline.set_output(transform=container).fit(X, Y).transform(X)
    assert list(result.columns) == ["mmda0", "mmda1"]


@pytest.mark.parametrize("container", ["pandas", "polars"])
@pytest.mark.parametrize("kernel", ["rbf", Nystroem(n_components=9)], ids=["rbf", "Nystroem"])
def test_a_global_output_setting_stays_outside(container, kernel):
    with sklearn.config_context(transform_output=container):
        for cls in ESTIMATORS:
            fitted = cls(kernel=kernel).fit(X, Y)
            inner = fitted.normals_ if cls in PLANES else fitted.directions_
            assert isinstance(inner, np.ndarray)
            assert isinstance(fitted.feature_map_.coordinates(X), np.ndarray)
            if cls in CLASSIFIERS:
                assert isinstance(fitted.decision_function(X), np.ndarray)


@every(ESTIMATORS)
def test_feature_names(cls):
    frame = pd.DataFrame(X, columns=IRIS.feature_names)
    fitted = cls().fit(frame, Y)
    np.testing.assert_array_equal(fitted.feature_names_in_, IRIS.feature_names)
    assert fitted.n_features_in_ == 4
    fitted.fit(X, Y)
    assert not hasattr(fitted, "feature_names_in_")


def test_feature_names_along_a_path():
    frame = pd.DataFrame(X, columns=IRIS.feature_names)
    for fitted in LSVA().fit_path(frame, Y, [0.1, 1.0]):
        np.testing.assert_array_equal(fitted.feature_names_in_, IRIS.feature_names)
        assert list(fitted.get_feature_names_out()) == ["lsva0", "lsva1"]


@every(TRANSFORMERS)
def test_column_transformer_and_feature_union(cls):
    frame = pd.DataFrame(X, columns=list("abcd")).assign(colour=np.where(Y == 1, "red", "blue"))
    columns = ColumnTransformer(
        [("sub", cls(n_components=2), list("abcd")), ("hot", OneHotEncoder(), ["colour"])]
    )
    result = columns.fit_transform(frame, Y)
    assert result.shape == (150, 4)
    name = cls.__name__.lower()
    assert list(columns.get_feature_names_out())[:2] == [f"sub__{name}0", f"sub__{name}1"]
    union = FeatureUnion([("sub", cls(n_components=2)), ("pca", PCA(2))])
    assert union.fit_transform(X, Y).shape == (150, 4)


# --------------------------------------------------------------------------- labels of all kinds

LABELS = {
    "text": IRIS.target_names[Y],
    "text object": IRIS.target_names[Y].astype(object),
    "list": IRIS.target_names[Y].tolist(),
    "series": pd.Series(IRIS.target_names[Y], index=np.arange(150)[::-1]),
    "categorical": pd.Series(IRIS.target_names[Y], dtype="category"),
    "integers": Y * 10 - 7,
    "unsigned": Y.astype(np.uint8),
    "whole floats": Y.astype(float),
    "polars": pl.Series(IRIS.target_names[Y].tolist()),
}


@every([LSVA, GESVC, GEPSVC, LDA])  # one of each family: labels are read at one place
@pytest.mark.parametrize("labels", LABELS.values(), ids=list(LABELS))
def test_labels_of_any_type(cls, labels):
    expected, fitted = cls().fit(X, Y), cls().fit(X, labels)
    array = np.asarray(labels)
    np.testing.assert_array_equal(fitted.classes_, np.unique(array))
    np.testing.assert_array_equal(images(fitted, X), images(expected, X))
    if cls in CLASSIFIERS:
        np.testing.assert_array_equal(
            fitted.predict(X), fitted.classes_[np.searchsorted([0, 1, 2], expected.predict(X))]
        )
        assert fitted.score(X, labels) == expected.score(X, Y)
    elif cls in SUBSPACES:
        for task, codes in zip(fitted.tasks_, expected.tasks_, strict=True):
            np.testing.assert_array_equal(task, fitted.classes_[np.asarray(codes)])


@every(CLASSIFIERS)
def test_truth_values_are_labels(cls):
    fitted = cls().fit(X, Y == 0)
    assert fitted.classes_.dtype == bool
    assert fitted.predict(X).dtype == bool
    np.testing.assert_array_equal(fitted.predict(X), images(fitted, X) > 0)


@every(CLASSIFIERS)
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_decision_shapes_and_class_order(cls, kernel):
    three = cls(kernel=kernel).fit(X, Y)
    assert images(three, X).shape == (150, 3)
    np.testing.assert_array_equal(three.predict(X), images(three, X).argmax(axis=1))
    two = cls(kernel=kernel).fit(X[TWO][::-1], IRIS.target_names[Y[TWO]][::-1])
    assert list(two.classes_) == ["setosa", "versicolor"]
    assert images(two, X[TWO]).shape == (100,)
    np.testing.assert_array_equal(two.predict(X[TWO]) == "versicolor", images(two, X[TWO]) > 0)
    assert is_classifier(two)


@every(PLANES)
@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_coef_and_intercept_reproduce_the_distances(cls, offset):
    for rows, y in ((X, Y), (X[TWO], Y[TWO]), (np.tile(X[::10], 9), Y[::10])):
        fitted = cls().fit(rows + offset, y)
        heights = (rows + offset) @ fitted.coef_.T + fitted.intercept_
        n_planes = {2: 2, 3: 6}[len(fitted.classes_)]
        assert fitted.coef_.shape == (n_planes, rows.shape[1])
        assert fitted.intercept_.shape == (n_planes,)
        np.testing.assert_allclose(np.linalg.norm(fitted.coef_, axis=1), 1.0)
        atol = 1e-13 * max(1.0, offset) * rows.shape[1]
        distances = fitted.distances(rows + offset)
        np.testing.assert_allclose(np.abs(heights), distances, atol=atol)
        for plane, normal, place in zip(
            fitted.planes_, fitted.coef_, fitted.intercept_, strict=True
        ):
            np.testing.assert_array_equal(plane.normal, normal)
            assert plane.offset == place
            name = f"{plane.label}" if n_planes == 2 else f"{plane.label} against {plane.opponent}"
            assert str(plane).startswith(f"{name}: ")


def test_planes_are_printed_with_the_names_of_the_user():
    frame = pd.DataFrame(X, columns=["sepal length", "sepal width", "petal length", "petal width"])
    text = str(GEPSVC().fit(frame, IRIS.target_names[Y]).planes_[0])
    assert text.startswith("'setosa' against 'versicolor': ")
    assert " petal length" in text
    assert text.endswith(" = 0")
    assert " z0" in str(GEPSVC(kernel="rbf").fit(frame, Y).planes_[0])


@every(MACHINES)
@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_coef_and_intercept_reproduce_the_decision(cls, offset):
    for rows, y in ((X, Y), (X[TWO], Y[TWO]), (np.tile(X[::10], 9), Y[::10])):
        fitted = cls(multiclass="one_vs_rest").fit(rows + offset, y)
        plain = (rows + offset) @ fitted.coef_.T + fitted.intercept_
        n_rows = 1 if len(fitted.classes_) == 2 else len(fitted.classes_)
        assert fitted.coef_.shape == (n_rows, rows.shape[1])
        assert fitted.intercept_.shape == (n_rows,)
        scores = images(fitted, rows + offset).reshape(len(rows), -1)
        np.testing.assert_allclose(plain, scores, atol=1e-13 * max(1.0, offset) * rows.shape[1])


# ----------------------------------------------------------------------- copies, files, displays


def short(model):
    return str(model).split(" at 0x")[0][:50]


CONFIGURATIONS = [
    *[cls() for cls in ESTIMATORS],
    LSVA(kernel=ExactKernel("rbf", gamma=0.3), graph=0.3 * NeighborGraph(4) + WithinClassGraph()),
    GESVC(kernel=Nystroem(n_components=15, random_state=0), graph=TotalGraph()),
    MMDA(kernel=rbf_kernel),
    GEPSVC(kernel=Nystroem(n_components=15, random_state=0), tikhonov="dual"),
    MRGEPSVC(graph=0.3 * NeighborGraph(4) + TotalGraph(), manifold="numerator"),
    TwinSVC(kernel=rbf_kernel, loss="least_squares"),
    SVMPCA(kernel=ExactKernel("rbf", gamma=0.3), reconstruct="kernel_ridge"),
    SVMPCA(kernel="rbf", reconstruct=LinearRegression()),
    GraphEmbedding(intrinsic=0.3 * NeighborGraph(4) + WithinClassGraph(), penalty=TotalGraph()),
    KDA(kernel=PolynomialFeatures(2), shrinkage="auto"),
]


@pytest.mark.parametrize("model", CONFIGURATIONS, ids=short)
def test_copies_behave_alike(model):
    fitted = clone(model).fit(X, Y)
    expected = images(fitted, X)
    buffer = io.BytesIO()
    joblib.dump(fitted, buffer)
    buffer.seek(0)
    for twin in (pickle.loads(pickle.dumps(fitted)), copy.deepcopy(fitted), joblib.load(buffer)):
        np.testing.assert_array_equal(images(twin, X), expected)
    fresh = clone(fitted)
    assert not any(name.endswith("_") for name in vars(fresh))
    np.testing.assert_array_equal(images(fresh.fit(X, Y), X), expected)


@pytest.mark.parametrize("model", CONFIGURATIONS, ids=short)
def test_displays(model):
    assert type(model).__name__ in repr(model)
    for estimator in (clone(model), clone(model).fit(X, Y)):
        html = estimator_html_repr(estimator)
        assert type(model).__name__ in html
        assert estimator._repr_html_()
    for name, value in model.get_params(deep=False).items():
        if hasattr(value, "get_params"):
            assert type(value).__name__ in estimator_html_repr(model), name


@every(ESTIMATORS)
def test_fitting_leaves_the_parts_unfitted(cls):
    """The kernel and graph of the user are recipes: results live in ``feature_map_``."""
    every_part = {
        "kernel": ExactKernel("rbf"),
        "graph": NeighborGraph(),
        "intrinsic": NeighborGraph(),
        "penalty": TotalGraph(),
        "reconstruct": LinearRegression(),
    }
    parts = {name: part for name, part in every_part.items() if name in cls().get_params()}
    fitted = cls(**parts).fit(X, Y)
    assert all(getattr(fitted, name) is part for name, part in parts.items())
    for part in parts.values():
        assert not any(name.endswith("_") for name in vars(part))


@every(ESTIMATORS)
def test_layout_precision_and_repetition_do_not_matter(cls):
    kernel = "rbf" if cls in (LSVA, GESVC, TwinSVC, SVMPCA) else "linear"
    rows = X.astype(np.float32)
    expected = images(cls(kernel=kernel).fit(rows.astype(float), Y), rows)
    read_only = np.asfortranarray(rows.astype(float))
    read_only.flags.writeable = False
    for variant in (
        rows,
        read_only,
        np.repeat(rows, 2, axis=0)[::2],
        rows.tolist(),
        pd.DataFrame(rows),
        rows.astype(object),
    ):
        fitted = cls(kernel=kernel).fit(variant, Y)
        atol = 1e-9 * max(1.0, np.abs(expected).max())
        np.testing.assert_allclose(images(fitted, variant), expected, rtol=1e-7, atol=atol)
    again = cls(kernel=kernel).fit(rows.astype(float), Y)
    np.testing.assert_array_equal(images(again, rows), expected)


@every(ESTIMATORS)
@pytest.mark.parametrize(
    ("kernel", "kind"), [("linear", sp.csr_array), ("linear", sp.coo_array), ("rbf", sp.csc_matrix)]
)
def test_sparse_rows(cls, kernel, kind):
    expected = images(cls(kernel=kernel).fit(X, Y), X)
    fitted = cls(kernel=kernel).fit(kind(X), Y)
    np.testing.assert_allclose(images(fitted, kind(X)), expected, rtol=1e-6, atol=1e-8)


def untidy(rows):
    """The same rows with every entry in two halves, from right to left, and read-only."""
    rows = sp.csr_array(rows[:, ::-1])
    columns = np.repeat(rows.shape[1] - 1 - rows.indices, 2).astype(np.int64)
    halves, ends = np.repeat(rows.data / 2, 2), 2 * rows.indptr.astype(np.int64)
    for part in (halves, columns, ends):
        part.setflags(write=False)
    return sp.csr_array((halves, columns, ends), shape=rows.shape)


@every(ESTIMATORS)
@pytest.mark.parametrize("kernel", ["rbf", "cosine", "laplacian"])
def test_sparse_rows_that_are_in_no_order(cls, kernel):
    rows = untidy(X)
    assert rows.nnz == 2 * X.size
    assert rows.indices.dtype == np.int64
    before = rows.indices.copy()
    expected = images(cls(kernel=kernel).fit(X, Y), X)
    found = images(cls(kernel=kernel).fit(rows, Y), rows)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-8)
    np.testing.assert_array_equal(rows.indices, before)


# ---------------------------------------------------------------------------------- warnings


def fit_here(model, *data):
    return model.fit(*data)


@pytest.mark.parametrize(
    ("model", "data", "category"),
    [
        (MMDA(9), (X, Y), ExhaustedWarning),
        (LSVA(9, on_exhausted="pca"), (X, Y), ExhaustedWarning),
        (GESVC(), (np.vstack([X, X]), np.repeat([0, 1], 150)), ExhaustedWarning),
        (GESVC(graph=NeighborGraph(width=1e-9)), (X, Y), GraphUnderflowWarning),
        (MMDA(kernel="sigmoid"), (X, Y), MarginfoldWarning),
        (ExactKernel("sigmoid"), (X,), MarginfoldWarning),
        (LDA(3), (X, Y), ExhaustedWarning),
        (SVMPCA(9), (X,), ExhaustedWarning),
        (LPP(9), (X,), ExhaustedWarning),
        (LPP(graph=NeighborGraph(width=1e-3)), (X,), GraphUnderflowWarning),
        (MRGEPSVC(graph=NeighborGraph(width=1e-9)), (X, Y), GraphUnderflowWarning),
        (TwinSVC(), (np.vstack([X, X]), np.repeat([0, 1], 150)), ExhaustedWarning),
        (TwinSVC(loss="hinge", tol=1e-30), (X, Y), UncertifiedWarning),
        (KDA(kernel="sigmoid"), (X, Y), MarginfoldWarning),
    ],
)
def test_a_warning_points_to_the_line_that_called_fit(model, data, category):
    with pytest.warns(category) as caught:
        fit_here(model, *data)
    assert {warning.filename for warning in caught} == {__file__}


@pytest.mark.parametrize("model", [LDA(3), SVMPCA(9), NPE(9)], ids=str)
def test_fit_transform_warns_at_the_caller_too(model):
    with pytest.warns(ExhaustedWarning) as caught:
        model.fit_transform(X, Y)
    assert {warning.filename for warning in caught} == {__file__}


def test_a_path_warns_once_at_the_caller():
    with pytest.warns(ExhaustedWarning) as caught:
        LSVA(9).fit_path(X, Y, [0.1, 1.0])
    assert len(caught) == 1
    assert {warning.filename for warning in caught} == {__file__}
