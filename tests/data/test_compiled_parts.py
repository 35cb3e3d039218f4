"""Classifiers, searches and calibrations of scikit-learn in model files, honest and forged."""

from __future__ import annotations

import io
import warnings
import zipfile

import numpy as np
import pytest
from scipy.stats import loguniform
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_iris
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score, make_scorer
from sklearn.model_selection import (
    GridSearchCV,
    RandomizedSearchCV,
    RepeatedStratifiedKFold,
    StratifiedKFold,
)
from sklearn.neighbors import KDTree, KNeighborsClassifier, NearestNeighbors
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC

from marginfold import GESVC, LSVA, MRGEPSVC, WSVDA, PathSearchCV, SubspaceSearchCV
from marginfold.data.models import load_model, save_model
from marginfold.errors import InvalidInputError

skops_io = pytest.importorskip("skops.io", reason="model files need skops")

X, y = load_iris(return_X_y=True)
X, y = X[::2], y[::2]
ROWS = np.random.default_rng(0).normal(X.mean(axis=0), 2 * X.std(axis=0), (60, X.shape[1]))
CALIBRATED = {
    "calibrated": CalibratedClassifierCV(GESVC(), cv=3),
    "calibrated once": CalibratedClassifierCV(GESVC(), cv=3, ensemble=False),
    "isotonic": CalibratedClassifierCV(MRGEPSVC(), method="isotonic", cv=StratifiedKFold(3)),
    "calibrated pipeline": CalibratedClassifierCV(
        make_pipeline(StandardScaler(), LSVA(2), KNeighborsClassifier()), cv=3
    ),
}
NEIGHBORS = {
    "auto": KNeighborsClassifier(1),
    "kd_tree": KNeighborsClassifier(3, algorithm="kd_tree", leaf_size=2, weights="distance"),
    "ball_tree": KNeighborsClassifier(5, algorithm="ball_tree", metric="manhattan"),
    "brute": KNeighborsClassifier(3, algorithm="brute"),
    "minkowski": KNeighborsClassifier(4, algorithm="ball_tree", leaf_size=7, p=3),
}
SEARCHES = {
    "grid": GridSearchCV(GESVC(), {"C": [1, 10], "graph": ["knn", "within"]}, cv=3),
    "scored": GridSearchCV(
        make_pipeline(StandardScaler(), WSVDA(2), KNeighborsClassifier()),
        {"wsvda__C": [1, 10]},
        scoring={"a": "balanced_accuracy", "b": make_scorer(f1_score, average="macro")},
        refit="b",
        cv=RepeatedStratifiedKFold(n_splits=3, n_repeats=2, random_state=0),
    ),
    "of steps": GridSearchCV(
        make_pipeline(LSVA(2), KNeighborsClassifier()),
        {"kneighborsclassifier": [KNeighborsClassifier(1), LinearSVC()]},
        cv=3,
    ),
    "randomized": RandomizedSearchCV(GESVC(), {"C": [1, 10, 100]}, n_iter=2, cv=3, random_state=0),
    "path": PathSearchCV(GESVC(), C=[1, 10], graph_weight=[0.1, 1], cv=3),
    "neighbors": SubspaceSearchCV(WSVDA(2), n_neighbors=[1, 5], cv=3),
    "subspace": SubspaceSearchCV(LSVA(2), graph_weight=[0.1, 1], cv=3),
    "subspace of two scores": SubspaceSearchCV(
        LSVA(2), C=[1, 10], cv=3, scoring=["accuracy", "neg_log_loss"], refit="accuracy"
    ),
}
OTHERS = {
    "logistic": LogisticRegression(),
    "boosting": HistGradientBoostingClassifier(max_iter=10),
    "svc": SVC(),
    "linear svc": LinearSVC(),
    "pipeline": make_pipeline(StandardScaler(), HistGradientBoostingClassifier(max_iter=3)),
    "nearest rows": NearestNeighbors(n_neighbors=3),
}
MODELS = {**CALIBRATED, **NEIGHBORS, **SEARCHES, **OTHERS}
ANSWERS = ("predict", "predict_proba", "decision_function", "transform", "kneighbors")


def answers(model):
    """Everything that a model says about rows it has not seen."""
    said = {name: getattr(model, name)(ROWS) for name in ANSWERS if hasattr(model, name)}
    if hasattr(model, "score"):
        said["score"] = model.score(X, y)
    assert said
    return said


def assert_same(ours, theirs):
    assert ours.keys() == theirs.keys()
    for name, value in ours.items():
        for one, other in zip(np.atleast_1d(value), np.atleast_1d(theirs[name]), strict=True):
            np.testing.assert_array_equal(one, other, err_msg=name)


@pytest.mark.parametrize("name", MODELS)
def test_a_loaded_model_answers_to_the_last_bit_as_the_saved_one(name, tmp_path):
    model = MODELS[name].fit(X, y)
    before = answers(model)
    save_model(model, tmp_path / "m.skops")
    assert_same(answers(model), before)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        loaded = load_model(tmp_path / "m.skops")
    assert str(loaded.get_params()) == str(model.get_params())
    assert_same(answers(loaded), before)
    save_model(loaded, tmp_path / "again.skops")
    assert_same(answers(load_model(tmp_path / "again.skops")), before)


@pytest.mark.parametrize("name", ["grid", "subspace", "randomized"])
def test_the_results_of_a_search_are_kept(name, tmp_path):
    search = SEARCHES[name].fit(X, y)
    save_model(search, tmp_path / "m.skops")
    loaded = load_model(tmp_path / "m.skops")
    assert loaded.best_params_ == search.best_params_
    for column in ("mean_test_score", "rank_test_score"):
        np.testing.assert_array_equal(loaded.cv_results_[column], search.cv_results_[column])


def test_a_refitted_loaded_model_is_the_same_again(tmp_path):
    for name in ("kd_tree", "subspace", "calibrated once"):
        model = MODELS[name].fit(X, y)
        save_model(model, tmp_path / "m.skops", overwrite=True)
        assert_same(answers(load_model(tmp_path / "m.skops").fit(X, y)), answers(model))


@pytest.mark.parametrize(
    ("model", "message"),
    [
        pytest.param(3, "a fitted model is needed; got no model but int 3", id="number"),
        pytest.param([GESVC()], "got no model but list", id="list"),
        pytest.param(LSVA(), "got LSVA that was never fitted", id="unfitted"),
        pytest.param(
            make_pipeline(StandardScaler(), GESVC()), "Pipeline that was never", id="pipeline"
        ),
        pytest.param(
            RandomForestClassifier(2).fit(X, y), r"_tree\.Tree.*forests .* are refused", id="forest"
        ),
        pytest.param(
            RandomizedSearchCV(GESVC(), {"C": loguniform(1, 10)}, n_iter=1, cv=3).fit(X, y),
            "distributions of a randomized search.*best_estimator_",
            id="distribution",
        ),
        pytest.param(
            HistGradientBoostingClassifier(max_iter=2, categorical_features=[0]).fit(
                np.column_stack([np.arange(len(y)) % 5, X]), y
            ),
            "categorical features.*OneHotEncoder",
            id="categories",
        ),
        pytest.param(
            KNeighborsClassifier(metric=lambda a, b: abs(a - b).sum()).fit(X, y),
            "<lambda>",
            id="metric",
        ),
    ],
)
def test_what_is_no_fitted_model_of_known_parts_is_not_saved(model, message, tmp_path):
    with pytest.raises(InvalidInputError, match=message):
        save_model(model, tmp_path / "m.skops")
    assert list(tmp_path.iterdir()) == []


def forged(path, model):
    """Write a model file that `save_model` would not write, by way of one that it writes."""
    save_model(GESVC().fit(X, y), path, overwrite=True)
    with zipfile.ZipFile(path) as archive:
        header = archive.read("marginfold.json")
    buffer = io.BytesIO(skops_io.dumps(model))
    with zipfile.ZipFile(buffer, "a") as archive:
        archive.writestr("marginfold.json", header)
    path.write_bytes(buffer.getvalue())


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("left", 10**6),
        ("right", 10**6),
        ("left", 0),  # the row would walk in circles
        ("feature_idx", 4),
        ("feature_idx", -1),
        ("is_categorical", 1),
    ],
)
def test_boosted_trees_that_lead_outside_are_refused_before_they_run(field, value, tmp_path):
    model = HistGradientBoostingClassifier(max_iter=4).fit(X, y)
    model._predictors[2][1].nodes[field][0] = value
    forged(tmp_path / "m.skops", model)
    with pytest.raises(InvalidInputError, match=r"damaged.*nothing was loaded"):
        load_model(tmp_path / "m.skops")


def test_boosted_trees_are_checked_wherever_they_are_hidden(tmp_path):
    inner = HistGradientBoostingClassifier(max_iter=2).fit(X, y)
    inner._predictors[0][0].nodes["left"][0] = 10**6
    hidden = np.empty(1, dtype=object)
    hidden[0] = {"a": (inner,)}
    for place in (CalibratedClassifierCV(inner), SVC(class_weight=[hidden])):
        place.calibrated_classifiers_ = place.support_ = [inner]
        forged(tmp_path / "m.skops", place)
        with pytest.raises(InvalidInputError, match="nothing was loaded"):
            load_model(tmp_path / "m.skops")


def test_trees_that_are_no_lists_of_trees_are_refused(tmp_path):
    model = HistGradientBoostingClassifier(max_iter=2).fit(X, y)
    model._predictors = [[SVC()]]
    forged(tmp_path / "m.skops", model)
    with pytest.raises(InvalidInputError, match="nothing was loaded"):
        load_model(tmp_path / "m.skops")


def test_a_search_tree_is_never_taken_from_a_file(tmp_path):
    model = KNeighborsClassifier(1, algorithm="kd_tree").fit(X, y)
    forged(tmp_path / "m.skops", model)
    with pytest.raises(InvalidInputError, match=r"KDTree.*nothing was loaded"):
        load_model(tmp_path / "m.skops")
    model._tree = SVC()
    forged(tmp_path / "m.skops", model)
    loaded = load_model(tmp_path / "m.skops")
    assert isinstance(loaded._tree, KDTree)
    np.testing.assert_array_equal(loaded.predict(X), y)


@pytest.mark.parametrize("content", [3, [GESVC()], {"a": 1}, GESVC()], ids=str)
def test_a_file_without_a_fitted_model_is_refused(content, tmp_path):
    forged(tmp_path / "m.skops", content)
    with pytest.raises(InvalidInputError, match=r"contains .*nothing was loaded"):
        load_model(tmp_path / "m.skops")
