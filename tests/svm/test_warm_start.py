"""Chains of similar problems: beginning at another solution never changes an answer."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import pytest
import scipy.linalg
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from svm.judging import (
    BOTH_WAYS,
    NEEDS_NUMBA,
    TOL,
    check_honest,
    check_within_certificates,
    chosen,
    seen,
)
from svm.random_problems import random_problem

from marginfold import LSVA
from marginfold.errors import CancelledError
from marginfold.linalg.tall import SharedRows
from marginfold.runtime.progress import watch
from marginfold.svm import Automatic, InteriorPoint, SVMBatch, interior_point, policy, screening

EXACT = 1e-12
"""Relative gap of solutions on the right active set."""

FEASIBLE = 1e-12
"""Largest ``|y'a| / sum(a)`` of multipliers that were put together from a reduced problem."""

ROUTES = {
    "active sets": {},
    "points nearby only": {"SIMILAR": 0.0},
    "screened from the last": {"WARM_ROWS": 20},
    "screened only": {"WARM_ROWS": 20, "SIMILAR": 0.0},
    "narrow zones": {"WARM_ROWS": 20, "SIMILAR": 0.0, "FEWEST": 0, "FIRST_WIDTH": 1e-3},
    "zones too large": {"WARM_ROWS": 20, "SIMILAR": 0.0, "LARGEST_SHARE": 0.05},
    "screened cold": {"TALL": 20, "SMALL": 20, "WARM_ROWS": 20},
    "screened cold, given up": {"TALL": 20, "SMALL": 20, "WARM_ROWS": 20, "LARGEST_SHARE": 0.01},
}
"""Constants under which small problems go the ways of large ones."""


def take_route(monkeypatch, name):
    for constant, value in ROUTES[name].items():
        monkeypatch.setattr(policy, constant, value)
    monkeypatch.setattr(screening, "SAMPLE_ROWS", 60)
    monkeypatch.setattr(screening, "SMALL_CLASS", 15)


@pytest.fixture(params=ROUTES)
def route(request, monkeypatch):
    take_route(monkeypatch, request.param)


@dataclass(frozen=True)
class Rows:
    """Rows, labels and costs that the problems of a chain share."""

    U: np.ndarray
    y: np.ndarray
    c: np.ndarray


def rows_of(n=400, r=4, *, seed=0, signal=0.8, share=0.5, cost=1.0, apart=False):
    rng = np.random.default_rng([95, seed])
    y = np.where(rng.random(n) < share, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    U = rng.standard_normal((n, r)) + 2.0
    U[:, 0] += signal * y
    if apart:
        U[:, 0] = y * (0.3 + np.abs(U[:, 0]))
    return Rows(U, y, np.full(n, cost))


def path(rows: Rows, scales, deflated=None) -> SVMBatch:
    """Return the batch of the same problem in several metrics."""
    B, r = len(scales), rows.U.shape[1]
    return SVMBatch(
        SharedRows(rows.U),
        np.tile(rows.y, (B, 1)),
        np.tile(rows.c, (B, 1)),
        np.stack(scales),
        np.zeros((B, r, 0)) if deflated is None else deflated,
    )


def graph_weights(r, n_problems, decades=3.0, seed=0):
    """Return ``(1 + lam theta)^-1/2`` for a spectrum theta and a range of graph weights lam."""
    theta = np.random.default_rng([96, seed]).uniform(0.0, 1.0, r)
    return [1.0 / np.sqrt(1.0 + lam * theta) for lam in np.logspace(-2, decades - 2, n_problems)]


def solve(batch, compiled=False):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return Automatic(tol=TOL, compiled=compiled).solve_batch(batch)


def alone(batch, compiled=False):
    """Solve each problem without the others."""
    solver = InteriorPoint(tol=TOL, compiled=compiled)
    return [solver.solve_batch(chosen(batch, [b]))[0] for b in range(len(batch))]


def check_same(batch, b, solution, expected, atol=1e-7):
    """Where both are on the right active set, they agree to rounding; else as their gaps say."""
    assert solution.converged
    check_within_certificates(solution, expected)
    if max(solution.gap, expected.gap) > EXACT:
        return
    size = max(1.0, float(np.abs(expected.coef).max()))
    assert_allclose(solution.coef, expected.coef, atol=atol * size)
    assert solution.intercept == pytest.approx(expected.intercept, abs=10 * atol * size)
    w, v = (batch.scale[b] * s.coef for s in (solution, expected))
    if np.linalg.norm(v) > 1e-6:
        assert_allclose(w / np.linalg.norm(w), v / np.linalg.norm(v), atol=atol)


def check_path(batch, compiled=False, expected=None):
    """Each solution is certified on all rows and that of the problem alone, written down."""
    for b, solution in enumerate(solve(batch, compiled)):
        assert check_honest(seen(batch, b), solution, feasible=FEASIBLE) <= TOL
        check_same(batch, b, solution, expected[b] if expected else plain(batch, b))


def plain(batch, b):
    """Solve the problem on explicit rows without deflation or scale."""
    N = batch.deflated[b]
    V = scipy.linalg.null_space(N.T) if N.any() else np.eye(len(N))
    rows = (batch.rows.features + batch.rows.centre) * batch.scale[b] @ V
    found = InteriorPoint(tol=TOL, compiled=False).solve(rows, batch.signs[b], batch.costs[b])
    assert found.converged
    return replace(found, coef=V @ found.coef)


ROWS = {
    "overlapping": rows_of(),
    "apart": rows_of(apart=True, seed=1),
    "no signal": rows_of(signal=0.0, seed=2),
    "one to 50": rows_of(share=0.02, seed=3),
    "small costs": rows_of(cost=1e-4, seed=4),
    "large costs": rows_of(cost=1e3, seed=5),
}
PATHS = {name: path(rows, graph_weights(4, 6)) for name, rows in ROWS.items()}


@cache
def expected_of(name):
    """Return the solutions of a path alone: every route is compared with the same ones."""
    return [plain(PATHS[name], b) for b in range(6)]


@pytest.mark.parametrize("name", PATHS)
def test_a_path_is_made_of_its_single_solutions(name, route):
    check_path(PATHS[name], False, expected_of(name))


@NEEDS_NUMBA
@pytest.mark.parametrize("way", ["active sets", "screened only", "screened cold"])
@pytest.mark.parametrize("name", PATHS)
def test_a_compiled_path_is_made_of_its_single_solutions(name, way, monkeypatch):
    take_route(monkeypatch, way)
    check_path(PATHS[name], True, expected_of(name))


@BOTH_WAYS
def test_a_path_in_small_steps_stays_on_its_active_set(compiled):
    """Neighbors share their active set: most solutions come without an iteration."""
    batch = path(rows_of(seed=6), graph_weights(4, 30, decades=0.01))
    solutions = solve(batch, compiled)
    assert sum(s.n_iter == 0 for s in solutions) >= 15
    for b in (1, 14, 29):
        check_same(batch, b, solutions[b], plain(batch, b))


@BOTH_WAYS
def test_a_path_needs_fewer_iterations_than_its_problems_alone(compiled, monkeypatch):
    monkeypatch.setattr(policy, "SIMILAR", 0.0)  # an active set needs none
    batch = path(rows_of(seed=1), graph_weights(4, 20, decades=1.0))
    in_turn, single = solve(batch, compiled), alone(batch, compiled)
    for b, (solution, expected) in enumerate(zip(in_turn, single, strict=True)):
        check_same(batch, b, solution, expected)
    assert sum(s.n_iter for s in in_turn) < 0.8 * sum(s.n_iter for s in single)


def test_a_path_in_the_most_dimensions_of_the_iteration_stays_on_its_active_set():
    """In more of them the multipliers are the start, and coordinate descent has it."""
    r = interior_point.MANY_DIMENSIONS
    batch = path(rows_of(150, r, seed=7), graph_weights(r, 4, decades=1e-6))
    solutions = solve(batch)
    assert [s.n_iter for s in solutions[1:]] == [0, 0, 0]
    check_same(batch, 3, solutions[3], plain(batch, 3))


def test_fewer_rows_than_a_zone_should_have_are_its_rows(monkeypatch):
    take_route(monkeypatch, "screened only")
    rows = rows_of(24, 6, seed=5)
    assert len(rows.y) < policy.FEWEST * 6
    check_path(path(rows, graph_weights(6, 5)))


@pytest.mark.parametrize("order", ["forth", "back", "shuffled", "repeated"])
def test_the_order_of_a_path_does_not_matter(order, route):
    index = {
        "forth": np.arange(6),
        "back": np.arange(6)[::-1],
        "shuffled": np.random.default_rng(0).permutation(6),
        "repeated": np.array([2, 2, 5, 2, 0, 0]),
    }[order]
    batch, expected = chosen(PATHS["overlapping"], index), expected_of("overlapping")
    for b, solution in enumerate(solve(batch)):
        check_same(batch, b, solution, expected[index[b]])


def test_jumps_between_metrics_that_have_nothing_in_common(route):
    rows = rows_of(r=5, seed=8)
    scales = [np.where(np.arange(5) == k, 10.0, 0.05) for k in range(5)]
    check_path(path(rows, scales))


@BOTH_WAYS
def test_deflated_directions_change_along_a_chain(compiled, route):
    """As the components of a subspace do: one more direction is forbidden each time."""
    rows, r = rows_of(r=5, seed=9), 5
    Q = scipy.linalg.qr(np.random.default_rng(9).standard_normal((r, r)))[0]
    deflated = np.zeros((4, r, 3))
    for b in range(4):
        deflated[b, :, :b] = Q[:, :b]
    check_path(path(rows, [np.ones(r)] * 4, deflated), compiled)


def test_chains_of_several_labels_and_costs_in_one_batch(route):
    """Three chains, interleaved: they must not be taken for one."""
    rows = rows_of(seed=10)
    batch = path(rows, [s for s in graph_weights(4, 4) for _ in range(3)])
    signs, costs = batch.signs.copy(), batch.costs.copy()
    signs[1::3] *= -1
    costs[2::3] *= np.random.default_rng(1).uniform(0.1, 5.0, costs.shape[1])
    check_path(replace(batch, signs=signs, costs=costs))


def test_rows_without_cost_take_no_part_in_a_chain(route):
    rows = rows_of(seed=11)
    idle = np.random.default_rng(2).random(len(rows.y)) < 0.3
    kept = path(Rows(rows.U[~idle], rows.y[~idle], rows.c[~idle]), graph_weights(4, 4))
    batch = path(replace(rows, c=np.where(idle, 0.0, rows.c)), graph_weights(4, 4))
    for b, solution in enumerate(solve(batch)):
        assert not solution.dual[idle].any()
        assert check_honest(seen(batch, b), solution, feasible=FEASIBLE) <= TOL
        check_same(batch, b, solution, plain(kept, b))


def test_many_equal_rows_and_a_bias_with_an_interval(route):
    rng = np.random.default_rng(12)
    U = np.rint(rng.standard_normal((200, 3)))
    rows = Rows(np.repeat(U, 2, axis=0), np.tile([1.0, -1.0], 200), np.full(400, 0.01))
    rows = Rows(rows.U + 0.4 * rows.y[:, None], rows.y, rows.c)
    check_path(path(rows, graph_weights(3, 5)))


def test_a_problem_that_was_given_up_does_not_stop_its_chain(monkeypatch):
    """Hardly a signal, one to fifty: all rows are near the margin, and the zone is too large."""
    monkeypatch.setattr(policy, "TALL", 4000)
    rng = np.random.default_rng(13)
    y = np.where(rng.random(6001) < 0.02, 1.0, -1.0)
    rows = Rows(rng.standard_normal((6001, 3)), y, np.full(6001, 1e-3))
    check_path(path(rows, [np.ones(3), 1.5 * np.ones(3), 2.0 * np.ones(3)]))


def test_a_path_on_many_rows_as_it_comes():
    """No constant is changed here: the first problem is screened, the others begin at it."""
    batch = path(rows_of(policy.TALL + 7, 6, seed=14, signal=0.6), graph_weights(6, 4))
    solutions = solve(batch)
    for b, solution in enumerate(solutions):
        assert check_honest(seen(batch, b), solution, feasible=FEASIBLE) <= TOL
        assert solution.converged
    check_same(batch, 3, solutions[3], plain(batch, 3), atol=1e-8)


@BOTH_WAYS
def test_warm_rows_as_they_come(compiled):
    rows = rows_of(policy.WARM_ROWS + 100, 5, seed=15)
    check_path(path(rows, graph_weights(5, 6)), compiled)


@given(
    seed=st.integers(0, 10_000),
    n=st.integers(6, 120),
    r=st.integers(1, 6),
    cost=st.floats(-3.0, 3.0),
    name=st.sampled_from(list(ROUTES)),
    jump=st.floats(0.0, 2.0),
)
def test_random_chains_equal_single_problems(seed, n, r, cost, name, jump):
    rows = rows_of(n, r, seed=seed, signal=(seed % 3) / 2, cost=10**cost)
    rng = np.random.default_rng(seed)
    scales = [10 ** rng.uniform(-jump / 2, jump / 2, r) for _ in range(4)]
    batch = path(rows, scales)
    with pytest.MonkeyPatch.context() as monkeypatch:
        take_route(monkeypatch, name)
        solutions = solve(batch)
    for b, solution in enumerate(solutions):
        assert check_honest(seen(batch, b), solution, feasible=FEASIBLE) <= TOL
        check_within_certificates(solution, plain(batch, b))


@pytest.mark.torture
@BOTH_WAYS
def test_a_thousand_chains_are_honest_and_nearly_all_certified(
    compiled, monkeypatch, first_seed, card
):
    """Hostile rows, metrics at random, every route in turn."""
    names, certified, n_problems = list(ROUTES), 0, 0
    for seed in range(first_seed, first_seed + 1000):
        problem = random_problem(20_000 + seed, decades=4.0)
        n, r = problem.U.shape
        if n * r > 60_000 or r == 0:
            continue
        rng = np.random.default_rng(seed)
        rows = Rows(problem.U, problem.y, problem.c)
        batch = path(rows, [10 ** rng.uniform(-0.5, 0.5, r) for _ in range(3)])
        with monkeypatch.context() as patched:
            take_route(patched, names[seed % len(names)])
            solutions = solve(batch, compiled)
        for b, solution in enumerate(solutions):
            check_honest(seen(batch, b), solution, feasible=FEASIBLE)
            card.add("chains of problems", "certified" if solution.converged else "admitted")
            certified += solution.converged
            n_problems += 1
    assert certified >= 0.995 * n_problems


# ---------------------------------------------------------------- neighbors that do not help


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


@pytest.mark.parametrize(
    ("similar", "compiled"),
    [(0.0, False), (np.inf, False), pytest.param(np.inf, True, marks=NEEDS_NUMBA)],
)
@pytest.mark.parametrize("apart", [True, False])
@pytest.mark.parametrize("name", ODD)
def test_a_neighbor_that_has_nothing_in_common_does_no_harm(
    name, apart, similar, compiled, monkeypatch
):
    monkeypatch.setattr(policy, "SIMILAR", similar)
    rows = rows_of(150, seed=2, apart=apart)
    batch = path(rows, _with_neighbor(graph_weights(4, 6), np.array(ODD[name])))
    for b, (solution, expected) in enumerate(
        zip(solve(batch, compiled), alone(batch, compiled), strict=True)
    ):
        check_honest(seen(batch, b), solution, feasible=FEASIBLE)
        assert solution.converged == expected.converged
        check_within_certificates(solution, expected)


@BOTH_WAYS
def test_a_neighbor_that_cannot_be_solved_does_no_harm(compiled):
    """Its numbers overflow; the others begin at the last one that was solved."""
    batch = path(rows_of(150, seed=3), _with_neighbor(graph_weights(4, 6), np.full(4, 1e160)))
    solutions, expected = solve(batch, compiled), alone(batch)
    for b, solution in enumerate(solutions):
        assert np.isfinite(solution.coef).all()
        assert solution.converged == (solution.gap <= TOL)
        if batch.scale[b].max() < 1e100:
            assert check_honest(seen(batch, b), solution, feasible=FEASIBLE) <= TOL
            check_same(batch, b, solution, expected[b])
    assert not solutions[2].converged
    assert not solutions[5].converged


# ---------------------------------------------------------------- as estimators use them


@pytest.mark.filterwarnings("ignore::marginfold.errors.ExhaustedWarning")
@BOTH_WAYS
@pytest.mark.parametrize("cost", [1.0, 100.0])
def test_company_does_not_change_a_bit(compiled, cost):
    """Later components magnify every difference: only equal bits give equal searches."""
    rng = np.random.default_rng(8)
    X = rng.standard_normal((150, 6))
    y = np.where(X[:, 0] + rng.standard_normal(150) > 0, "a", "b")
    weights, solver = np.logspace(-2, 2, 6), InteriorPoint(compiled=compiled)
    model = LSVA(n_components=5, C=cost, solver=solver)
    for weight, fitted in zip(weights, model.fit_path(X, y, weights), strict=True):
        single = LSVA(n_components=5, C=cost, graph_weight=weight, solver=solver).fit(X, y)
        assert (fitted.components_ == single.components_).all()


@BOTH_WAYS
@pytest.mark.parametrize(
    "weights", [np.logspace(-3, 3, 8), [1e-8, 1e8, 1e-8, 1.0]], ids=["small steps", "jumps"]
)
def test_a_path_over_graph_weights_is_made_of_single_fits(weights, compiled):
    rng = np.random.default_rng(21)
    y = np.arange(180) % 3
    X = rng.standard_normal((180, 5)) + rng.standard_normal((3, 5))[y]
    solver = Automatic(tol=1e-10, compiled=compiled)
    fits = LSVA(n_components=3, solver=solver).fit_path(X, y, graph_weight=weights)
    assert len(fits) == len(weights)
    for weight, fitted in zip(weights, fits, strict=True):
        single = LSVA(n_components=3, solver=solver, graph_weight=weight).fit(X, y)
        assert fitted.gap_.max() <= 1e-10
        assert_allclose(fitted.components_, single.components_, atol=1e-6)
        assert_allclose(fitted.intercepts_, single.intercepts_, atol=1e-5)


@BOTH_WAYS
def test_a_long_chain_reports_its_problems_and_can_be_cancelled(compiled, monkeypatch):
    monkeypatch.setattr(interior_point, "LONG_WORK", 3000)
    reported = []

    def cancel(event):
        reported.append((event.stage, event.done, event.total))
        if event.done >= 4:
            event.cancel()

    with watch(cancel), pytest.raises(CancelledError, match="problems"):
        solve(path(rows_of(), graph_weights(4, 8)), compiled)
    assert reported == [("problems", b, 8) for b in range(5)]
