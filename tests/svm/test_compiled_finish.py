"""The compiled face and certificate against those of NumPy, also at points far from optimal."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from importlib import import_module

import numpy as np
import pytest
from marginfold.svm.crossover import crossover
from marginfold.svm.shared_face import solve_on_face
from numpy.testing import assert_allclose, assert_array_equal
from svm.random_problems import KINDS, random_batch, random_problem
from svm.test_certificate import check_honest

from marginfold.linalg.tall import SharedRows
from marginfold.svm import InteriorPoint, SVMBatch
from marginfold.svm.active_set import face_of, solve_faces
from marginfold.svm.certificate import Limits, certify, certify_all
from marginfold.svm.problem import EPS, single, uncentre

pytest.importorskip("numba")
finish = import_module("marginfold.svm.compiled_finish")

TOL = 1e-8


def both_certificates(batch, coefs, duals):
    """The same points, certified one by one by compiled functions and side by side by NumPy."""
    with np.errstate(all="ignore"):
        return tuple(
            certify_all(batch.marked(compiled), coefs, duals, n_iter=7, tol=TOL)
            for compiled in (True, False)
        )


def check_same(found, expected, rel=1e-10):
    assert found.objective == pytest.approx(expected.objective, rel=rel)
    assert found.dual_objective == pytest.approx(expected.dual_objective, rel=rel, abs=1e-290)
    assert_allclose(found.dual, expected.dual, rtol=1e-12, atol=0)
    assert_allclose(found.coef, expected.coef, rtol=1e-10, atol=1e-12)
    assert found.intercept == pytest.approx(expected.intercept, rel=1e-9, abs=1e-9)
    assert (found.n_iter, found.converged) == (7, found.gap <= TOL)


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("quality", ["solution", "near", "random", "zero", "broken"])
def test_certificates_of_any_point_are_those_of_numpy(seed, quality):
    batch = random_batch(n_problems=3, n_deflated=seed % 3, seed=seed)
    rng = np.random.default_rng(seed)
    solutions = InteriorPoint(compiled=False).solve_batch(batch)
    coefs, duals = (np.stack([getattr(s, name) for s in solutions]) for name in ("coef", "dual"))
    if quality == "near":
        coefs = coefs * (1 + 1e-7 * rng.standard_normal(coefs.shape))
        duals = duals * (1 + 1e-7 * rng.standard_normal(duals.shape))
    elif quality == "random":
        coefs = rng.standard_normal(coefs.shape)
        duals = batch.costs * rng.uniform(-0.5, 1.5, duals.shape)
    elif quality == "zero":
        coefs, duals = np.zeros_like(coefs), np.zeros_like(duals)
    elif quality == "broken":
        coefs[0], coefs[1, 0], coefs[2] = np.nan, np.inf, 1e200
        duals[0, ::2], duals[1, ::3], duals[2, :] = np.nan, np.inf, -np.inf
    for found, expected in zip(*both_certificates(batch, coefs, duals), strict=True):
        check_same(found, expected)


@pytest.mark.parametrize("seed", range(3 * len(KINDS)))
def test_certificates_of_hostile_problems_are_honest(seed):
    """Judged by plain formulas in extended precision, at a point that may be far from optimal."""
    problem = random_problem(seed)
    if problem.U.shape[1] > 100:
        pytest.skip("not compiled")
    batch = single(problem.U, problem.y, problem.c).marked(compiled=True)
    rng = np.random.default_rng(seed)
    coef = rng.standard_normal(problem.U.shape[1]) * 10 ** rng.uniform(-3, 1)
    with np.errstate(all="ignore"):
        solution = certify(
            batch, 0, coef, problem.c * rng.random(len(problem.y)), n_iter=0, tol=TOL
        )
    check_honest(problem, uncentre(batch, 0, solution))


@pytest.mark.parametrize("seed", range(60))
def test_the_best_bias_against_all_break_points(seed):
    """In exact arithmetic; whole numbers make ties and flat pieces frequent."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 9 if seed < 40 else 200))
    y = np.where(rng.random(n) < 0.5, 1, -1)
    y[:2] = 1, -1
    f, c = rng.integers(-3, 4, n), rng.integers(0, 4, n)
    c[:2] = 1
    points = sorted({Fraction(int(y[i] - f[i])) for i in range(n) if c[i]})
    losses = [
        sum(int(c[i]) * max(Fraction(0), 1 - int(y[i]) * (int(f[i]) + b)) for i in range(n))
        for b in points
    ]
    best = [b for b, loss in zip(points, losses, strict=True) if loss == min(losses)]
    middle = finish._best_bias(*(part.astype(float) for part in (f, y, c)), EPS)
    assert middle == float((best[0] + best[-1]) / 2)


@pytest.mark.parametrize("seed", range(10))
def test_faces_are_those_of_numpy(seed):
    batch = random_batch(n_problems=4, n_deflated=seed % 3, seed=seed)
    solution = InteriorPoint(compiled=False).solve_batch(batch)[0]
    same = replace(
        batch, signs=batch.signs[[0] * 4].copy(), costs=batch.costs[[0] * 4].copy()
    )  # one face, several metrics
    lower, upper = face_of(solution.dual, batch.costs[0])
    free = np.flatnonzero(~(lower | upper))
    found, expected = (solve_faces(same.marked(flag), free, upper) for flag in (True, False))
    for part, wanted in zip(found, expected, strict=True):
        size = max(1.0, np.abs(wanted).max())
        assert_allclose(part, wanted, atol=1e-9 * size)
    assert_allclose(found.excess[:, free], 0.0, atol=1e-9)


@pytest.mark.parametrize("case", ["copies", "more rows than dimensions", "one row", "one place"])
def test_singular_faces_are_left_to_numpy(case):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((20, 3)), np.where(np.arange(20) % 2, 1.0, -1.0)
    free = np.arange(4)
    if case == "copies":
        X[1], y[1] = X[0], y[0]
    elif case == "more rows than dimensions":
        free = np.arange(8)
    elif case == "one row":
        free = np.arange(1)
    elif case == "one place":
        X[:] = 1.0
    upper = np.arange(20) >= 15
    batch = SVMBatch(SharedRows(X), y[None], np.ones((1, 20)), np.ones((1, 3)), np.zeros((1, 3, 0)))
    found, expected = (solve_faces(batch.marked(flag), free, upper) for flag in (True, False))
    if case != "one row":
        for part, wanted in zip(found, expected, strict=True):
            assert_array_equal(part, wanted)
    for part, wanted in zip(found, expected, strict=True):
        assert_allclose(part, wanted, atol=1e-9)


def test_without_free_rows_there_is_nothing_to_solve():
    batch = random_batch(n_problems=1)
    none, upper = np.empty(0, dtype=np.intp), np.ones(batch.signs.shape[1], dtype=bool)
    found, expected = (solve_faces(batch.marked(flag), none, upper) for flag in (True, False))
    for part, wanted in zip(found, expected, strict=True):
        assert_array_equal(part, wanted)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("n_wrong", [0, 3, 40])
def test_repaired_faces_are_those_of_numpy(seed, n_wrong):
    """A guess with a few wrong rows is repaired, one with many is given up or ends alike."""
    batch = random_batch(n_problems=1, n_deflated=seed % 3, seed=seed)
    (exact,) = InteriorPoint(compiled=False).solve_batch(batch)
    lower, upper = face_of(exact.dual, batch.costs[0])
    wrong = np.random.default_rng(seed).permutation(len(lower))[:n_wrong]
    lower[wrong], upper[wrong] = upper[wrong], False
    found, expected = (
        crossover(batch.marked(flag), 0, lower, upper, exact.dual, n_iter=7, tol=TOL)
        for flag in (True, False)
    )
    if expected is None or found is None:
        assert found is expected
    else:
        check_same(found, expected, rel=1e-9)
    if n_wrong == 0:
        assert found.gap <= 1e-12


@pytest.mark.parametrize("seed", range(6))
def test_problems_on_one_face_are_those_of_numpy(seed):
    """The metric changes little by little until a row leaves the face, which ends the stretch."""
    rng = np.random.default_rng(seed)
    one = random_batch(n_problems=1, n_deflated=seed % 3, seed=seed)
    steps = 1.0 + np.linspace(0.0, 3.0, 40)[:, None] * rng.random(one.scale.shape[1])
    batch = SVMBatch(
        one.rows,
        *(np.repeat(part, 40, axis=0) for part in (one.signs, one.costs)),
        one.scale * steps,
        np.repeat(one.deflated, 40, axis=0),
    )
    (first,) = InteriorPoint(compiled=False).solve_batch(one)
    found, expected = (
        solve_on_face(batch.marked(flag), range(40), first.dual, tol=TOL) for flag in (True, False)
    )
    assert len(found) == len(expected)
    assert 0 < len(found) < 40
    for mine, its in zip(found, expected, strict=True):
        check_same(replace(mine, n_iter=7), its, rel=1e-11)


@pytest.mark.parametrize("seed", range(5))
def test_what_a_solution_is_for_another_problem(seed):
    """The mean complementarity is the duality gap of the point, its bias kept, per multiplier."""
    batch = random_batch(n_problems=2, n_deflated=2, seed=seed)
    first, _ = InteriorPoint(compiled=False).solve_batch(batch)
    coef = first.coef.copy()
    found = finish.nearby(batch.marked(True).arrays(1), coef, first.intercept, first.dual, Limits())
    N, y, c = batch.deflated[1], batch.signs[1], batch.costs[1]
    X = batch.rows.features * batch.scale[1]
    kept = np.eye(len(N)) - N @ N.T
    s, pull = kept @ first.coef, kept @ (X.T @ (y * first.dual))
    hinge = np.maximum(0, 1 - y * (X @ s + first.intercept))
    excess = 0.5 * s @ s + c @ hinge - (first.dual.sum() - 0.5 * pull @ pull)
    assert_allclose(coef, s, atol=1e-12)
    assert found == pytest.approx(excess / (2 * c.sum()), rel=1e-9)


@pytest.mark.parametrize(("r", "k"), [(5, 0), (5, 1), (5, 4), (5, 5), (30, 9), (1, 1)])
@pytest.mark.parametrize("idle", [(), (0,), (1, 2)])
def test_the_complement_is_orthonormal(r, k, idle):
    rng = np.random.default_rng(r + k)
    N = np.linalg.qr(rng.standard_normal((r, k)))[0]
    N = np.insert(N, [min(at, k) for at in idle], 0.0, axis=1)  # zero columns are no directions
    basis = import_module("marginfold.svm.kernels").complement(np.ascontiguousarray(N))
    assert basis.shape == (r, r - k)
    assert_allclose(basis.T @ basis, np.eye(r - k), atol=1e-14)
    assert_allclose(basis.T @ N, 0.0, atol=1e-14)


def test_users_arrays_may_be_of_any_kind():
    """Read-only, strided or whole numbers: compiled functions would be compiled again for each."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((60, 4)), np.where(rng.random(60) < 0.5, 1, -1)
    strided = np.repeat(y, 2)[::2]
    frozen = np.ones(60)
    frozen.setflags(write=False)
    before = [len(part.signatures) for part in (finish.certify, finish.solve_face)]
    expected = InteriorPoint(compiled=True).solve(X, y.astype(float), np.ones(60))
    for signs, costs in [(y, 1), (strided, frozen), (y.astype(np.int8), np.ones(120)[::2])]:
        found = InteriorPoint(compiled=True).solve(X, signs, costs)
        assert_array_equal(found.coef, expected.coef)
    assert [len(part.signatures) for part in (finish.certify, finish.solve_face)] == before
