"""Folds: every row is tested once, classes keep their shares, a seed gives one partition."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.model_selection import StratifiedKFold

from marginfold.errors import InvalidInputError
from marginfold.protocols.splits import folds

Y = np.random.default_rng(0).permutation(np.repeat(["b", "a", "c"], [23, 31, 11]))


@pytest.mark.parametrize("n_folds", [2, 5, 10])
@pytest.mark.parametrize("seed", [0, 7])
def test_every_row_is_tested_once_and_trained_on_otherwise(n_folds, seed):
    pairs = folds(Y, n_folds, seed)
    assert len(pairs) == n_folds
    assert sorted(np.concatenate([test for _, test in pairs])) == list(range(len(Y)))
    for train, test in pairs:
        assert sorted([*train, *test]) == list(range(len(Y)))


@pytest.mark.parametrize("n_folds", [2, 5, 10])
def test_every_class_is_shared_out_evenly(n_folds):
    for label in np.unique(Y):
        counts = [np.count_nonzero(Y[test] == label) for _, test in folds(Y, n_folds, 3)]
        assert max(counts) - min(counts) <= 1


def test_folds_are_those_of_scikit_learn():
    theirs = StratifiedKFold(5, shuffle=True, random_state=4).split(Y, Y)
    for ours, pair in zip(folds(Y, 5, 4), theirs, strict=True):
        np.testing.assert_array_equal(ours[0], pair[0])
        np.testing.assert_array_equal(ours[1], pair[1])


def test_inverted_folds_train_where_the_others_test():
    plain, inverted = folds(Y, 5, 1), folds(Y, 5, 1, inverted=True)
    for (train, test), (few, many) in zip(plain, inverted, strict=True):
        np.testing.assert_array_equal(few, test)
        np.testing.assert_array_equal(many, train)
    assert all(set(Y[few]) == set(Y) for few, _ in inverted)


def test_a_seed_gives_one_partition_and_another_seed_another():
    state = np.random.get_state()[1].copy()  # noqa: NPY002 - that it is left alone
    once, again, other = folds(Y, 5, 0), folds(Y, 5, 0), folds(Y, 5, 1)
    assert all(np.array_equal(a[1], b[1]) for a, b in zip(once, again, strict=True))
    assert not all(np.array_equal(a[1], b[1]) for a, b in zip(once, other, strict=True))
    np.testing.assert_array_equal(np.random.get_state()[1], state)  # noqa: NPY002


def test_a_class_with_few_rows_is_no_error_and_no_warning():
    y = np.array([0] * 10 + [1] * 2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pairs = folds(y, 5, 0)
    assert sorted(np.count_nonzero(y[test] == 1) for _, test in pairs) == [0, 0, 0, 1, 1]


def test_more_folds_than_rows_of_any_class_are_refused():
    with pytest.raises(InvalidInputError, match=r"5 folds need .*largest has 4\. Use fewer folds"):
        folds(np.repeat([0, 1], [4, 3]), 5, 0)
    assert len(folds(np.repeat([0, 1], [5, 3]), 5, 0)) == 5
