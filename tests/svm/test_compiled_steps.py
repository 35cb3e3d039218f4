"""The compiled iteration against that of NumPy, step by step."""

from __future__ import annotations

from dataclasses import dataclass, replace
from importlib import import_module

import numpy as np
import pytest
import scipy.linalg
from numpy.testing import assert_allclose
from svm.random_problems import random_batch

from marginfold.linalg.tall import SharedRows
from marginfold.svm import SVMBatch
from marginfold.svm import interior_point_numpy as newton

pytest.importorskip("numba")
compiled = import_module("marginfold.svm.kernels")

RULES = newton.Rules()

LEAST_ENTRIES = 1e-6
"""Relative error of multipliers that are nearly zero, after a few steps."""


@dataclass
class CompiledSteps:
    """The compiled iteration of one problem, on features that are written down explicitly."""

    batch: SVMBatch
    b: int
    mu: float
    weights: np.ndarray | None = None

    def __post_init__(self):
        batch, b = self.batch, self.b
        unit = batch.costs[b].mean()
        N = batch.deflated[b]
        self._basis = scipy.linalg.null_space(N.T) if N.any() else np.eye(len(N))
        X = (batch.rows.features * batch.scale[b] * np.sqrt(unit)) @ self._basis
        self._problem = (
            np.vstack([X.T, np.ones(len(X))]),
            batch.signs[b].copy(),
            batch.costs[b] / unit,
        )
        self._u = np.zeros(X.shape[1] + 1)
        if self.weights is not None:
            self._u[:-1] = self._basis.T @ self.weights[:-1] / np.sqrt(unit)
            self._u[-1] = self.weights[-1]
        known = self.weights is not None
        self.P, self.Q, self.t = compiled.start(*self._problem, self._u, known, self.mu, RULES)
        self._tally = np.array([0.0, np.inf, 0.0])

    def step(self):
        state = (self._u, self.P, self.Q, self.t)
        compiled.iterate(*self._problem, *state, self._tally, -1.0, 1, RULES)

    @property
    def u(self):
        return np.append(self._basis @ self._u[:-1], self._u[-1])


class NumpySteps:
    """The iteration of a whole batch."""

    def __init__(self, batch, mu, weights=None):
        self._problems = newton.Problems.of(batch)
        given = None if weights is None else self._problems.in_units(weights)
        self.state = newton.start(self._problems, mu, given)
        self._done = 0

    def step(self):
        problems, state = self._problems, self.state
        line = newton.linearise(problems, state)
        self.gap = newton.gaps(problems, state, line.pull).min()
        assert newton.advance(problems, state, line, refine=self.gap < newton.REFINED).all()
        self._done += 1
        if self._done % newton.REFRESH_EVERY == 0:
            np.subtract(problems.signs * problems.scores(state.u), 1.0, out=state.t)


def check_steps(batch, mu=1.0, weights=None, n_steps=4, rtol=1e-9):
    """Compare in the units of the weights, the costs and the margins.

    Steps nearly reach the boundary: what rounding makes of the least entries is worth less.
    """
    numpy = NumpySteps(batch, mu, weights)
    problems = [
        CompiledSteps(batch, b, mu, None if weights is None else weights[b])
        for b in range(len(batch))
    ]
    for step in range(n_steps + 1):
        for b, one in enumerate(problems):
            state, where = numpy.state, f"problem {b} after {step} steps"
            u, P, Q, t = state.u[b], state.P[b], state.Q[b], state.t[b]
            size, cost = 1.0 + np.abs(t).max(), P.sum(axis=0)
            assert_allclose(one.u, u, rtol=rtol, atol=rtol, err_msg=where)
            assert_allclose(one.P / cost, P / cost, rtol=0, atol=rtol, err_msg=where)
            assert_allclose(one.Q, Q, rtol=rtol, atol=rtol * size, err_msg=where)
            assert_allclose(one.t, t, rtol=rtol, atol=rtol * size, err_msg=where)
            assert_allclose(one.P, P, rtol=LEAST_ENTRIES, err_msg=where)
            assert_allclose(one.Q, Q, rtol=LEAST_ENTRIES, err_msg=where)
        numpy.step()
        for one in problems:
            one.step()
    return numpy.gap


@pytest.mark.parametrize("r", [1, 2, 3, 4, 5, 8])
@pytest.mark.parametrize("n", [4, 255, 256, 257, 700])
def test_steps_are_those_of_numpy_whatever_the_shape(n, r):
    """The rows are cut into chunks and the features into tiles: none may be lost at an edge."""
    check_steps(random_batch(n, r))


@pytest.mark.parametrize("n_deflated", [1, 2, 4])
def test_steps_with_deflated_directions(n_deflated):
    check_steps(random_batch(n_deflated=n_deflated))


@pytest.mark.parametrize("decades", [0.0, 4.0, 8.0])
@pytest.mark.parametrize("cost", [1e-6, 1.0, 1e4])
def test_steps_with_costs_over_decades(cost, decades):
    check_steps(random_batch(decades=decades, cost=cost))


@pytest.mark.parametrize("mu", [1e-4, 1e-2, 1.0, 100.0])
@pytest.mark.parametrize("n_deflated", [0, 2])
def test_steps_from_given_weights(mu, n_deflated):
    batch = random_batch(n_deflated=n_deflated)
    weights = np.random.default_rng(1).normal(size=(len(batch), batch.scale.shape[1] + 1))
    check_steps(batch, mu, weights)


def test_steps_of_separable_rows_until_they_are_refined():
    """So many that margins are recomputed and solves refined on the way."""
    batch = random_batch(n=80, n_problems=1, decades=0.0, signal=np.inf)
    gap = check_steps(batch, n_steps=newton.REFRESH_EVERY + 2)
    assert gap < newton.REFINED


def test_equal_rows_and_constant_columns_take_the_same_steps():
    batch = random_batch(n=60, r=3)
    features = np.repeat(batch.rows.features[::2], 2, axis=0)
    features[:, 2] = 4.0
    check_steps(replace(batch, rows=SharedRows(features)))
