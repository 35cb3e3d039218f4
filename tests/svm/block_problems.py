"""Support vector problems on rows in blocks, and the plain formulas that judge their solutions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import scipy.linalg
from svm.random_problems import Judgement, Problem, judge

from marginfold.linalg.tall import LocalBlocks, SharedRows
from marginfold.svm import InteriorPoint, SVMBatch, SVMSolution
from marginfold.svm.problem import CodedProblem

UNLABELLED = -1


@dataclass(frozen=True)
class Case:
    """Rows with class numbers and weights, and one problem on them."""

    Z: np.ndarray
    codes: np.ndarray
    weights: np.ndarray
    problem: CodedProblem

    def blocks(self, n_rows: int) -> LocalBlocks:
        return LocalBlocks.cut(self.Z, self.codes, self.weights, n_rows)

    @property
    def costs(self) -> np.ndarray:
        return self.weights * self.problem.costs[self.codes]

    @property
    def taken(self) -> np.ndarray:
        return self.costs > 0

    def batch(self) -> SVMBatch:
        """Return the same problem on an array of the rows that take part."""
        Z, codes = self.Z[self.taken], self.codes[self.taken]
        return SVMBatch(
            SharedRows(self.problem.features(Z)),
            self.problem.signs[codes][None],
            self.costs[self.taken][None],
            self.problem.scale[None],
            self.problem.deflated[None],
        )

    @cached_property
    def reference(self) -> SVMSolution:
        """The solution on all rows at once."""
        return InteriorPoint(tol=1e-8, compiled=False).solve_batch(self.batch())[0]

    def judge(self, solution: SVMSolution, dual: np.ndarray) -> Judgement:
        """Evaluate a solution and multipliers of all rows in extended precision."""
        assert (dual >= 0).all()
        assert (dual <= self.costs).all()
        N = self.problem.deflated
        assert np.abs(N.T @ solution.coef).max(initial=0.0) <= 1e-12 * np.linalg.norm(solution.coef)
        y = self.problem.signs[self.codes[self.taken]]
        plain = Problem("", self._whitened, y, self.costs[self.taken])
        return judge(plain, solution.coef, solution.intercept, dual[self.taken])

    @cached_property
    def _whitened(self) -> np.ndarray:
        return _whitened(self.Z[self.taken], self.problem)


def _whitened(Z: np.ndarray, problem: CodedProblem) -> np.ndarray:
    X = Z.astype(np.longdouble) - problem.centre
    if problem.rotation is not None:
        X = X @ problem.rotation.astype(np.longdouble)
    X = X * problem.scale
    N = problem.deflated.astype(np.longdouble)
    for _ in range(3):
        X = X - (X @ N) @ N.T
    return X


def _plain_problem(r: int, cost: float) -> CodedProblem:
    return CodedProblem(
        signs=np.array([-1.0, 1.0, 0.0]),
        costs=np.array([cost, cost, 0.0]),
        scale=np.ones(r),
        deflated=np.zeros((r, 0)),
        rotation=None,
        centre=np.zeros(r),
    )


def make_case(
    n: int,
    r: int,
    seed: int,
    *,
    signal: float = 0.7,
    share: float = 0.5,
    cost: float = 1.0,
    offset: float = 0.0,
) -> Case:
    """Return two clouds of rows, ``2 * signal`` apart, at random rows' numbers."""
    rng = np.random.default_rng([77, seed])
    codes = (rng.random(n) < share).astype(np.intp)
    codes[:2] = 0, 1
    codes = rng.permutation(codes)
    Z = rng.standard_normal((n, r)) + offset
    Z[:, 0] += signal * np.where(codes, 1.0, -1.0)
    problem = _plain_problem(r, cost)._replace(centre=Z.mean(axis=0))
    return Case(Z, codes, np.ones(n), problem)


def separable(case: Case, gap: float = 0.3) -> Case:
    """Pull the classes apart along the first coordinate."""
    side = np.where(case.codes, 1.0, -1.0)
    Z = case.Z.copy()
    Z[:, 0] = side * (gap + np.abs(Z[:, 0]))
    return replace(case, Z=Z)


def weighted(case: Case, decades: float, seed: int = 0) -> Case:
    """Give the rows weights over several powers of ten."""
    rng = np.random.default_rng([78, seed])
    return replace(case, weights=10 ** rng.uniform(-decades / 2, decades / 2, len(case.Z)))


def with_idle_rows(case: Case, *, zero: float = 0.2, unlabelled: float = 0.3) -> Case:
    """Take the weight or the label from some rows."""
    rng = np.random.default_rng(79)
    draw = rng.random(len(case.Z))
    weights = np.where(draw < zero, 0.0, case.weights)
    codes = np.where(draw > 1.0 - unlabelled, UNLABELLED, case.codes)
    return replace(case, weights=weights, codes=codes)


def duplicated(case: Case, copies: int = 4) -> Case:
    """Repeat a few rows many times, some of them with both labels."""
    rng = np.random.default_rng(80)
    index = rng.integers(0, len(case.Z) // copies, len(case.Z))
    return replace(case, Z=np.rint(2.0 * case.Z[index]) / 2.0, codes=case.codes)


def in_order(case: Case) -> Case:
    """Sort the rows by class, so that nearly every block has one class only."""
    order = np.argsort(case.codes, kind="stable")
    return replace(case, Z=case.Z[order], codes=case.codes[order], weights=case.weights[order])


def halved(case: Case) -> Case:
    """Let the classes have as many rows each: with small costs the bias has an interval."""
    codes = np.random.default_rng(84).permutation(np.arange(len(case.Z)) % 2)
    side = np.where(codes, 1.0, -1.0) - np.where(case.codes, 1.0, -1.0)
    Z = case.Z.copy()
    Z[:, 0] += 0.7 * side
    return replace(case, Z=Z, codes=codes)


def deflated(case: Case, k: int, seed: int = 0) -> Case:
    """Forbid k directions."""
    rng = np.random.default_rng([81, seed])
    N = scipy.linalg.qr(rng.standard_normal((case.Z.shape[1], k)), mode="economic")[0]
    return replace(case, problem=case.problem._replace(deflated=N))


def in_a_metric(case: Case, decades: float = 2.0, seed: int = 0) -> Case:
    """Rotate and scale what the solver sees."""
    rng = np.random.default_rng([82, seed])
    r = case.Z.shape[1]
    rotation = scipy.linalg.qr(rng.standard_normal((r, r)))[0]
    scale = 10 ** rng.uniform(-decades / 2, decades / 2, r)
    return replace(case, problem=case.problem._replace(rotation=rotation, scale=scale))


def random_case(seed: int) -> Case:
    """Return case number ``seed``: everything at random, sizes and costs log-uniform."""
    rng = np.random.default_rng([83, seed])
    n, r = round(10 ** rng.uniform(1.5, 3.3)), round(10 ** rng.uniform(0, 1.2))
    case = make_case(
        n,
        r,
        seed,
        signal=rng.choice([0.0, 0.3, 1.0, 3.0]),
        share=rng.choice([0.5, 0.1, 0.01]),
        cost=10 ** rng.uniform(-4, 4),
        offset=rng.choice([0.0, 100.0]),
    )
    changes = (
        separable,
        lambda c: weighted(c, 4.0, seed),
        with_idle_rows,
        halved,
        duplicated,
        in_order,
        lambda c: in_a_metric(c, seed=seed),
        lambda c: deflated(c, max(1, r // 3), seed) if r > 2 else c,
    )
    for change in changes:
        if rng.random() < 0.3:
            case = change(case)
    return case if _has_both_sides(case) else random_case(seed + 1_000_000)


def _has_both_sides(case: Case) -> bool:
    present = set(case.codes[case.taken].tolist())
    return {0, 1} <= present
