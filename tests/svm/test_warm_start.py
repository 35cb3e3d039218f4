"""Chains of similar problems: beginning at another solution never changes an answer."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace

import numpy as np
import pytest
import scipy.linalg
from hypothesis import given
from hypothesis import strategies as st
from marginfold.svm.crossover import from_face
from numpy.testing import assert_allclose
from svm.random_problems import Problem, judge, random_problem

from marginfold.linalg.tall import SharedRows
from marginfold.svm import InteriorPoint, SVMBatch
from marginfold.svm import screening as sifting
from marginfold.svm import warm_start as chains

TOL = 1e-8
HONEST = 1e-9
SOLVER = InteriorPoint(tol=TOL)
SIDE_BY_SIDE = InteriorPoint(tol=TOL, compiled=False)
"""What is not compiled solves the problems of short chains in batches."""

ROUTES = {
    "faces": {},
    "faces, side by side": {},
    "faces, every miss counts": {"MISSES": 1},
    "faces, side by side, every miss counts": {"MISSES": 1},
    "points nearby only": {"MISSES": 0},
    "sifting from the last": {"WARM_ROWS": 20},
    "sifting only": {"WARM_ROWS": 20, "MISSES": 0},
    "sifting, narrow zones": {"WARM_ROWS": 20, "MISSES": 0, "FEWEST": 0, "FIRST_WIDTH": 1e-3},
    "sifting, zones too large": {"WARM_ROWS": 20, "MISSES": 0, "LARGEST_ZONE": 0.05},
    "sifting cold": {"COLD_ROWS": 20, "WARM_ROWS": 20},
    "sifting cold, given up": {"COLD_ROWS": 20, "WARM_ROWS": 20, "LARGEST_ZONE": 0.01},
}
"""Constants under which small problems go the ways of large ones."""


def take_route(monkeypatch, name):
    """Return the solver that goes this way."""
    for constant, value in ROUTES[name].items():
        monkeypatch.setattr(chains, constant, value)
    monkeypatch.setattr(sifting, "SAMPLE_ROWS", 60)
    monkeypatch.setattr(sifting, "SMALL_CLASS", 15)
    return SIDE_BY_SIDE if "side by side" in name else SOLVER


@pytest.fixture(params=ROUTES)
def solver(request, monkeypatch):
    return take_route(monkeypatch, request.param)


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


def solve(batch, solver=SOLVER):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return solver.solve_batch(batch)


def check_certified(batch, b, solution, problem_rows: Rows):
    """Recompute both objectives on all rows, in extended precision."""
    N = batch.deflated[b].astype(np.longdouble)
    X = problem_rows.U.astype(np.longdouble) * batch.scale[b]
    X = X - (X @ N) @ N.T
    problem = Problem("", X, batch.signs[b], batch.costs[b])
    truth = judge(problem, solution.coef, solution.intercept, solution.dual)
    allowed = HONEST + truth.rounding
    assert (solution.dual >= 0).all()
    assert (solution.dual <= batch.costs[b]).all()
    assert truth.balance <= 1e-12
    assert -allowed <= truth.gap
    assert truth.gap - allowed <= solution.gap * (1 + 1e-3)
    assert solution.objective == pytest.approx(truth.objective, rel=allowed + truth.caution)
    assert solution.converged == (solution.gap <= TOL)


def check_same(batch, b, solution, expected, atol=1e-7):
    size = max(1.0, float(np.abs(expected.coef).max()))
    assert solution.converged
    assert solution.objective == pytest.approx(expected.objective, rel=1e-9)
    assert_allclose(solution.coef, expected.coef, atol=atol * size)
    assert solution.intercept == pytest.approx(expected.intercept, abs=10 * atol * size)
    w, v = (batch.scale[b] * s.coef for s in (solution, expected))
    if np.linalg.norm(v) > 1e-6:
        assert_allclose(w / np.linalg.norm(w), v / np.linalg.norm(v), atol=atol)


def check_path(rows, batch, solver=SOLVER):
    for b, solution in enumerate(solve(batch, solver)):
        check_certified(batch, b, solution, rows)
        check_same(batch, b, solution, _plain(rows, batch, b))


def _plain(rows, batch, b):
    """Solve the problem on explicit rows without deflation or scale, and without a chain."""
    N = batch.deflated[b]
    V = scipy.linalg.null_space(N.T) if N.any() else np.eye(len(N))
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(chains, "COLD_ROWS", 10**9)
        found = SOLVER.solve(rows.U * batch.scale[b] @ V, batch.signs[b], batch.costs[b])
    assert found.converged
    return replace(found, coef=V @ found.coef)


@pytest.mark.parametrize(
    ("name", "sifted"), [("faces", 0), ("sifting only", 4), ("sifting cold", 5)]
)
def test_the_routes_are_the_ones_that_their_names_say(name, sifted, monkeypatch):
    calls = []

    def counted(*args, **options):
        calls.append(options["starts"])
        return sifting.sift(*args, **options)

    take_route(monkeypatch, name)
    monkeypatch.setattr(chains, "sift", counted)
    monkeypatch.setattr(chains, "MISSES", 0)
    solve(path(rows_of(), graph_weights(4, 5)))
    assert len(calls) == sifted


PATHS = {
    "overlapping": rows_of(),
    "apart": rows_of(apart=True, seed=1),
    "no signal": rows_of(signal=0.0, seed=2),
    "one to 50": rows_of(share=0.02, seed=3),
    "small costs": rows_of(cost=1e-4, seed=4),
    "large costs": rows_of(cost=1e3, seed=5),
}


@pytest.mark.parametrize("name", PATHS)
def test_a_path_is_made_of_its_single_solutions(name, solver):
    rows = PATHS[name]
    check_path(rows, path(rows, graph_weights(4, 8)), solver)


def test_a_path_in_small_steps_stays_on_its_face():
    """Neighbors share their face: most solutions come without an iteration."""
    rows = rows_of(seed=6)
    batch = path(rows, graph_weights(4, 30, decades=0.01))
    solutions = solve(batch)
    assert sum(s.n_iter == 0 for s in solutions) >= 15
    for b in (1, 14, 29):
        check_same(batch, b, solutions[b], _plain(rows, batch, b))


@pytest.mark.parametrize("order", ["forth", "back", "shuffled", "repeated"])
def test_the_order_of_a_path_does_not_matter(order, solver):
    rows = rows_of(seed=7)
    scales = graph_weights(4, 6)
    index = {
        "forth": np.arange(6),
        "back": np.arange(6)[::-1],
        "shuffled": np.random.default_rng(0).permutation(6),
        "repeated": np.array([2, 2, 5, 2, 0, 0]),
    }[order]
    single = {k: _plain(rows, path(rows, scales), k) for k in set(index.tolist())}
    batch = path(rows, [scales[k] for k in index])
    for b, solution in enumerate(solve(batch, solver)):
        check_same(batch, b, solution, single[index[b]])


def test_jumps_between_metrics_that_have_nothing_in_common(solver):
    rows = rows_of(r=5, seed=8)
    scales = [np.where(np.arange(5) == k, 10.0, 0.05) for k in range(5)]
    check_path(rows, path(rows, scales), solver)


def test_deflated_directions_change_along_a_chain(solver):
    """As the components of a subspace do: one more direction is forbidden each time."""
    rows, r = rows_of(r=5, seed=9), 5
    Q = scipy.linalg.qr(np.random.default_rng(9).standard_normal((r, r)))[0]
    deflated = np.zeros((4, r, 3))
    for b in range(4):
        deflated[b, :, :b] = Q[:, :b]
    check_path(rows, path(rows, [np.ones(r)] * 4, deflated), solver)


def test_chains_of_several_labels_and_costs_in_one_batch(solver):
    """Three chains, interleaved: they must not be taken for one."""
    rows = rows_of(seed=10)
    batch = path(rows, [s for s in graph_weights(4, 4) for _ in range(3)])
    signs, costs = batch.signs.copy(), batch.costs.copy()
    signs[1::3] *= -1
    costs[2::3] *= np.random.default_rng(1).uniform(0.1, 5.0, costs.shape[1])
    check_path(rows, replace(batch, signs=signs, costs=costs), solver)


def test_rows_without_cost_take_no_part_in_a_chain(solver):
    rows = rows_of(seed=11)
    idle = np.random.default_rng(2).random(len(rows.y)) < 0.3
    rows = Rows(rows.U, rows.y, np.where(idle, 0.0, rows.c))
    kept = Rows(rows.U[~idle], rows.y[~idle], rows.c[~idle])
    scales = graph_weights(4, 4)
    batch = path(rows, scales)
    for b, solution in enumerate(solve(batch, solver)):
        assert not solution.dual[idle].any()
        check_certified(batch, b, solution, rows)
        check_same(batch, b, solution, _plain(kept, path(kept, scales), b))


def test_many_equal_rows_and_a_bias_with_an_interval(solver):
    rng = np.random.default_rng(12)
    U = np.rint(rng.standard_normal((200, 3)))
    rows = Rows(np.repeat(U, 2, axis=0), np.tile([1.0, -1.0], 200), np.full(400, 0.01))
    rows = Rows(rows.U + 0.4 * rows.y[:, None], rows.y, rows.c)
    check_path(rows, path(rows, graph_weights(3, 5)), solver)


def test_a_problem_that_was_given_up_does_not_stop_its_chain():
    """Hardly a signal, one to fifty: all rows are near the margin, and the zone is too large."""
    rng = np.random.default_rng(13)
    n = chains.COLD_ROWS + 1
    y = np.where(rng.random(n) < 0.02, 1.0, -1.0)
    rows = Rows(rng.standard_normal((n, 3)), y, np.full(n, 1e-3))
    batch = path(rows, [np.ones(3), 1.5 * np.ones(3), 2.0 * np.ones(3)])
    for b, solution in enumerate(solve(batch)):
        assert solution.converged
        check_certified(batch, b, solution, rows)


def test_a_path_on_many_rows_as_it_comes():
    """No constant is changed here: the first problem is sifted, the others begin at it."""
    rows = rows_of(chains.COLD_ROWS + 7, 6, seed=14, signal=0.6)
    batch = path(rows, graph_weights(6, 4))
    solutions = solve(batch)
    for b, solution in enumerate(solutions):
        check_certified(batch, b, solution, rows)
        assert solution.converged
    check_same(batch, 3, solutions[3], _plain(rows, batch, 3))


def test_warm_rows_as_they_come():
    rows = rows_of(chains.WARM_ROWS + 100, 5, seed=15)
    check_path(rows, path(rows, graph_weights(5, 6)))


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
        solutions = solve(batch, take_route(monkeypatch, name))
    for b, solution in enumerate(solutions):
        check_certified(batch, b, solution, rows)
        expected = _plain(rows, batch, b)
        assert solution.converged
        radius = sum(np.sqrt(2 * (s.gap + 1e-12) * s.objective) for s in (solution, expected))
        assert np.linalg.norm(solution.coef - expected.coef) <= radius


@given(seed=st.integers(0, 10_000), share=st.floats(0.0, 1.0))
def test_a_random_face_gives_the_solution_or_nothing(seed, share):
    rows = rows_of(60, 3, seed=seed)
    batch = path(rows, [np.ones(3)])
    rng = np.random.default_rng(seed)
    truth = SOLVER.solve_batch(batch)[0]
    wrong = rng.random(60) < share
    dual = np.where(wrong, rows.c * rng.choice([0.0, 0.5, 1.0], 60), truth.dual)
    found = from_face(batch, 0, dual, tol=TOL)
    if not wrong.any():
        assert found is not None
    if found is not None:
        moved = found.intercept - float(batch.rows.centre @ found.coef)
        check_certified(batch, 0, replace(found, intercept=moved), rows)
        assert_allclose(found.coef, truth.coef, atol=1e-7)


@pytest.mark.torture
def test_a_thousand_chains_are_honest_and_nearly_all_certified(monkeypatch):
    """Hostile rows, metrics at random, every route in turn."""
    names, certified, n_problems = list(ROUTES), 0, 0
    for seed in range(1000):
        problem = random_problem(20_000 + seed, decades=4.0)
        n, r = problem.U.shape
        if n * r > 60_000 or r == 0:
            continue
        rng = np.random.default_rng(seed)
        rows = Rows(problem.U, problem.y, problem.c)
        batch = path(rows, [10 ** rng.uniform(-0.5, 0.5, r) for _ in range(3)])
        with monkeypatch.context() as patched:
            solutions = solve(batch, take_route(patched, names[seed % len(names)]))
        for b, solution in enumerate(solutions):
            check_certified(batch, b, solution, rows)
            certified += solution.converged
            n_problems += 1
    assert certified >= 0.995 * n_problems
