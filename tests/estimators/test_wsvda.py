"""WSVDA: the scatter replaces the norm, and the ridge is relative to it."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.datasets import load_wine
from sklearn.preprocessing import scale
from sklearn.svm import SVC

from marginfold import WSVDA, NeighborGraph, TotalGraph, WithinClassGraph
from marginfold.errors import InvalidInputError

X, Y = load_wine(return_X_y=True)
SCALED = scale(X)


@pytest.mark.parametrize("ridge", [1e-3, 1e-1])
@pytest.mark.parametrize("graph", [WithinClassGraph(), TotalGraph(), NeighborGraph(5)])
def test_the_first_component_is_a_machine_in_the_metric_of_the_scatter(ridge, graph):
    wsvda = WSVDA(1, graph=graph, ridge=ridge, C=20.0, tasks="one_vs_rest").fit(SCALED, Y)
    S = graph.build(SCALED, Y).scatter(SCALED)
    S = S + ridge * np.trace(S) / 13 * np.eye(13)
    root = np.linalg.cholesky(np.linalg.inv(S))
    svc = SVC(kernel="linear", C=20.0, class_weight="balanced", tol=1e-10)
    svc.fit(SCALED @ root, Y == 0)
    normal = root @ svc.coef_[0]
    assert_allclose(wsvda.components_[0], normal / np.linalg.norm(normal), atol=1e-4)


def test_the_units_of_the_rows_do_not_matter():
    """Metric and ridge scale with the rows, so a change of unit changes no direction."""
    expected = WSVDA(3).fit(SCALED, Y)
    for unit in (1e-6, 1e6):
        wsvda = WSVDA(3).fit(unit * SCALED, Y)
        assert_allclose(wsvda.components_, expected.components_, atol=1e-7)
        assert_allclose(wsvda.transform(unit * SCALED), unit * expected.transform(SCALED))
        assert_allclose(wsvda.gain_, expected.gain_, atol=1e-9)


def test_with_fewer_rows_than_features_a_class_collapses():
    """The documented limit of a small ridge: null-space LDA."""
    rng = np.random.default_rng(0)
    rows, labels = rng.standard_normal((12, 60)), np.repeat([0, 1], 6)
    first = WSVDA(1, ridge=1e-9, C=1e3).fit(rows, labels).transform(rows)[:, 0]
    assert max(np.ptp(first[:6]), np.ptp(first[6:])) < 1e-3 * abs(
        first[:6].mean() - first[6:].mean()
    )


def test_unlabelled_rows_are_not_in_the_scatter():
    rng = np.random.default_rng(0)
    few = np.where(rng.random(len(Y)) < 0.5, Y, -1)
    known = few != -1
    semi = WSVDA(1, unlabeled=-1).fit(SCALED, few)
    supervised = WSVDA(1).fit(SCALED[known], Y[known])
    assert_allclose(semi.components_, supervised.components_, atol=1e-6)


def test_no_scatter_is_refused_with_a_way_out():
    rows = np.repeat(SCALED[[0, 70, 140]], 4, axis=0)
    message = r"WithinClassGraph\(\) is zero.*copies of one row.*MMDA"
    with pytest.raises(InvalidInputError, match=message):
        WSVDA().fit(rows, np.repeat([0, 1, 2], 4))


def test_a_ridge_of_any_size_gives_orthonormal_directions():
    for ridge in (1e-10, 1e-3, 1e3):
        W = WSVDA(5, ridge=ridge, C=100.0).fit(X, Y).components_
        assert_allclose(W @ W.T, np.eye(len(W)), atol=1e-10)
