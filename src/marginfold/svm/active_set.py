"""From a nearly optimal point to the exact one: the equations of an active set, and its repair.

Once it is known which multipliers are 0 (`lower`), which are c (`upper`) and which are free, the
solution follows from linear equations: ``y_i (x_i's + b) = 1`` on the free rows and ``y'a = 0``.
Crossing over from an interior point to this vertex is the crossover of linear programming; a guess
that was slightly wrong is repaired by moving the rows that violate their sign.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from scipy.linalg import lapack

from marginfold.linalg.decompositions import cholesky, eigh
from marginfold.linalg.tall import Array, gram
from marginfold.runtime.threads import threads_for
from marginfold.svm.certificate import certify
from marginfold.svm.problem import TOLERANCES, Face, Kernels, Point, SVMProblem, gap_of, without

RESOLUTION = 1e-12
"""Relative size of the eigenvalues of singular equations that count as zero, and of the squared
distance of two copies of a row."""

ROUNDS = 6
"""Largest number of repaired guesses."""

STALLED = 0.5
"""Share of the gap before, above which a repaired guess is given up: 0.8 of the time for separable
classes with singular equations (soybean, sonar), where 1 saves half as much."""


def sets_of(dual: Array, costs: Array) -> tuple[Array, Array]:
    """Return which multipliers are 0 and which are at their bounds."""
    return dual <= TOLERANCES.bound * costs, dual >= (1.0 - TOLERANCES.bound) * costs


def crossover(
    problem: SVMProblem, lower: Array, upper: Array, dual: Array, kernels: Kernels
) -> Point | None:
    """Return the best certified point on the active sets that a nearly optimal point suggests."""
    best = None
    for guess in _guesses(problem, lower, upper, dual):
        found = repair(problem, *guess, kernels)
        if best is None or (found is not None and gap_of(found) < gap_of(best)):
            best = found
        if best is not None and gap_of(best) <= TOLERANCES.exact:
            break
    return best


def _guesses(
    problem: SVMProblem, lower: Array, upper: Array, dual: Array
) -> Iterator[tuple[Array, Array]]:
    """Yield active sets, the likeliest first; none if far too many rows are still free.

    With more free rows than dimensions the equations are singular: first those rows that are
    nearest to a bound go to it.
    """
    free, c = ~(lower | upper), problem.costs
    if np.count_nonzero(free) > problem.most_free:
        return
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


def on_sets_of(problem: SVMProblem, dual: Array, kernels: Kernels) -> Point | None:
    """Return the exact point on the active set of another problem's multipliers, if it is one."""
    sets = sets_of(dual, problem.costs)
    found = repair(problem, *sets, kernels, early=True)
    return found if found is not None and gap_of(found) <= TOLERANCES.exact else None


def repair(
    problem: SVMProblem,
    lower: Array,
    upper: Array,
    kernels: Kernels,
    *,
    early: bool = False,
) -> Point | None:
    """Solve the equations and move the rows that violate their sign, until none does.

    With ``early`` a set that is wrong is repaired without a certificate while rounds are left, and
    one with singular equations is given up.
    """
    best = None
    for left in reversed(range(ROUNDS)):
        free = np.flatnonzero(~(lower | upper))
        if len(free) > problem.most_free:
            return best
        face = kernels.solve_equations(problem, free, upper)
        if face is None and not early:
            face = solve_equations(problem, free, upper, least_norm=True)
        if face is None or not np.isfinite(face.coef @ face.coef):
            return best
        if not (early and left and _is_wrong(problem, face, lower, upper, free)):
            candidate = certify(problem, face.coef, face.dual, kernels)
            if best is not None and gap_of(candidate) > STALLED * gap_of(best):
                return min(best, candidate, key=gap_of)
            best = candidate
            if gap_of(best) <= TOLERANCES.exact:
                return best
        below, above = repaired(lower, upper, face.dual, problem.costs, face.excess)
        if (below == lower).all() and (above == upper).all():
            return best
        lower, upper = below, above
    return best


def repaired(
    lower: Array, upper: Array, dual: Array, costs: Array, excess: Array
) -> tuple[Array, Array]:
    """Return active sets in which the rows that violate their sign have moved."""
    margin = TOLERANCES.violation
    new_lower = (lower & (excess >= -margin)) | ((dual < 0) & ~upper)
    new_upper = (upper & (excess <= margin)) | ((dual > costs) & ~lower)
    return new_lower, new_upper


def _is_wrong(problem: SVMProblem, face: Face, lower: Array, upper: Array, free: Array) -> bool:
    """Return whether a row violates its sign, or a free multiplier its bounds."""
    T, own, bounds = TOLERANCES, face.dual[free], problem.costs[free]
    return bool(
        (face.excess < -T.violation)[lower].any()
        or (face.excess > T.violation)[upper].any()
        or ((own < -T.bound * bounds) | (own > (1.0 + T.bound) * bounds)).any()
    )


def solve_equations(
    problem: SVMProblem, free: Array, upper: Array, *, least_norm: bool = False
) -> Face | None:
    """Solve the equations of an active set; None if they are singular.

    With ``least_norm`` singular ones get the solution of least norm.

    With centred free rows X and ``a = y beta`` they are ``X X' beta + b = y - X s`` and a given sum
    of beta; as ``1'X = 0``, b is the mean of the right side and ``X X' + 1 1'`` is definite.
    ``free`` are row numbers, ``upper`` is a mask.
    """
    y, c, N, m = problem.signs, problem.costs, problem.deflated, len(free)
    X = problem.whitened(free)
    centre = X.sum(axis=0) / max(m, 1)
    X -= centre
    pushed = np.where(upper, c, 0.0)
    total, values = float(pushed @ y), y[free]
    s = problem.pull(pushed) - centre * total
    size = float(np.einsum("ij,ij->", X, X)) / max(m, 1)  # beta is in units of 1 / size
    if size <= TOLERANCES.copies**2 * float(centre @ centre):
        size = 1.0
    solve = definite_solver(gram(X.T) / size + 1.0, least_norm)
    if solve is None:
        return None
    beta, intercept = np.zeros(m), 0.0
    for _ in range(1 + TOLERANCES.refinements if m else 0):
        right = values - X @ s - intercept
        mean = right.sum() / m  # the rows are centred: the equations add up to those of the bias
        change = solve(right - mean - (total + beta.sum()) * size) / size
        intercept += mean
        beta += change
        s += change @ X
    s = without(N, s)
    intercept -= float(centre @ s)
    dual = pushed
    dual[free] = values * beta
    excess = y * (problem.features @ (s * problem.scale) + intercept) - 1.0
    return Face(s, dual, excess)


def definite_solver(system: Array, least_norm: bool) -> Callable[[Array], Array] | None:
    """Return a solver of symmetric equations; of singular ones None, or that of least norm."""
    solve = _regular_solver(system)
    if solve is None and least_norm and np.isfinite(system).all():
        return _least_norm_solver(system)
    return solve


def _regular_solver(system: Array) -> Callable[[Array], Array] | None:
    """Return a solver of definite equations, None if they are singular."""
    with threads_for(len(system), len(system)):
        factor, failed = cholesky(system, lower=True)
    pivots = factor.diagonal() ** 2 / system.diagonal()
    if failed or not pivots.min(initial=1.0) > TOLERANCES.regular:
        return None
    return lambda right: np.asarray(lapack.dpotrs(factor, right, lower=1)[0])


def _least_norm_solver(system: Array) -> Callable[[Array], Array]:
    """Return a solver of singular equations, as good as can be and of least norm.

    Copies of a row have equal shares of what one of them would have; with one of each the equations
    are regular as a rule, and solved in a tenth of the time that all eigenvectors take.
    """
    kept, place, counts = np.unique(_first_copies(system), return_inverse=True, return_counts=True)
    if len(kept) == len(system):
        return _regular_part_solver(system)
    lengths = np.sqrt(counts)  # of the indicators of copies, an orthogonal basis
    merged = system[np.ix_(kept, kept)] * lengths * lengths[:, None]
    solve = _regular_solver(merged) or _regular_part_solver(merged)
    return lambda right: (solve(np.bincount(place, right) / lengths) / lengths)[place]


def _first_copies(system: Array) -> Array:
    """Return the number of the first row that each is a copy of, up to rounding."""
    squares = system.diagonal()
    distances = squares + squares[:, None]
    limits = RESOLUTION * np.abs(distances)
    distances -= 2.0 * system
    return np.asarray((distances <= limits).argmax(axis=1))


def _regular_part_solver(system: Array) -> Callable[[Array], Array]:
    """Return a solver by the eigenvectors that belong to no eigenvalue of zero."""
    values, vectors = eigh(system)
    kept = np.abs(values) > RESOLUTION * np.abs(values).max()
    values, vectors = values[kept], vectors[:, kept]
    return lambda right: np.asarray(vectors @ ((right @ vectors) / values))
