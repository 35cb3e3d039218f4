"""The end of a solve, compiled by numba: the equations of a face and the certificate, one problem.

The formulas are those of `faces` and `certificate`, which explain them; on a few hundred rows
NumPy's calls take several times as long as the arithmetic.  The best bias is found by selection
instead of sorting.  Rows are given with the column of ones (``table``), which is not used.

All of it is in one file, because numba keeps a compiled function, with those it calls, until the
file of that function changes.  Inner loops run over views of one row: those vectorise.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from marginfold.linalg.tall import Array
from marginfold.runtime.jit import OPTIONS
from marginfold.svm.active_set import FaceRules
from marginfold.svm.certificate import Limits

Problem = tuple[Array, Array, Array, Array, Array, Array]
"""Table and centre of the rows; labels, costs, scale and deflated directions."""

Point = tuple[Array, float, Array, float, float]
"""Direction, intercept, feasible multipliers, objective and dual objective."""

TINY = float(np.finfo(np.float64).tiny)

kernel = njit(**OPTIONS)


def first_call() -> None:
    """Compile what is called from outside, or load what was compiled before."""
    table, y, c = np.array([[-1.0, 1.0], [1.0, 1.0]]), np.array([-1.0, 1.0]), np.ones(2)
    scale, N = np.ones(1), np.zeros((1, 0))
    solve_face(table, y, c, scale, N, np.arange(2), np.zeros(2, dtype=bool), FaceRules())
    problem = table, np.zeros(1), y, c, scale, N
    certify(problem, np.ones(1), np.ones(2), Limits())
    none = np.zeros(2, dtype=bool)
    repair(problem, none, none, 1, False, 2, Limits(), FaceRules())
    solve_on_face(problem, scale[None], N[None], none, none, Limits(), FaceRules())
    nearby(problem, np.ones(1), 0.0, np.ones(2), Limits())


@kernel
def solve_face(
    table: Array,
    y: Array,
    c: Array,
    scale: Array,
    N: Array,
    free: Array,
    upper: Array,
    rules: FaceRules,
) -> tuple[bool, Array, float, Array, Array]:
    """Return whether the equations are regular, and s, the intercept, multipliers and excess."""
    n, r, m = len(y), len(scale), len(free)
    X, centre = np.empty((m, r)), np.zeros(r)
    for k in range(m):
        x, row = X[k], table[free[k]]
        for j in range(r):
            x[j] = row[j] * scale[j]
        _project(N, x, rules.passes)
        for j in range(r):
            centre[j] += x[j] / m
    size = 0.0
    for k in range(m):
        x = X[k]
        for j in range(r):
            x[j] -= centre[j]
            size += x[j] * x[j]
    size = size / m if size > 0.0 else 1.0
    dual, excess, total = np.zeros(n), np.empty(n), 0.0
    for i in range(n):
        if upper[i]:
            dual[i] = c[i]
            total += y[i] * c[i]
    s = _pull(table, y, dual, scale, N, rules.passes)
    for j in range(r):
        s[j] -= centre[j] * total
    system = np.ones((m + 1, m + 1))
    system[m, m] = 0.0
    for k in range(m):
        for h in range(k + 1):
            product, first, second = 0.0, X[k], X[h]
            for j in range(r):
                product += first[j] * second[j]
            system[k, h] = system[h, k] = product / size
    pivots = np.empty(m + 1, dtype=np.intp)
    if not _eliminate(system, pivots, rules.regular):
        return False, s, 0.0, dual, excess
    beta, intercept, right = np.zeros(m), 0.0, np.empty(m + 1)
    for _ in range(1 + rules.refinements):
        right[m] = -total
        for k in range(m):
            score, x = intercept, X[k]
            for j in range(r):
                score += x[j] * s[j]
            right[k] = y[free[k]] - score
            right[m] -= beta[k]
        right[m] *= size
        _substitute(system, pivots, right)
        intercept += right[m]
        for k in range(m):
            change, x = right[k] / size, X[k]
            beta[k] += change
            for j in range(r):
                s[j] += change * x[j]
    _project(N, s, rules.passes)
    weights = np.empty(r)
    for j in range(r):
        intercept -= centre[j] * s[j]
        weights[j] = scale[j] * s[j]
    for k in range(m):
        dual[free[k]] = y[free[k]] * beta[k]
    _scores(table, weights, excess)
    for i in range(n):
        excess[i] = y[i] * (excess[i] + intercept) - 1.0
    return True, s, intercept, dual, excess


@kernel
def repair(
    problem: Problem,
    lower: Array,
    upper: Array,
    rounds: int,
    hasty: bool,
    most_free: int,
    limits: Limits,
    rules: FaceRules,
) -> tuple[bool, float, Point]:
    """Do what `crossover._repair` does; return whether it could, and the best point with its gap.

    ``lower`` and ``upper`` are changed.  It cannot where no row is free and where the equations are
    singular.
    """
    table, _, y, c, scale, N = problem
    n = len(y)
    best_gap, best = np.inf, (np.zeros(0), 0.0, np.zeros(0), np.inf, 0.0)
    for left in range(rounds - 1, -1, -1):
        free = _free(lower, upper)
        m = len(free)
        if m > most_free:
            return True, best_gap, best
        if m == 0:
            return False, best_gap, best
        regular, s, _, dual, excess = solve_face(table, y, c, scale, N, free, upper, rules)
        if not regular:
            return False, best_gap, best
        if not _all_finite(s):
            return True, best_gap, best
        wrong = False
        for k in range(m):
            i = free[k]
            wrong |= dual[i] < -rules.bound * c[i] or dual[i] > (1.0 + rules.bound) * c[i]
        for i in range(n):
            wrong |= lower[i] and not excess[i] >= -rules.violation
            wrong |= upper[i] and not excess[i] <= rules.violation
        if not (wrong and left and hasty):
            point = certify(problem, s, dual, limits)
            gap = max(point[3] - point[4], 0.0) / max(point[3], TINY)
            if gap < best_gap:
                best_gap, best = gap, point
            if best_gap <= limits.exact:
                return True, best_gap, best
        moved = False
        for i in range(n):
            if lower[i] or upper[i]:
                stays_lower = lower[i] and excess[i] >= -rules.violation
                stays_upper = upper[i] and excess[i] <= rules.violation
            else:
                stays_lower, stays_upper = dual[i] < 0, dual[i] > c[i]
            moved |= stays_lower != lower[i] or stays_upper != upper[i]
            lower[i], upper[i] = stays_lower, stays_upper
        if not moved:
            return True, best_gap, best
    return True, best_gap, best


@kernel
def solve_on_face(
    problem: Problem,
    scales: Array,
    deflated: Array,
    lower: Array,
    upper: Array,
    limits: Limits,
    rules: FaceRules,
) -> tuple[int, Array, Array, Array, Array]:
    """Do what `shared_face.solve_on_face` does, for stacked metrics of one problem.

    Returns their number, directions, intercepts, multipliers and both objectives.
    """
    table, centre, y, c, _, _ = problem
    free = _free(lower, upper)
    coefs, duals = np.empty(scales.shape), np.empty((len(scales), len(y)))
    intercepts, objectives = np.empty(len(scales)), np.empty((len(scales), 2))
    good = 0
    for b in range(len(scales)):
        scale, N = scales[b], deflated[b]
        regular, s, _, dual, excess = solve_face(table, y, c, scale, N, free, upper, rules)
        if not (regular and _all_finite(s)):
            break
        wrong = False
        for i in range(len(y)):
            wrong |= lower[i] and excess[i] < -rules.violation
            wrong |= upper[i] and excess[i] > rules.violation
            wrong |= dual[i] < 0.0 or dual[i] > c[i]
        if wrong:
            break
        point = certify((table, centre, y, c, scale, N), s, dual, limits)
        if max(point[3] - point[4], 0.0) > limits.exact * max(point[3], TINY):
            break
        coef, intercepts[b], feasible, objectives[b, 0], objectives[b, 1] = point
        for j in range(len(coef)):
            coefs[b, j] = coef[j]
        for i in range(len(y)):
            duals[b, i] = feasible[i]
        good += 1
    return good, coefs, intercepts, duals, objectives


@kernel
def nearby(problem: Problem, coef: Array, intercept: float, dual: Array, limits: Limits) -> float:
    """Return the mean complementarity of a point, in units of the mean cost; project the coef."""
    table, _, y, c, scale, N = problem
    n, r = len(y), len(scale)
    _project(N, coef, limits.passes)
    weights, f = np.empty(r), np.empty(n)
    for j in range(r):
        weights[j] = scale[j] * coef[j]
    _scores(table, weights, f)
    excess, total = 0.0, 0.0
    for i in range(n):
        excess += c[i] * max(1.0 - y[i] * (f[i] + intercept), 0.0) - dual[i]
        total += c[i]
    pull = _pull(table, y, dual, scale, N, limits.passes)
    for j in range(r):
        excess += 0.5 * (coef[j] * coef[j] + pull[j] * pull[j])
    return excess / (2.0 * total)


@kernel
def certify(problem: Problem, coef: Array, guess: Array, limits: Limits) -> Point:
    """Return what `certificate.certify` returns."""
    table, _, y, c, scale, N = problem
    dual, side = _feasible(y, c, guess)
    pull, bound = _dual_value(table, y, dual, scale, N, limits)
    if not bound >= 0.0:  # a = 0 is feasible and better
        dual, pull, bound = np.zeros(len(y)), np.zeros(len(coef)), 0.0
    found, intercept, factor = _evaluate(problem, coef, dual, bound, limits)
    chosen = coef
    if _is_doubtful(found, bound, limits):
        other = _evaluate(problem, pull, dual, bound, limits)
        if other[0] < found:
            chosen, (found, intercept, factor) = pull, other
        if not found <= 2.0 * side:  # s = 0 is better
            chosen = np.zeros(len(coef))
            found, intercept, factor = _evaluate(problem, chosen, dual, bound, limits)
    direction = np.empty(len(coef))
    for j in range(len(coef)):
        direction[j] = factor * chosen[j]
    return direction, intercept, dual, found, bound


@kernel
def _free(lower: Array, upper: Array) -> Array:
    """Return the rows at neither bound."""
    count = 0
    for i in range(len(lower)):
        count += not (lower[i] or upper[i])
    rows, k = np.empty(count, dtype=np.intp), 0
    for i in range(len(lower)):
        if not (lower[i] or upper[i]):
            rows[k] = i
            k += 1
    return rows


@kernel
def _all_finite(vector: Array) -> bool:
    finite = True
    for j in range(len(vector)):
        finite &= np.isfinite(vector[j])
    return finite


@kernel
def _is_doubtful(objective: float, bound: float, limits: Limits) -> bool:
    close = objective - bound <= limits.exact * objective
    return not close or not np.isfinite(objective)


@kernel
def _feasible(y: Array, c: Array, guess: Array) -> tuple[Array, float]:
    """Return multipliers within their bounds with ``y'a = 0``, and the cost of the smaller side."""
    dual = np.empty(len(y))
    positive = negative = above = below = 0.0
    for i in range(len(y)):
        a = guess[i]
        a = min(max(a, 0.0), c[i]) if a == a else 0.0
        dual[i] = a
        if y[i] > 0:
            positive += a
            above += c[i]
        else:
            negative += a
            below += c[i]
    least = min(positive, negative)
    up = least / positive if positive > 0 else least
    down = least / negative if negative > 0 else least
    if positive != negative:
        for i in range(len(y)):
            dual[i] *= up if y[i] > 0 else down
    return dual, min(above, below)


@kernel
def _dual_value(
    table: Array, y: Array, dual: Array, scale: Array, N: Array, limits: Limits
) -> tuple[Array, float]:
    """Return ``P_N X'(y a)`` and a lower bound of D(a)."""
    r = len(scale)
    pull, squares, value = np.zeros(r), np.zeros(r), 0.0
    for i in range(len(y)):
        a = dual[i]
        if a != 0.0:
            value += a
            row, push = table[i], y[i] * a
            for j in range(r):
                part = push * row[j]
                pull[j] += part
                squares[j] += part * part
    for j in range(r):
        pull[j] *= scale[j]
    _project(N, pull, limits.passes)
    for j in range(r):
        lost = limits.eps * np.sqrt(squares[j]) * scale[j]
        value -= 0.5 * pull[j] * pull[j] + abs(pull[j]) * lost + 0.5 * lost * lost
    return pull, value


@kernel
def _evaluate(
    problem: Problem,
    coef: Array,
    dual: Array,
    bound: float,
    limits: Limits,
) -> tuple[float, float, float]:
    """Return an upper bound of the objective, the best bias, and the factor of the direction."""
    table, centre, y, c, scale, _ = problem
    n, r = len(y), len(scale)
    weights, size = np.empty(r), 0.0
    for j in range(r):
        weights[j] = scale[j] * coef[j]
        size += 0.5 * coef[j] * coef[j]
    f = np.empty(n)
    _scores(table, weights, f)
    intercept = _best_bias(f, y, c, limits.eps)
    objective, shortest = size, 0.0
    for i in range(n):
        f[i] = y[i] * (f[i] + intercept)
        hinge = max(1.0 - f[i], 0.0)
        objective += c[i] * hinge
        if dual[i] < limits.upper_share * c[i]:
            shortest = max(shortest, hinge)
    if not np.isfinite(objective):
        return np.inf, 0.0, 0.0
    if not shortest < limits.stretch:
        return objective, intercept, 1.0
    near, summands, dear = 0, 0.0, 0.0
    for i in range(n):
        if dual[i] < limits.upper_share * c[i] and abs(1.0 - f[i]) < limits.stretch:
            near += 1
            dear += c[i]
            length, row = 0.0, table[i]
            for j in range(r):
                length += abs(weights[j] * row[j])
            summands = max(summands, length)
    if near == 0:
        return objective, intercept, 1.0
    summands += abs(intercept)
    for j in range(r):
        summands += 2.0 * abs(weights[j] * centre[j])
    rounding = limits.rounding * (1.0 + summands)
    objective += rounding * dear
    if not _is_doubtful(objective, bound, limits):
        return objective, intercept, 1.0
    factor = 1.0 + 2.0 * (shortest + rounding)
    stretched = factor * factor * size
    for i in range(n):
        stretched += c[i] * max(1.0 - factor * f[i], 0.0)
    if stretched < objective:
        return stretched, factor * intercept, factor
    return objective, intercept, 1.0


@kernel
def _best_bias(f: Array, y: Array, c: Array, eps: float) -> float:
    """Return the middle of the interval of biases that minimise the hinge loss.

    Of the break points ``y - f``, the least is wanted up to which the costs reach those of the
    positive side: the points are split at one of them until one is left.
    """
    n = len(f)
    points, costs = np.empty(n), np.empty(n)
    left, total, wanted = 0, 0.0, 0.0
    for i in range(n):
        total += c[i]
        if y[i] > 0:
            wanted += c[i]
        if c[i] > 0:
            points[left], costs[left] = y[i] - f[i], c[i]
            if not np.isfinite(points[left]):
                return np.nan
            left += 1
    flat = n * eps * total
    low, high, before = 0, left - 1, 0.0  # costs of what is below the points left
    after = np.inf  # the least point above the points left
    while True:
        pivot = _median(points[low], points[(low + high) // 2], points[high])
        at, end, smaller, equal = low, high, 0.0, 0.0
        i = low
        while i <= end:  # smaller points first, then those equal to the pivot
            if points[i] < pivot:
                smaller += costs[i]
                points[i], points[at] = points[at], points[i]
                costs[i], costs[at] = costs[at], costs[i]
                at += 1
                i += 1
            elif points[i] > pivot:
                points[i], points[end] = points[end], points[i]
                costs[i], costs[end] = costs[end], costs[i]
                end -= 1
            else:
                equal += costs[i]
                i += 1
        if at > low and before + smaller - wanted >= -flat:
            after, high = pivot, at - 1
        elif before + smaller + equal - wanted >= -flat or end == high:
            before += smaller + equal
            for i in range(end + 1, high + 1):
                after = min(after, points[i])
            break
        else:
            before += smaller + equal
            low = end + 1
    if abs(before - wanted) <= flat and np.isfinite(after):
        return 0.5 * (pivot + after)
    return pivot


@kernel
def _median(first: float, second: float, third: float) -> float:
    return max(min(first, second), min(max(first, second), third))


@kernel
def _scores(table: Array, weights: Array, out: Array) -> None:
    for i in range(len(out)):
        score, row = 0.0, table[i]
        for j in range(len(weights)):
            score += weights[j] * row[j]
        out[i] = score


@kernel
def _pull(table: Array, y: Array, dual: Array, scale: Array, N: Array, passes: int) -> Array:
    """Return ``P_N X'(y a)``."""
    pull = np.zeros(len(scale))
    for i in range(len(y)):
        if dual[i] != 0.0:
            row, push = table[i], y[i] * dual[i]
            for j in range(len(scale)):
                pull[j] += push * row[j]
    for j in range(len(scale)):
        pull[j] *= scale[j]
    _project(N, pull, passes)
    return pull


@kernel
def _project(N: Array, vector: Array, passes: int) -> None:
    """Take off the parts along the columns of N, in place."""
    r, k = N.shape
    parts = np.empty(k)
    for _ in range(passes if k else 0):
        for h in range(k):
            parts[h] = 0.0
        for j in range(r):
            for h in range(k):
                parts[h] += N[j, h] * vector[j]
        for j in range(r):
            for h in range(k):
                vector[j] -= N[j, h] * parts[h]


@kernel
def _eliminate(A: Array, pivots: Array, regular: float) -> bool:
    """Replace A by its factors, with row exchanges; False if a pivot is relatively small."""
    m = len(A)
    least, most = np.inf, 0.0
    for k in range(m):
        p = k
        for i in range(k + 1, m):
            if abs(A[i, k]) > abs(A[p, k]):
                p = i
        pivots[k] = p
        if p != k:
            for j in range(m):
                A[k, j], A[p, j] = A[p, j], A[k, j]
        size = abs(A[k, k])
        least, most = min(least, size), max(most, size)
        if not size > 0.0:
            return False
        rest = A[k, k + 1 :]
        for i in range(k + 1, m):
            A[i, k] /= A[k, k]
            factor, row = A[i, k], A[i, k + 1 :]
            for j in range(len(rest)):
                row[j] -= factor * rest[j]
    return bool(least > regular * most)


@kernel
def _substitute(A: Array, pivots: Array, right: Array) -> None:
    """Solve with the factors, in place."""
    m = len(A)
    for k in range(m):
        p = pivots[k]
        right[k], right[p] = right[p], right[k]
    for i in range(m):
        total, row = right[i], A[i]
        for j in range(i):
            total -= row[j] * right[j]
        right[i] = total
    for i in range(m - 1, -1, -1):
        total, row, known = right[i], A[i, i + 1 :], right[i + 1 :]
        for j in range(len(known)):
            total -= row[j] * known[j]
        right[i] = total / A[i, i]
