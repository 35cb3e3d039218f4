"""NeighborsClassifier against scikit-learn's, and against an exhaustive count where rows tie."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_digits
from sklearn.neighbors import KNeighborsClassifier
from threadpoolctl import threadpool_limits

from marginfold import NeighborsClassifier
from marginfold.errors import InvalidParameterError


def exhaustive(train, labels, row, k):
    """The majority of the k nearest; ties by the order of rows, then of classes."""
    squared = [float(((old - row) ** 2).sum()) for old in train]
    order = sorted(range(len(train)), key=lambda i: (squared[i], i))[:k]
    votes = Counter(labels[i] for i in order)
    return min(votes, key=lambda label: (-votes[label], label))


@pytest.mark.parametrize("n_neighbors", [1, 2, 5, 15])
@pytest.mark.parametrize("columns", [3, 12])
def test_without_ties_it_is_that_of_scikit_learn(n_neighbors, columns):
    rng = np.random.default_rng(columns)
    train, rows = rng.standard_normal((300, columns)), rng.standard_normal((80, columns))
    labels = rng.choice(["u", "v", "w"], 300)
    ours = NeighborsClassifier(n_neighbors).fit(train, labels)
    theirs = KNeighborsClassifier(n_neighbors).fit(train, labels)
    assert_array_equal(ours.predict(rows), theirs.predict(rows))
    assert_allclose(ours.predict_proba(rows), theirs.predict_proba(rows))


@pytest.mark.parametrize("n_neighbors", [1, 3, 15])
@pytest.mark.parametrize("columns", [2, 9])
def test_of_equally_near_rows_the_earlier_count_on_any_number_of_threads(n_neighbors, columns):
    rng = np.random.default_rng(7)
    train, rows = rng.integers(0, 2, (400, columns)), rng.integers(0, 2, (60, columns))
    train, rows = train.astype(float), rows.astype(float)
    labels = rng.integers(0, 3, 400)
    expected = [exhaustive(train, labels, row, n_neighbors) for row in rows]
    model = NeighborsClassifier(n_neighbors).fit(train, labels)
    for threads in (1, 2):
        with threadpool_limits(threads):
            assert_array_equal(model.predict(rows), expected)


def test_an_offset_of_all_rows_changes_nothing():
    X, y = load_digits(return_X_y=True)
    plain = NeighborsClassifier(5).fit(X[:400], y[:400]).predict(X[400:600])
    moved = NeighborsClassifier(5).fit(X[:400] + 4096.0, y[:400]).predict(X[400:600] + 4096.0)
    assert_array_equal(plain, moved)


def test_a_fit_that_fails_leaves_the_earlier_one():
    rows = pd.DataFrame(np.eye(3), columns=["a", "b", "c"])
    model = NeighborsClassifier(1).fit(rows, ["u", "v", "w"])
    with pytest.raises(ValueError, match="NaN"):
        model.fit(pd.DataFrame({"d": [1.0, np.nan]}), ["x", "y"])
    assert_array_equal(model.feature_names_in_, rows.columns)
    assert_array_equal(model.predict(rows), ["u", "v", "w"])


def test_with_fewer_rows_than_neighbors_all_of_them_vote():
    model = NeighborsClassifier(15).fit([[0.0], [1.0], [9.0]], ["a", "b", "b"])
    assert_array_equal(model.predict([[0.0]]), ["b"])
    assert_allclose(model.predict_proba([[0.0]]), [[1 / 3, 2 / 3]])
    with pytest.raises(InvalidParameterError, match="n_neighbors must be"):
        NeighborsClassifier(0).fit([[0.0], [1.0]], [0, 1])
