"""The box problem of the twin machine: other solvers, its conditions, its certificate, blocks."""

from __future__ import annotations

from dataclasses import FrozenInstanceError
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import lsq_linear, minimize

from marginfold.errors import SolverError
from marginfold.estimators.plane_problem import PlaneTask
from marginfold.estimators.plane_rows import rest_rows
from marginfold.estimators.twinsvm import MirroredBlocks, Rest, solve_box_qp, whitened
from marginfold.geometry.metric import TikhonovBasis
from marginfold.linalg.tall import Block, LocalBlocks
from marginfold.svm import BlockRows, InteriorPoint, LibSVM, SVMBatch

TOL = 1e-8
SOLVER = InteriorPoint(tol=TOL)
EXACT = InteriorPoint(tol=1e-12)


def primal(U, costs, s):
    return s @ s / 2 + costs @ np.maximum(0.0, 1.0 - U @ s)


def dual(U, a):
    return a.sum() - (U.T @ a) @ (U.T @ a) / 2


def assert_certified(U, costs, solution, tol=TOL):
    """The gap holds on the problem as it was given, for the point that was returned."""
    U, costs = (part.astype(np.longdouble) for part in (U, costs))
    coef, a = (part.astype(np.longdouble) for part in (solution.coef, solution.dual))
    assert solution.converged
    assert solution.gap <= tol
    assert (a >= 0).all()
    assert (a <= costs).all()
    value = primal(U, costs, coef)
    assert 0 <= value - dual(U, a) + 1e-15 * value
    one_rounding = np.finfo(float).eps * costs.max()  # of the margin of the dearest row
    assert value - dual(U, a) <= (solution.gap + 1e-13) * value + one_rounding


def make_problems():
    """Return rows and costs by name."""
    rng = np.random.default_rng(5)
    U = rng.standard_normal((40, 4))
    U[:, 0] += 0.7
    costs = rng.uniform(0.2, 2.0, 40)
    return {
        "plain": (U, costs),
        "many rows": (rng.standard_normal((4000, 3)) + 0.4, np.ones(4000)),
        "many columns": (rng.standard_normal((9, 300)), np.full(9, 0.02)),
        "one row": (np.array([[2.0, 1.0]]), np.array([3.0])),
        "one cheap row": (np.array([[2.0, 1.0]]), np.array([1e-3])),
        "one column": (U[:, :1], costs),
        "no column": (U[:, :0], costs),
        "rows on a line": (np.outer(U[:, 0], [1.0, -2.0, 3.0]), costs),
        "zero rows": (np.vstack([U, np.zeros((6, 4))]), np.append(costs, np.ones(6))),
        "only zero rows": (np.zeros((6, 4)), np.ones(6)),
        "rows without cost": (U, np.where(np.arange(40) % 3, costs, 0.0)),
        "opposite rows": (np.vstack([U, -U]), np.tile(costs, 2)),
        "costs over 16 decades": (U, 10.0 ** rng.uniform(-8, 8, 40)),
        "rows over 8 decades": (U * 10.0 ** rng.uniform(-4, 4, (40, 1)), costs),
        "columns over 8 decades": (U * 10.0 ** np.array([-4.0, -1.0, 2.0, 4.0]), costs),
        "far away": (U + 100.0, costs),
        "separable, huge costs": (np.abs(U) + 0.1, np.full(40, 1e9)),
        "tiny rows": (1e-8 * U, costs),
        "huge rows": (1e8 * U, costs),
    }


PROBLEMS = make_problems()


@pytest.mark.parametrize("name", PROBLEMS)
def test_the_certificate_holds_on_the_given_problem(name):
    U, costs = PROBLEMS[name]
    assert_certified(U, costs, solve_box_qp(U, costs, SOLVER))


@pytest.mark.parametrize("name", ["plain", "many columns", "zero rows", "rows without cost"])
def test_conditions_of_optimality(name):
    """w = U'a; a = 0 outside the margin, a = c inside, 0 < a < c only on it."""
    U, costs = PROBLEMS[name]
    solution = solve_box_qp(U, costs, InteriorPoint(tol=1e-12))
    assert_allclose(solution.coef, U.T @ solution.dual, atol=1e-8)
    margins = U @ solution.coef
    used = costs > 0
    assert_allclose(solution.dual[used & (margins > 1 + 1e-6)], 0.0, atol=1e-8)
    inside = used & (margins < 1 - 1e-6)
    assert_allclose(solution.dual[inside], costs[inside], atol=1e-8)
    free = (solution.dual > 1e-6 * costs) & (solution.dual < (1 - 1e-6) * costs)
    assert_allclose(margins[free], 1.0, atol=1e-7)
    assert_array_equal(solution.dual[~used], 0.0)


@pytest.mark.parametrize("name", ["plain", "many columns", "one row", "one cheap row", "zero rows"])
def test_l_bfgs_b_finds_the_same_point(name):
    U, costs = PROBLEMS[name]
    found = minimize(
        lambda a: -dual(U, a),
        costs / 2,
        jac=lambda a: U @ (U.T @ a) - 1.0,
        bounds=list(zip(np.zeros_like(costs), costs, strict=True)),
        method="L-BFGS-B",
        options={"maxiter": 20000, "maxfun": 40000, "ftol": 1e-15, "gtol": 1e-10},
    )
    solution = solve_box_qp(U, costs, SOLVER)
    assert_allclose(-found.fun, primal(U, costs, solution.coef), rtol=1e-8)
    assert_allclose(U.T @ found.x, solution.coef, atol=1e-5 * np.linalg.norm(solution.coef))


@pytest.mark.parametrize("seed", range(4))
def test_bounded_least_squares_finds_the_same_point(seed):
    """With independent rows the dual is |U'a - U^+ 1|^2 up to a constant: (UU')U^+ 1 = 1."""
    rng = np.random.default_rng(seed)
    U = rng.standard_normal((7, 12)) + 0.3
    costs = 10.0 ** rng.uniform(-3, 0, 7)
    target = np.linalg.lstsq(U, np.ones(7), rcond=None)[0]
    found = lsq_linear(U.T, target, bounds=(0.0, costs), method="bvls", tol=1e-14)
    solution = solve_box_qp(U, costs, InteriorPoint(tol=1e-13))
    assert_allclose(solution.dual, found.x, atol=1e-7)
    assert_allclose(solution.coef, U.T @ found.x, atol=1e-7)


@given(seed=st.integers(0, 10_000), n=st.integers(1, 5), r=st.integers(1, 3))
def test_all_active_sets_of_small_problems(seed, n, r):
    """The best of all 3^n faces of the box whose stationary point lies in the box."""
    rng = np.random.default_rng(seed)
    U = np.rint(2 * rng.standard_normal((n, r)))
    costs = rng.choice([0.1, 0.5, 1.0, 3.0], n)
    best = -np.inf
    for face in product((0, 1, 2), repeat=n):
        free, full = (np.array(face) == k for k in (1, 2))
        a = np.where(full, costs, 0.0)
        if free.any():
            right = 1.0 - U[free] @ (U.T @ a)
            a[free] = np.linalg.lstsq(U[free] @ U[free].T, right, rcond=None)[0]
        if (a >= -1e-12).all() and (a <= costs + 1e-12).all():
            best = max(best, dual(U, a))
    solution = solve_box_qp(U, costs, SOLVER)
    assert_certified(U, costs, solution)
    assert primal(U, costs, solution.coef) == pytest.approx(best, rel=1e-7)


def test_by_hand():
    """One row u: s = min(c, 1 / |u|^2) u."""
    u = np.array([3.0, 4.0])
    for cost, multiplier in ((1.0, 0.04), (0.01, 0.01)):
        solution = solve_box_qp(u[None], np.array([cost]), SOLVER)
        assert_allclose(solution.dual, [multiplier], rtol=1e-7)
        assert_allclose(solution.coef, multiplier * u, rtol=1e-7)


def test_a_row_twice_is_twice_its_cost():
    U, costs = PROBLEMS["plain"]
    twice = solve_box_qp(np.repeat(U, 2, axis=0), np.repeat(costs, 2), InteriorPoint(tol=1e-12))
    heavy = solve_box_qp(U, 2 * costs, InteriorPoint(tol=1e-12))
    assert_allclose(twice.coef, heavy.coef, atol=1e-8)


def test_rows_without_cost_or_entries_change_nothing():
    U, costs = PROBLEMS["plain"]
    plain = solve_box_qp(U, costs, InteriorPoint(tol=1e-12)).coef
    idle = solve_box_qp(
        np.vstack([U, 9.0 * U[:5]]), np.append(costs, np.zeros(5)), InteriorPoint(tol=1e-12)
    )
    assert_allclose(idle.coef, plain, atol=1e-9)
    empty = solve_box_qp(
        np.vstack([U, np.zeros((5, 4))]), np.append(costs, np.ones(5)), InteriorPoint(tol=1e-12)
    )
    assert_allclose(empty.coef, plain, atol=1e-8)
    assert_allclose(empty.dual[-5:], 1.0)


def test_rotations_and_orders_are_followed():
    U, costs = PROBLEMS["plain"]
    rng = np.random.default_rng(0)
    Q = np.linalg.qr(rng.standard_normal((4, 4)))[0]
    order = rng.permutation(len(U))
    plain = solve_box_qp(U, costs, InteriorPoint(tol=1e-12))
    turned = solve_box_qp((U @ Q)[order], costs[order], InteriorPoint(tol=1e-12))
    assert_allclose(turned.coef, plain.coef @ Q, atol=1e-8)


@pytest.mark.parametrize("t", [1e-5, 1e5])
def test_units(t):
    """Rows times t with costs over t^2: s over t, multipliers over t^2."""
    U, costs = PROBLEMS["plain"]
    plain = solve_box_qp(U, costs, InteriorPoint(tol=1e-12))
    scaled = solve_box_qp(t * U, costs / t**2, InteriorPoint(tol=1e-12))
    assert_allclose(t * scaled.coef, plain.coef, atol=1e-8)
    assert_allclose(t**2 * scaled.dual, plain.dual, atol=1e-7)


def test_rows_at_a_distance_leave_the_nearest_point_of_their_hull():
    """All margins are met: s = z / |z|^2 with z the point of the hull that is nearest to 0."""
    rng = np.random.default_rng(2)
    angles = rng.uniform(-1.0, 1.0, 30)
    U = np.vstack([5.0 * np.column_stack([np.cos(angles), np.sin(angles)]), [[2.0, 0.0]]])
    solution = solve_box_qp(U, np.full(31, 1e4), InteriorPoint(tol=1e-12))
    assert_allclose(solution.coef, [0.5, 0.0], atol=1e-8)
    assert (U @ solution.coef >= 1 - 1e-9).all()
    assert_allclose(solution.dual, np.append(np.zeros(30), 0.25), atol=1e-8)


def test_rows_on_all_sides_leave_nothing():
    """For each row its opposite: s = 0 and every multiplier at its bound."""
    U, costs = PROBLEMS["opposite rows"]
    solution = solve_box_qp(U, costs, SOLVER)
    assert_allclose(solution.coef, 0.0, atol=1e-7)
    assert_allclose(solution.dual, costs, rtol=1e-6)


def test_other_solvers_will_do():
    U, costs = PROBLEMS["plain"]
    found = solve_box_qp(U, costs, LibSVM(tol=1e-10))
    assert_allclose(found.coef, solve_box_qp(U, costs, SOLVER).coef, atol=1e-5)


def test_what_is_stopped_early_says_so():
    U, costs = PROBLEMS["plain"]
    solution = solve_box_qp(U, costs, InteriorPoint(max_iter=1))
    gap = primal(U, costs, solution.coef) - dual(U, solution.dual)
    assert solution.converged == (solution.gap <= TOL)
    assert gap <= (solution.gap + 1e-12) * primal(U, costs, solution.coef)


def test_the_solution_is_frozen_and_the_input_is_left_alone():
    U, costs = PROBLEMS["plain"]
    before = U.copy(), costs.copy()
    solution = solve_box_qp(U, costs, SOLVER)
    assert_array_equal(U, before[0])
    assert_array_equal(costs, before[1])
    with pytest.raises(FrozenInstanceError):
        solution.gap = 0.0


@pytest.mark.parametrize(
    ("factor", "cost", "says"),
    [(np.nan, 1.0, "finite"), (np.inf, 1.0, "finite"), (1.0, -1.0, "not negative")],
)
def test_refusals(factor, cost, says):
    with pytest.raises(SolverError, match=f"(?i){says}"):
        solve_box_qp(np.full((3, 2), factor), np.full(3, cost), SOLVER)


# ------------------------------------------------- the rest of the rows, in an array or in blocks

RNG = np.random.default_rng(2)
CODES = RNG.integers(0, 3, 400)
Z = RNG.normal(size=(400, 3)) + np.array([[0, 0, 0], [2, 0, 1], [0, 2, -1]])[CODES]
WEIGHTS = RNG.random(400) + 0.5


def rest(code, against=None):
    F = np.tril(RNG.normal(size=(4, 4))) + 3.0 * np.eye(4)
    return Rest(PlaneTask(code, against), np.array([1.0, 2.0, 0.5]), TikhonovBasis(None, 2.0), F)


def rows_of(some):
    H, weights = rest_rows(Block(Z, CODES, WEIGHTS), some.task, some.factors, some.basis)
    return whitened(H, some.F), weights


@pytest.mark.parametrize("against", [None, 0, 2])
def test_rows_of_the_rest_by_definition(against):
    some = rest(1, against)
    U, weights = rows_of(some)
    others = CODES != 1 if against is None else CODES == against
    H = np.column_stack([Z[others] / 2.0, np.ones(others.sum())])
    assert_allclose(U @ some.F.T, -H, rtol=1e-12)
    assert_allclose(weights, WEIGHTS[others] * some.factors[CODES[others]])


@pytest.mark.parametrize(("code", "against"), [(0, None), (1, None), (2, None), (0, 2), (2, 1)])
@pytest.mark.parametrize("n_rows", [90, 400])
def test_blocks_give_the_solution_of_the_box_problem(code, against, n_rows):
    some = rest(code, against)
    U, weights = rows_of(some)
    expected = solve_box_qp(U, 0.3 * weights, EXACT)
    order = np.argsort(CODES, kind="stable")  # blocks of the own class only: no rows are left
    cut = LocalBlocks.cut(Z[order], CODES[order], WEIGHTS[order], n_rows)
    mirrored = MirroredBlocks(cut, some, 2 * len(U))
    batch = SVMBatch(
        BlockRows.of(mirrored, None, 2),
        np.array([[1.0, -1.0]]),
        np.full((1, 2), 0.3),
        np.ones((1, 4)),
        np.zeros((1, 4, 0)),
    )
    found = EXACT.solve_batch(batch)[0]
    assert found.converged
    assert_allclose(found.coef, expected.coef, rtol=1e-8)
