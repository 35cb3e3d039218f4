"""Heads: the errors of scikit-learn's classifiers on every number of leading columns."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.neighbors import KNeighborsClassifier, NearestCentroid

from marginfold.errors import InvalidParameterError
from marginfold.model_selection import nested_knn as nested_neighbors
from marginfold.protocols.held_out import errors_by_dimension as errors_of_heads
from marginfold.protocols.held_out import neighbors_of

NAMES = np.array(["zebra", "ant", "10", "9", "élan"])
"""Labels whose sorted order is neither that of their numbers nor of their appearance."""


def errors_by_dimension(head, train, y, test, y_test):
    return errors_of_heads([head], train, y, test, y_test)[head]


def draw(seed, n_classes, *, n_train=60, n_test=40, n_columns=5):
    rng = np.random.default_rng(seed)
    codes = np.concatenate(
        [np.arange(n_classes), rng.integers(n_classes, size=n_train - n_classes)]
    )
    new = rng.integers(n_classes, size=n_test)
    centres = rng.standard_normal((n_classes, n_columns))
    train = centres[codes] + rng.standard_normal((n_train, n_columns))
    test = centres[new] + rng.standard_normal((n_test, n_columns))
    return train, codes, test, new


def by_sklearn(classifier, train, y, test, y_test):
    return [
        np.mean(classifier.fit(train[:, :k], y).predict(test[:, :k]) != y_test)
        for k in range(1, train.shape[1] + 1)
    ]


@pytest.mark.parametrize("n_classes", [2, 3, 5])
@pytest.mark.parametrize("n_neighbors", [1, 2, 3, 5, 8, 60])
def test_neighbors_vote_as_in_scikit_learn(n_classes, n_neighbors):
    train, codes, test, new = draw(n_classes, n_classes)
    oracle = KNeighborsClassifier(n_neighbors, algorithm="brute")
    for labels in (np.arange(n_classes), NAMES[:n_classes], 7 - 3 * np.arange(n_classes)):
        y, y_test = labels[codes], labels[new]
        errors = errors_by_dimension(f"{n_neighbors}-nn", train, y, test, y_test)
        np.testing.assert_array_equal(errors, by_sklearn(oracle, train, y, test, y_test))
        assert errors.min() < errors.max() or n_neighbors == 60


@pytest.mark.parametrize("n_neighbors", [2, 7])
def test_neighbors_among_many_rows_vote_as_in_scikit_learn(n_neighbors):
    arrays = draw(n_neighbors, 4, n_train=1500, n_test=100)
    oracle = KNeighborsClassifier(n_neighbors, algorithm="brute")
    errors = errors_by_dimension(f"{n_neighbors}-nn", *arrays)
    np.testing.assert_array_equal(errors, by_sklearn(oracle, *arrays))


@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_centroids_decide_as_in_scikit_learn(n_classes):
    train, codes, test, new = draw(10 + n_classes, n_classes)
    for labels in (np.arange(n_classes), NAMES[:n_classes]):
        y, y_test = labels[codes], labels[new]
        errors = errors_by_dimension("centroid", train, y, test, y_test)
        np.testing.assert_array_equal(errors, by_sklearn(NearestCentroid(), train, y, test, y_test))


@given(seed=st.integers(0, 10_000), n_neighbors=st.integers(1, 12), n_classes=st.integers(2, 5))
def test_it_is_so_for_any_rows(seed, n_neighbors, n_classes):
    train, y, test, y_test = draw(seed, n_classes, n_train=12, n_test=9, n_columns=3)
    oracle = KNeighborsClassifier(n_neighbors, algorithm="brute")
    errors = errors_by_dimension(f"{n_neighbors}-nn", train, y, test, y_test)
    np.testing.assert_array_equal(errors, by_sklearn(oracle, train, y, test, y_test))


@pytest.mark.parametrize("head", ["1-nn", "4-nn", "centroid"])
@pytest.mark.parametrize("entries", [1, 61, 700])
def test_chunks_of_any_size_give_the_same(monkeypatch, head, entries):
    train, y, test, y_test = draw(0, 3)
    whole = errors_by_dimension(head, train, y, test, y_test)
    monkeypatch.setattr(nested_neighbors, "CHUNK_ENTRIES", entries)
    np.testing.assert_array_equal(errors_by_dimension(head, train, y, test, y_test), whole)


def test_of_equal_votes_the_class_first_in_order_wins():
    train = np.array([[-1.0], [1.0], [-2.0], [2.0], [50.0]])
    test = np.array([[0.1], [-0.1]])
    for y in (["b", "a", "a", "b", "c"], ["a", "b", "b", "a", "c"]):
        for head in ("2-nn", "4-nn"):
            for label, error in (("a", 0.0), ("b", 1.0), ("c", 1.0)):
                wanted = np.array([label, label])
                assert errors_by_dimension(head, train, np.array(y), test, wanted) == [error]


def test_more_neighbors_than_rows_are_all_rows():
    train, y, test, y_test = draw(1, 2, n_train=7)
    all_rows = errors_by_dimension("7-nn", train, y, test, y_test)
    np.testing.assert_array_equal(errors_by_dimension("500-nn", train, y, test, y_test), all_rows)


def test_a_class_unknown_to_the_training_rows_is_always_wrong():
    train, y, test, _ = draw(2, 2)
    for head in ("1-nn", "3-nn", "centroid"):
        assert np.all(errors_by_dimension(head, train, y, test, np.full(len(test), 7)) == 1.0)


def test_turning_and_shifting_the_rows_changes_nothing_with_all_columns():
    train, y, test, y_test = draw(3, 4)
    turn = np.linalg.qr(np.random.default_rng(0).standard_normal((5, 5)))[0]
    for head in ("1-nn", "5-nn", "centroid"):
        before = errors_by_dimension(head, train, y, test, y_test)[-1]
        after = errors_by_dimension(head, train @ turn + 3.0, y, test @ turn + 3.0, y_test)[-1]
        assert before == after


@pytest.mark.parametrize(
    "head", ["0-nn", "nn", "-1-nn", "1-NN", "01-nn", "1.5-nn", " 1-nn", "svm", ""]
)
def test_other_heads_are_refused_by_name(head):
    with pytest.raises(InvalidParameterError, match="'centroid' or a number of neighbors"):
        neighbors_of(head)
    train, y, test, y_test = draw(0, 2)
    with pytest.raises(InvalidParameterError, match=f"got {head!r}"):
        errors_by_dimension(head, train, y, test, y_test)


def test_inputs_are_left_as_they_were():
    arrays = draw(4, 3)
    copies = [array.copy() for array in arrays]
    for head in ("3-nn", "centroid"):
        errors_by_dimension(head, *arrays)
    for array, copy in zip(arrays, copies, strict=True):
        np.testing.assert_array_equal(array, copy)


def test_heads_together_have_the_errors_of_each_alone():
    train, y, test, y_test = draw(6, 4)
    heads = ["5-nn", "centroid", "1-nn", "15-nn"]
    together = errors_of_heads(heads, train, y, test, y_test, [2, 5])
    assert list(together) == heads
    for head in heads:
        alone = errors_by_dimension(head, train, y, test, y_test)
        np.testing.assert_array_equal(together[head], alone[[1, 4]])


def test_of_equally_near_rows_the_earlier_count_however_many_they_are():
    """All rows of a column of three values: hundreds are as near as the last that counts."""
    rng = np.random.default_rng(0)
    train, test = (rng.integers(3, size=(n, 2)).astype(float) for n in (400, 50))
    y, y_test = rng.integers(4, size=400), rng.integers(4, size=50)
    for n_neighbors in (1, 5, 15):
        errors = errors_by_dimension(f"{n_neighbors}-nn", train, y, test, y_test)
        for k in (1, 2):
            squared = ((test[:, None, :k] - train[None, :, :k]) ** 2).sum(axis=2)
            nearest = np.argsort(squared, axis=1, kind="stable")[:, :n_neighbors]
            voted = [np.bincount(y[row]).argmax() for row in nearest]
            assert errors[k - 1] == np.mean(voted != y_test)
