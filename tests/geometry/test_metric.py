"""The metric: its spectrum, its unit and the scales that penalties make of it."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from marginfold.errors import GraphError, InvalidInputError
from marginfold.geometry.metric import Metric, Penalty
from marginfold.graphs import NeighborGraph, PrecomputedGraph, TotalGraph, WithinClassGraph

rng = np.random.default_rng(0)
Z = rng.standard_normal((40, 4)) * [1.0, 2.0, 0.5, 3.0]
Z -= Z.mean(axis=0)
CODES = np.arange(40) % 3
LAPLACIAN = NeighborGraph(4).build(Z)
M = LAPLACIAN.scatter(Z)
TOTAL = Z.T @ Z


def metric():
    return Metric.of_scatter(M, TOTAL, graph=NeighborGraph(4))


def test_spectrum_rebuilds_the_scatter():
    found = metric()
    assert_allclose((found.Q * found.theta) @ found.Q.T, M, atol=1e-10)
    assert_allclose(found.Q.T @ found.Q, np.eye(4), atol=1e-12)
    assert (found.theta >= 0).all()


def test_unit_is_the_mean_eigenvalue_weighted_by_the_data():
    dense = np.trace(Z @ M @ Z.T) / np.trace(Z @ Z.T)
    assert metric().unit == pytest.approx(dense)
    found = metric()
    spread = np.diag(found.Q.T @ TOTAL @ found.Q)
    assert found.unit == pytest.approx(found.theta @ spread / spread.sum())


def test_unit_of_white_data_is_the_plain_mean():
    white = np.linalg.qr(Z)[0]
    scatter = LAPLACIAN.scatter(white)
    found = Metric.of_scatter(scatter, white.T @ white, graph=None)
    assert found.unit == pytest.approx(np.trace(scatter) / 4)


@pytest.mark.parametrize("s", [1e-3, 10.0])
def test_normalised_weight_is_free_of_units(s):
    """Rows times s: theta grows by s^2 and so does the unit, hence lam theta stays."""
    scaled = Metric.of_scatter(s**2 * M, s**2 * TOTAL, graph=None)
    penalty = Penalty(graph=None, weight=0.7, normalize=True)
    assert_allclose(penalty.scale(scaled), penalty.scale(metric()), rtol=1e-10)


def test_rotation_and_back():
    found = metric()
    W = rng.standard_normal((4, 2))
    assert_allclose(found.rotate_back(found.Q.T @ W), W, atol=1e-12)


def test_euclidean_metric_changes_nothing():
    plain = Metric.euclidean(4)
    assert plain.Q is None
    assert plain.rotate_back(Z.T) is not None
    assert_allclose(Penalty(graph=None, weight=5.0).scale(plain), np.ones(4))
    assert_allclose(Penalty(graph=None, weight=5.0, normalize=True).scale(plain), np.ones(4))


@pytest.mark.parametrize(
    ("penalty", "diagonal"),
    [
        (Penalty(graph=None, weight=0.0), lambda m: np.ones(4)),
        (Penalty(graph=None, weight=2.5), lambda m: 1 + 2.5 * m.theta),
        (Penalty(graph=None, weight=2.5, normalize=True), lambda m: 1 + 2.5 * m.theta / m.unit),
        (Penalty(graph=None, ridge=0.1), lambda m: 0.1 * m.theta.mean() + m.theta),
    ],
    ids=["no graph", "lam", "normalised", "ridge"],
)
def test_scale_is_the_inverse_root_of_the_metric(penalty, diagonal):
    found = metric()
    assert_allclose(penalty.scale(found) ** -2, diagonal(found), rtol=1e-12)
    A = (found.Q * diagonal(found)) @ found.Q.T
    root = (found.Q * penalty.scale(found)) @ found.Q.T
    assert_allclose(root @ A @ root, np.eye(4), atol=1e-10)


def test_ridge_is_the_mean_eigenvalue_of_the_scatter():
    found = metric()
    a = 0.01 * np.trace(M) / 4
    assert_allclose(Penalty(graph=None, ridge=0.01).scale(found) ** -2, a + found.theta)


def test_ridge_of_a_zero_scatter_is_refused():
    nothing = Metric.of_scatter(np.zeros((4, 4)), TOTAL, graph=WithinClassGraph())
    with pytest.raises(InvalidInputError, match=r"WithinClassGraph.*zero"):
        Penalty(graph=WithinClassGraph(), ridge=0.1).scale(nothing)


def test_zero_scatter_with_a_normalised_weight_is_the_euclidean_metric():
    nothing = Metric.of_scatter(np.zeros((4, 4)), TOTAL, graph=None)
    assert_allclose(Penalty(graph=None, weight=1.0, normalize=True).scale(nothing), np.ones(4))


def test_no_rows_apart_have_unit_zero():
    assert Metric.of_scatter(np.zeros((2, 2)), np.zeros((2, 2)), graph=None).unit == 0.0


def test_an_indefinite_scatter_is_an_error_that_names_the_graph():
    graph = PrecomputedGraph(np.eye(3))
    indefinite = np.diag([1.0, -0.5])
    with pytest.raises(GraphError, match=r"(?s)PrecomputedGraph.*not positive semi-definite"):
        Metric.of_scatter(indefinite, np.eye(2), graph=graph)
    with pytest.raises(GraphError):
        Metric.of_scatter(-np.eye(2), np.eye(2), graph=graph)


def test_rounding_below_zero_is_no_error():
    found = Metric.of_scatter(np.diag([1.0, -1e-12]), np.eye(2), graph=None)
    assert (found.theta >= 0).all()


@pytest.mark.parametrize("graph", [TotalGraph(), WithinClassGraph(), NeighborGraph(3)])
def test_penalty_builds_the_metric_of_its_graph(graph):
    scatter = graph.build(Z, CODES).scatter(Z)
    found = Penalty(graph=graph).metric(scatter, TOTAL)
    assert_allclose((found.Q * found.theta) @ found.Q.T, scatter, atol=1e-8)


def test_penalty_without_graph_is_euclidean():
    found = Penalty(graph=None).metric(None, TOTAL)
    assert found.Q is None
    assert not found.theta.any()
