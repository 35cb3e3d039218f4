"""The choice of a solver: the same answers whoever finds them, and nothing left behind."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest
import scipy.linalg
from numpy.testing import assert_allclose
from sklearn import get_config
from sklearn.exceptions import ConvergenceWarning
from svm.random_problems import Problem, judge, random_problem
from svm.test_certificate import HOPELESS, SOLVABLE

from marginfold import GESVC, LSVA, MMDA, WSVDA
from marginfold.errors import SolverError
from marginfold.linalg.tall import SharedRows
from marginfold.svm import Automatic, InteriorPoint, LibSVM, SVMBatch
from marginfold.svm import policy as automatic

TOL = 1e-8
HONEST = 1e-9


def check_honest(problem: Problem, solution) -> None:
    assert np.isfinite(solution.coef).all()
    assert (solution.dual >= 0).all()
    assert (solution.dual <= problem.c).all()
    truth = judge(problem, solution.coef, solution.intercept, solution.dual)
    allowed = HONEST + truth.rounding
    assert truth.balance <= 1e-12
    assert -allowed <= truth.gap
    assert truth.gap - allowed <= solution.gap * (1 + 1e-3)
    assert solution.converged == (solution.gap <= TOL)


def check_within_certificates(first, second) -> None:
    """Both weights are near the optimum: ``1/2 |s - s*|^2 <= P(s) - P* <= gap P``."""
    radius = sum(np.sqrt(2.0 * (s.gap + 1e-12) * s.objective) for s in (first, second))
    assert np.linalg.norm(first.coef - second.coef) <= radius
    assert first.objective == pytest.approx(second.objective, rel=3 * TOL)


def solve(problem: Problem, compiled="auto"):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return Automatic(tol=TOL, compiled=compiled).solve(problem.U, problem.y, problem.c)


def problem_of(n, r, *, apart=0.0, cost=1.0, seed=0):
    rng = np.random.default_rng([97, seed])
    y = rng.permutation(np.where(np.arange(n) % 2, 1.0, -1.0))
    U = rng.standard_normal((n, r)) + 1.0
    U[:, 0] += apart * y
    return Problem(f"{n} x {r}", U, y, np.full(n, cost))


@pytest.mark.parametrize("seed", range(100, 140))
def test_random_problems_are_solved_as_by_the_interior_point_method(seed):
    problem = random_problem(seed, decades=3.0)
    solution = solve(problem)
    expected = InteriorPoint(tol=TOL).solve(problem.U, problem.y, problem.c)
    check_honest(problem, solution)
    assert solution.converged == expected.converged
    check_within_certificates(solution, expected)


SHAPES = {
    "overlapping": problem_of(600, 4, apart=0.5),
    "apart": problem_of(600, 4, apart=5.0),
    "apart, large costs": problem_of(600, 4, apart=3.5, cost=1e5),
    "many rows apart": problem_of(5000, 10, apart=4.0),
    "many rows, large costs": problem_of(5000, 10, apart=4.0, cost=1e5),
    "wide": problem_of(30, 200),
    "wide and apart": problem_of(30, 200, apart=9.0),
    "wide, tiny costs": problem_of(30, 200, cost=1e-6),
    "many dimensions, few rows": problem_of(500, 120, apart=0.5),
    "many dimensions, many rows": problem_of(1000, 120, apart=0.5),
}


@pytest.mark.parametrize("name", SHAPES)
def test_every_shape_is_solved_exactly(name):
    problem = SHAPES[name]
    solution = solve(problem)
    expected = InteriorPoint(tol=TOL).solve(problem.U, problem.y, problem.c)
    check_honest(problem, solution)
    assert solution.converged
    size = max(1.0, np.abs(expected.coef).max())
    assert_allclose(solution.coef, expected.coef, atol=1e-7 * size)
    assert solution.intercept == pytest.approx(expected.intercept, abs=1e-6 * size)
    assert solution.objective == pytest.approx(expected.objective, rel=1e-9)


@pytest.mark.parametrize(
    ("name", "compiled", "wanted"),
    [
        ("overlapping", False, False),
        ("apart", False, True),
        ("apart", True, False),
        ("many rows apart", False, False),
        ("wide", False, True),
        ("wide", True, False),
        ("many dimensions, few rows", False, True),
        ("many dimensions, few rows", True, False),
        ("many dimensions, many rows", False, False),
    ],
)
def test_libsvm_goes_first_where_it_suits(name, compiled, wanted, monkeypatch):
    if compiled:
        pytest.importorskip("numba")
    asked = []
    monkeypatch.setattr(LibSVM, "solve_problem", lambda *_: asked.append(name))
    problem = SHAPES[name]
    Automatic(tol=TOL, compiled=compiled).solve(problem.U, problem.y, problem.c)
    assert bool(asked) == wanted


@pytest.mark.parametrize("compiled", ["auto", False])
@pytest.mark.parametrize("name", ["many rows apart", "many rows, large costs"])
def test_few_rows_go_first_when_classes_are_apart(name, compiled, monkeypatch):
    sizes = []
    original = InteriorPoint._solve_one

    def watched(self, batch, tol):
        sizes.append(batch.signs.shape[1])
        return original(self, batch, tol)

    monkeypatch.setattr(InteriorPoint, "_solve_one", watched)
    problem = SHAPES[name]
    solution = Automatic(tol=TOL, compiled=compiled).solve(problem.U, problem.y, problem.c)
    check_honest(problem, solution)
    assert solution.converged
    assert 0 < max(sizes) < 0.1 * len(problem.y)


@pytest.mark.parametrize("limit", [1, 5, 50])
@pytest.mark.parametrize("name", ["apart, large costs", "wide", "many dimensions, few rows"])
def test_libsvm_cut_off_by_its_limit_leaves_the_problem_to_the_other(name, limit, monkeypatch):
    monkeypatch.setattr(automatic, "ITERATIONS_PER_ROW", _Limit(limit))
    problem = SHAPES[name]
    solution = solve(problem, compiled=False)
    expected = InteriorPoint(tol=TOL).solve(problem.U, problem.y, problem.c)
    check_honest(problem, solution)
    assert solution.converged
    check_within_certificates(solution, expected)


class _Limit(int):
    """A number of iterations, however many rows there are."""

    def __mul__(self, other):
        return int(self)


def varied_batch(n=80, r=100):
    """Return problems of which some are wide or apart, some with costs of zero or deflated."""
    rng = np.random.default_rng(98)
    U = rng.standard_normal((n, r)) + 3.0
    signs = np.where(rng.random((5, n)) < 0.4, 1.0, -1.0)
    signs[:, :2] = 1.0, -1.0
    costs = 10 ** rng.uniform(-1, 1, (5, n))
    costs[1, rng.random(n) < 0.3] = 0.0
    costs[:, :2] = 1.0
    deflated = np.zeros((5, r, 2))
    deflated[2] = scipy.linalg.qr(rng.standard_normal((r, 2)), mode="economic")[0]
    scale = 10 ** rng.uniform(-0.5, 0.5, (5, r))
    return U, SVMBatch(SharedRows(U), signs, costs, scale, deflated)


@pytest.mark.parametrize("r", [4, 100])
def test_batches_with_idle_rows_deflation_and_scales(r):
    U, batch = varied_batch(r=r)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        solutions = Automatic(tol=TOL).solve_batch(batch)
    expected = InteriorPoint(tol=TOL).solve_batch(batch)
    for b, (solution, other) in enumerate(zip(solutions, expected, strict=True)):
        X = U * batch.scale[b]
        X -= (X @ batch.deflated[b]) @ batch.deflated[b].T
        check_honest(Problem("", X, batch.signs[b], batch.costs[b]), solution)
        assert np.abs(batch.deflated[b].T @ solution.coef).max() <= 1e-12
        check_within_certificates(solution, other)
        assert solution.intercept == pytest.approx(other.intercept, abs=1e-6)


@pytest.mark.parametrize("name", SOLVABLE)
def test_extreme_problems_are_certified(name):
    problem = _extreme(SOLVABLE[name])
    solution = solve(problem)
    check_honest(problem, solution)
    assert solution.converged


@pytest.mark.parametrize("name", HOPELESS)
def test_hopeless_problems_end_finite_without_warnings(name):
    problem = _extreme(HOPELESS[name])
    try:
        solution = solve(problem)
    except SolverError:
        return
    assert np.isfinite(solution.coef).all()
    assert 0 <= solution.gap <= 1
    assert solution.converged == (solution.gap <= TOL)


def _extreme(parts):
    U, y, c = parts
    y = np.asarray(y, dtype=float)
    return Problem("", np.asarray(U, dtype=float), y, np.full(y.shape, np.asarray(c, float)))


def test_nothing_is_left_behind(monkeypatch):
    """Neither the filters nor scikit-learn's settings nor the inputs change."""
    monkeypatch.setattr(automatic, "ITERATIONS_PER_ROW", _Limit(1))
    problem = SHAPES["wide"]
    for array in (problem.U, problem.y, problem.c):
        array.setflags(write=False)
    filters, config = list(warnings.filters), get_config()
    Automatic(compiled=False).solve(problem.U, problem.y, problem.c)
    assert list(warnings.filters) == filters
    assert get_config() == config


def test_libsvm_itself_still_warns_of_its_limit():
    problem = SHAPES["apart, large costs"]
    with pytest.warns(ConvergenceWarning):
        LibSVM(max_iter=2).solve(problem.U, problem.y, problem.c)


@pytest.mark.parametrize("bad", ["one side", "negative", "nan"])
def test_what_no_solver_can_solve_is_refused(bad):
    problem = SHAPES["wide"]
    changed = {
        "one side": replace(problem, c=np.where(problem.y > 0, problem.c, 0.0)),
        "negative": replace(problem, c=-problem.c),
        "nan": replace(problem, U=problem.U * np.nan),
    }[bad]
    with pytest.raises(SolverError):
        Automatic().solve(changed.U, changed.y, changed.c)


def classes(n, r, seed, gap):
    rng = np.random.default_rng([99, seed])
    y = np.arange(n) % 3
    return rng.standard_normal((n, r)) + gap * rng.standard_normal((3, r))[y], y


TABLES = {"tall": (150, 6, 1.0), "apart": (150, 6, 6.0), "wide": (45, 60, 0.5)}


@pytest.mark.parametrize("shape", TABLES)
@pytest.mark.parametrize("model", [LSVA, MMDA, WSVDA])
def test_subspaces_do_not_depend_on_the_solver(model, shape):
    n, r, gap = TABLES[shape]
    X, y = classes(n, r, 1, gap)
    first, *others = (
        model(n_components=4, solver=solver).fit(X, y)
        for solver in ("auto", "interior_point", "libsvm")
    )
    for other in others:
        assert max(first.gap_.max(), other.gap_.max()) <= TOL
        assert_allclose(first.components_, other.components_, atol=1e-6)
        assert_allclose(first.transform(X), other.transform(X), atol=1e-5)


@pytest.mark.parametrize("shape", TABLES)
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_classifiers_do_not_depend_on_the_solver(kernel, shape):
    n, r, gap = TABLES[shape]
    X, y = classes(n, r, 2, gap)
    first, *others = (
        GESVC(kernel=kernel, solver=solver).fit(X, y)
        for solver in ("auto", "interior_point", "libsvm")
    )
    for other in others:
        assert max(first.gap_.max(), other.gap_.max()) <= TOL
        assert_allclose(first.decision_function(X), other.decision_function(X), atol=1e-6)
