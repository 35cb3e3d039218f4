from __future__ import annotations

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_digits
from sklearn.svm import SVC

from marginfold.estimators.multiclass import class_pairs, one_vs_one_values


def test_values_of_pairs_are_those_of_scikit_learn() -> None:
    X, y = load_digits(return_X_y=True)
    pairs = SVC(kernel="linear", decision_function_shape="ovo").fit(X[:300], y[:300])
    margins = -pairs.decision_function(X[300:500])  # libsvm's are positive for the first class
    classes = SVC(kernel="linear", decision_function_shape="ovr").fit(X[:300], y[:300])
    values = one_vs_one_values(margins, 10)
    assert_allclose(values, classes.decision_function(X[300:500]), rtol=1e-12)


def test_votes_beat_margins_and_margins_break_ties() -> None:
    assert class_pairs(3) == [(0, 1), (0, 2), (1, 2)]
    clear = one_vs_one_values(np.array([[-0.1, -0.1, 9.0]]), 3)
    assert clear.argmax() == 0
    circle = one_vs_one_values(np.array([[-1.0, 2.0, -5.0]]), 3)  # 0 beats 1 beats 2 beats 0
    assert_array_equal(np.floor(circle + 0.5), [[1, 1, 1]])
    assert circle.argmax() == 1


def test_a_pair_without_a_margin_silences_neither_of_its_classes() -> None:
    margins = np.array([[0.0, -1.0, -2.0], [0.0, -2.0, -1.0]])  # 0 and 1 are told from 2 only
    assert_array_equal(one_vs_one_values(margins, 3).argmax(axis=1), [1, 0])
