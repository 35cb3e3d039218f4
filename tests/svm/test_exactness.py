"""Solutions against other routes: a QP solver, libsvm, all faces of the box, and by hand."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC
from svm.random_problems import Problem, judge, random_problem

from marginfold.svm import Automatic, InteriorPoint, LibSVM

LIBSVM_ACCURACY = 1e-6
"""libsvm keeps kernel values in single precision: no tolerance takes its gap much lower."""


def small_problem(seed, n=7, r=2):
    rng = np.random.default_rng(seed)
    y = np.where(np.arange(n) % 2, 1.0, -1.0)
    U = rng.standard_normal((n, r)) + 0.6 * y[:, None]
    return U, y, 10 ** rng.uniform(-1, 1, n)


def overlapping(n=200, r=4, seed=0):
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(n) < 0.4, 1.0, -1.0)
    return rng.standard_normal((n, r)) + 0.5 * y[:, None], y


def objective(U, y, c, w, b):
    return 0.5 * w @ w + c @ np.maximum(0, 1 - y * (U @ w + b))


@pytest.mark.parametrize("seed", range(5))
def test_objective_of_a_general_qp_solver(seed):
    U, y, c = small_problem(seed)
    Q = (U * y[:, None]) @ (U * y[:, None]).T
    result = minimize(
        lambda a: 0.5 * a @ Q @ a - a.sum(),
        np.zeros(len(y)),
        jac=lambda a: Q @ a - 1,
        bounds=[(0, bound) for bound in c],
        constraints={"type": "eq", "fun": lambda a: y @ a, "jac": lambda a: y},
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 500},
    )
    solution = InteriorPoint().solve(U, y, c)
    assert solution.objective == pytest.approx(-result.fun, rel=1e-7)
    assert_allclose(solution.coef, U.T @ (y * result.x), atol=1e-4)


@pytest.mark.parametrize("seed", range(4))
def test_solution_is_the_only_face_that_satisfies_the_optimality_conditions(seed):
    """Try every partition of six rows into lower, free and upper multipliers."""
    U, y, c = small_problem(seed + 100, n=6)
    found = [
        solved
        for face in itertools.product((0, 1, 2), repeat=6)
        if (solved := _solve_face(U, y, c, np.array(face))) is not None
    ]
    assert found
    solution = InteriorPoint().solve(U, y, c)
    for w, b in found:
        assert_allclose(solution.coef, w, atol=1e-9)
        assert solution.intercept == pytest.approx(b, abs=1e-9)


def _solve_face(U, y, c, face):
    """Return (w, b) if the face (0 lower, 1 free, 2 upper) satisfies all conditions strictly."""
    free, upper = face == 1, face == 2
    m = free.sum()
    if m == 0:
        return None
    pushed = U.T @ (y * c * upper)
    system = np.zeros((m + 1, m + 1))
    system[:m, :m] = U[free] @ U[free].T
    system[:m, m] = system[m, :m] = 1
    right = np.append(y[free] - U[free] @ pushed, -(y * c)[upper].sum())
    if np.linalg.matrix_rank(system) <= m:
        return None
    *beta, b = np.linalg.solve(system, right)
    a = y[free] * beta
    w = pushed + U[free].T @ beta
    excess = y * (U @ w + b) - 1
    inside = (a > 0).all() and (a < c[free]).all()
    if inside and (excess[face == 0] >= 0).all() and (excess[upper] <= 0).all():
        return w, b
    return None


@pytest.mark.parametrize("C", [0.01, 1.0, 10.0])
def test_tight_libsvm_agrees(C):
    U, y = overlapping()
    svc = SVC(kernel="linear", C=C, tol=1e-10).fit(U, y)
    solution = InteriorPoint().solve(U, y, C)
    assert_allclose(solution.coef, svc.coef_[0], atol=1e-5)
    assert solution.intercept == pytest.approx(svc.intercept_[0], abs=1e-5)


def test_tight_libsvm_agrees_with_costs_per_row():
    U, y = overlapping()
    c = 10 ** np.random.default_rng(1).uniform(-3, 3, len(y))
    svc = SVC(kernel="linear", C=1.0, tol=1e-10).fit(U, y, sample_weight=c)
    solution = InteriorPoint().solve(U, y, c)
    assert_allclose(solution.coef, svc.coef_[0], atol=1e-4)
    best = objective(U, y, c, svc.coef_[0], svc.intercept_[0])
    assert solution.objective <= best
    assert solution.objective == pytest.approx(best, rel=10 * LIBSVM_ACCURACY)


@pytest.mark.parametrize("seed", [0, 1, 2, 3, 5, 6, 9])
def test_optimality_conditions(seed):
    problem = random_problem(seed)
    solution = InteriorPoint(tol=1e-11).solve(problem.U, problem.y, problem.c)
    y, c, a = problem.y, problem.c, solution.dual
    margin = y * (problem.U @ solution.coef + solution.intercept)
    centred = problem.U - problem.U.mean(axis=0)
    assert solution.converged
    slack = 1e-4  # an error of the gap is quadratic in that of the margins
    assert (margin[a < 1e-7 * c] >= 1 - slack).all()
    assert (margin[a > (1 - 1e-7) * c] <= 1 + slack).all()
    free = (a >= 1e-4 * c) & (a <= (1 - 1e-4) * c)
    assert_allclose(margin[free], 1, atol=slack)
    size = np.linalg.norm(solution.coef)
    assert np.linalg.norm(centred.T @ (y * a) - solution.coef) <= 1e-4 * max(size, 1e-6)


def test_no_point_nearby_is_better():
    U, y = overlapping()
    solution = InteriorPoint().solve(U, y, 2.0)
    rng = np.random.default_rng(2)
    for size in (1e-1, 1e-3, 1e-5):
        for _ in range(50):
            w = solution.coef + size * rng.standard_normal(len(solution.coef))
            b = solution.intercept + size * rng.standard_normal()
            nearby = objective(U, y, np.full(len(y), 2.0), w, b)
            assert nearby >= solution.objective * (1 - 1e-9)


# ---------------------------------------------------------------- the bias and its interval


@pytest.mark.parametrize(
    ("rows", "signs", "costs", "weight", "bias"),
    [
        # All multipliers at their bounds: the break points y - f span the interval of the bias.
        ([-1.0, 1.0], [-1, 1], 0.1, 0.2, 0.0),  # [-0.8, 0.8]
        ([0.0, 1.0], [-1, 1], 0.1, 0.1, -0.05),  # [-1, 0.9]
        ([0.0, 0.0, 4.0], [-1, -1, 1], [0.01, 0.02, 0.03], 0.12, -0.24),  # [-1, 0.52]
        ([0.0, 2.0, 3.0], [-1, 1, 1], [0.04, 0.01, 0.03], 0.11, -0.165),  # [-1, 0.67]
        # Equal rows with both labels: w = 0 and any bias between -1 and 1 does.
        ([5.0, 5.0], [-1, 1], 3.0, 0.0, 0.0),
        # The heavier side decides when w = 0.
        ([5.0, 5.0, 5.0], [-1, -1, 1], 3.0, 0.0, -1.0),
        # Free support vectors: the bias is unique.
        ([0.0, 1.0, 2.0, 3.0], [-1, -1, 1, 1], 10.0, 2.0, -3.0),
    ],
)
def test_bias_is_the_midpoint_of_its_interval(rows, signs, costs, weight, bias):
    U = np.array(rows)[:, None]
    for solver in (InteriorPoint(), LibSVM(kkt_tol=1e-10)):
        solution = solver.solve(U, signs, costs)
        assert solution.coef[0] == pytest.approx(weight, abs=1e-9)
        assert solution.intercept == pytest.approx(bias, abs=1e-9)


def test_rows_without_cost_do_not_move_the_bias():
    X, y = np.array([[-1.0], [1.0], [-1.0], [1.0], [300.0]]), np.array([-1.0, 1.0, -1.0, 1.0, 1.0])
    c = np.array([1e-3, 1e-3, 1e-3, 1e-3, 0.0])
    for solver in (Automatic(), InteriorPoint(), LibSVM()):
        assert solver.solve(X, y, c).intercept == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("solver", [Automatic, InteriorPoint])
def test_with_small_costs_the_weights_are_the_difference_of_the_means(solver, seed):
    """All rows are inside the margin: every multiplier is at its bound."""
    rng = np.random.default_rng(seed)
    y = np.where(np.arange(60) % 3, 1.0, -1.0)
    U = rng.normal(size=(60, 4)) + 5.0
    U[:, 0] += y
    c = np.where(y > 0, 0.05 / (y > 0).sum(), 0.05 / (y < 0).sum())
    found = solver().solve(U, y, c)
    difference = U[y > 0].mean(axis=0) - U[y < 0].mean(axis=0)
    assert_allclose(found.coef, 0.05 * difference, atol=1e-14)
    assert_allclose(found.dual, c)
    breaks = y - U @ found.coef  # where rows come to their margin
    assert found.intercept == pytest.approx(
        0.5 * (breaks[y < 0].max() + breaks[y > 0].min()), abs=1e-12
    )


# ---------------------------------------------------------------- libsvm behind the same interface


@pytest.mark.parametrize("C", [1e-3, 1.0, 30.0])
def test_libsvm_adapter_is_certified_and_agrees(C):
    U, y = overlapping(n=120)
    oracle = LibSVM(tol=LIBSVM_ACCURACY, kkt_tol=1e-9).solve(U, y, C)
    solution = InteriorPoint().solve(U, y, C)
    truth = judge(Problem("", U, y, np.full(len(y), C)), oracle.coef, oracle.intercept, oracle.dual)
    assert oracle.converged
    assert oracle.gap == pytest.approx(truth.gap, abs=1e-10)
    assert truth.gap <= LIBSVM_ACCURACY
    assert oracle.objective == pytest.approx(solution.objective, rel=LIBSVM_ACCURACY)
    assert_allclose(oracle.coef, solution.coef, atol=1e-4)
    assert oracle.intercept == pytest.approx(solution.intercept, abs=1e-4)
    assert (oracle.dual >= 0).all()
    assert (oracle.dual <= C).all()


def test_libsvm_adapter_admits_that_it_stopped_early():
    U, y = overlapping()
    with pytest.warns(ConvergenceWarning):
        solution = LibSVM(max_iter=5).solve(U, y, 100.0)
    assert not solution.converged
    assert 1e-8 < solution.gap
    assert np.isfinite(solution.coef).all()
