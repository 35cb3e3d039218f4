"""The contract of the estimators without a kernel: the direct embeddings and the map of classes."""

from __future__ import annotations

import pickle
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
import sklearn
from bad_data import BAD_LABELS, BAD_ROWS, N, X, Y, changed, refuse
from estimator_families import DIRECT, cases, every, state
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import estimator_html_repr

from marginfold import (
    GEPSVC,
    GESVC,
    LaplacianEigenmaps,
    LocallyLinearEmbedding,
    MarginMap,
    NeighborGraph,
    ReconstructionGraph,
    TwinSVC,
)
from marginfold.errors import GraphError, InvalidInputError, InvalidParameterError

pytestmark = pytest.mark.filterwarnings(
    "error::RuntimeWarning", "error::DeprecationWarning", "ignore:.*separate parts"
)

EVERY = [*DIRECT, MarginMap]
IRIS_X, IRIS_Y = load_iris(return_X_y=True)
IRIS_X = StandardScaler().fit_transform(IRIS_X)[::3]
IRIS_Y = IRIS_Y[::3]
FOLDS = StratifiedKFold(3, shuffle=True, random_state=0)


def quick(cls):
    """Return an estimator that is fitted in no time."""
    return cls(sharpness=4.0) if cls is MarginMap else cls()


# ------------------------------------------------------------------------------------- bad input


@every(EVERY)
@cases(BAD_ROWS)
def test_bad_rows_and_weights_are_refused(cls, case):
    refuse(quick(cls), *BAD_ROWS[case])


@cases(BAD_LABELS)
def test_bad_labels_are_refused_by_the_map(case):
    refuse(MarginMap(sharpness=4.0), *BAD_LABELS[case])


@every(DIRECT)
@cases(BAD_LABELS)
def test_labels_are_not_looked_at_by_direct_embeddings(cls, case):
    rows, y, weights, _ = BAD_LABELS[case]
    fitted = cls().fit(rows, y, sample_weight=weights)
    expected = cls().fit(rows, sample_weight=weights)
    np.testing.assert_array_equal(fitted.embedding_, expected.embedding_)


@pytest.mark.parametrize("case", ["y missing", "y too short", "y with two columns", "NaN in y"])
def test_labels_are_looked_at_by_a_graph_with_classes(case):
    rows, y, weights, _ = BAD_LABELS[case]
    model = LaplacianEigenmaps(graph=NeighborGraph(3, within_class=True))
    refuse(model, rows, y, weights, "y=None|y of shape|NaN among the labels", GraphError)


@every(EVERY)
@pytest.mark.parametrize("size", [1e100, 1e-150])
def test_entries_of_extreme_size(cls, size):
    fitted = quick(cls).fit(X * size, Y)
    unit = quick(cls).fit(X, Y)
    np.testing.assert_allclose(fitted.transform(X * size), unit.transform(X), rtol=0, atol=1e-6)


@every(EVERY)
def test_huge_entries(cls):
    refuse(quick(cls), X * 1e200, Y, None, r"1e\+150.*Scale", InvalidInputError)


BAD_PARAMETERS = {
    "no components": (
        DIRECT,
        {"n_components": 0},
        "n_components must be a whole.*>= 1; got 0",
    ),
    "float components": (DIRECT, {"n_components": 2.0}, "n_components must be.*got 2.0"),
    "true components": (DIRECT, {"n_components": True}, "n_components must be.*got True"),
    "None components": (DIRECT, {"n_components": None}, "n_components must be.*got None"),
    "NaN components": (DIRECT, {"n_components": np.nan}, "n_components must be.*got nan"),
    "sharpness zero": ([MarginMap], {"sharpness": 0.0}, "sharpness must be.*'auto'.*> 0.*got 0"),
    "sharpness NaN": ([MarginMap], {"sharpness": np.nan}, "sharpness must be.*got nan"),
    "sharpness text": ([MarginMap], {"sharpness": "high"}, "sharpness must be.*got 'high'"),
    "sharpness true": ([MarginMap], {"sharpness": True}, "sharpness must be.*got True"),
    "one fold": ([MarginMap], {"cv": 1}, "cv must be a whole number >= 2.*got 1"),
    "float folds": ([MarginMap], {"cv": 5.0}, "cv must be.*got 5.0"),
    "no folds": ([MarginMap], {"cv": None}, "cv must be.*got None"),
    "splitter class": ([MarginMap], {"cv": StratifiedKFold}, "cv must be.*got.*StratifiedKFold"),
    "order of others": (
        [MarginMap],
        {"order": [0, 2], "sharpness": 2.0},
        r"order must name each class once.*\[0, 1\].*got \[0, 2\]",
    ),
    "order twice": ([MarginMap], {"order": [0, 0, 1], "sharpness": 2.0}, "order must name each"),
}


@pytest.mark.parametrize(
    ("cls", "case"), [(cls, case) for case, (some, *_) in BAD_PARAMETERS.items() for cls in some]
)
def test_bad_parameters_are_refused_by_name(cls, case):
    _, parameters, message = BAD_PARAMETERS[case]
    refuse(cls(**parameters), X, Y, None, f"^{cls.__name__}: .*{message}", InvalidParameterError)


@every(DIRECT)
@pytest.mark.parametrize("graph", ["kkn", None, 5, NeighborGraph, NeighborGraph(0), "within"])
def test_bad_graphs_are_refused(cls, graph):
    refuse(cls(graph=graph), X, Y, None, "(?i)graph|n_neighbors", InvalidInputError)


@pytest.mark.parametrize(
    "classifier", ["svm", 3, GESVC, StandardScaler(), KNeighborsClassifier], ids=str
)
def test_bad_classifiers_are_refused(classifier):
    refuse(MarginMap(classifier), X, Y, None, "classifier must", InvalidParameterError)


def test_weights_that_the_classifier_does_not_take():
    model = MarginMap(KNeighborsClassifier(), sharpness=4.0)
    refuse(model, X, Y, np.linspace(1, 2, N), "takes no sample_weight", InvalidInputError)


# ---------------------------------------------------------------------------- before and after fit


@every(EVERY)
def test_unfitted_use(cls):
    methods = ["transform", "memberships"] if cls is MarginMap else ["transform"]
    for method in methods:
        with pytest.raises(NotFittedError, match=f"{cls.__name__} instance is not fitted"):
            getattr(cls(), method)(X)
    if cls in DIRECT:
        with pytest.raises(NotFittedError):
            cls().get_feature_names_out()


@every(EVERY)
def test_other_columns_at_use(cls):
    frame = pd.DataFrame(X, columns=list("abcd"))
    fitted = quick(cls).fit(frame, Y)
    with pytest.raises(ValueError, match=r"3 features.*expecting 4"):
        fitted.transform(X[:, :3])
    with pytest.raises(ValueError, match=r"(?s)feature names should match.*z"):
        fitted.transform(frame.rename(columns={"a": "z"}))
    with pytest.raises(ValueError, match="same order"):
        fitted.transform(frame[list("dcba")])
    with pytest.raises(ValueError, match="X contains NaN"):
        fitted.transform(frame.where(frame < 1))
    with pytest.raises(ValueError, match="Expected 2D"):
        fitted.transform(X[0])


FAILURES = {
    "NaN": ({}, changed(X, (3, 1), np.nan), Y, None),
    "weights": ({}, X[:, :2], Y, np.zeros(N)),
    "short weights": ({}, X[:, :2], Y, np.ones(3)),
}


@every(EVERY)
@cases(FAILURES)
def test_a_failed_fit_leaves_everything_as_it_was(cls, case):
    parameters, rows, y, weights = FAILURES[case]
    estimator = quick(cls)
    refuse(estimator, rows, y, weights, "")
    assert state(estimator) == {}
    estimator.fit(pd.DataFrame(X, columns=list("abcd")), Y)
    before, attributes = estimator.transform(pd.DataFrame(X, columns=list("abcd"))), vars(estimator)
    attributes = dict(attributes)
    refuse(estimator.set_params(**parameters), rows, y, weights, "")
    assert all(vars(estimator)[name] is value for name, value in attributes.items())
    after = estimator.transform(pd.DataFrame(X, columns=list("abcd")))
    np.testing.assert_array_equal(after, before)


@every(EVERY)
def test_read_only_arrays_of_any_storage_are_enough(cls):
    expected = quick(cls).fit(X, Y).transform(X)
    rows, y, weights = X.copy(), Y.copy(), np.ones(N)
    for array in (rows, y, weights):
        array.flags.writeable = False
    fitted = quick(cls).fit(rows, y, sample_weight=weights)
    np.testing.assert_allclose(fitted.transform(rows), expected, rtol=0, atol=1e-9)
    np.testing.assert_array_equal(rows, X)
    for store in (
        np.asfortranarray,
        sp.csr_array,
        sp.csc_matrix,
        pd.DataFrame,
        lambda A: A.astype(object),
        lambda A: np.repeat(A, 2, axis=0)[::2],
    ):
        images = quick(cls).fit(store(X), Y).transform(store(X))
        np.testing.assert_allclose(images, expected, rtol=0, atol=1e-8)


@every(EVERY)
def test_two_fits_copies_and_threads_give_the_same(cls):
    expected = quick(cls).fit(IRIS_X, IRIS_Y).transform(IRIS_X[::2])
    fitted = quick(cls).fit(IRIS_X, IRIS_Y)
    for twin in (fitted, pickle.loads(pickle.dumps(fitted)), clone(fitted).fit(IRIS_X, IRIS_Y)):
        np.testing.assert_array_equal(twin.transform(IRIS_X[::2]), expected)
    with ThreadPoolExecutor(2) as pool:
        for images in pool.map(
            lambda _: quick(cls).fit(IRIS_X, IRIS_Y).transform(IRIS_X[::2]), range(4)
        ):
            np.testing.assert_allclose(images, expected, rtol=0, atol=1e-9)


# ------------------------------------------------------------------------------------ in company


@every(EVERY)
@pytest.mark.parametrize("container", ["pandas", "polars"])
def test_set_output_and_names(cls, container):
    model = quick(cls).fit(IRIS_X, IRIS_Y)
    names = [f"{cls.__name__.lower()}{i}" for i in range(2)]
    assert list(model.get_feature_names_out()) == names
    expected = model.transform(IRIS_X)
    frame = model.set_output(transform=container).transform(IRIS_X)
    assert isinstance(frame, pd.DataFrame if container == "pandas" else pl.DataFrame)
    assert list(frame.columns) == names
    np.testing.assert_array_equal(frame.to_numpy(), expected)
    both = quick(cls).set_output(transform=container).fit_transform(IRIS_X, IRIS_Y)
    np.testing.assert_allclose(both.to_numpy(), expected, rtol=0, atol=1e-9)
    union = FeatureUnion([("one", quick(cls)), ("two", StandardScaler())])
    assert union.fit_transform(IRIS_X, IRIS_Y).shape == (50, 6)
    assert cls.__name__ in estimator_html_repr(model)


@pytest.mark.parametrize(
    ("model", "grid"),
    [
        (LaplacianEigenmaps(graph=NeighborGraph()), {"map__graph__n_neighbors": [5, 8]}),
        (LocallyLinearEmbedding(graph=ReconstructionGraph()), {"map__graph__reg": [1e-3, 1e-2]}),
        (MarginMap(GESVC(), sharpness=4.0), {"map__classifier__C": [0.1, 1.0]}),
        (MarginMap(GEPSVC(kernel="rbf"), cv=2), {"map__classifier__ridge": [1e-3, 1e-2]}),
    ],
    ids=["eigenmaps", "lle", "map", "map of planes"],
)
def test_a_grid_reaches_the_parts(model, grid):
    pipeline = Pipeline([("map", model), ("classify", KNeighborsClassifier(3))])
    search = GridSearchCV(pipeline, grid, cv=FOLDS, error_score="raise").fit(IRIS_X, IRIS_Y)
    assert search.best_score_ > 0.6
    assert len(search.cv_results_["params"]) == 2


@pytest.mark.parametrize("classifier", [GEPSVC(), TwinSVC(kernel="rbf"), LogisticRegression()])
def test_a_map_of_any_classifier_sends_rows_to_their_anchors(classifier):
    model = MarginMap(classifier, sharpness=50.0).fit(IRIS_X, IRIS_Y)
    near = ((model.transform(IRIS_X)[:, None] - model.anchors_) ** 2).sum(axis=2).argmin(axis=1)
    predicted = clone(classifier).fit(IRIS_X, IRIS_Y).predict(IRIS_X)
    assert np.mean(model.classes_[near] == predicted) > 0.95


@every(EVERY)
def test_weights_are_routed(cls):
    weights = np.random.default_rng(1).integers(1, 4, len(IRIS_X)).astype(float)
    direct = quick(cls).fit(IRIS_X, IRIS_Y, sample_weight=weights).transform(IRIS_X)
    with sklearn.config_context(enable_metadata_routing=True):
        asked = Pipeline([("model", quick(cls).set_fit_request(sample_weight=True))])
        asked.fit(IRIS_X, IRIS_Y, sample_weight=weights)
        np.testing.assert_array_equal(asked.transform(IRIS_X), direct)
        with pytest.raises(sklearn.exceptions.UnsetMetadataPassedError, match="sample_weight"):
            Pipeline([("model", quick(cls))]).fit(IRIS_X, IRIS_Y, sample_weight=weights)


@pytest.mark.parametrize(
    "labels",
    [
        np.array(["c", "a", "b"])[IRIS_Y],
        pd.Series(np.array(["c", "a", "b"])[IRIS_Y], dtype="category"),
        pd.Series(np.array(["c", "a", "b"])[IRIS_Y].astype(object), index=np.arange(50)[::-1]),
        pl.Series(np.array(["c", "a", "b"])[IRIS_Y].tolist()),
        np.array([30, 10, 20])[IRIS_Y],
    ],
    ids=["text", "categories", "series", "polars", "numbers"],
)
def test_labels_of_any_type(labels):
    """The order of the names is another one, so the circle may be turned or mirrored."""
    plain = MarginMap(sharpness=4.0).fit(IRIS_X, IRIS_Y).transform(IRIS_X)
    model = MarginMap(sharpness=4.0).fit(IRIS_X, labels)
    np.testing.assert_array_equal(model.classes_, np.unique(np.asarray(labels)))
    found = model.transform(IRIS_X)
    distances, expected = (((Z[:, None] - Z) ** 2).sum(axis=2) for Z in (found, plain))
    np.testing.assert_allclose(distances, expected, rtol=0, atol=1e-6)


def test_truth_values_are_labels():
    model = MarginMap(sharpness=4.0).fit(IRIS_X, IRIS_Y == 0)
    assert model.classes_.dtype == bool
    images = model.transform(IRIS_X)
    numbers = MarginMap(sharpness=4.0).fit(IRIS_X, (IRIS_Y == 0).astype(int))
    np.testing.assert_allclose(images, numbers.transform(IRIS_X), rtol=0, atol=1e-12)
    assert ((images[:, 0] < 0) == (IRIS_Y == 0)).all()


@every(DIRECT)
def test_warnings_point_to_the_caller(cls):
    far = np.vstack([X, X + 1e3])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        cls(3).fit(far)
        cls(9).fit(X[:5])
    assert len(caught) == 2
    assert {warning.filename for warning in caught} == {__file__}
