"""Cross-validation that hides labels: nothing leaks, no row is lost, markers of every kind work."""

from __future__ import annotations

from functools import cache

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import load_iris, make_moons
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from marginfold import LSVA, LapSVC, NeighborGraph, PrecomputedGraph
from marginfold.errors import InvalidInputError, InvalidParameterError
from marginfold.protocols.held_out import held_out_score
from marginfold.protocols.hidden_labels import HideLabels, hide, with_marker
from marginfold.validation.rows import is_unlabelled

X, full = make_moons(90, noise=0.1, random_state=0)
y = np.where(np.arange(90) % 3 == 0, full, -1)
NAMES = np.array(["crescent", "moon"])

MARKERS = {
    "numbers": (y, -1),
    "other number": (np.where(y < 0, 99, y), 99),
    "numbers and NaN": (np.where(y < 0, np.nan, y), np.nan),
    "text": (np.where(y < 0, "-1", NAMES[y]), -1),
    "long text": (np.where(y < 0, "not known yet", np.array(["a", "b"])[y]), "not known yet"),
    "text and NaN": (np.where(y < 0, np.nan, NAMES[y].astype(object)), np.nan),
    "text and None": (np.where(y < 0, None, NAMES[y].astype(object)), np.nan),
    "column of a frame": (pd.Series(np.where(y < 0, None, NAMES[y].astype(object))), np.nan),
}
FULL = {
    "all labelled": (full, -1),
    "flags": (full.astype(bool), -1),
    "flags and a large marker": (full.astype(bool), 999),
    "bytes without a sign": (full.astype(np.uint8), -1),
    "bytes and a large marker": (full.astype(np.int8), 999),
    "wide without a sign": (full.astype(np.uint64), -1),
    "bytes and NaN": (full.astype(np.uint8), np.nan),
    "all text": (np.array(["a", "b"])[full], "unlabelled"),
    "objects": (np.array(["a", "b"], dtype=object)[full], -1),
}
MARKERS |= FULL


class Spy(ClassifierMixin, BaseEstimator):
    """Remembers what it was fitted on; predicts the first class."""

    seen: list = []  # noqa: RUF012

    def __init__(self, unlabeled=None):
        self.unlabeled = unlabeled

    def fit(self, X, y):
        Spy.seen.append((np.array(X), np.array(y)))
        self.classes_ = np.unique(y[~is_unlabelled(y, self.unlabeled)])
        return self

    def predict(self, X):
        return np.repeat(self.classes_[:1], len(X))


@pytest.mark.parametrize("name", MARKERS)
def test_every_labelled_row_is_tested_once_and_hidden_then(name):
    labels, marker = MARKERS[name]
    labelled = ~is_unlabelled(np.asarray(labels), marker)
    tested = []
    for hidden, test in HideLabels(4, unlabeled=marker).split(X, labels):
        gone = is_unlabelled(hidden, marker)
        assert gone[test].all()
        assert not gone[np.setdiff1d(np.flatnonzero(labelled), test)].any()
        assert_array_equal(hidden[~gone] == np.asarray(labels)[~gone], True)
        assert gone[~labelled].all()
        tested.append(test)
    assert_array_equal(np.sort(np.concatenate(tested)), np.flatnonzero(labelled))


@pytest.mark.parametrize("name", MARKERS)
@pytest.mark.parametrize("estimator", [LapSVC(kernel="rbf", C=10, unlabeled=None), LSVA(2)])
def test_markers_of_every_kind_give_the_same_scores(name, estimator):
    labels, marker = MARKERS[name]
    expected = plain_scores(estimator, known=name in FULL)
    assert_allclose(HideLabels(3, unlabeled=marker).scores(estimator, X, labels), expected)
    assert expected.min() > 0.6


@cache
def plain_scores(estimator, *, known):
    return HideLabels(3).scores(estimator, X, full if known else y)


def test_scores_are_those_of_fits_written_out():
    estimator = LapSVC(kernel="rbf", C=10)
    scores = HideLabels(3, random_state=5).scores(estimator, X, y)
    literal = [
        np.mean(estimator.fit(X, hidden).predict(X[test]) == full[test])
        for hidden, test in HideLabels(3, random_state=5).split(X, y)
    ]
    assert_allclose(scores, literal)
    embedded = HideLabels(3).scores(LSVA(2), X, y, head="3-nn")
    for score, (hidden, test) in zip(embedded, HideLabels(3).split(X, y), strict=True):
        Z = LSVA(2, unlabeled=-1).fit(X, hidden).transform(X)
        head = KNeighborsClassifier(3).fit(Z[hidden >= 0], hidden[hidden >= 0])
        assert score == pytest.approx(head.score(Z[test], full[test]))


@pytest.mark.parametrize("estimator", [LapSVC(kernel="rbf"), LSVA(2)])
def test_no_test_label_leaks(estimator):
    """What is fitted stays the same whatever the labels of the test rows are."""
    splitter = HideLabels(3)
    rng = np.random.default_rng(0)
    fitted = with_marker(estimator, -1)
    output = fitted.predict if hasattr(fitted, "predict") else fitted.transform
    for part in splitter.splits(X, y):
        other = y.copy()
        other[part.test] = rng.permutation(1 - y[part.test])
        fitted.fit(X, part.labels)
        before = output(X)
        relabelled = hide(other, ~part.labelled, -1)
        assert_array_equal(relabelled, part.labels)
        fitted.fit(X, relabelled)
        assert_array_equal(output(X), before)
        right = held_out_score(with_marker(estimator, -1), X, y, part)
        flipped = np.where(np.isin(np.arange(len(y)), part.test), 1 - y, y)
        wrong = held_out_score(with_marker(estimator, -1), X, flipped, part)
        assert right + wrong == pytest.approx(1)  # same predictions, opposite truth


def test_the_estimator_sees_all_rows_and_its_own_stay_untouched():
    Spy.seen.clear()
    spy, labels = Spy(), y.copy()
    HideLabels(3).scores(spy, X, labels)
    assert len(Spy.seen) == 3
    for rows, hidden in Spy.seen:
        assert_array_equal(rows, X)
        assert np.count_nonzero(hidden >= 0) == 20
    assert spy.unlabeled is None
    assert not hasattr(spy, "classes_")
    assert_array_equal(labels, y)


def test_pipelines_frames_sparse_rows_and_lists():
    pipeline = make_pipeline(StandardScaler(), LSVA(2, kernel="rbf"))
    scores = HideLabels(3).scores(pipeline, X, y)
    assert_allclose(HideLabels(3).scores(pipeline, pd.DataFrame(X), pd.Series(y)), scores)
    linear = HideLabels(3).scores(LapSVC(), X, y)
    assert_allclose(HideLabels(3).scores(LapSVC(), sp.coo_array(X), y), linear)
    assert_allclose(HideLabels(3).scores(LapSVC(), X.tolist(), y.tolist()), linear)


def test_graphs_and_kernels_of_one_set_of_rows_can_be_validated():
    built = NeighborGraph(5).build(X).scatter(np.eye(90))
    graph = PrecomputedGraph(np.diag(np.diag(built)) - built)
    rule = HideLabels(3).scores(LapSVC(kernel="rbf", graph=NeighborGraph(5)), X, y)
    assert_allclose(HideLabels(3).scores(LapSVC(kernel="rbf", graph=graph), X, y), rule)
    gamma = 1 / (2 * X.var())
    precomputed = LapSVC(kernel="precomputed", graph=graph)
    scores = HideLabels(3).scores(precomputed, rbf_kernel(X, gamma=gamma), y)
    assert_allclose(scores, rule, atol=0.05)


def test_a_scorer_may_be_named():
    scores = HideLabels(3).scores(LapSVC(kernel="rbf"), X, y, head="roc_auc")
    assert (scores > 0.5).all()


def test_folds_are_stratified_seeded_and_deterministic():
    X, y = load_iris(return_X_y=True)
    first = [test for _, test in HideLabels(5, random_state=1).split(X, y)]
    again = [test for _, test in HideLabels(5, random_state=1).split(X, y)]
    other = [test for _, test in HideLabels(5, random_state=2).split(X, y)]
    assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))
    assert not all(np.array_equal(a, b) for a, b in zip(first, other, strict=True))
    assert all((np.bincount(y[test]) == 10).all() for test in first)
    assert HideLabels(5).get_n_splits() == len(first)
    assert HideLabels(3) == HideLabels(3, unlabeled=-1)


def test_a_rare_class_keeps_a_label_in_every_fold():
    labels = np.where(np.arange(90) < 2, 2, full)
    for hidden, _ in HideLabels(5).split(X, labels):
        assert set(np.unique(hidden)) == {-1, 0, 1, 2}


@pytest.mark.parametrize(
    ("labels", "options", "message"),
    [
        (np.where(full > 0, 1, -1), {}, r"1 classes among the 45 labelled rows.*another one"),
        (np.full(90, -1), {}, "0 classes among the 0 labelled rows"),
        (np.where(np.arange(90) < 1, 2, full), {}, r"class 2 has 1 labelled row.*at least 2"),
        (full[:50], {}, r"y of shape \(50,\) for 90 rows"),
        (full, {"unlabeled": None}, "unlabeled=None"),
        (full, {"unlabeled": "none"}, "labels are numbers and the marker is 'none'"),
        (full, {"n_splits": 1}, "n_splits must be a whole number >= 2"),
        (full, {"random_state": None}, "random_state must be a whole number"),
        (full, {"n_splits": 60}, "60 folds need a class with at least 60 rows"),
    ],
)
def test_data_that_cannot_be_split(labels, options, message):
    with pytest.raises(InvalidInputError, match=message):
        list(HideLabels(**options).split(X, labels))


def test_estimators_that_do_not_fit():
    with pytest.raises(InvalidParameterError, match=r"SVC\(\), which has no parameter unlabeled"):
        HideLabels(3).scores(SVC(), X, y)
    with pytest.raises(InvalidParameterError, match="unlabeled=-5 while labels are hidden as -1"):
        HideLabels(3).scores(LapSVC(unlabeled=-5), X, y)
    pipeline = make_pipeline(LSVA(unlabeled="?"), KNeighborsClassifier())
    with pytest.raises(InvalidParameterError, match=r"lsva__unlabeled='\?'.*unlabeled='\?' here"):
        HideLabels(3).scores(pipeline, X, y)
    with pytest.raises(InvalidInputError, match="took the marker -1 for a class"):
        HideLabels(3).scores(make_pipeline(LSVA(), KNeighborsClassifier()), X, y)
    with pytest.raises(InvalidParameterError, match="a classifier, or a transformer"):
        HideLabels(3).scores(BaseEstimator(), X, y)
    with pytest.raises(InvalidParameterError, match="number of neighbors such as '1-nn'"):
        HideLabels(3).scores(LSVA(), X, y, head="nearest")


@pytest.mark.parametrize("dtype", ["?", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4"])
@pytest.mark.parametrize("marker", [-1, "-1", -1.0, 255, 999, 10**6, 2**60 + 1, 0.5, np.nan])
def test_hidden_labels_are_the_marker_and_others_what_they_were(dtype, marker):
    labels, rows = np.array([0, 1, 1, 0], dtype=dtype), np.array([False, True, False, True])
    hidden = hide(labels, rows, marker)
    assert_array_equal(is_unlabelled(hidden, marker), rows)
    assert hidden[~rows].tolist() == [0, 1]


@pytest.mark.parametrize(
    ("labels", "marker"),
    [
        (np.array([1, 2**63], dtype=np.uint64), -1),
        (np.array([2**53, 2**53 + 1]), np.nan),
        (np.array([0, 2**63 - 1]), np.nan),
        (np.array([0, 1]), 10**30),
        (np.array([0, 1]), "nan"),
        (np.array([0, 1]), 10**400),
        (np.array([0.0, 1.0]), 10**400),
    ],
)
def test_a_marker_that_no_type_holds_beside_the_labels_is_refused(labels, marker):
    with pytest.raises(InvalidParameterError, match=r"no type of NumPy holds both.*Use unlabeled="):
        hide(labels, np.array([True, False]), marker)


def test_markers_that_say_the_same_agree():
    assert with_marker(LapSVC(unlabeled="-1"), -1).unlabeled == "-1"
    assert np.isnan(with_marker(LSVA(), np.nan).unlabeled)
