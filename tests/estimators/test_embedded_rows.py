"""Rows that are rotated late or not at all give what rotated rows give."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from marginfold.estimators.inputs import coordinates
from marginfold.feature_maps import LowRankKernel
from marginfold.geometry.metric import Metric
from marginfold.graphs import resolve_graph

rng = np.random.default_rng(12)
X = rng.standard_normal((90, 4))
CODES = np.arange(90) % 3
WEIGHTS = rng.uniform(0.5, 2.0, 90)


def found(kernel):
    return coordinates(kernel, X, WEIGHTS, CODES)


KERNELS = {
    "rbf": LowRankKernel("rbf", rank=25),
    "fewer axes than pivots": LowRankKernel("linear", rank=10),
}


@pytest.mark.parametrize("graph", ["within", "knn", "total"])
@pytest.mark.parametrize("name", KERNELS)
def test_scatters_and_rows_of_the_solver(name, graph):
    late, early = found(KERNELS[name]), found(KERNELS[name])
    Z = early.Z
    assert early.axes is None
    assert late.axes is not None
    assert_allclose(late.total, Z.T @ (WEIGHTS[:, None] * Z), atol=1e-10 * np.trace(late.total))
    rule = resolve_graph(graph)
    scatter = late.form(rule).scatter
    assert_allclose(scatter, early.form(rule).scatter, atol=1e-12 * np.abs(scatter).max())
    assert (scatter == scatter.T).all()
    for metric in (
        Metric.euclidean(len(scatter)),
        Metric.of_scatter(scatter, late.total, graph=""),
    ):
        rows, expected = late.solver_rows(metric), early.solver_rows(metric)
        assert_allclose(rows.table, expected.table, atol=1e-12)
        assert_allclose(rows.centre, expected.centre, atol=1e-12)
    assert late.axes is not None  # nobody asked for them


@pytest.mark.parametrize("name", KERNELS)
def test_coordinates_are_rotated_once_and_in_place(name):
    c = found(KERNELS[name])
    before = c.rows
    expected = before @ c.axes
    assert_allclose(c.Z, expected, atol=1e-12)
    assert c.Z is c.Z
    assert_allclose(c.Z, c.feature_map.coordinates(X), atol=1e-9)
    if c.Z.shape[1] == before.shape[1]:
        assert np.shares_memory(c.Z, before)
