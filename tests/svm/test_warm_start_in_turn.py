"""Chains that are solved one after the other: a neighbor helps, and does no harm."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from svm.random_problems import Problem, judge
from svm.test_policy import check_within_certificates
from svm.test_warm_start import check_certified, check_same, graph_weights, path, rows_of, solve

from marginfold import LSVA
from marginfold.errors import CancelledError
from marginfold.runtime.progress import watch
from marginfold.svm import InteriorPoint, interior_point, iterations
from marginfold.svm import warm_start as chains

TOL = 1e-8
COMPILED = pytest.mark.parametrize("compiled", ["auto", False])


def alone(batch, compiled="auto"):
    """Solve each problem of a batch without the others."""
    solver = InteriorPoint(tol=TOL, compiled=compiled)
    return [solver.solve_batch(batch.take([b]))[0] for b in range(len(batch))]


@pytest.fixture
def nearby(monkeypatch):
    """Note from what the problems of a chain begin."""
    starts, original = [], interior_point.InteriorPoint._solve_whole

    def noted(self, batch, near=None):
        starts.append(near)
        return original(self, batch, near)

    monkeypatch.setattr(InteriorPoint, "_solve_whole", noted)
    return starts


def test_compiled_chains_are_solved_in_turn_and_others_side_by_side(nearby, monkeypatch):
    pytest.importorskip("numba")
    monkeypatch.setattr(chains, "MISSES", 0)
    batch = path(rows_of(), graph_weights(4, 8))
    solve(batch, InteriorPoint(compiled=True))
    assert [near is None for near in nearby] == [True] + 7 * [False]
    nearby.clear()
    solve(batch, InteriorPoint(compiled=False))
    assert nearby == [None, None]  # every few of them, then the rest


def test_a_chain_needs_fewer_iterations_than_its_problems_alone(monkeypatch):
    pytest.importorskip("numba")
    monkeypatch.setattr(chains, "MISSES", 0)  # a face needs none
    batch = path(rows_of(seed=1), graph_weights(4, 20, decades=1.0))
    in_turn, single = solve(batch), alone(batch)
    for b, (solution, expected) in enumerate(zip(in_turn, single, strict=True)):
        check_same(batch, b, solution, expected)
    assert sum(s.n_iter for s in in_turn) < 0.8 * sum(s.n_iter for s in single)


@COMPILED
@pytest.mark.parametrize("cost", [1.0, 100.0])
def test_company_does_not_change_a_bit(compiled, cost):
    """Later components magnify every difference: only equal bits give equal searches."""
    rng = np.random.default_rng(8)
    X = rng.standard_normal((150, 6))
    y = np.where(X[:, 0] + rng.standard_normal(150) > 0, "a", "b")
    weights = np.logspace(-2, 2, 12)
    solver = InteriorPoint(compiled=compiled)
    model = LSVA(n_components=5, C=cost, solver=solver)
    for weight, fitted in zip(weights, model.fit_path(X, y, weights), strict=True):
        alone = LSVA(n_components=5, C=cost, graph_weight=weight, solver=solver).fit(X, y)
        assert (fitted.components_ == alone.components_).all()


def _with_neighbor(scales, odd):
    """Put a metric that has nothing in common with the others between them."""
    return [*scales[:2], odd, *scales[2:4], odd, *scales[4:]]


ODD = {
    "one feature only": [1e3, 1e-3, 1e-3, 1e-3],
    "reversed sizes": [1e-4, 1e-2, 1e2, 1e4],
    "all tiny": [1e-8] * 4,
    "all huge": [1e8] * 4,
    "absurdly tiny": [1e-200] * 4,
    "one absurdly tiny": [1.0, 1.0, 1.0, 1e-200],
    "one without weight": [1.0, 1.0, 1.0, 0.0],
}


@COMPILED
@pytest.mark.parametrize("misses", [0, 3])
@pytest.mark.parametrize("apart", [True, False])
@pytest.mark.parametrize("name", ODD)
def test_a_neighbor_that_has_nothing_in_common_does_no_harm(
    name, apart, misses, compiled, monkeypatch
):
    monkeypatch.setattr(chains, "MISSES", misses)
    rows = rows_of(150, seed=2, apart=apart)
    batch = path(rows, _with_neighbor(graph_weights(4, 6), np.array(ODD[name])))
    for b, (solution, expected) in enumerate(
        zip(solve(batch, InteriorPoint(compiled=compiled)), alone(batch, compiled), strict=True)
    ):
        check_certified(batch, b, solution, rows)
        assert solution.converged == expected.converged
        check_within_certificates(solution, expected)


@COMPILED
def test_a_neighbor_that_cannot_be_solved_does_no_harm(compiled):
    """Its numbers overflow; the others begin at the last one that was solved."""
    rows = rows_of(150, seed=3)
    scales = graph_weights(4, 6)
    batch = path(rows, _with_neighbor(scales, np.full(4, 1e160)))
    solutions = solve(batch, InteriorPoint(compiled=compiled))
    for b, solution in enumerate(solutions):
        assert np.isfinite(solution.coef).all()
        assert solution.converged == (solution.gap <= TOL)
        if batch.scale[b].max() < 1e100:
            check_certified(batch, b, solution, rows)
            check_same(batch, b, solution, alone(batch.take([b]))[0])
    assert not solutions[2].converged
    assert not solutions[5].converged


@COMPILED
@pytest.mark.parametrize("max_iter", [0, 1, 3])
def test_a_chain_with_too_few_iterations_is_honest(max_iter, compiled):
    rows = rows_of(seed=4)
    batch = path(rows, graph_weights(4, 5))
    best = [solution.objective for solution in alone(batch)]
    for b, solution in enumerate(
        solve(batch, InteriorPoint(tol=TOL, max_iter=max_iter, compiled=compiled))
    ):
        truth = judge(
            Problem("", rows.U * batch.scale[b], rows.y, rows.c),
            solution.coef,
            solution.intercept,
            solution.dual,
        )
        assert solution.dual_objective <= best[b] * (1 + 1e-9)
        assert solution.objective >= best[b] * (1 - 1e-9)
        assert truth.gap <= solution.gap * (1 + 1e-3) + 1e-9
        assert solution.converged == (solution.gap <= TOL)


def three_classes(n=180, r=5):
    rng = np.random.default_rng(21)
    y = np.arange(n) % 3
    return rng.standard_normal((n, r)) + rng.standard_normal((3, r))[y], y


@COMPILED
@pytest.mark.parametrize(
    "weights", [np.logspace(-3, 3, 13), [1e-8, 1e8, 1e-8, 1.0]], ids=["small steps", "jumps"]
)
def test_a_path_over_graph_weights_is_made_of_single_fits(weights, compiled):
    X, y = three_classes()
    solver = InteriorPoint(tol=1e-10, compiled=compiled)
    model = LSVA(n_components=3, solver=solver)
    fits = model.fit_path(X, y, graph_weight=weights)
    assert len(fits) == len(weights)
    for weight, fitted in zip(weights, fits, strict=True):
        single = LSVA(n_components=3, solver=solver, graph_weight=weight).fit(X, y)
        assert fitted.gap_.max() <= 1e-10
        assert_allclose(fitted.components_, single.components_, atol=1e-6)
        assert_allclose(fitted.intercepts_, single.intercepts_, atol=1e-5)


def test_a_long_chain_reports_its_problems_and_can_be_cancelled(monkeypatch):
    monkeypatch.setattr(chains, "LONG_WORK", 10)
    seen = []

    def cancel(event):
        seen.append(event.done)
        assert (event.stage, event.total) == ("problems", 8)
        if event.done >= 4:
            event.cancel()

    with watch(cancel), pytest.raises(CancelledError, match="problems"):
        solve(path(rows_of(), graph_weights(4, 8)), InteriorPoint(compiled="auto"))
    assert seen == sorted(seen)
    assert seen[0] == 0


@COMPILED
def test_a_long_chain_can_be_cancelled(compiled, monkeypatch):
    monkeypatch.setattr(iterations, "LONG_WORK", 10)
    monkeypatch.setattr(iterations, "LONG_PAUSE", 10)
    seen = []

    def cancel(event):
        seen.append(event.done)
        if len(seen) == 15:
            event.cancel()

    with watch(cancel), pytest.raises(CancelledError, match="iterations"):
        solve(path(rows_of(), graph_weights(4, 8)), InteriorPoint(compiled=compiled))
    assert len(seen) == 15
