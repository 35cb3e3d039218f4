"""What the solvers refuse, what they leave alone and what they need."""

from __future__ import annotations

import tracemalloc
import warnings
from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from svm.judging import BOTH_WAYS

from marginfold.errors import InvalidParameterError, SolverError
from marginfold.linalg.tall import SharedRows
from marginfold.svm import Automatic, InteriorPoint, LibSVM, SVMBatch
from marginfold.svm.problem import without

SOLVERS = pytest.mark.parametrize(
    "solver",
    [InteriorPoint(), Automatic(), LibSVM()],
    ids=["interior point", "automatic", "libsvm"],
)
U = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 1.0], [3.0, 0.0]])
Y = np.array([-1.0, -1.0, 1.0, 1.0])


@SOLVERS
@pytest.mark.parametrize(
    ("rows", "signs", "costs", "says"),
    [
        (U, np.ones(4), 1.0, "both labels"),
        (U, -np.ones(4), 1.0, "both labels"),
        (U, Y, [1.0, 1.0, 0.0, 0.0], "both labels"),
        (U, Y, 0.0, "both labels"),
        (U, [0, 0, 1, 1], 1.0, r"\+1 or -1"),
        (U, [-1, -1, 1, np.nan], 1.0, r"\+1 or -1"),
        (U * np.nan, Y, 1.0, "finite"),
        (np.where(U == 3, np.inf, U), Y, 1.0, "finite"),
        (U, Y, [1.0, 1.0, -1.0, 1.0], "not negative"),
        (U, Y, np.nan, "finite"),
        (U, Y, np.inf, "finite"),
        (U, Y[:3], 1.0, "shape"),
        (U[:, 0], Y, 1.0, "shape"),
        (U, Y[:, None], 1.0, "shape"),
        (U, Y, [1.0, 2.0], "cost"),
        (U, Y, np.ones((4, 4)), "cost"),
    ],
)
def test_refusals(solver, rows, signs, costs, says):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(SolverError, match=f"(?i){says}"):
            solver.solve(rows, signs, costs)


@pytest.mark.parametrize("max_iter", [-2, 1.5, True])
def test_libsvm_takes_a_number_of_iterations_or_no_limit(max_iter):
    assert LibSVM(max_iter=-1).solve(U, Y, 1.0).converged
    with pytest.raises(InvalidParameterError, match="max_iter must be a whole number >= -1"):
        LibSVM(max_iter=max_iter)


@SOLVERS
def test_a_solution_is_frozen(solver):
    solution = solver.solve(U, Y, 1.0)
    with pytest.raises(FrozenInstanceError):
        solution.gap = 0.0


@SOLVERS
def test_a_solver_is_frozen_and_names_its_settings(solver):
    with pytest.raises(FrozenInstanceError):
        solver.tol = 1.0
    assert "tol=1e-08" in repr(solver)


@SOLVERS
def test_inputs_are_left_alone(solver):
    rows, signs, costs = U.copy(), Y.copy(), np.full(4, 2.0)
    for array in (rows, signs, costs):
        array.flags.writeable = False
    solver.solve(rows, signs, costs)
    assert (rows == U).all()


def test_lists_and_whole_numbers_are_welcome():
    from_lists = InteriorPoint().solve(U.astype(int).tolist(), Y.astype(int).tolist(), 2)
    assert (from_lists.coef == InteriorPoint().solve(U, Y, 2.0).coef).all()


@pytest.mark.parametrize("order", ["C", "F"])
def test_memory_layout_does_not_matter(order):
    solution = InteriorPoint().solve(np.array(U, order=order), Y, 2.0)
    assert np.allclose(solution.coef, InteriorPoint().solve(U, Y, 2.0).coef)


def test_tolerance_is_the_one_that_is_reached():
    rng = np.random.default_rng(0)
    y = np.where(rng.random(400) < 0.5, 1.0, -1.0)
    rows = rng.standard_normal((400, 6)) + 0.4 * y[:, None]
    loose, tight = (InteriorPoint(tol=tol).solve(rows, y, 1.0) for tol in (1e-2, 1e-12))
    assert loose.converged
    assert tight.converged
    assert tight.gap <= 1e-12
    assert loose.n_iter <= tight.n_iter
    assert tight.objective <= loose.objective
    assert loose.objective <= tight.objective * (1 + loose.gap)


def test_projection_removes_the_deflated_part():
    N = np.array([[0.6], [0.8]])
    projected = without(N, np.array([3.0, -1.0]))
    assert N[:, 0] @ projected == pytest.approx(0.0, abs=1e-15)
    assert np.allclose(projected, np.array([3.0, -1.0]) - N[:, 0])


def test_a_problem_on_some_rows_is_centred_anew():
    batch = SVMBatch(
        SharedRows(U), np.stack([Y, -Y]), np.ones((2, 4)), np.ones((2, 2)), np.zeros((2, 2, 0))
    )
    rows = np.array([0, 2, 3])
    part = batch.problem(1).on(rows)
    assert np.allclose(part.features, U[rows] - U[rows].mean(axis=0))
    assert np.allclose(part.centre, U[rows].mean(axis=0))
    assert (part.signs == -Y[rows]).all()


def test_the_smaller_side_of_each_problem():
    costs = np.array([[1.0, 2.0, 3.0, 4.0], [4.0, 1.0, 0.0, 2.0]])
    batch = SVMBatch(SharedRows(U), np.stack([Y, Y]), costs, np.ones((2, 2)), np.zeros((2, 2, 0)))
    assert batch.smaller_sides.tolist() == [3.0, 2.0]


@BOTH_WAYS
@pytest.mark.parametrize("solver", [InteriorPoint, Automatic])
def test_memory_is_linear_in_the_rows(solver, compiled):
    """A table of pairs of rows would need 3.2 GB, and a second one of the rows 1.6 MB."""
    n, r = 20_000, 10
    rng = np.random.default_rng(0)
    y = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    rows = rng.standard_normal((n, r)) + 0.3 * y[:, None]
    solve = solver(compiled=compiled).solve
    tracemalloc.start()
    try:
        solution = solve(rows, y, 1.0)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert solution.converged
    assert peak < 60e6
