"""The estimators where users put them: pipelines, searches, calibration, frames, files, threads."""

from __future__ import annotations

import copy
import io
import os
import pickle
import subprocess
import sys

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
import sklearn
from sklearn.base import clone, is_classifier
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine, make_moons
from sklearn.decomposition import PCA, KernelPCA
from sklearn.ensemble import BaggingClassifier
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, make_scorer
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import (
    GridSearchCV,
    StratifiedKFold,
    cross_val_predict,
    cross_val_score,
    cross_validate,
)
from sklearn.multiclass import OneVsOneClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC
from sklearn.utils import estimator_html_repr, get_tags

from marginfold import (
    GESVC,
    LSVA,
    MMDA,
    WSVDA,
    ExactKernel,
    LapSVC,
    Linear,
    NeighborGraph,
    TotalGraph,
    WithinClassGraph,
)
from marginfold.errors import ExhaustedWarning, GraphUnderflowWarning, MarginfoldWarning

SUBSPACES = [MMDA, LSVA, WSVDA]
CLASSIFIERS = [GESVC, LapSVC]
ESTIMATORS = [*SUBSPACES, *CLASSIFIERS]
FOLDS = StratifiedKFold(3, shuffle=True, random_state=0)

IRIS = load_iris()
X, Y = StandardScaler().fit_transform(IRIS.data), IRIS.target
TWO = Y != 2


def every(values):
    return pytest.mark.parametrize("cls", values, ids=lambda cls: cls.__name__)


def output(estimator, rows):
    return estimator.decision_function(rows)


# -------------------------------------------------------------------------------------- searches


@pytest.mark.filterwarnings("error")
def test_a_grid_reaches_the_graph_and_the_kernel():
    pipeline = Pipeline(
        [
            ("scale", StandardScaler()),
            ("map", LSVA(kernel=ExactKernel("rbf"), graph=NeighborGraph())),
            ("classify", KNeighborsClassifier(3)),
        ]
    )
    grid = {
        "map__graph__n_neighbors": [3, 9],
        "map__kernel__gamma": [0.05, 0.5],
        "map__graph_weight": [0.0, 1.0],
        "map__C": [10.0],
    }
    search = GridSearchCV(pipeline, grid, cv=FOLDS, error_score="raise").fit(IRIS.data, Y)
    assert search.best_score_ > 0.9
    assert len(search.cv_results_["params"]) == 8
    best = search.best_estimator_.named_steps["map"]
    assert best.graph.n_neighbors == search.best_params_["map__graph__n_neighbors"]
    assert best.feature_map_.gamma_ == search.best_params_["map__kernel__gamma"]


def test_every_parameter_of_the_grid_has_an_effect():
    base = LSVA(kernel=ExactKernel(gamma=0.1), graph=NeighborGraph(5), C=10.0)
    reference = base.fit(X, Y).transform(X)
    for change in (
        {"graph__n_neighbors": 15},
        {"graph__weights": "binary"},
        {"graph_weight": 5.0},
        {"kernel__gamma": 0.7},
        {"C": 0.1},
    ):
        other = clone(base).set_params(**change).fit(X, Y).transform(X)
        assert not np.allclose(other, reference), change


def test_sums_of_graphs_are_reached_by_nested_names():
    graph = 0.3 * NeighborGraph(5) + WithinClassGraph()
    model = GESVC(graph=graph)
    names = model.get_params()
    assert {"graph__first__factor", "graph__first__graph__n_neighbors", "graph__second"} <= set(
        names
    )
    grid = {
        "graph__first__graph__n_neighbors": [3, 8],
        "graph__first__factor": [0.0, 2.0],
        "graph__second": [WithinClassGraph(), TotalGraph()],
    }
    search = GridSearchCV(model, grid, cv=FOLDS, error_score="raise").fit(X, Y)
    assert search.best_score_ > 0.85
    assert graph.first.factor == 0.3
    assert graph.first.graph.n_neighbors == 5


def test_a_shorthand_and_its_object_are_the_same():
    for short, long in (
        ({"graph": "knn"}, {"graph": NeighborGraph()}),
        ({"graph": "within"}, {"graph": WithinClassGraph()}),
        ({"kernel": "rbf"}, {"kernel": ExactKernel("rbf")}),
        ({"kernel": "linear"}, {"kernel": Linear()}),
    ):
        one, two = LSVA(**short).fit(X, Y), LSVA(**long).fit(X, Y)
        np.testing.assert_array_equal(one.transform(X), two.transform(X))
        assert vars(one).keys() == vars(two).keys()


def test_a_search_over_shorthands_and_objects():
    grid = {
        "graph": ["knn", "within", NeighborGraph(3), TotalGraph() + WithinClassGraph()],
        "kernel": ["linear", Nystroem(n_components=20, random_state=0)],
    }
    search = GridSearchCV(GESVC(), grid, cv=FOLDS, error_score="raise").fit(X, Y)
    assert len(search.cv_results_["params"]) == 8


def test_two_threads_give_the_same_scores():
    model, grid = GESVC(graph=NeighborGraph(5)), {"graph_weight": [0.0, 1.0, 10.0]}
    one = GridSearchCV(model, grid, cv=FOLDS).fit(X, Y)
    with joblib.parallel_config("threading", n_jobs=2):
        two = GridSearchCV(model, grid, cv=FOLDS).fit(X, Y)
    np.testing.assert_array_equal(
        one.cv_results_["mean_test_score"], two.cv_results_["mean_test_score"]
    )


# ---------------------------------------------------------------------- classifiers in a company


@every(CLASSIFIERS)
def test_calibration(cls):
    model = CalibratedClassifierCV(cls(), cv=3).fit(X, Y)
    probability = model.predict_proba(X)
    np.testing.assert_allclose(probability.sum(axis=1), 1.0)
    assert model.score(X, Y) > 0.9
    binary = CalibratedClassifierCV(cls(), cv=3, ensemble=False).fit(X[TWO], Y[TWO])
    assert binary.predict_proba(X[TWO]).shape == (100, 2)


def test_calibration_passes_sample_weights_and_text_labels():
    labels = IRIS.target_names[Y]
    model = CalibratedClassifierCV(GESVC(), cv=3).fit(X, labels, sample_weight=np.ones(len(X)))
    assert list(model.classes_) == sorted(IRIS.target_names)


@every(CLASSIFIERS)
def test_cross_val_predict(cls):
    predicted = cross_val_predict(cls(), X, Y, cv=FOLDS)
    assert accuracy_score(Y, predicted) > 0.8
    scores = cross_val_predict(cls(), X, Y, cv=FOLDS, method="decision_function")
    assert scores.shape == (150, 3)
    np.testing.assert_array_equal(scores.argmax(axis=1), predicted)


def test_bagging_and_one_vs_one():
    bagged = BaggingClassifier(GESVC(), n_estimators=3, max_features=0.5, random_state=0)
    assert bagged.fit(X, Y).score(X, Y) > 0.8
    assert OneVsOneClassifier(GESVC()).fit(X, Y).score(X, Y) > 0.9


@pytest.mark.parametrize(
    ("load", "kernel", "allowed"),
    [
        (load_breast_cancer, "linear", 0.02),
        (load_breast_cancer, "rbf", 0.02),
        (load_wine, "linear", 0.02),
        (load_wine, "rbf", 0.02),
        (load_digits, "linear", 0.04),
    ],
)
@pytest.mark.parametrize("graph", ["within", "knn"])
def test_the_accuracy_is_near_that_of_a_plain_svm(load, kernel, allowed, graph):
    """One-vs-rest with a graph at its default weight, against libsvm's one-vs-one."""
    rows, y = load(return_X_y=True)
    rows, y = rows[:600], y[:600]
    C = 10.0 if kernel == "rbf" else 1.0
    plain = make_pipeline(StandardScaler(), SVC(kernel=kernel, C=C))
    ours = make_pipeline(StandardScaler(), GESVC(kernel=kernel, C=C, graph=graph))
    expected = cross_val_score(plain, rows, y, cv=FOLDS).mean()
    assert cross_val_score(ours, rows, y, cv=FOLDS).mean() >= expected - allowed


@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly"])
def test_without_a_graph_it_is_the_support_vector_machine(kernel):
    """libsvm as the oracle: the same decision values to its tolerance."""
    params = {"kernel": kernel, "C": 3.0}
    svc = SVC(**params, gamma="scale", coef0=1.0, tol=1e-8).fit(X[TWO], Y[TWO])
    ours = GESVC(**params, graph_weight=0.0).fit(X[TWO], Y[TWO])
    np.testing.assert_allclose(output(ours, X), output(svc, X), atol=1e-5)


def moons(seed, n_labels=6):
    rows, y = make_moons(200, noise=0.05, random_state=seed)
    return rows, y, few_labels(y, n_labels // 2, seed)


def few_labels(y, per_class, seed):
    rng = np.random.default_rng(seed)
    few = np.full(len(y), -1)
    for label in np.unique(y):
        kept = rng.choice(np.flatnonzero(y == label), per_class, replace=False)
        few[kept] = label
    return few


def unlabelled_score(model, rows, y, few):
    return model.score(rows[few == -1], y[few == -1])


def test_unlabelled_rows_help_where_classes_are_manifolds():
    gains = []
    for seed in range(8):
        rows, y, few = moons(seed)
        known = few != -1
        lap = LapSVC(kernel=ExactKernel(gamma=5.0), C=10, graph_weight=10).fit(rows, few)
        svc = SVC(gamma=5.0, C=10).fit(rows[known], y[known])
        gains.append(unlabelled_score(lap, rows, y, few) - unlabelled_score(svc, rows, y, few))
    assert min(gains) > 0
    assert np.mean(gains) > 0.1


def test_unlabelled_rows_hurt_where_they_are_not():
    """Breast cancer, three labels a class: a heavy neighbor graph costs ten points."""
    rows, y = load_breast_cancer(return_X_y=True)
    rows = StandardScaler().fit_transform(rows)
    differences = []
    for seed in range(5):
        few = few_labels(y, 3, seed)
        known = few != -1
        lap = LapSVC(kernel="rbf", C=10, graph_weight=100).fit(rows, few)
        plain = GESVC(kernel="rbf", C=10, graph_weight=0).fit(rows[known], y[known])
        differences.append(
            unlabelled_score(lap, rows, y, few) - unlabelled_score(plain, rows, y, few)
        )
    assert np.mean(differences) < -0.05


# ----------------------------------------------------------------------------- frames and names


@every(SUBSPACES)
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
    np.testing.assert_allclose(result, expected, atol=1e-9)


@every(SUBSPACES)
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
@pytest.mark.parametrize("kernel", ["linear", "rbf", PCA(2), Nystroem(n_components=9)], ids=str)
def test_a_global_output_setting_stays_outside(container, kernel):
    with sklearn.config_context(transform_output=container):
        for cls in ESTIMATORS:
            fitted = cls(kernel=kernel).fit(X, Y)
            assert isinstance(fitted.directions_, np.ndarray)
            assert isinstance(output(fitted, X), np.ndarray)


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


@every(SUBSPACES)
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


@every(ESTIMATORS)
@pytest.mark.parametrize("labels", LABELS.values(), ids=list(LABELS))
def test_labels_of_any_type(cls, labels):
    expected, fitted = cls().fit(X, Y), cls().fit(X, labels)
    array = np.asarray(labels)
    np.testing.assert_array_equal(fitted.classes_, np.unique(array))
    np.testing.assert_array_equal(output(fitted, X), output(expected, X))
    if cls in CLASSIFIERS:
        np.testing.assert_array_equal(
            fitted.predict(X), fitted.classes_[np.searchsorted([0, 1, 2], expected.predict(X))]
        )
        assert fitted.score(X, labels) == expected.score(X, Y)
    else:
        assert fitted.tasks_ == [fitted.classes_[task] for task in expected.tasks_]


@every(CLASSIFIERS)
def test_truth_values_are_labels(cls):
    fitted = cls().fit(X, Y == 0)
    assert fitted.classes_.dtype == bool
    assert fitted.predict(X).dtype == bool
    np.testing.assert_array_equal(fitted.predict(X), output(fitted, X) > 0)


@every(CLASSIFIERS)
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_decision_shapes_and_class_order(cls, kernel):
    three = cls(kernel=kernel).fit(X, Y)
    assert output(three, X).shape == (150, 3)
    np.testing.assert_array_equal(three.predict(X), output(three, X).argmax(axis=1))
    two = cls(kernel=kernel).fit(X[TWO][::-1], IRIS.target_names[Y[TWO]][::-1])
    assert list(two.classes_) == ["setosa", "versicolor"]
    assert output(two, X[TWO]).shape == (100,)
    np.testing.assert_array_equal(two.predict(X[TWO]) == "versicolor", output(two, X[TWO]) > 0)
    assert is_classifier(two)


@every(CLASSIFIERS)
@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_coef_and_intercept_reproduce_the_decision(cls, offset):
    for rows, y in ((X, Y), (X[TWO], Y[TWO]), (np.tile(X[::10], 9), Y[::10])):
        fitted = cls().fit(rows + offset, y)
        plain = (rows + offset) @ fitted.coef_.T + fitted.intercept_
        n_rows = 1 if len(fitted.classes_) == 2 else len(fitted.classes_)
        assert fitted.coef_.shape == (n_rows, rows.shape[1])
        assert fitted.intercept_.shape == (n_rows,)
        scores = output(fitted, rows + offset).reshape(len(rows), -1)
        np.testing.assert_allclose(plain, scores, atol=1e-13 * max(1.0, offset) * rows.shape[1])


# ------------------------------------------------------------------------------ metadata routing


@every(ESTIMATORS)
def test_weights_are_routed_through_a_pipeline(cls):
    weights = np.random.default_rng(1).uniform(0.2, 3.0, 150)
    direct = cls().fit(X, Y, sample_weight=weights)
    assert not np.allclose(output(direct, X), output(cls().fit(X, Y), X))
    with sklearn.config_context(enable_metadata_routing=True):
        asked = Pipeline([("model", cls().set_fit_request(sample_weight=True))])
        asked.fit(X, Y, sample_weight=weights)
        np.testing.assert_array_equal(output(asked[-1], X), output(direct, X))
        with pytest.raises(sklearn.exceptions.UnsetMetadataPassedError, match="sample_weight"):
            Pipeline([("model", cls())]).fit(X, Y, sample_weight=weights)
        declined = Pipeline([("model", cls().set_fit_request(sample_weight=False))])
        with pytest.raises(TypeError, match="sample_weight"):
            declined.fit(X, Y, sample_weight=weights)


def test_weights_are_routed_through_a_search():
    weights = np.random.default_rng(1).uniform(0.2, 3.0, 150)
    with sklearn.config_context(enable_metadata_routing=True):
        pipeline = make_pipeline(
            LSVA().set_fit_request(sample_weight=True),
            LogisticRegression().set_fit_request(sample_weight=True),
        )
        scorer = make_scorer(accuracy_score).set_score_request(sample_weight=True)
        search = GridSearchCV(pipeline, {"lsva__graph_weight": [1.0]}, cv=FOLDS, scoring=scorer)
        search.fit(X, Y, sample_weight=weights)
    direct = LSVA().fit(X, Y, sample_weight=weights)
    np.testing.assert_allclose(search.best_estimator_[0].transform(X), direct.transform(X))


def test_weights_are_passed_by_step_without_routing():
    weights = np.random.default_rng(1).uniform(0.2, 3.0, 150)
    pipeline = make_pipeline(MMDA(), KNeighborsClassifier())
    pipeline.fit(X, Y, mmda__sample_weight=weights)
    direct = MMDA().fit(X, Y, sample_weight=weights)
    np.testing.assert_array_equal(pipeline[0].components_, direct.components_)


# ----------------------------------------------------------------------- copies, files, displays


def short(model):
    return str(model).split(" at 0x")[0][:50]


CONFIGURATIONS = [
    *[cls() for cls in ESTIMATORS],
    LSVA(kernel=ExactKernel("rbf", gamma=0.3), graph=0.3 * NeighborGraph(4) + WithinClassGraph()),
    GESVC(kernel=Nystroem(n_components=15, random_state=0), graph=TotalGraph()),
    MMDA(kernel=rbf_kernel),
]


@pytest.mark.parametrize("model", CONFIGURATIONS, ids=short)
def test_copies_behave_alike(model):
    fitted = clone(model).fit(X, Y)
    expected = output(fitted, X)
    buffer = io.BytesIO()
    joblib.dump(fitted, buffer)
    buffer.seek(0)
    for twin in (pickle.loads(pickle.dumps(fitted)), copy.deepcopy(fitted), joblib.load(buffer)):
        np.testing.assert_array_equal(output(twin, X), expected)
    fresh = clone(fitted)
    assert not any(name.endswith("_") for name in vars(fresh))
    np.testing.assert_array_equal(output(fresh.fit(X, Y), X), expected)


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
    kernel, graph = ExactKernel("rbf"), NeighborGraph()
    parts = {"kernel": kernel} if cls is MMDA else {"kernel": kernel, "graph": graph}
    fitted = cls(**parts).fit(X, Y)
    assert fitted.kernel is kernel
    for part in parts.values():
        assert not any(name.endswith("_") for name in vars(part))


@every(ESTIMATORS)
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_layout_precision_and_repetition_do_not_matter(cls, kernel):
    rows = X.astype(np.float32)
    expected = output(cls(kernel=kernel).fit(rows.astype(float), Y), rows)
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
        np.testing.assert_allclose(output(fitted, variant), expected, rtol=1e-7, atol=1e-9)
    again = cls(kernel=kernel).fit(rows.astype(float), Y)
    np.testing.assert_array_equal(output(again, rows), expected)


@every(ESTIMATORS)
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("kind", [sp.csr_array, sp.csc_matrix, sp.coo_array])
def test_sparse_rows(cls, kernel, kind):
    expected = output(cls(kernel=kernel).fit(X, Y), X)
    fitted = cls(kernel=kernel).fit(kind(X), Y)
    np.testing.assert_allclose(output(fitted, kind(X)), expected, rtol=1e-6, atol=1e-8)


# ----------------------------------------------------------------------------- precomputed kernels


@every(ESTIMATORS)
@pytest.mark.parametrize("kernel", ["precomputed", ExactKernel("precomputed")], ids=["name", "map"])
def test_a_precomputed_kernel_is_cut_by_rows_and_columns(cls, kernel):
    K = rbf_kernel(X, gamma=0.3)
    model = cls(kernel=kernel, **({} if cls is MMDA else {"graph": "within"}))
    assert get_tags(model).input_tags.pairwise
    assert not get_tags(cls()).input_tags.pairwise
    direct = clone(model).set_params(kernel=ExactKernel("rbf", gamma=0.3)).fit(X[::2], Y[::2])
    fitted = model.fit(K[::2, ::2], Y[::2])
    np.testing.assert_allclose(
        np.abs(output(fitted, K[1::2, ::2])), np.abs(output(direct, X[1::2])), atol=1e-6
    )


def test_a_precomputed_kernel_in_cross_validation():
    K = rbf_kernel(X, gamma=0.3)
    direct = cross_validate(
        GESVC(kernel=ExactKernel(gamma=0.3), graph="within"), X, Y, cv=FOLDS, error_score="raise"
    )
    ours = cross_validate(
        GESVC(kernel="precomputed", graph="within"), K, Y, cv=FOLDS, error_score="raise"
    )
    np.testing.assert_array_equal(ours["test_score"], direct["test_score"])
    search = GridSearchCV(
        GESVC(kernel="precomputed"), {"C": [1.0, 10.0]}, cv=FOLDS, error_score="raise"
    )
    assert search.fit(K, Y).best_score_ > 0.9
    pipeline = make_pipeline(MMDA(kernel="precomputed"), KNeighborsClassifier(3))
    assert get_tags(pipeline).input_tags.pairwise
    assert cross_val_score(pipeline, K, Y, cv=FOLDS, error_score="raise").mean() > 0.9


def test_a_transformer_of_a_precomputed_kernel_is_pairwise():
    """The tag of the transformer is the tag of the whole, or cross-validation cuts rows only."""
    model = GESVC(kernel=KernelPCA(5, kernel="precomputed"))
    assert get_tags(model.kernel).input_tags.pairwise
    assert get_tags(model).input_tags.pairwise


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
    ],
)
def test_a_warning_points_to_the_line_that_called_fit(model, data, category):
    with pytest.warns(category) as caught:
        fit_here(model, *data)
    assert {warning.filename for warning in caught} == {__file__}


def test_a_path_warns_once_at_the_caller():
    with pytest.warns(ExhaustedWarning) as caught:
        LSVA(9).fit_path(X, Y, [0.1, 1.0])
    assert len(caught) == 1
    assert {warning.filename for warning in caught} == {__file__}


# ---------------------------------------------------------------------------------- threads

OVERLAP = """
from threadpoolctl import threadpool_info
from marginfold.rows import one_blas_thread
count = lambda: {lib["num_threads"] for lib in threadpool_info() if lib["user_api"] == "blas"}
before, first, second = count(), one_blas_thread(), one_blas_thread()
first.__enter__()
second.__enter__()
inside = count()
first.__exit__(None, None, None)
second.__exit__(None, None, None)
print(sorted(before), sorted(inside), sorted(count()))
"""


def test_two_fits_that_overlap_give_the_blas_threads_back():
    """Fits in two threads end in any order; the limit of the process must be as before."""
    environment = os.environ | dict.fromkeys(("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "2")
    done = subprocess.run(
        [sys.executable, "-c", OVERLAP], capture_output=True, text=True, env=environment, check=True
    )
    before, inside, after = done.stdout.split()
    if before == "[1]":
        pytest.skip("one core: BLAS has one thread anyway")
    assert inside == "[1]"
    assert after == before
