"""Coordinate descent with Newton steps: against explicit matrices and the interior point method."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module

import numpy as np
import pytest
import scipy.linalg
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from svm.judging import TOL, check_honest, check_within_certificates, chosen, seen
from svm.random_problems import random_batch, random_problem

from marginfold import LSVA, LowRankKernel
from marginfold.errors import CancelledError
from marginfold.linalg.tall import SharedRows
from marginfold.runtime.jit import VARIABLE, compiling_by_own_work
from marginfold.runtime.progress import watch
from marginfold.svm import Automatic, InteriorPoint, SVMBatch
from marginfold.svm import coordinate_descent as descent
from marginfold.svm.interior_point import NEWTON_SECONDS
from marginfold.svm.problem import single

pytest.importorskip("numba")
sweeps = import_module("marginfold.svm.sweeps")

COMPILED = Automatic(tol=TOL, compiled=True)
PLAIN = InteriorPoint(tol=TOL, compiled=False)


def descend(batch, b=0, *, start=None):
    """Return the solution of one problem, its intercept that of the rows as given."""
    with np.errstate(all="ignore"):
        found = descent.descend(sweeps, batch.problem(b), tol=TOL, start=start)
    return None if found is None else batch.problem(b).uncentred(found)


def batch_of(n, r, *, n_deflated=0, n_problems=1, cost=1.0, seed=0, apart=0.5):
    """Problems of the same labels and costs on rows of very unequal columns."""
    rng = np.random.default_rng([71, seed])
    y = rng.permutation(np.where(np.arange(n) % 3, 1.0, -1.0))
    U = rng.standard_normal((n, r)) / np.sqrt(r) + 0.3
    U[:, 0] += apart * y
    scale = 10 ** rng.uniform(-0.5, 0.5, (n_problems, r))
    deflated = np.zeros((n_problems, r, n_deflated))
    for N in deflated:
        N[:] = scipy.linalg.qr(rng.standard_normal((r, n_deflated)), mode="economic")[0]
    c = cost * rng.uniform(0.5, 2.0, n)
    signs, costs = (np.tile(part, (n_problems, 1)) for part in (y, c))
    return SVMBatch(SharedRows(U), signs, costs, scale, deflated)


def explicit(batch, b=0):
    """Return the rows of a problem as they are in its metric, without what is deflated."""
    N = batch.deflated[b]
    return (batch.rows.features * batch.scale[b]) @ (np.eye(len(N)) - N @ N.T)


def check_state(point, batch):
    """What the sweeps keep up to date must follow from the multipliers."""
    X, y = explicit(batch), batch.signs[0]
    assert_allclose(point.direction, X.T @ (y * point.a), atol=1e-11 * (1 + np.abs(point.a).sum()))
    assert_allclose(point.sizes, (X**2).sum(axis=1), atol=1e-12 * point.sizes.max())


@pytest.mark.parametrize("n_deflated", [0, 3])
@pytest.mark.parametrize("clear", [np.inf, 0.3])
def test_sweeps_are_those_of_the_explicit_dual_problem(n_deflated, clear):
    batch = batch_of(60, 8, n_deflated=n_deflated)
    point = descent._Descent(sweeps, batch.problem(0))
    X, y, c = explicit(batch), batch.signs[0], batch.costs[0]
    size = descent.BIAS_SHARE * point.sizes.mean()
    Q = np.outer(y, y) * (X @ X.T + size)  # the bias is one more feature
    a = np.zeros(60)
    for _ in range(5):
        point.shrink_above = clear
        before = point.order[: point.active].copy()
        point.sweep(1)
        assert_array_equal(np.sort(point.order), np.arange(60))
        assert set(point.order[: point.active]) <= set(before)
        left_out = set(before) - set(point.order[: point.active])
        if clear == np.inf:
            assert not left_out
            for i in point.order:
                a[i] = np.clip(a[i] + (1.0 - Q[i] @ a) / Q[i, i], 0.0, c[i])
            assert_allclose(point.a, a, atol=1e-10)
        assert all(point.a[i] in (0.0, c[i]) for i in left_out)
        check_state(point, batch)
        assert point.bias[0] == pytest.approx(size * (y @ point.a), abs=1e-10)


def test_visits_are_counted_row_by_row():
    point = descent._Descent(sweeps, batch_of(60, 8).problem(0))
    visited = 0
    for n_sweeps in range(1, 6):
        visited += point.active
        point.sweep(1)
        assert (point.n_sweeps, point.n_visits) == (n_sweeps, visited)
    assert visited < 5 * 60


def test_the_bias_moves_by_the_imbalance_and_its_size_doubles_while_that_hardly_shrinks():
    """Hestenes and Powell's method of multipliers, whose penalty ends at the mean length."""
    batch = batch_of(90, 12)
    point = descent._Descent(sweeps, batch.problem(0))
    y, mean, size, moved = batch.signs[0], point.sizes.mean(), point.bias_size, np.inf
    for share in (1.0, 0.9, 0.3, 0.2, 0.19, 0.18, 0.17, 0.16, 0.15, 0.14):
        point.a[:] = np.where(y > 0, share * batch.costs[0], 0.0)
        bias, move = point.bias[0], size * (y @ point.a)
        if abs(move) > max(descent.SETTLED, descent.SHRINKING * moved):
            size = min(2.0 * size, mean)
        moved = abs(move)
        assert point.move_bias() == pytest.approx(moved)
        assert point.bias[0] == pytest.approx(bias + move)
        assert point.bias_size == pytest.approx(size)
    assert size == pytest.approx(mean)


def test_the_order_of_rows_is_random_and_repeats_itself():
    orders = []
    for _ in range(2):
        seed, order, seen = np.zeros(1, dtype=np.uint64), np.arange(7), []
        for _ in range(7000):
            sweeps._shuffle(order, 7, seed)
            seen.append(order.copy())
        orders.append(np.array(seen))
    assert_array_equal(*orders)
    counts = np.array(
        [[np.count_nonzero(orders[0][:, k] == i) for i in range(7)] for k in range(7)]
    )
    assert (np.abs(counts - 1000) < 6 * np.sqrt(1000)).all()


@pytest.mark.parametrize("n_deflated", [0, 2])
@pytest.mark.parametrize("n_sweeps", [1, 2, 5])
def test_a_newton_step_that_meets_bounds_gains_all_the_same(n_sweeps, n_deflated):
    batch = batch_of(120, 150, n_deflated=n_deflated, cost=3.0)
    point = descent._Descent(sweeps, batch.problem(0))
    point.sweep(n_sweeps)
    X, y, free = explicit(batch), batch.signs[0], point.is_free
    multiplier = point.bias[0] - point.bias_size * (y @ point.a)

    def value(a):
        u = X.T @ (y * a)
        return a.sum() - 0.5 * u @ u - multiplier * (y @ a) - 0.5 * point.bias_size * (y @ a) ** 2

    before = point.a.copy()
    free_rows = X[free] * y[free, None]
    found = point._newton_step(np.flatnonzero(free), free_rows, free_rows @ free_rows.T)
    assert found == (False, True)
    assert value(point.a) > value(before)
    assert_array_equal(point.a[~free], before[~free])
    assert ((point.a >= 0) & (point.a <= batch.costs[0])).all()
    assert point.bias[0] == pytest.approx(multiplier + point.bias_size * (y @ point.a), abs=1e-9)
    check_state(point, batch)


@pytest.mark.parametrize(("n", "r", "cost"), [(120, 150, 3.0), (60, 8, 30.0)])
@pytest.mark.parametrize("n_sweeps", [1, 2, 5])
def test_a_newton_step_that_meets_bounds_is_the_longest_share_that_gains(n, r, cost, n_sweeps):
    """Of the step that the ridge leaves; with more free rows than dimensions the ridge grows."""
    batch = batch_of(n, r, cost=cost)
    point = descent._Descent(sweeps, batch.problem(0))
    point.sweep(n_sweeps)
    y, c, free, before = batch.signs[0], batch.costs[0], point.is_free, point.a.copy()
    X = explicit(batch) * y[:, None]
    Q = X @ X.T + point.bias_size * np.outer(y, y)
    slopes = 1.0 - X @ (X.T @ before) - point.bias[0] * y
    system, unit = Q[np.ix_(free, free)], point.sizes.mean() * np.eye(np.count_nonzero(free))

    def shares():
        for ridge in descent.RIDGE * descent.RIDGE_GROWTH ** np.arange(descent.RIDGES):
            step = np.linalg.solve(system + ridge * unit, slopes[free])
            yield from (share * step for share in descent.SHARES)

    changes = (np.clip(before[free] + part, 0.0, c[free]) - before[free] for part in shares())
    expected = next(d for d in changes if slopes[free] @ d - 0.5 * d @ system @ d > 0)
    rows = X[free]
    assert point._newton_step(np.flatnonzero(free), rows, rows @ rows.T) == (False, True)
    assert_allclose(point.a[free] - before[free], expected, atol=1e-9 * c.max())


def test_newton_steps_leave_rows_at_their_bounds_and_the_others_on_the_margin():
    batch = batch_of(120, 150, n_deflated=2, cost=3.0)
    point = descent._Descent(sweeps, batch.problem(0))
    assert point.sweep_until_stable()
    for _ in range(5):  # until the sides are in balance too
        point.sweep(20)
        point.move_bias()
    free = point.is_free
    assert point.newton_steps()
    check_state(point, batch)
    assert (point.is_free <= free).all()  # who meets a bound stays there until the next sweep
    excess = batch.signs[0] * (explicit(batch) @ point.direction + point.bias[0]) - 1.0
    assert_allclose(excess[point.is_free], 0.0, atol=1e-6)
    assert batch.signs[0] @ point.a == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("n_sweeps", [1, 2, 5])
@pytest.mark.parametrize("seed", range(3))
def test_newton_steps_end_with_all_rows_on_the_margin_that_met_no_bound(seed, n_sweeps):
    """After few sweeps many meet one: those that did must not hold the others back."""
    batch = batch_of(120, 150, cost=3.0, seed=seed)
    point = descent._Descent(sweeps, batch.problem(0))
    point.sweep(n_sweeps)
    free = point.is_free
    point.newton_steps()
    check_state(point, batch)
    assert (point.is_free <= free).all()
    assert point.is_free.any()
    excess = batch.signs[0] * (explicit(batch) @ point.direction + point.bias[0]) - 1.0
    assert_allclose(excess[point.is_free], 0.0, atol=1e-9)


def test_a_newton_step_within_the_bounds_is_exact():
    batch = batch_of(200, 30, cost=10.0)
    solution = InteriorPoint(tol=1e-12, compiled=False).solve_batch(batch)[0]
    point = descent._Descent(sweeps, batch.problem(0))
    start = solution.dual.copy()
    free = (start > 1e-6) & (start < batch.costs[0] - 1e-6)
    start[free] = (0.98 * start + 0.01 * batch.costs[0])[free]
    start[~free] = np.where(start > 1.0, batch.costs[0], 0.0)[~free]
    point.begin_at(start)
    assert point.newton_steps()
    assert point.largest_violation() < 1e-5
    assert_allclose(point.a, solution.dual, atol=1e-5)


SHAPES = {
    "tall": batch_of(900, 110),
    "tall, deflated": batch_of(900, 110, n_deflated=3),
    "square": batch_of(150, 140, n_deflated=1, cost=10.0),
    "wide": batch_of(40, 300, cost=100.0),
    "apart": batch_of(400, 120, apart=6.0, cost=100.0),
    "small costs": batch_of(300, 120, cost=1e-3),
    "large costs": batch_of(300, 120, cost=1e3),
}


@pytest.mark.parametrize("name", SHAPES)
def test_every_shape_is_solved_as_by_the_interior_point_method(name):
    batch = SHAPES[name]
    expected = PLAIN.solve_batch(batch)[0]
    found = descend(batch)
    if name == "large costs":
        assert found is None or found.converged
    if found is not None:
        assert found.converged
        check_within_certificates(found, expected)
        assert np.abs(batch.deflated[0].T @ found.coef).max(initial=0.0) <= 1e-12
    solution = COMPILED.solve_batch(batch)[0]
    check_within_certificates(solution, expected)
    assert found is not None or name == "large costs"


@pytest.mark.parametrize("seed", range(60))
def test_random_problems_end_certified_or_given_up(seed):
    problem = random_problem(seed + 900, decades=3.0)
    found = descend(single(problem.U, problem.y, problem.c))
    if found is not None:
        check_honest(problem, found)
        if found.converged:
            expected = PLAIN.solve(problem.U, problem.y, problem.c)
            check_within_certificates(found, expected)


@pytest.mark.parametrize("share", [0.5, 2.0])
def test_sweeps_are_compiled_where_the_newton_matrices_would_take_long(share, monkeypatch):
    """One for each problem; the number of iterations tells whose answer it is."""
    batch = batch_of(60, 110, n_problems=2)
    work = NEWTON_SECONDS * 2 * 60 * 110**2
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setattr("marginfold.runtime.jit.WORTH", share * work)
    with compiling_by_own_work():
        found = Automatic(tol=TOL, compiled="auto").solve_batch(batch)
    expected = Automatic(tol=TOL, compiled=share < 1.0).solve_batch(batch)
    other = Automatic(tol=TOL, compiled=share > 1.0).solve_batch(batch)
    assert [part.n_iter for part in found] == [part.n_iter for part in expected]
    assert [part.n_iter for part in found] != [part.n_iter for part in other]


def balanced(batch, dual):
    """Return multipliers whose heavier side is reduced, as those of a certified solution are."""
    positive = batch.signs[0] > 0
    sides = dual[positive].sum(), dual[~positive].sum()
    return dual * np.where(positive, min(sides) / sides[0], min(sides) / sides[1])


@pytest.mark.parametrize("seed", range(6))
def test_a_start_anywhere_ends_at_the_same_solution(seed):
    batch = batch_of(500, 110, n_deflated=2, seed=seed)
    rng = np.random.default_rng(seed)
    cold = descend(batch)
    scattered = rng.choice(500, (2, 60), replace=False)
    starts = {
        "solution": cold.dual,
        "random": balanced(batch, batch.costs[0] * rng.random(500)),
        "few": balanced(batch, np.where(np.isin(np.arange(500), scattered), batch.costs[0], 0.0)),
        "bounds": balanced(batch, batch.costs[0]),
        "zero": np.zeros(500),
    }
    for start in starts.values():
        given = start.copy()
        warm = descend(batch, start=start)
        assert_array_equal(start, given)
        assert warm.converged
        assert_allclose(warm.coef, cold.coef, atol=1e-9)
    assert descend(batch, start=cold.dual).n_iter < cold.n_iter


def test_problems_alike_begin_where_the_last_one_ended():
    """Those with the same labels and costs, among others: fewer sweeps, the same solutions."""
    batch = batch_of(500, 110, n_problems=4)
    other = replace(
        batch,
        signs=batch.signs * np.array([1, -1, 1, -1])[:, None],
        scale=batch.scale[:1] * (1.0 + 0.01 * np.arange(4)[:, None]),
    )
    found = COMPILED.solve_batch(other)
    for b, (solution, expected) in enumerate(zip(found, PLAIN.solve_batch(other), strict=True)):
        assert solution.converged
        check_within_certificates(solution, expected)
        alone = COMPILED.solve_batch(chosen(other, [b]))[0]
        assert solution.n_iter < alone.n_iter if b >= 2 else solution.n_iter == alone.n_iter


def test_sides_of_unequal_cost_all_within_the_margin():
    """Nothing is free at first: the bias alone must bring the sides into balance."""
    batch = batch_of(90, 120)
    unequal = replace(batch, costs=np.where(batch.signs > 0, 3e-4, 1e-4))
    found = descend(unequal)
    assert found is not None
    assert found.converged
    check_honest(seen(unequal), found)


def test_sides_of_equal_cost_all_within_the_margin_are_done_at_once():
    """All rows are at their costs and in balance: there is nothing to step to."""
    batch = batch_of(90, 120)
    signs = np.where(np.arange(90) % 2, 1.0, -1.0)[None]
    equal = replace(batch, signs=signs, costs=np.full((1, 90), 1e-4))
    found = descend(equal)
    assert found is not None
    assert found.converged
    pull = signs[0] @ explicit(equal) * 1e-4
    assert_allclose(found.coef, pull, rtol=1e-9, atol=1e-12 * np.abs(pull).max())
    assert found.n_iter == 3  # all go to their costs, those that stay are left out, all once more


@pytest.mark.parametrize("U", [np.zeros((40, 120)), np.full((40, 120), 1e200)])
def test_rows_without_length_or_beyond_numbers_are_left_to_others(U):
    y = np.where(np.arange(40) % 2, 1.0, -1.0)
    U = U * np.where(np.arange(40) % 4 < 2, 1.0, -1.0)[:, None]
    with np.errstate(over="ignore"):
        batch = single(U, y, 1.0)
    assert descend(batch) is None


def test_what_takes_too_many_sweeps_is_given_up():
    """Within the limit of visits, which is one of rows and not of sweeps."""
    batch = batch_of(2000, 105, cost=1e6, apart=0.1)
    point = descent._Descent(sweeps, batch.problem(0))
    assert not point.sweep_until_stable()
    assert point.n_visits <= descent.SWEEPS_PER_DIMENSION[0] * 105 * 2105 + 2000
    assert descend(batch) is None
    assert COMPILED.solve_batch(batch)[0].converged


def test_what_takes_many_sweeps_is_not_given_up_once_most_rows_are_at_their_bounds():
    rng = np.random.default_rng(1)
    y = np.where(np.arange(3000) % 2, 1.0, -1.0)
    X = rng.standard_normal((3000, 200)) * np.geomspace(1.0, 0.05, 200)
    X[:, 0] += 0.5 * y
    batch = single(X, y, 1.0)
    point = descent._Descent(sweeps, batch.problem(0))
    assert point.sweep_until_stable()
    assert point.n_visits > descent.SWEEPS_PER_DIMENSION[0] * 200 * 3200
    assert descend(batch).converged


def test_more_free_rows_than_an_active_set_may_have_are_left_to_newton_steps():
    """Sweeps alone would need thousands of visits to every row to bring the last of them to 0."""
    rng = np.random.default_rng(1)
    y = np.where(np.arange(40_000) % 2, 1.0, -1.0)
    X = 0.15 * rng.standard_normal((40_000, 105))
    X[:, 0] += 0.045 * y
    batch = single(X, y, 1.0)
    problem = batch.problem(0)
    point = descent._Descent(sweeps, problem)
    assert point.sweep_until_stable()
    assert point.n_free > problem.most_free
    found = descend(batch)
    assert found.converged
    assert found.n_iter < 2 * point.n_sweeps


@pytest.mark.parametrize("seed", range(3))
def test_rows_of_the_other_label_without_cost_change_nothing(seed):
    """They are on the wrong side, which is nobody's concern; the mean of the rows stays."""
    batch = batch_of(200, 110, seed=seed)
    rows, idle = batch.rows.features + batch.rows.centre, np.zeros_like(batch.costs)
    doubled = replace(
        batch,
        rows=SharedRows(np.vstack([rows, rows])),
        signs=np.hstack([batch.signs, -batch.signs]),
        costs=np.hstack([batch.costs, idle]),
    )
    expected, found = descend(batch), descend(doubled)
    assert found.converged
    assert not found.dual[200:].any()
    assert_allclose(found.coef, expected.coef, atol=1e-8)
    assert found.objective == pytest.approx(expected.objective, rel=1e-10)


@pytest.mark.parametrize("power", [-30, 30])
@pytest.mark.parametrize(("n", "r"), [(150, 120), (300, 105)])
def test_the_unit_of_the_rows_does_not_change_a_bit(n, r, power):
    """Powers of 2: the same steps, weights smaller by the unit and multipliers by its square."""
    batch, unit = batch_of(n, r, cost=10.0), 2.0**power
    centred = replace(batch, rows=SharedRows(batch.rows.features))
    other = replace(centred, scale=unit * centred.scale, costs=centred.costs / unit**2)
    first, second = descend(centred), descend(other)
    assert second.n_iter == first.n_iter
    assert_array_equal(second.coef * unit, first.coef)
    assert_array_equal(second.dual * unit**2, first.dual)
    assert second.gap == first.gap


@pytest.mark.parametrize("seed", range(4))
def test_a_row_twice_is_a_row_of_twice_the_cost(seed):
    batch = batch_of(300, 110, seed=seed)
    twice = np.append(np.arange(300), np.arange(40))
    rows = batch.rows.features + batch.rows.centre
    doubled = SVMBatch(
        SharedRows(rows[twice]),
        batch.signs[:, twice],
        batch.costs[:, twice],
        batch.scale,
        batch.deflated,
    )
    costs = batch.costs.copy()
    costs[:, :40] *= 2.0
    first = descend(replace(batch, costs=costs))
    second = descend(doubled)
    assert first.converged
    assert second is None or second.converged
    solution = second or COMPILED.solve_batch(doubled)[0]
    assert_allclose(solution.coef, first.coef, atol=1e-7)
    assert solution.objective == pytest.approx(first.objective, rel=1e-10)


def test_the_problems_of_a_batch_are_those_of_single_problems():
    batch = random_batch(n_problems=4, n_deflated=2, seed=3)
    for b in range(4):
        found, alone = descend(batch, b), descend(chosen(batch, [b]))
        assert (found is None) == (alone is None)
        if found is not None:
            assert_array_equal(found.coef, alone.coef)
            check_honest(seen(batch, b), found)


def test_long_work_reports_its_sweeps_and_can_be_cancelled(monkeypatch):
    monkeypatch.setattr(descent, "LONG_WORK", 10)
    stages = []

    def cancel(progress):
        stages.append((progress.stage, progress.done))
        if len(stages) == 3:
            progress.cancel()

    with pytest.raises(CancelledError), watch(cancel):
        descend(SHAPES["tall"])
    assert stages == [("sweeps", 0), ("sweeps", 1), ("sweeps", 2)]


@pytest.mark.filterwarnings("ignore::marginfold.errors.ExhaustedWarning")
@pytest.mark.parametrize("cost", [0.1, 10.0])
def test_company_does_not_change_a_bit(cost):
    """Later components magnify every difference: only equal bits give equal searches."""
    rng = np.random.default_rng(8)
    X = rng.standard_normal((300, 6))
    y = np.where(X[:, 0] + rng.standard_normal(300) > 0, "a", "b")
    weights, kernel = np.logspace(-2, 2, 5), LowRankKernel("rbf", rank=110)
    model = LSVA(n_components=3, C=cost, kernel=kernel, solver=COMPILED)
    for weight, fitted in zip(weights, model.fit_path(X, y, weights), strict=True):
        alone = clone(model).set_params(graph_weight=weight).fit(X, y)
        assert_array_equal(fitted.directions_, alone.directions_)
