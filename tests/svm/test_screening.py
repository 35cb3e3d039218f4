"""Sifting against all rows at once; its certificate by plain formulas in extended precision."""

from __future__ import annotations

import warnings
from dataclasses import replace
from itertools import pairwise, product

import numpy as np
import pytest
from numpy.testing import assert_allclose
from svm.block_problems import (
    Case,
    deflated,
    duplicated,
    halved,
    in_a_metric,
    in_order,
    make_case,
    random_case,
    separable,
    weighted,
    with_idle_rows,
)
from svm.judging import HONEST, TOL, check_within_certificates

from marginfold.linalg.tall import LocalBlocks
from marginfold.svm import InteriorPoint, screening
from marginfold.svm.screening import dual_of, sift

FEASIBLE = 1e-12
"""Largest ``|y'a| / sum(a)`` of multipliers that were put together from a reduced problem."""

CLOSE = 1e-7
"""Largest difference of weights and bias, in units of the largest weight or 1."""

SOLVE_ZONE = InteriorPoint(tol=TOL).solve_zone


@pytest.fixture
def small_samples(monkeypatch):
    """Let samples be drawn and sifted on a few hundred rows as on millions."""
    monkeypatch.setattr(screening, "SAMPLE_ROWS", 100)
    monkeypatch.setattr(screening, "SMALL_CLASS", 20)
    monkeypatch.setattr(screening, "LOCAL_BLOCK", 64)


def run(case: Case, n_rows: int = 97, **options):
    """Sift with warnings as errors; return the solution and the multipliers of all rows."""
    blocks = case.blocks(n_rows)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("error")
        solution, sets = sift(blocks, [case.problem], SOLVE_ZONE, tol=TOL, **options)[0]
    dual = np.zeros(len(case.Z)) if sets is None else dual_of(blocks, case.problem, sets)
    return solution, dual


def check_honest(case: Case, solution, dual) -> None:
    """A gap may be reported larger than it is, never smaller; a dual point is feasible."""
    truth = case.judge(solution, dual)
    allowed = HONEST + truth.rounding
    assert truth.balance <= FEASIBLE
    assert truth.gap >= -allowed
    assert truth.gap - allowed <= solution.gap * (1 + 1e-3)
    assert solution.objective == pytest.approx(truth.objective, rel=allowed + truth.caution)
    assert solution.converged == (solution.gap <= TOL)


def check_same(case: Case, solution) -> None:
    expected = case.reference
    assert expected.converged
    assert solution.converged
    size = max(1.0, float(np.abs(expected.coef).max()))
    assert solution.objective == pytest.approx(expected.objective, rel=1e-9)
    assert_allclose(solution.coef, expected.coef, atol=CLOSE * size)
    assert solution.intercept == pytest.approx(expected.intercept, abs=CLOSE * size)


PLAIN = make_case(1500, 5, seed=1)
CASES = {
    "overlapping": PLAIN,
    "few rows": with_idle_rows(make_case(300, 3, seed=15)),
    "one column": make_case(1000, 1, seed=2),
    "separable": separable(PLAIN),
    "separable without a gap": separable(PLAIN, gap=0.0),
    "separable, large costs": separable(make_case(1500, 5, seed=3, cost=1e4)),
    "weak signal": make_case(1500, 5, seed=4, signal=0.02),
    "no signal": make_case(1500, 5, seed=5, signal=0.0, cost=10.0),
    "tiny costs": make_case(1500, 5, seed=6, cost=1e-5),
    "a bias with an interval": halved(make_case(1500, 5, seed=13, cost=1e-5)),
    "a bias with an interval and two scales": halved(
        replace(make_case(1500, 2, seed=14, cost=1e-3), weights=np.repeat([1.0, 2.0], 750))
    ),
    "huge costs": make_case(1500, 5, seed=7, cost=1e5),
    "one to 200": make_case(4000, 5, seed=8, share=0.005),
    "one to 200, apart": make_case(4000, 5, seed=9, share=0.005, signal=2.0),
    "weights over 3 decades": weighted(PLAIN, 3.0),
    "weights over 8 decades": weighted(PLAIN, 8.0),
    "rows without weight or class": with_idle_rows(PLAIN),
    "one to 200, with idle rows": with_idle_rows(make_case(6000, 5, seed=8, share=0.005)),
    "duplicates": duplicated(PLAIN),
    "weighted duplicates": weighted(duplicated(PLAIN), 2.0),
    "deflated": deflated(PLAIN, 2),
    "all but one direction deflated": deflated(PLAIN, 4),
    "rotated, scaled and deflated": deflated(in_a_metric(PLAIN), 2),
    "far from the origin": make_case(1500, 5, seed=10, offset=1e4),
    "in the order of the classes": in_order(PLAIN),
    "thirty columns": make_case(2500, 30, seed=11),
    "everything": in_order(
        deflated(in_a_metric(with_idle_rows(weighted(make_case(2000, 6, 12, offset=50), 2.0))), 2)
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_sifting_from_a_sample_gives_the_solution_of_all_rows(name, small_samples):
    solution, dual = run(CASES[name])
    check_honest(CASES[name], solution, dual)
    check_same(CASES[name], solution)


def test_the_iterations_of_all_zones_are_counted(small_samples):
    counted = []

    def solve(*given):
        solution = SOLVE_ZONE(*given)
        counted.append(solution.n_iter)
        return solution

    plane = np.append(PLAIN.reference.coef, PLAIN.reference.intercept)
    start = PLAIN.problem.plane(1.3 * plane[:-1], plane[-1] + 0.4)
    blocks = PLAIN.blocks(97)
    solution, _ = sift(blocks, [PLAIN.problem], solve, tol=TOL, starts=[(start, 0.3)])[0]
    assert len(counted) > 1
    assert solution.n_iter == sum(counted) > 0


def test_thirty_thousand_rows_take_the_work_of_three_iterations(small_samples):
    """A zone that is too wide has too many rows in every iteration."""
    case, work = make_case(30_000, 5, seed=3), []

    def solve(zone, *given):
        solution = SOLVE_ZONE(zone, *given)
        work.append(len(zone.costs) * solution.n_iter)
        return solution

    sift(case.blocks(1000), [case.problem], solve, tol=TOL)
    assert sum(work) <= 1.25 * 2.9 * 30_000


@pytest.mark.parametrize("name", CASES)
def test_sifting_from_the_neighborhood_of_the_solution(name):
    """As in a chain: the plane is slightly off, and the zone holds few rows."""
    case = CASES[name]
    expected = case.reference
    plane = case.problem.plane(1.02 * expected.coef, expected.intercept + 0.01)
    solution, dual = run(case, starts=[(plane, 0.2)])
    check_honest(case, solution, dual)
    check_same(case, solution)


def test_sixty_thousand_rows_as_they_come():
    """No constant is changed here."""
    case = with_idle_rows(weighted(make_case(60_000, 8, seed=20, share=0.1), 1.0), unlabelled=0.1)
    solution, dual = run(case, n_rows=7001)
    check_honest(case, solution, dual)
    check_same(case, solution)


@pytest.mark.parametrize(
    ("name", "n_rows"),
    [
        ("few rows", 1),
        ("overlapping", 64),
        ("overlapping", 1499),
        ("overlapping", 10_000),
        ("separable", 7),
        ("separable", 1499),
        ("everything", 7),
        ("everything", 1500),
    ],
)
def test_the_cut_into_blocks_does_not_matter(name, n_rows, small_samples):
    case = CASES[name]
    whole, _ = run(case, n_rows=len(case.Z))
    solution, dual = run(case, n_rows=n_rows)
    check_honest(case, solution, dual)
    assert_allclose(solution.coef, whole.coef, atol=1e-9 * max(1.0, np.abs(whole.coef).max()))
    assert solution.intercept == pytest.approx(whole.intercept, rel=1e-9, abs=1e-9)
    assert solution.objective == pytest.approx(whole.objective, rel=1e-11)


def test_empty_blocks_do_not_matter(small_samples):
    case = PLAIN
    cuts = [0, 0, 700, 700, 701, 1500, 1500]
    blocks = LocalBlocks(
        [
            replace(case.blocks(1500).blocks[0], start=i, **_part(case, i, j))
            for i, j in pairwise(cuts)
        ]
    )
    solution, sets = sift(blocks, [case.problem], SOLVE_ZONE, tol=TOL)[0]
    check_honest(case, solution, dual_of(blocks, case.problem, sets))
    check_same(case, solution)


def _part(case, i, j):
    return {"Z": case.Z[i:j], "codes": case.codes[i:j], "weights": case.weights[i:j]}


def test_several_problems_on_the_same_rows_are_those_one_by_one(small_samples):
    case = with_idle_rows(weighted(PLAIN, 1.0))
    variants = [
        case,
        replace(case, problem=case.problem._replace(costs=np.array([3.0, 0.1, 0.0]))),
        replace(case, problem=case.problem._replace(signs=-case.problem.signs)),
        in_a_metric(case),
        deflated(case, 3),
    ]
    found = sift(case.blocks(200), [v.problem for v in variants], SOLVE_ZONE, tol=TOL)
    for variant, (solution, sets) in zip(variants, found, strict=True):
        check_honest(variant, solution, dual_of(case.blocks(200), variant.problem, sets))
        check_same(variant, solution)


def test_one_class_against_the_rest_and_a_class_left_out(small_samples):
    """Three classes; the problems are 0 against the others, and 1 against 2."""
    rng = np.random.default_rng(30)
    codes = rng.integers(0, 3, 1800)
    Z = rng.standard_normal((1800, 4)) + np.eye(4)[codes]
    plain = PLAIN.problem._replace(scale=np.ones(4), deflated=np.zeros((4, 0)), centre=np.zeros(4))
    for signs, costs in (([1, -1, -1, 0], [2, 1, 1, 0]), ([1, 1, -1, 0], [0, 1, 1, 0])):
        problem = plain._replace(signs=np.array(signs, float), costs=np.array(costs, float))
        case = Case(Z, codes, np.ones(1800), problem)
        solution, dual = run(case)
        check_honest(case, solution, dual)
        check_same(case, solution)


WRONG = {
    "nothing": lambda rng, r: np.zeros(r + 1),
    "random": lambda rng, r: rng.standard_normal(r + 1),
    "large and random": lambda rng, r: 1e3 * rng.standard_normal(r + 1),
    "huge and right": lambda rng, r: np.append(1e6 * np.eye(r)[0], 0.0),
    "huge and reversed": lambda rng, r: np.append(-1e6 * np.eye(r)[0], 0.0),
    "all on one side": lambda rng, r: np.append(np.zeros(r), 1e3),
    "all on the margin of one side": lambda rng, r: np.append(np.zeros(r), 1.0),
}


@pytest.mark.parametrize(
    ("start", "delta"), [*product(WRONG, [0.0, 0.01, 1e6]), ("random", 1e-300)]
)
@pytest.mark.parametrize("name", ["separable", "rotated, scaled and deflated"])
def test_a_wrong_start_gives_no_false_certificate(name, start, delta):
    case = CASES[name]
    plane = WRONG[start](np.random.default_rng(31), case.Z.shape[1])
    solution, dual = run(case, n_rows=1500, starts=[(plane, delta)])
    assert np.isfinite(solution.coef).all()
    if solution.converged or np.isfinite(solution.objective):
        check_honest(case, solution, dual)
    if solution.converged:
        check_same(case, solution)


@pytest.mark.parametrize("start", WRONG)
def test_a_wrong_start_with_a_sensible_zone_ends_certified(start):
    case = CASES["overlapping"]
    plane = WRONG[start](np.random.default_rng(32), case.Z.shape[1])
    solution, _ = run(case, starts=[(plane, 0.5)])
    check_same(case, solution)


@pytest.mark.parametrize("delta", [0.5, 3.0])
def test_a_start_with_every_row_outside_begins_anew(delta):
    """The zone of such a plane is empty, and nothing is inside it."""
    case = CASES["separable"]
    solution, dual = run(case, starts=[(WRONG["huge and right"](None, case.Z.shape[1]), delta)])
    check_honest(case, solution, dual)
    check_same(case, solution)


def test_the_zone_is_as_wide_wherever_the_rows_are(small_samples):
    """It is a zone of margins, which an offset of all rows leaves as they are."""
    near, far = (make_case(6000, 3, seed=1, offset=offset) for offset in (0.0, 1e4))
    rows = [
        len(sift(case.blocks(997), [case.problem], SOLVE_ZONE, tol=TOL)[0][1].numbers)
        for case in (near, far)
    ]
    assert rows[0] < 4000
    assert rows[1] == pytest.approx(rows[0], rel=0.02)


def test_a_zone_that_grows_too_large_is_given_up():
    solution, dual = run(PLAIN, starts=[(np.zeros(6), 2.0)], largest=1499)
    assert not solution.converged
    assert solution.gap == np.inf
    assert not dual.any()


def test_a_row_at_the_edge_of_the_zone_is_on_one_side_of_it_only():
    """The width is the distance of a row, to the last bit: screen and dual must agree on it."""
    case = duplicated(PLAIN)
    expected = case.reference
    plane = case.problem.plane(expected.coef, expected.intercept)
    y = case.problem.signs[case.codes]
    t = y * (case.Z @ plane[:-1] + plane[-1]) - 1.0
    for distance in np.unique(np.abs(t[t < -0.1]))[:15]:
        for delta in (distance, np.nextafter(distance, 0.0), np.nextafter(distance, np.inf)):
            solution, dual = run(case, n_rows=113, starts=[(plane, delta)])
            check_honest(case, solution, dual)


def test_a_class_that_the_sample_misses(small_samples, monkeypatch):
    """Every 233rd row: a Fibonacci number, so that the numbers' places crowd in one corner."""
    monkeypatch.setattr(screening, "SMALL_CLASS", 1)
    codes = np.zeros(233 * 60, dtype=np.intp)
    codes[7::233] = 1
    Z = np.random.default_rng(41).standard_normal((len(codes), 5)) + 2.5 * codes[:, None]
    problem = PLAIN.problem._replace(costs=np.array([1.0, 50.0, 0.0]))
    case = Case(Z, codes, np.ones(len(codes)), problem)
    parts = case.blocks(1000).map(screening.sample, np.array([0.1, 0.1, 0.0]))
    assert not any(sampled.any() for _, sampled, _ in parts)
    solution, dual = run(case, n_rows=1000)
    check_honest(case, solution, dual)
    check_same(case, solution)


def test_the_rows_are_not_written_to(small_samples):
    case = in_a_metric(with_idle_rows(PLAIN))
    for array in (case.Z, case.codes, case.weights, case.problem.scale, case.problem.rotation):
        array.setflags(write=False)
    solution, _ = run(case)
    check_same(case, solution)


@pytest.mark.torture
def test_a_thousand_problems_are_honest_and_nearly_all_certified(small_samples, first_seed, card):
    n_problems, certified = 1000, 0
    for seed in range(first_seed, first_seed + n_problems):
        case = random_case(seed)
        solution, dual = run(case, n_rows=1 + seed % 300)
        if np.isfinite(solution.objective):
            check_honest(case, solution, dual)
        if solution.converged:
            check_within_certificates(solution, case.reference)
        card.add("problems in blocks of rows", "certified" if solution.converged else "admitted")
        certified += solution.converged
    assert certified >= 0.98 * n_problems
