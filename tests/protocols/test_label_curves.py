"""Curves over the share of labels: paired, seeded, and showing help, harm and neither."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import load_digits, load_iris, make_classification
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from marginfold import LSVA, LapSVC, NeighborGraph
from marginfold.errors import InvalidInputError, InvalidParameterError
from marginfold.protocols.label_curves import label_share_curve
from marginfold.protocols.statistics import paired_interval
from marginfold.validation.rows import is_unlabelled

MODEL = LapSVC(kernel="rbf", C=10, graph=NeighborGraph(5), graph_weight=10)
iris, species = load_iris(return_X_y=True)


class Spy(ClassifierMixin, BaseEstimator):
    """Remembers rows and labels of fits and predictions; predicts the most frequent class."""

    calls: list = []  # noqa: RUF012

    def __init__(self, unlabeled=None):
        self.unlabeled = unlabeled

    def fit(self, X, y):
        y = np.asarray(y)
        known = y[~is_unlabelled(y, self.unlabeled)]
        self.classes_, counts = np.unique(known, return_counts=True)
        self.guess_ = self.classes_[counts.argmax()]
        Spy.calls.append({"rows": X[:, 0].astype(int), "labels": y})
        return self

    def predict(self, X):
        Spy.calls[-1]["test"] = X[:, 0].astype(int)
        return np.full(len(X), self.guess_)


def spied(y, **options):
    """The calls of a curve on rows that carry their number."""
    Spy.calls.clear()
    X = np.column_stack([np.arange(len(y)), np.zeros(len(y))])
    return label_share_curve(Spy(), X, y, **options), list(Spy.calls)


def test_unlabelled_rows_help_on_digits():
    X, y = load_digits(return_X_y=True)
    curve = label_share_curve(MODEL, X[:250] / 16, y[:250], shares=(0.05, 0.2), n_repeats=5)
    assert all(difference.mean > 0.05 for difference in curve.differences)
    assert (curve.spread > 0).all()
    assert curve.mean[1] > curve.mean[0]


def test_unlabelled_rows_hurt_on_long_strips():
    rng = np.random.default_rng(0)
    y = np.arange(100) % 2
    X = np.column_stack([rng.uniform(0, 20, 100), y + 0.1 * rng.standard_normal(100)])
    curve = label_share_curve(LapSVC(graph_weight=10), X, y, shares=[0.1], n_repeats=5)
    assert curve.differences[0].high < 0
    assert (curve.spread > 0).all()


def test_unlabelled_rows_do_neither_on_overlapping_clusters():
    X, y = make_classification(
        250,
        50,
        n_informative=15,
        n_redundant=10,
        n_classes=5,
        class_sep=1.5,
        flip_y=0.02,
        random_state=0,
    )
    X = StandardScaler().fit_transform(X)
    curve = label_share_curve(MODEL, X, y, shares=(0.05, 0.2), n_repeats=5)
    assert all(difference.low < 0 < difference.high for difference in curve.differences)


def test_rows_are_split_as_promised():
    y = np.repeat(["a", "b", "c", "?"], [50, 30, 3, 17])
    shares = (0.1, 0.5, 1.0)
    curve, calls = spied(y, shares=shares, n_repeats=3, test_size=0.3, unlabeled="?")
    assert len(calls) == 3 * 3 * 2
    for k, (whole, alone) in enumerate(zip(calls[::2], calls[1::2], strict=True)):
        assert_array_equal(whole["test"], alone["test"])
        assert not np.isin(whole["test"], whole["rows"]).any()
        assert_array_equal(np.sort(np.append(whole["test"], whole["rows"])), np.arange(100))
        assert [np.count_nonzero(y[whole["test"]] == c) for c in "abc?"] == [15, 9, 1, 0]
        known = whole["labels"] != "?"
        assert_array_equal(whole["rows"][known], alone["rows"])
        assert_array_equal(whole["labels"][known], y[alone["rows"]])
        share = shares[k % 3]
        assert [np.count_nonzero(alone["labels"] == c) for c in "abc"] == [
            max(1, round(share * n)) for n in (35, 21, 2)
        ]
        assert len(alone["rows"]) == curve.n_labels[k % 3]
    for small, large in zip(calls[1:4:2], calls[3:6:2], strict=True):
        assert np.isin(small["rows"], large["rows"]).all()
    assert (curve.n_train, curve.n_test) == (58, 25)  # of 83 labelled rows
    assert not np.array_equal(calls[0]["test"], calls[6]["test"])


def test_scores_are_those_of_fits_written_out():
    curve, calls = spied(species, shares=(0.3,), n_repeats=2)
    for repeat, call in enumerate(calls[::2]):
        known = call["labels"][call["labels"] >= 0]
        guess = np.bincount(known).argmax()
        assert curve.scores[repeat, 0] == np.mean(species[call["test"]] == guess)
    differences = curve.scores[:, 0] - curve.labelled_only[:, 0]
    assert curve.differences[0] == paired_interval(differences, 105, 45)


def test_unlabelled_rows_do_not_narrow_an_interval():
    """They are no rows to learn labels from: any number leaves the sizes of the pools."""
    y = np.append(species, np.full(300, -1))
    few, _ = spied(species, shares=(0.3,), n_repeats=4)
    many, _ = spied(y, shares=(0.3,), n_repeats=4)
    assert_array_equal(many.scores, few.scores)
    assert (many.n_train, many.n_test) == (few.n_train, few.n_test) == (105, 45)
    assert many.differences == few.differences


@pytest.mark.parametrize("model", [MODEL, LSVA(2)])
@pytest.mark.parametrize(
    "labels",
    [
        species.astype(np.uint8),
        species.astype(np.int8),
        np.array(["a", "b", "c"])[species],
        np.array(["a", "b", "c"], dtype=object)[species],
    ],
    ids=["uint8", "int8", "text", "object"],
)
@pytest.mark.parametrize("marker", [-1, 999])
def test_the_type_of_the_labels_does_not_matter(model, labels, marker):
    model = clone(model).set_params(unlabeled=None)
    options = {"shares": [0.2], "n_repeats": 2}
    plain = label_share_curve(model, iris[::3], species[::3], **options)
    curve = label_share_curve(model, iris[::3], labels[::3], unlabeled=marker, **options)
    assert_array_equal(curve.scores, plain.scores)
    assert_array_equal(curve.labelled_only, plain.labelled_only)


def test_flags_are_labels_like_numbers():
    rows, flags = iris[50::2], species[50::2] == 2
    options = {"shares": [0.1], "n_repeats": 2}
    for model in (MODEL, LSVA(2)):
        plain = label_share_curve(model, rows, flags.astype(int), **options)
        curve = label_share_curve(model, rows, flags, **options)
        assert_array_equal(curve.scores, plain.scores)
        assert_array_equal(curve.labelled_only, plain.labelled_only)


def test_with_all_labels_there_is_no_difference():
    curve = label_share_curve(LapSVC(), iris, species, shares=[1.0], n_repeats=2)
    assert_array_equal(curve.scores, curve.labelled_only)
    assert curve.differences[0].p_value == 1


def test_it_is_deterministic_seeded_and_leaves_the_estimator():
    model = LSVA(2)
    options = {"shares": [0.1], "n_repeats": 2}
    first = label_share_curve(model, iris, species, **options)
    again = label_share_curve(model, pd.DataFrame(iris), species.tolist(), **options)
    other = label_share_curve(model, iris, species, random_state=1, **options)
    assert_array_equal(first.scores, again.scores)
    assert not np.array_equal(first.scores, other.scores)
    assert model.unlabeled is None
    shorter = label_share_curve(model, iris, species, shares=[0.1, 0.3], n_repeats=2)
    assert_array_equal(shorter.scores[:, :1], first.scores)  # a share does not touch the others


def test_pipelines_and_heads():
    pipeline = make_pipeline(StandardScaler(), LSVA(2))
    one, five = (
        label_share_curve(pipeline, iris, species, shares=[0.3], n_repeats=2, scoring=head)
        for head in ("1-nn", "5-nn")
    )
    assert one.mean[0] > 0.7
    assert five.scores.shape == (2, 1)


def test_the_table_holds_what_was_measured():
    curve, _ = spied(species, shares=(0.1, 0.5), n_repeats=3)
    rows = curve.table()
    assert [row["share"] for row in rows] == [0.1, 0.5]
    assert [row["labels"] for row in rows] == list(curve.n_labels)
    assert_allclose([row["score"] for row in rows], curve.scores.mean(axis=0))
    assert_allclose([row["spread"] for row in rows], curve.scores.std(axis=0, ddof=1))
    assert_allclose([row["labelled_only"] for row in rows], curve.labelled_only.mean(axis=0))
    assert [row["low"] for row in rows] == [d.low for d in curve.differences]
    assert str(curve).count("labelled rows only") == 2


def test_without_a_baseline():
    curve, calls = spied(species, shares=(0.1,), n_repeats=2, baseline=False)
    assert len(calls) == 2
    assert curve.labelled_only is None
    assert curve.differences == ()
    assert set(curve.table()[0]) == {"share", "labels", "score", "spread"}
    assert "labelled rows only" not in str(curve)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"shares": []}, "shares must be numbers above 0 and at most 1"),
        ({"shares": [0.0]}, "shares must be"),
        ({"shares": [1.5]}, "shares must be"),
        ({"shares": ["half"]}, "shares must be"),
        ({"n_repeats": 1}, "n_repeats must be a whole number >= 2"),
        ({"test_size": 1.0}, "test_size must be a finite number > 0 and < 1"),
        ({"test_size": 40}, "test_size must be"),
        ({"random_state": None}, "random_state must be"),
        ({"baseline": "yes"}, "baseline must be True or False"),
        ({"unlabeled": -2}, "unlabeled=-1 while labels are hidden as -2"),
        ({"scoring": "no such scorer"}, "no such scorer"),
    ],
)
def test_arguments_that_cannot_be(options, message):
    with pytest.raises(ValueError, match=message):
        label_share_curve(LapSVC(), iris, species, **options)


def test_estimators_and_labels_that_cannot_be():
    with pytest.raises(InvalidParameterError, match="has no parameter unlabeled"):
        label_share_curve(SVC(), iris, species)
    with pytest.raises(InvalidInputError, match=r"1 classes.*choose another one"):
        label_share_curve(LapSVC(), iris, np.where(species > 0, 1, -1))
