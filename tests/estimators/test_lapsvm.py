"""LapSVC: Belkin's problem by its own formula, and every way to write a missing label."""

from __future__ import annotations

from functools import cache

import numpy as np
import pandas as pd
import polars as pl
import pytest
from estimator_families import MACHINES, SUBSPACES, every
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.datasets import load_wine, make_moons
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.preprocessing import scale

from marginfold import GESVC, ExactKernel, LapSVC, NeighborGraph

ESTIMATORS = [*SUBSPACES, *MACHINES]
X, Y = load_wine(return_X_y=True)
X = scale(X)
N = len(Y)
KNOWN = np.random.default_rng(0).random(N) < 0.4
TEXT = np.array(["a", "b", "c"])[Y]


def marked(labels, marker, dtype=None):
    """The labels with the marker on the rows that are not known."""
    return np.array(
        [label if known else marker for label, known in zip(labels, KNOWN, strict=True)],
        dtype=dtype,
    )


MARKED = {
    "integers": (marked(Y, -1), -1),
    "floats": (marked(Y.astype(float), -1.0), -1),
    "other integer": (marked(Y, 99), 99),
    "text": (marked(TEXT, "-1"), "-1"),
    "empty text": (marked(TEXT, ""), ""),
    "word": (marked(TEXT, "unknown"), "unknown"),
    "text by a number": (marked(TEXT, "-1"), -1),
    "object text by a number": (marked(TEXT, "-1", object), -1),
    "object with a number": (marked(TEXT, -1, object), -1),
    "object with a numpy number": (marked(TEXT, np.int64(-1), object), -1),
    "list of both": (marked(TEXT, -1, object).tolist(), -1),
    "list of both, float": (marked(TEXT, -1.0, object).tolist(), -1),
    "list of integers": (marked(Y, -1).tolist(), -1),
    "series of text": (pd.Series(marked(TEXT, "-1")), -1),
    "series of text, text marker": (pd.Series(marked(TEXT, "-1")), "-1"),
    "series of both": (pd.Series(marked(TEXT, -1, object)), -1),
    "categorical": (pd.Series(marked(TEXT, "-1"), dtype="category"), "-1"),
    "categorical by a number": (pd.Series(marked(TEXT, "-1"), dtype="category"), -1),
    "nullable integers": (pd.Series(marked(Y, -1), dtype="Int64"), -1),
    "polars text": (pl.Series(marked(TEXT, "-1").tolist()), "-1"),
}


@every(ESTIMATORS)
@pytest.mark.parametrize(("labels", "marker"), MARKED.values(), ids=MARKED)
def test_a_missing_label_may_be_written_in_many_ways(cls, labels, marker):
    fitted = cls(unlabeled=marker).fit(X, labels)
    assert len(fitted.classes_) == 3
    assert set(map(str, fitted.classes_)) & {"a", "0", "0.0"}
    assert_array_equal(fitted.decision_function(X), values_of_plain_labels(cls))


@cache
def values_of_plain_labels(cls):
    return cls(unlabeled=-1).fit(X, marked(Y, -1)).decision_function(X)


def test_minus_one_is_the_default_marker_of_lapsvc_only():
    assert_array_equal(LapSVC().fit(X, marked(Y, -1)).classes_, [0, 1, 2])
    assert_array_equal(GESVC().fit(X, marked(Y, -1)).classes_, [-1, 0, 1, 2])
    assert_array_equal(LapSVC(unlabeled=None).fit(X, marked(Y, -1)).classes_, [-1, 0, 1, 2])


def test_the_marker_is_never_predicted():
    fitted = LapSVC(kernel="rbf").fit(X, marked(TEXT, -1, object))
    assert set(fitted.predict(X)) <= {"a", "b", "c"}


def test_with_all_labels_it_is_gesvc():
    assert_array_equal(
        LapSVC().fit(X, Y).decision_function(X),
        GESVC(graph_weight=1.0).fit(X, Y).decision_function(X),
    )


def test_unlabelled_rows_without_a_graph_weight_do_nothing():
    semi = LapSVC(graph_weight=0.0).fit(X, marked(Y, -1))
    plain = GESVC(graph_weight=0.0).fit(X[KNOWN], Y[KNOWN])
    assert_allclose(semi.decision_function(X), plain.decision_function(X), atol=1e-7)


def test_belkins_parameters_are_the_documented_ones():
    """Minimise his objective over kernel expansions and compare the values at the optimum.

    ``mean hinge + gamma_A |f|^2 + gamma_I / n^2 f'Lf`` with a bias that is not penalised; the
    penalty of the documentation is 1/2 of ``I + lam L``, with C = 1 / (2 l gamma_A).
    """
    gamma_A, gamma_I = 0.05, 20.0
    rows, y = make_moons(40, noise=0.05, random_state=0)
    few = np.where(np.arange(40) % 5 == 0, y, -1)
    known, signs = few != -1, np.where(few == 1, 1.0, -1.0)
    rule, n, n_known = NeighborGraph(5), 40, np.count_nonzero(few != -1)
    lap = LapSVC(
        kernel=ExactKernel(gamma=2.0),
        graph=rule,
        C=1 / (2 * n_known * gamma_A),
        graph_weight=gamma_I / (gamma_A * n**2),
        normalize_graph=False,
    ).fit(rows, few)
    L = rule.build(rows).scatter(np.eye(n))
    K = rbf_kernel(rows, gamma=2.0)

    penalty = gamma_A * K + gamma_I / n**2 * K @ L @ K

    def hinge(parameters):
        return 1 - signs[known] * (K @ parameters[:-1] + parameters[-1])[known]

    def objective(parameters):
        alpha = parameters[:-1]
        return np.maximum(0, hinge(parameters)).mean() + alpha @ penalty @ alpha

    def smooth(parameters, sharpness):
        alpha, slack = parameters[:-1], sharpness * hinge(parameters)
        value = np.logaddexp(0, slack).mean() / sharpness + alpha @ penalty @ alpha
        slope = -signs[known] * expit(slack) / n_known
        return value, np.append(K[:, known] @ slope + 2 * penalty @ alpha, slope.sum())

    optimum = np.zeros(n + 1)
    for sharpness in (10.0, 100.0, 1000.0, 10000.0):
        optimum = minimize(smooth, optimum, args=(sharpness,), jac=True, method="L-BFGS-B").x
    decisions, bias = lap.decision_function(rows), lap.intercepts_[0]
    alpha = np.linalg.lstsq(K, decisions - bias, rcond=1e-10)[0]
    assert objective(np.append(alpha, bias)) <= objective(optimum) + 1e-9
    assert_allclose(decisions, K @ optimum[:-1] + optimum[-1], atol=0.05)


def test_parameters_are_those_of_gesvc_with_another_marker_and_more_of_the_graph():
    ours, parent = LapSVC().get_params(), GESVC().get_params()
    assert ours.keys() == parent.keys()
    assert {name for name in ours if ours[name] != parent[name]} == {
        "unlabeled",
        "graph_weight",
    }


@pytest.mark.parametrize("missing", [np.nan, None, pd.NA], ids=str)
@pytest.mark.parametrize("marker", [np.nan, pd.NA], ids=str)
def test_missing_values_are_unlabelled(missing, marker):
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((40, 3))
    text = np.array(["a", "b"], dtype=object)[(rows[:, 0] > 0).astype(int)]
    hidden = np.arange(40) % 3 == 0
    partly, marked = text.copy(), text.copy()
    partly[hidden], marked[hidden] = missing, "-1"
    found = LapSVC(unlabeled=marker).fit(rows, partly)
    assert_allclose(found.coef_, LapSVC().fit(rows, marked).coef_, atol=1e-12)
    assert found.classes_.tolist() == ["a", "b"]
