"""Batches against single problems, deflation against a basis, and what must not matter."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg
from numpy.testing import assert_allclose
from svm.judging import BOTH_WAYS, NEEDS_NUMBA, chosen

from marginfold.linalg.tall import SharedRows
from marginfold.svm import Automatic, InteriorPoint, LibSVM, SVMBatch
from marginfold.svm.interior_point import without_dwarfing

N_ROWS, R = 90, 5
rng = np.random.default_rng(11)
U = rng.standard_normal((N_ROWS, R)) + 3.0
Y = np.where(U[:, 0] + 0.8 * rng.standard_normal(N_ROWS) > 3.0, 1.0, -1.0)
SOLVE = InteriorPoint(tol=1e-12).solve


def orthonormal(r, k, seed=0):
    return scipy.linalg.qr(np.random.default_rng(seed).standard_normal((r, k)), mode="economic")[0]


def varied_batch(n_problems=7, n_deflated=2, n_padding=1):
    """Return problems that differ in everything but the rows; the first one is not deflated."""
    rng = np.random.default_rng(5)
    signs = np.where(U @ rng.standard_normal((R, n_problems)) > 0.3, 1.0, -1.0).T
    signs[:, :2] = 1.0, -1.0
    costs = 10 ** rng.uniform(-2, 2, (n_problems, N_ROWS))
    deflated = np.zeros((n_problems, R, n_deflated + n_padding))
    for b in range(1, n_problems):
        deflated[b, :, :n_deflated] = orthonormal(R, n_deflated, seed=b)
    scale = 10 ** rng.uniform(-1, 1, (n_problems, R))
    return SVMBatch(SharedRows(U), signs, costs, scale, deflated)


def explicit_solution(batch, b):
    """Solve problem b on rows that are scaled and restricted to the complement by hand."""
    N = batch.deflated[b]
    V = scipy.linalg.null_space(N.T) if N.any() else np.eye(R)
    taken = batch.costs[b] > 0
    solution = SOLVE((U * batch.scale[b] @ V)[taken], batch.signs[b][taken], batch.costs[b][taken])
    return V @ solution.coef, solution


@BOTH_WAYS
def test_every_problem_of_a_batch_is_the_explicit_one(compiled):
    batch = varied_batch()
    for b, solution in enumerate(InteriorPoint(tol=1e-12, compiled=compiled).solve_batch(batch)):
        coef, explicit = explicit_solution(batch, b)
        assert solution.converged
        assert solution.objective == pytest.approx(explicit.objective, rel=1e-11)
        assert_allclose(solution.coef, coef, atol=1e-6 * max(1.0, np.abs(coef).max()))
        assert solution.intercept == pytest.approx(explicit.intercept, rel=1e-6, abs=1e-6)


@BOTH_WAYS
def test_objective_of_a_batched_problem_by_plain_formulas(compiled):
    batch = varied_batch()
    for b, solution in enumerate(InteriorPoint(compiled=compiled).solve_batch(batch)):
        y, c, N = batch.signs[b], batch.costs[b], batch.deflated[b]
        X = U * batch.scale[b]
        hinge = np.maximum(0, 1 - y * (X @ solution.coef + solution.intercept))
        pull = (X - X.mean(axis=0)).T @ (y * solution.dual)
        pull -= N @ (N.T @ pull)
        primal = 0.5 * solution.coef @ solution.coef + c @ hinge
        dual = solution.dual.sum() - 0.5 * pull @ pull
        assert solution.objective == pytest.approx(primal, rel=1e-10)
        assert solution.dual_objective == pytest.approx(dual, rel=1e-10)
        assert primal - dual <= 1e-8 * primal


@BOTH_WAYS
@pytest.mark.parametrize("solver", [InteriorPoint, Automatic])
def test_the_other_problems_of_a_batch_do_not_change_a_bit(solver, compiled):
    """They have other labels and costs, so that none is a start for another."""
    batch = varied_batch()
    solver = solver(tol=1e-12, compiled=compiled)
    for b, solution in enumerate(solver.solve_batch(batch)):
        (alone,) = solver.solve_batch(chosen(batch, [b]))
        assert (solution.coef == alone.coef).all()
        assert (solution.dual == alone.dual).all()
        assert solution.intercept == alone.intercept


@BOTH_WAYS
def test_order_of_problems_does_not_matter(compiled):
    batch, order = varied_batch(), [3, 0, 6, 1, 5, 2, 4]
    solver = InteriorPoint(tol=1e-12, compiled=compiled)
    forward = solver.solve_batch(batch)
    shuffled = solver.solve_batch(chosen(batch, order))
    for position, b in enumerate(order):
        assert (shuffled[position].coef == forward[b].coef).all()


def test_order_of_rows_does_not_matter():
    order = rng.permutation(N_ROWS)
    first, second = SOLVE(U, Y, 2.0), SOLVE(U[order], Y[order], 2.0)
    assert_allclose(second.coef, first.coef, atol=1e-9)
    assert second.intercept == pytest.approx(first.intercept, abs=1e-9)
    assert_allclose(second.dual, first.dual[order], atol=1e-7)


@BOTH_WAYS
def test_rows_without_cost_do_not_take_part(compiled):
    batch = varied_batch()
    costs = batch.costs.copy()
    costs[:, 10:25] = 0.0
    costs[::2, 40:45] = 0.0  # the problems of a batch may leave out different rows
    batch = SVMBatch(batch.rows, batch.signs, costs, batch.scale, batch.deflated)
    for b, solution in enumerate(InteriorPoint(tol=1e-12, compiled=compiled).solve_batch(batch)):
        coef, explicit = explicit_solution(batch, b)
        assert not solution.dual[costs[b] == 0].any()
        assert solution.objective == pytest.approx(explicit.objective, rel=1e-11)
        assert_allclose(solution.coef, coef, atol=1e-6 * max(1.0, np.abs(coef).max()))
        assert solution.intercept == pytest.approx(explicit.intercept, rel=1e-6, abs=1e-6)


def test_the_absurd_values_of_a_row_without_cost_do_not_matter():
    rows = np.vstack([U, np.full((1, R), 1e9)])
    signs, costs = np.append(Y, 1.0), np.append(np.full(N_ROWS, 2.0), 0.0)
    with_row, without = InteriorPoint().solve(rows, signs, costs), SOLVE(U, Y, 2.0)
    assert with_row.converged
    assert_allclose(with_row.coef, without.coef, atol=1e-5)
    assert with_row.intercept == pytest.approx(without.intercept, abs=1e-5)


@pytest.mark.parametrize(
    "solver",
    [
        InteriorPoint,
        pytest.param(lambda: InteriorPoint(compiled=True), marks=NEEDS_NUMBA),
        Automatic,
        LibSVM,
    ],
    ids=["interior point", "compiled", "automatic", "libsvm"],
)
@pytest.mark.parametrize("k", [0, 1, 3, 4])
def test_solution_is_orthogonal_to_deflated_directions(solver, k):
    N = orthonormal(R, k)
    padded = np.hstack([N, np.zeros((R, 2))])[None]
    batch = SVMBatch(SharedRows(U), Y[None], np.full((1, N_ROWS), 2.0), np.ones((1, R)), padded)
    (solution,) = solver().solve_batch(batch)
    explicit = SOLVE(U @ scipy.linalg.null_space(N.T) if k else U, Y, 2.0)
    assert np.abs(N.T @ solution.coef).max(initial=0.0) <= 1e-12
    assert solution.objective == pytest.approx(explicit.objective, rel=1e-6)


@BOTH_WAYS
@pytest.mark.parametrize("size", [1e2, 1e3, 1e4, 1e6, 1e8])
@pytest.mark.parametrize(("n", "r", "k"), [(90, 5, 1), (200, 12, 3), (200, 120, 2)])
def test_a_dominant_direction_leaves_no_trace_once_it_is_deflated(n, r, k, size, compiled):
    """Rows that vary ``size`` times more along the deflated directions than elsewhere."""
    rng = np.random.default_rng(8)
    Q = orthonormal(r, r, seed=8)
    N, V = Q[:, :k], Q[:, k:]
    y = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    inside = rng.standard_normal((n, r - k)) + 0.3 * y[:, None]
    rows = SharedRows(inside @ V.T + size * rng.standard_normal((n, k)) @ N.T)
    batch = SVMBatch(rows, y[None], np.ones((1, n)), np.ones((1, r)), N[None])
    (solution,) = InteriorPoint(compiled=compiled).solve_batch(batch)
    explicit = InteriorPoint().solve(inside, y, 1.0)
    assert solution.converged
    assert np.abs(N.T @ solution.coef).max() <= 1e-12
    rounding = 10 * np.finfo(float).eps * size  # of the rows themselves
    assert_allclose(V.T @ solution.coef, explicit.coef, atol=1e-5 + 100 * rounding)
    assert solution.objective == pytest.approx(explicit.objective, rel=1e-7 + 100 * rounding)


def test_the_problem_without_a_dominant_direction_is_that_of_rows_without_it():
    """Where they are, too: the rounding that a certificate allows for depends on it."""
    rng = np.random.default_rng(0)
    U, scale = rng.standard_normal((40, 5)) + 3.0, 10.0 ** np.linspace(-2, 2, 5)
    N = scipy.linalg.qr(rng.standard_normal((5, 1)), mode="economic")[0]
    U += 1e6 * np.outer(rng.standard_normal(40), N[:, 0]) / scale
    y = np.where(np.arange(40) % 2, 1.0, -1.0)
    batch = SVMBatch(SharedRows(U), y[None], np.ones((1, 40)), scale[None], N[None])
    problem = without_dwarfing(batch.problem(0))
    expected = (U * scale) @ (np.eye(5) - N @ N.T)
    found = (problem.features + problem.centre) * problem.scale
    assert_allclose(found, expected, atol=1e-8 * np.abs(expected).max())
    assert_allclose(problem.features.mean(axis=0), 0.0, atol=1e-8)


def test_many_dimensions_are_solved_like_few():
    """With about as many dimensions as rows, too: a random rotation of padded rows."""
    Q = orthonormal(150, 150)
    padded = np.hstack([U, np.zeros((N_ROWS, 145))]) @ Q.T
    many, few = SOLVE(padded, Y, 2.0), SOLVE(U, Y, 2.0)
    assert_allclose(many.coef @ Q, np.append(few.coef, np.zeros(145)), atol=1e-8)
    assert many.intercept == pytest.approx(few.intercept, abs=1e-8)


@pytest.mark.parametrize("sep", [0.0, 1.0, 5.0])
@pytest.mark.parametrize("C", [1e-3, 1.0, 1e4])
def test_more_dimensions_than_rows_in_the_span_of_the_rows(sep, C):
    """Rows in 300 dimensions against their coordinates in an orthonormal basis."""
    rng = np.random.default_rng(9)
    y = np.where(np.arange(160) % 4, 1.0, -1.0)
    wide = rng.standard_normal((160, 300)) + 0.1 * sep * y[:, None]
    basis, R = scipy.linalg.qr(wide.T, mode="economic")
    given, turned = SOLVE(wide, y, C), SOLVE(R.T, y, C)
    assert given.converged
    assert given.objective == pytest.approx(turned.objective, rel=1e-9)
    assert_allclose(given.coef, basis @ turned.coef, atol=1e-6 * np.abs(given.coef).max())


@BOTH_WAYS
def test_deflating_every_direction_leaves_the_zero_vector(compiled):
    deflated = np.eye(R)[None]
    batch = SVMBatch(SharedRows(U), Y[None], np.full((1, N_ROWS), 2.0), np.ones((1, R)), deflated)
    (solution,) = InteriorPoint(compiled=compiled).solve_batch(batch)
    smaller = 2.0 * min((Y > 0).sum(), (Y < 0).sum())
    assert solution.converged
    assert np.abs(solution.coef).max() <= 1e-12
    assert solution.objective == pytest.approx(2 * smaller, rel=1e-8)


# ---------------------------------------------------------------- invariances


def test_translation_changes_the_intercept_only():
    shift = np.array([10.0, -200.0, 3.0, 0.5, 1e3])
    here, there = SOLVE(U, Y, 2.0), SOLVE(U + shift, Y, 2.0)
    assert_allclose(there.coef, here.coef, atol=1e-9)
    assert there.objective == pytest.approx(here.objective, rel=1e-10)
    assert there.intercept == pytest.approx(here.intercept - shift @ here.coef, abs=1e-8)


@pytest.mark.parametrize("s", [1e-6, 1e-2, 7.0, 1e5])
def test_scaling_rows_is_scaling_costs(s):
    here, there = SOLVE(U, Y, 2.0), SOLVE(s * U, Y, 2.0 / s**2)
    assert_allclose(s * there.coef, here.coef, atol=1e-8)
    assert there.intercept == pytest.approx(here.intercept, abs=1e-8)
    assert s**2 * there.objective == pytest.approx(here.objective, rel=1e-10)


@BOTH_WAYS
def test_scale_of_the_batch_is_scaling_of_the_columns(compiled):
    scale = np.array([[0.1, 1.0, 5.0, 2.0, 30.0]])
    batch = SVMBatch(SharedRows(U), Y[None], np.full((1, N_ROWS), 2.0), scale, np.zeros((1, R, 0)))
    (scaled,), explicit = (
        InteriorPoint(tol=1e-12, compiled=compiled).solve_batch(batch),
        SOLVE(U * scale, Y, 2.0),
    )
    assert_allclose(scaled.coef, explicit.coef, atol=1e-9)
    assert scaled.intercept == pytest.approx(explicit.intercept, abs=1e-8)


def test_a_cost_is_a_number_of_copies():
    copies = rng.integers(1, 4, N_ROWS)
    weighted = SOLVE(U, Y, 0.7 * copies)
    repeated = SOLVE(np.repeat(U, copies, axis=0), np.repeat(Y, copies), 0.7)
    assert_allclose(weighted.coef, repeated.coef, atol=1e-8)
    assert weighted.intercept == pytest.approx(repeated.intercept, abs=1e-8)
    assert weighted.objective == pytest.approx(repeated.objective, rel=1e-11)


def test_swapping_the_labels_changes_the_sign():
    here, there = SOLVE(U, Y, 2.0), SOLVE(U, -Y, 2.0)
    assert_allclose(there.coef, -here.coef, atol=1e-9)
    assert there.intercept == pytest.approx(-here.intercept, abs=1e-9)


def test_rotation_rotates_the_solution():
    Q = orthonormal(R, R)
    assert_allclose(SOLVE(U @ Q, Y, 2.0).coef, Q.T @ SOLVE(U, Y, 2.0).coef, atol=1e-9)


def test_a_duplicated_column_shares_the_weight():
    here, there = SOLVE(U, Y, 2.0), SOLVE(np.hstack([U, U]) / np.sqrt(2), Y, 2.0)
    assert_allclose(there.coef, np.tile(here.coef, 2) / np.sqrt(2), atol=1e-9)


def test_a_constant_column_gets_no_weight():
    here, there = SOLVE(U, Y, 2.0), SOLVE(np.column_stack([U, np.full(N_ROWS, 9.3)]), Y, 2.0)
    assert_allclose(there.coef, np.append(here.coef, 0.0), atol=1e-9)


def test_solving_twice_gives_the_same_bits():
    first, second = SOLVE(U, Y, 2.0), SOLVE(U, Y, 2.0)
    assert (first.coef == second.coef).all()
    assert (first.dual == second.dual).all()
    assert first.intercept == second.intercept
