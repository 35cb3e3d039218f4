"""SubspaceSearchCV as an estimator among others: misuse, unlabelled rows, processes."""

from __future__ import annotations

import os
import pickle

import numpy as np
import pytest
from dying_classifier import DiesOnce
from numpy.testing import assert_array_equal
from sklearn.base import clone, is_classifier
from sklearn.datasets import load_iris
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import (
    GridSearchCV,
    PredefinedSplit,
    StratifiedKFold,
    cross_val_score,
)
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from marginfold import GESVC, LSVA, MMDA, SVMPCA
from marginfold.errors import (
    CancelledError,
    CancelledWarning,
    InvalidInputError,
    InvalidParameterError,
    MarginfoldWarning,
)
from marginfold.model_selection.subspace_search import SubspaceSearchCV
from marginfold.runtime.progress import watch

X, Y = load_iris().data[::2], load_iris().target[::2]
WEIGHTS = [0.1, 10.0]


def searched(**options):
    return SubspaceSearchCV(LSVA(2), graph_weight=WEIGHTS, cv=2, **options)


# ------------------------------------------------------------------------------- after the search


def test_the_best_pipeline_is_a_fit_to_all_rows_and_its_methods_are_offered():
    search = searched(classifier=LogisticRegression()).fit(X, Y)
    subspace = LSVA(2).set_params(**search.best_params_)
    expected = Pipeline([("subspace", subspace), ("classifier", LogisticRegression())]).fit(X, Y)
    assert isinstance(search.best_estimator_, Pipeline)
    assert_array_equal(search.transform(X), subspace.transform(X))
    for method in ("predict", "predict_proba", "decision_function"):
        assert_array_equal(getattr(search, method)(X), getattr(expected, method)(X))
    images = search.transform(X)
    assert_array_equal(search.inverse_transform(images), subspace.inverse_transform(images))
    assert_array_equal(search.get_feature_names_out(), subspace.get_feature_names_out())
    assert search.score(X, Y) == expected.score(X, Y)
    assert search.refit_time_ > 0
    assert is_classifier(search)


def test_methods_that_the_steps_lack_are_not_offered():
    search = SubspaceSearchCV(LSVA(1, kernel="rbf"), cv=2).fit(X, Y)
    assert not hasattr(search, "decision_function")
    assert not hasattr(search, "inverse_transform")
    assert hasattr(search, "predict_proba")


def test_without_refit_there_are_results_only():
    search = searched(refit=False).fit(X, Y)
    assert search.best_params_ == searched().fit(X, Y).best_params_
    for name in ("predict", "transform", "score", "best_estimator_", "classes_", "n_features_in_"):
        assert not hasattr(search, name)
    with pytest.raises(AttributeError, match="predict"):
        search.predict(X)


def test_before_a_fit():
    with pytest.raises(NotFittedError):
        searched().predict(X)


@pytest.mark.parametrize("copied", [clone, lambda search: pickle.loads(pickle.dumps(search))])
def test_copies_search_alike_and_a_pickle_predicts_alike(copied):
    search = searched(client="tcp://somewhere:8786")
    assert copied(search).client == search.client
    search = searched().fit(X, Y)
    assert_array_equal(copied(search).fit(X, Y).predict(X), search.predict(X))
    assert_array_equal(pickle.loads(pickle.dumps(search)).predict(X), search.predict(X))


class Connection:
    """Like the client of a cluster: it cannot be copied."""

    def __reduce__(self):
        raise TypeError("a connection cannot be copied")


def test_a_client_is_shared_by_clones_and_left_behind_by_pickles():
    search = searched(client=Connection()).set_params(classifier=KNeighborsClassifier(3))
    cloned = clone(search)
    assert cloned.client is search.client
    assert cloned.classifier is not search.classifier
    assert pickle.loads(pickle.dumps(search)).client is None
    assert isinstance(search.client, Connection)


def test_inside_other_tools():
    scores = cross_val_score(searched(), X, Y, cv=3, error_score="raise")
    assert scores.min() > 0.8
    model = make_pipeline(StandardScaler(), searched()).fit(X, Y)
    assert model.score(X, Y) > 0.9
    outer = GridSearchCV(searched(), {"estimator__C": [1, 10], "classifier": [None]}, cv=2)
    assert outer.fit(X, Y).best_score_ > 0.8


def test_the_estimator_and_the_rows_are_left_as_they_were():
    estimator, classifier = LSVA(2), KNeighborsClassifier(3)
    before = X.copy(), Y.copy()
    SubspaceSearchCV(estimator, C=[1, 2], classifier=classifier, cv=2).fit(X, Y)
    assert not hasattr(estimator, "directions_")
    assert not hasattr(classifier, "classes_")
    assert_array_equal(X, before[0])
    assert_array_equal(Y, before[1])


# ------------------------------------------------------------------------------- unlabelled rows


@pytest.mark.parametrize("marker", [-1, "none", np.nan])
def test_unlabelled_rows_are_fitted_on_and_never_scored(marker):
    hidden = np.arange(len(Y)) % 3 == 0
    names = Y.astype(object) if marker != "none" else np.array(["a", "b", "c"], object)[Y]
    y = names.copy()
    y[hidden] = marker
    if marker == -1:
        y = y.astype(int)
    search = SubspaceSearchCV(LSVA(2, unlabeled=marker), graph_weight=WEIGHTS, cv=2).fit(X, y)
    assert len(search.classes_) == 3
    known = np.flatnonzero(~hidden)
    points = search.cv_results_["params"]
    truth = np.array(names[known].tolist())
    for i, (train, test) in enumerate(StratifiedKFold(2).split(X[known], truth)):
        rows = np.concatenate([known[train], np.flatnonzero(hidden)])
        for point, score in zip(points, search.cv_results_[f"split{i}_test_score"], strict=True):
            subspace = LSVA(unlabeled=marker, **point).fit(X[rows], y[rows])
            head = KNeighborsClassifier(1).fit(subspace.transform(X[known[train]]), truth[train])
            assert score == head.score(subspace.transform(X[known[test]]), truth[test])
    assert set(search.predict(X).tolist()) <= set(truth.tolist())


def listed(fold):
    return [(np.flatnonzero(fold != i), np.flatnonzero(fold == i)) for i in range(3)]


@pytest.mark.parametrize("given", [PredefinedSplit, listed])
def test_given_row_numbers_are_those_of_all_rows(given):
    y, fold = np.where(np.arange(len(Y)) % 3 == 0, -1, Y), np.arange(len(Y)) * 7 % 5 // 2
    search = SubspaceSearchCV(LSVA(2, unlabeled=-1), n_components=2, cv=given(fold)).fit(X, y)
    for i in range(3):
        test = fold == i
        seen, scored = (~test & (y != -1)), (test & (y != -1))
        subspace = LSVA(unlabeled=-1).fit(X[seen | (y == -1)], y[seen | (y == -1)])
        head = KNeighborsClassifier(1).fit(subspace.transform(X[seen]), y[seen])
        score = head.score(subspace.transform(X[scored]), y[scored])
        assert search.cv_results_[f"split{i}_test_score"] == [score]


def test_a_marker_that_no_row_has_changes_nothing():
    plain, marked = searched().fit(X, Y), searched().set_params(estimator__unlabeled=-1).fit(X, Y)
    assert_array_equal(plain.cv_results_["mean_test_score"], marked.cv_results_["mean_test_score"])


def test_nothing_but_unlabelled_rows_is_refused():
    with pytest.raises(InvalidInputError, match="All 75 rows are unlabelled"):
        SubspaceSearchCV(LSVA(unlabeled=-1)).fit(X, np.full(len(Y), -1))


# ----------------------------------------------------------------------------------------- misuse

BAD = {
    "a classifier": ({"estimator": GESVC()}, "estimator must be a transformer"),
    "an unlimited transformer": ({"estimator": PCA()}, "n_components is missing"),
    "a number by cross-validation": ({"estimator": SVMPCA("cv")}, "n_components is missing"),
    "two heads": (
        {"classifier": KNeighborsClassifier(), "n_neighbors": 3},
        "cannot be used together",
    ),
    "no neighbors": ({"n_neighbors": [1, 0]}, "n_neighbors must be"),
    "a class": ({"estimator": LSVA}, "estimator must be a transformer"),
    "a weight MMDA lacks": (
        {"estimator": MMDA(), "graph_weight": [1]},
        "no parameter graph_weight",
    ),
    "a bad cost": ({"C": [1, -1]}, "C must be"),
    "a bad weight": ({"graph_weight": [np.nan]}, "graph_weight must be"),
    "no components": ({"n_components": [0, 1]}, "n_components must be"),
    "half a component": ({"n_components": 1.5}, "n_components must be"),
    "nothing to try": ({"C": []}, "C has no value"),
    "no number of components": ({"n_components": []}, "n_components has no value"),
    "bad error score": ({"error_score": "ignore"}, "error_score must be"),
    "bad flag": ({"return_train_score": "yes"}, "return_train_score must be"),
    "metrics without a choice": ({"scoring": ["accuracy", "f1_macro"]}, "refit must be one of"),
    "no metrics": ({"scoring": []}, "at least one metric"),
    "index out of range": ({"refit": lambda results: 99}, "index from 0 to 1; got 99"),
    "a scorer of two numbers": ({"scoring": lambda m, X, y: {"a": 1.0}}, "must return one number"),
    "no processes": ({"n_jobs": 0}, "n_jobs"),
}


@pytest.mark.parametrize("name", BAD)
def test_misuse_is_refused_in_words(name):
    parameters, message = BAD[name]
    search = SubspaceSearchCV(**{"estimator": LSVA(2), "cv": 2, **parameters})
    with pytest.raises(InvalidParameterError, match=message):
        search.fit(X, Y)
    assert not hasattr(search, "cv_results_")


def test_rows_that_no_fold_can_use_are_refused_with_the_reason():
    broken = X.copy()
    broken[:, 0] = np.nan
    with pytest.raises(InvalidInputError, match=r"(?s)All 8 fits failed.*NaN"):
        searched().fit(broken, Y)
    with pytest.raises(ValueError, match="NaN"):
        searched(error_score="raise").fit(broken, Y)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        searched().fit(X, Y[:-1])


@pytest.mark.parametrize("name", ["C", "graph_weight", "n_components"])
def test_iterators_are_refused_because_a_second_fit_would_find_them_empty(name):
    with pytest.raises(InvalidParameterError, match=f"{name} is an iterator"):
        SubspaceSearchCV(LSVA(2), **{name: iter([1, 2])}).fit(X, Y)


def test_a_single_value_may_be_an_array_without_dimensions():
    search = SubspaceSearchCV(LSVA(1), C=np.array(5.0), cv=2).fit(X, Y)
    assert search.best_params_ == {"C": 5.0, "n_components": 1}
    with pytest.raises(InvalidParameterError, match="C must be a number or several"):
        SubspaceSearchCV(LSVA(1), C={"C": 1.0}).fit(X, Y)


@pytest.mark.parametrize("scoring", [None, lambda model, rows, labels: model.score(rows, labels)])
def test_rows_that_cannot_be_scored_have_the_score_of_an_error(scoring):
    broken = X.copy()
    broken[0, 0] = np.nan
    folds = [(np.arange(1, 75, 2), np.arange(0, 75, 2)), (np.arange(1, 75, 2), np.arange(2, 75, 2))]
    options = {"error_score": -1.0, "refit": False, "scoring": scoring, "cv": folds}
    with pytest.warns(MarginfoldWarning, match="Scoring failed"):
        search = SubspaceSearchCV(LSVA(2), **options, return_train_score=True).fit(broken, Y)
    assert set(search.cv_results_["split0_test_score"]) == {-1.0}
    assert min(search.cv_results_["split1_test_score"]) > 0.5
    assert min(search.cv_results_["split0_train_score"]) > 0.5
    with pytest.raises(ValueError, match="NaN"):
        SubspaceSearchCV(LSVA(2), **options | {"error_score": "raise"}).fit(broken, Y)


def test_the_score_of_several_metrics_needs_one_that_is_meant():
    names = ["accuracy", "f1_macro"]
    search = searched(scoring=names, refit=lambda results: 0).fit(X, Y)
    with pytest.raises(InvalidParameterError, match="refit is a function"):
        search.score(X, Y)


def test_a_search_that_fails_leaves_the_earlier_one():
    search = searched().fit(X, Y)
    best = search.best_estimator_
    with pytest.raises(InvalidParameterError):
        search.set_params(C=[-1]).fit(X, Y)
    assert search.best_estimator_ is best


# -------------------------------------------------------------------------- progress and processes


def test_folds_are_reported_and_can_be_cancelled():
    events = []
    with watch(lambda event: events.append((event.stage, event.done, event.total))):
        searched().fit(X, Y)
    assert [event[1:] for event in events if event[0] == "folds"] == [(0, 2), (1, 2), (2, 2)]
    search = searched()
    with pytest.raises(CancelledError), watch(lambda event: event.done and event.cancel()):
        search.fit(X, Y)
    assert not hasattr(search, "cv_results_")


def test_cancelled_in_the_last_fit_the_search_is_as_it_was():
    search, stages = SubspaceSearchCV(LSVA(3), n_components=[3], cv=2), []

    def cancel(event):
        stages.append(event.stage)
        if stages.count("folds") == 3 and event.stage == "components" and event.done == 1:
            event.cancel()

    with pytest.raises(CancelledError), pytest.warns(CancelledWarning), watch(cancel):
        search.fit(X, Y)
    assert not hasattr(search, "best_estimator_")
    assert not hasattr(search, "cv_results_")


def test_a_process_that_dies_loses_nothing(tmp_path):
    mark = tmp_path / "died"
    dying = DiesOnce(mark=str(mark), parent=os.getpid())
    search = searched(classifier=dying, n_jobs=2).fit(X, Y)
    assert mark.exists()
    expected = searched(classifier=KNeighborsClassifier(1)).fit(X, Y)
    for key in ("split0_test_score", "split1_test_score"):
        assert_array_equal(search.cv_results_[key], expected.cv_results_[key])


def test_folds_on_a_cluster_score_alike(cluster):
    search = searched(client=cluster, return_train_score=True).fit(X, Y)
    assert clone(search).client is cluster
    expected = searched(return_train_score=True).fit(X, Y)
    for key in ("split0_test_score", "split1_test_score", "mean_train_score"):
        assert_array_equal(search.cv_results_[key], expected.cv_results_[key])
