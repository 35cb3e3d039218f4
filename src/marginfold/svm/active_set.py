"""From a nearly optimal point to the exact one: the equations of an active set, and its repair.

Once it is known which multipliers are 0 (`lower`), which are c (`upper`) and which are free, the
solution follows from linear equations: ``y_i (x_i's + b) = 1`` on the free rows and ``y'a = 0``.
Crossing over from an interior point to this vertex is the crossover of linear programming; a guess
that was slightly wrong is repaired by moving the rows that violate their sign.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import scipy.linalg
from scipy.linalg import lapack

from marginfold.linalg.tall import Array
from marginfold.svm.certificate import certify
from marginfold.svm.problem import TOLERANCES, Point, SVMProblem, gap_of, without

RESOLUTION = 1e-12
"""Relative size of the eigenvalues of singular equations that count as zero."""

ROUNDS, NEIGHBORS = 6, 2
"""Largest number of repaired guesses, and where the active set is that of another problem."""


class Face(NamedTuple):
    """The point that satisfies the equations, and ``excess = y (x's + b) - 1`` of all rows."""

    coef: Array
    intercept: float
    dual: Array
    excess: Array


def sets_of(dual: Array, costs: Array) -> tuple[Array, Array]:
    """Return which multipliers are 0 and which are at their bounds."""
    return dual <= TOLERANCES.bound * costs, dual >= (1.0 - TOLERANCES.bound) * costs


def crossover(problem: SVMProblem, lower: Array, upper: Array, dual: Array) -> Point | None:
    """Return the best certified point on the active sets that a nearly optimal point suggests."""
    best = None
    for guess in _guesses(problem, lower, upper, dual):
        found = repair(problem, *guess)
        if best is None or (found is not None and gap_of(found) < gap_of(best)):
            best = found
        if best is not None and gap_of(best) <= TOLERANCES.exact:
            break
    return best


def _guesses(
    problem: SVMProblem, lower: Array, upper: Array, dual: Array
) -> Iterator[tuple[Array, Array]]:
    """Yield active sets, the likeliest first.

    With more free rows than dimensions the equations are singular: first those rows that are
    nearest to a bound go to it.
    """
    free, c = ~(lower | upper), problem.costs
    most = len(problem.scale) - np.count_nonzero(problem.deflated.any(axis=0)) + 1
    if np.count_nonzero(free) > most:
        share = np.full(len(c), -1.0)  # of the cost; rows without one are at both bounds
        share[free] = np.minimum(dual, c - dual)[free] / c[free]
        surplus = np.argsort(-share)[most:]
        surplus = surplus[share[surplus] >= 0]
        below, above = lower.copy(), upper.copy()
        above[surplus] = dual[surplus] > 0.5 * c[surplus]
        below[surplus] = ~above[surplus]
        yield below, above
    yield lower, upper


def on_sets_of(problem: SVMProblem, dual: Array) -> Point | None:
    """Return the exact point on the active set of another problem's multipliers, if it is one."""
    found = repair(problem, *sets_of(dual, problem.costs), rounds=NEIGHBORS, early=True)
    return found if found is not None and gap_of(found) <= TOLERANCES.exact else None


def repair(
    problem: SVMProblem, lower: Array, upper: Array, *, rounds: int = ROUNDS, early: bool = False
) -> Point | None:
    """Solve the equations and move the rows that violate their sign, until none does.

    With ``early`` a set that is wrong is repaired without a certificate while rounds are left.
    """
    T, c = TOLERANCES, problem.costs
    best: Point | None = None
    for left in reversed(range(rounds)):
        free = ~(lower | upper)
        if np.count_nonzero(free) > problem.most_free:
            return best
        face = solve_equations(problem, np.flatnonzero(free), upper)
        if not np.isfinite(face.coef).all():
            return best
        dual, excess = face.dual, face.excess
        kept_lower = lower & (excess >= -T.violation)
        kept_upper = upper & (excess <= T.violation)
        outside = free & ((dual < -T.bound * c) | (dual > (1.0 + T.bound) * c))
        wrong = outside.any() or not ((kept_lower == lower).all() and (kept_upper == upper).all())
        if not (wrong and left and early):
            candidate = certify(problem, face.coef, dual)
            if best is None or gap_of(candidate) < gap_of(best):
                best = candidate
            if gap_of(best) <= T.exact:
                return best
        new_lower = kept_lower | (free & (dual < 0))
        new_upper = kept_upper | (free & (dual > c))
        if (new_lower == lower).all() and (new_upper == upper).all():
            return best
        lower, upper = new_lower, new_upper
    return best


def solve_equations(problem: SVMProblem, free: Array, upper: Array) -> Face:
    """Solve the equations of an active set; singular ones get the solution of least norm.

    ``free`` are row numbers, ``upper`` is a mask.
    """
    y, c, N, m = problem.signs, problem.costs, problem.deflated, len(free)
    X = problem.whitened(free)
    centre = X.sum(axis=0) / max(m, 1)
    X -= centre
    pushed = np.where(upper, c, 0.0)
    total, values = float(pushed @ y), y[free]
    s = problem.pull(pushed) - centre * total
    size = float(np.einsum("ij,ij->", X, X)) / max(m, 1) or 1.0  # beta is in units of 1 / size
    system = np.ones((m + 1, m + 1))
    system[:m, :m] = (X @ X.T) / size
    system[m, m] = 0.0
    solve = linear_solver(system)
    beta, intercept, right = np.zeros(m), 0.0, np.empty(m + 1)
    for _ in range(1 + TOLERANCES.refinements):
        right[:m] = values - X @ s - intercept
        right[m] = (-total - beta.sum()) * size
        change = solve(right)
        intercept += float(change[m])
        beta += change[:m] / size
        s += (change[:m] / size) @ X
    s = without(N, s)
    intercept -= float(centre @ s)
    dual = pushed
    dual[free] = values * beta
    excess = y * (problem.features @ (s * problem.scale) + intercept) - 1.0
    return Face(s, intercept, dual, excess)


def linear_solver(system: Array) -> Callable[[Array], Array]:
    """Return a solver of symmetric equations, by their regular part if they are singular."""
    factors, pivots, failed = lapack.dgetrf(system)
    sizes = np.abs(factors.diagonal())
    if not failed and sizes.min() > TOLERANCES.regular * sizes.max():
        return lambda right: np.asarray(lapack.dgetrs(factors, pivots, right)[0])
    if not np.isfinite(system).all():
        return lambda right: np.full_like(right, np.nan)
    values, vectors = scipy.linalg.eigh(system, check_finite=False)
    kept = np.abs(values) > RESOLUTION * np.abs(values).max()
    values, vectors = values[kept], vectors[:, kept]
    return lambda right: np.asarray(vectors @ ((right @ vectors) / values))
