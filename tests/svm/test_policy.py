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
from svm.judging import BOTH_WAYS, TOL, check_certified, check_within_certificates, seen
from svm.random_problems import Problem

from marginfold import GESVC, LSVA, MMDA, WSVDA
from marginfold.errors import SolverError
from marginfold.linalg.tall import SharedRows
from marginfold.svm import Automatic, InteriorPoint, LibSVM, SVMBatch


def solve(problem: Problem, compiled=False):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return Automatic(tol=TOL, compiled=compiled).solve(problem.U, problem.y, problem.c)


def plain(problem: Problem):
    """Return what the iteration finds on all rows."""
    return InteriorPoint(tol=TOL, compiled=False).solve(problem.U, problem.y, problem.c)


def clouds(n, r, *, apart=0.0, cost=1.0, seed=0):
    rng = np.random.default_rng([97, seed])
    y = rng.permutation(np.where(np.arange(n) % 2, 1.0, -1.0))
    U = rng.standard_normal((n, r)) + 1.0
    U[:, 0] += apart * y
    return Problem(f"{n} x {r}", U, y, np.full(n, cost))


SHAPES = {
    "overlapping": clouds(600, 4, apart=0.5),
    "apart": clouds(600, 4, apart=5.0),
    "apart, large costs": clouds(600, 4, apart=3.5, cost=1e5),
    "many rows apart": clouds(5000, 10, apart=4.0),
    "many rows, large costs": clouds(5000, 10, apart=4.0, cost=1e5),
    "wide": clouds(30, 200),
    "wide and apart": clouds(30, 200, apart=9.0),
    "wide, tiny costs": clouds(30, 200, cost=1e-6),
    "many dimensions, few rows": clouds(500, 120, apart=0.5),
    "many dimensions, many rows": clouds(1000, 120, apart=0.5),
}


@BOTH_WAYS
@pytest.mark.parametrize("name", SHAPES)
def test_every_shape_is_solved_exactly(name, compiled):
    problem = SHAPES[name]
    solution, expected = solve(problem, compiled), plain(problem)
    check_certified(problem, solution)
    size = max(1.0, np.abs(expected.coef).max())
    assert_allclose(solution.coef, expected.coef, atol=1e-7 * size)
    assert solution.intercept == pytest.approx(expected.intercept, abs=1e-6 * size)
    assert solution.objective == pytest.approx(expected.objective, rel=1e-9)


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
    return SVMBatch(SharedRows(U), signs, costs, scale, deflated)


@BOTH_WAYS
@pytest.mark.parametrize("r", [4, 100])
def test_batches_with_idle_rows_deflation_and_scales(r, compiled):
    batch = varied_batch(r=r)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        solutions = Automatic(tol=TOL, compiled=compiled).solve_batch(batch)
    expected = InteriorPoint(tol=TOL, compiled=False).solve_batch(batch)
    for b, (solution, other) in enumerate(zip(solutions, expected, strict=True)):
        check_certified(seen(batch, b), solution)
        assert np.abs(batch.deflated[b].T @ solution.coef).max() <= 1e-12
        check_within_certificates(solution, other)
        assert solution.intercept == pytest.approx(other.intercept, abs=1e-6)


@BOTH_WAYS
@pytest.mark.parametrize("name", ["wide", "overlapping", "many rows apart"])
def test_nothing_is_left_behind(name, compiled):
    """Neither the filters nor scikit-learn's settings nor the inputs change."""
    problem = SHAPES[name]
    arrays = problem.U, problem.y, problem.c
    before = [array.copy() for array in arrays]
    for array in arrays:
        array.setflags(write=False)
    filters, config, errors = list(warnings.filters), get_config(), np.geterr()
    Automatic(compiled=compiled).solve(problem.U, problem.y, problem.c)
    assert list(warnings.filters) == filters
    assert get_config() == config
    assert np.geterr() == errors
    assert all((array == copy).all() for array, copy in zip(arrays, before, strict=True))


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
