"""The interior point method, its crossover and its certificate, compiled by numba.

The entries do what the functions of the same names do in `interior_point`, `active_set` and
`certificate`, where the formulas are explained; on a few hundred rows NumPy's calls take several
times as long as the arithmetic.  The Newton matrix and both right-hand sides come from one product,
the corrector is linear in the centring, so that what it adds to the affine right-hand side needs no
pass of its own, and the best bias is found by selection instead of sorting.

All of it is in one file with few entries, because numba compiles a function again into each of its
callers and keeps it until its file changes.  Inner loops run over views of one row or column: those
vectorise.  Products with one vector are those of BLAS; array expressions take long to compile.
"""

from __future__ import annotations

from typing import cast

import numpy as np
from numba import njit

from marginfold.linalg.tall import Array
from marginfold.runtime.jit import OPTIONS
from marginfold.svm.interior_point import COLD, Scaled, State, solve
from marginfold.svm.problem import (
    EPS,
    PASSES,
    TINY,
    TOLERANCES,
    Face,
    Kernels,
    Point,
    SVMProblem,
    Tolerances,
)

CHUNK = 256
"""Rows whose weighted features are multiplied at a time: they stay in the cache."""

TILE = 3
"""Features on each side of a block of products that fits the registers."""

ACCURATE = 1e-13
"""Relative residual of a solve that needs no refinement."""

ENTRY = njit(**OPTIONS)
kernel = njit(**{**OPTIONS, "cache": False}, no_cpython_wrapper=True, no_cfunc_wrapper=True)
"""Functions that only compiled ones call need neither a wrapper nor a file of their own."""


def first_call() -> None:
    """Compile what is called from outside, or load what was compiled before."""
    table = np.array([[-1.0, 1.0], [1.0, 1.0]])
    arrays = np.array([-1.0, 1.0]), np.ones(2), np.ones(1), np.zeros((1, 0))
    problem = SVMProblem(table, np.zeros(1), *arrays)
    solve(problem, COLD, KERNELS, tol=1e-8, max_iter=9)


def iterate(scaled: Scaled, state: State, ready: float, steps: int) -> bool:
    """Do what `interior_point.iterate` does."""
    return bool(
        _iterate(scaled.columns, scaled.signs, scaled.costs, state, ready, steps, TOLERANCES)
    )


def solve_equations(problem: SVMProblem, free: Array, upper: Array) -> Face | None:
    """Do what `active_set.solve_equations` does."""
    regular, *found = _solve_equations(problem, free, upper, TOLERANCES)
    return Face(*found) if regular else None


def dual_bound(problem: SVMProblem, guess: Array) -> tuple[Array, Array, float]:
    """Do what `certificate.dual_bound` does."""
    return cast(tuple[Array, Array, float], _dual_bound(problem, guess))


def evaluate(problem: SVMProblem, coef: Array, dual: Array, bound: float) -> Point:
    """Do what `certificate.evaluate` does."""
    objective, intercept, factor = _evaluate(problem, coef, dual, bound, TOLERANCES)
    return Point(factor * coef, intercept, dual, objective, bound)


KERNELS = Kernels(iterate, solve_equations, dual_bound, evaluate)


@ENTRY
def _iterate(
    columns: Array, y: Array, c: Array, state: State, ready: float, steps: int, T: Tolerances
) -> bool:
    u, P, Q, t, tally = state
    d = np.empty(len(y))
    P0, P1, Q0, Q1 = P[0], P[1], Q[0], Q[1]
    is_new, mu = tally[3] != 0.0, abs(tally[3])
    if tally[3] < 0.0:
        for i in range(len(y)):
            P0[i], t[i] = 0.0, -1.0
        K, pull, predictor = _normal(columns, y, c, P0, t)
        unit, _ = _factorise(K, T.diagonal_shift)
        _substitute(K, unit, predictor)
        for j in range(len(u)):
            u[j] = predictor[j]
    if is_new:
        _scores(columns, y, u, t)
    for i in range(len(y) if is_new else 0):
        t[i] -= 1.0
        m, half = mu / c[i], abs(0.5 * t[i])
        rho = np.hypot(half, m)
        near, far = m + m * (m / (rho + half)), m + half + rho
        v, xi = (far, near) if t[i] > 0 else (near, far)
        Q0[i], Q1[i], P0[i], P1[i] = v, xi, mu / v, mu / xi
    for step in range(steps + 1):
        for i in range(len(y)):
            d[i] = 1.0 / (Q0[i] / P0[i] + Q1[i] / P1[i])
        K, pull, predictor = _normal(columns, y, d, P0, t)
        gap = _gap(c, u, P0, t, pull)
        if step > 0 or is_new:
            tally[3] = 0.0
            better = gap < T.progress * tally[1] or tally[1] > T.nearly
            tally[2] = 0.0 if better and tally[2] <= T.patience else tally[2] + 1.0
            if gap < tally[1]:
                tally[1] = gap
            if gap <= ready or tally[2] > 0:
                return True
        if step == steps:
            break
        if not _advance(columns, y, u, P, Q, t, d, K, pull, predictor, gap < T.refined, T):
            tally[2] = T.patience + 1
        tally[0] += 1
        if int(tally[0]) % T.refresh_every == 0:
            _scores(columns, y, u, t)
            for i in range(len(t)):
                t[i] -= 1.0
    return False


@kernel
def _gap(c: Array, u: Array, a: Array, t: Array, pull: Array) -> float:
    """Return the relative gap of the running point (an estimate: y'a is not yet zero)."""
    r = len(u) - 1
    primal, dual = 0.0, 0.0
    for i in range(len(t)):
        primal -= c[i] * min(t[i], 0.0)
        dual += a[i]
    for j in range(r):
        primal += 0.5 * u[j] * u[j]
        dual -= 0.5 * pull[j] * pull[j]
    return (abs(primal - dual) + abs(pull[r])) / max(primal, TINY)


@kernel
def _advance(
    columns: Array,
    y: Array,
    u: Array,
    P: Array,
    Q: Array,
    t: Array,
    d: Array,
    K: Array,
    pull: Array,
    predictor: Array,
    refine: bool,
    T: Tolerances,
) -> bool:
    """Take one predictor-corrector step in place; return whether the problem could move at all."""
    r, n = len(u), len(y)
    unit, regular = _factorise(K, T.diagonal_shift)
    if not regular:
        return False
    right = predictor
    for j in range(r):
        right[j] += pull[j] - (u[j] if j + 1 < r else 0.0)
    dt, da, dv, dxi = np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    P0, P1, Q0, Q1 = P[0], P[1], Q[0], Q[1]

    du = right.copy()
    _substitute(K, unit, du)
    _scores(columns, y, du, dt)
    largest, comp, product = 1.0, 0.0, 0.0
    for i in range(n):
        a, s, v, xi = P0[i], P1[i], Q0[i], Q1[i]
        change = -d[i] * (t[i] + dt[i])
        share, rest = change / a, -change / s
        largest = max(largest, max(max(-share, -rest), 1.0 + max(share, rest)))
        comp += a * v + s * xi
        first, second = change * v * (1.0 + share), -change * xi * (1.0 + rest)  # -da dv, da dxi
        product += first + second
        dv[i], dxi[i] = first / a, second / s
    affine = 1.0 / largest
    mu = comp / (2.0 * n)
    mu_affine = (comp * (1.0 - affine) - affine * affine * product) / (2.0 * n)
    sigma = min(max((mu_affine / mu) ** 3, T.least_centring), 1.0)
    centring = sigma * mu

    for i in range(n):  # what the corrector adds to the affine right-hand side
        dv[i] += centring / P0[i]
        dxi[i] += centring / P1[i]
        da[i] = y[i] * d[i] * (dv[i] - dxi[i])
    more = np.dot(columns, da)
    for j in range(r):
        right[j] += more[j]
    du = _solve(columns, y, d, K, unit, right, T.refinements if refine else 0)
    _scores(columns, y, du, dt)
    blocked = TINY
    for i in range(n):
        a, s, v, xi = P0[i], P1[i], Q0[i], Q1[i]
        change = d[i] * (dv[i] - dxi[i] - t[i] - dt[i])
        da[i] = change
        dv[i] += -v - v / a * change
        dxi[i] += -xi + xi / s * change
        blocked = max(blocked, max(max(-change / a, change / s), max(-dv[i] / v, -dxi[i] / xi)))
    length = min(1.0, T.step_to_boundary / blocked)
    size = 0.0
    for j in range(r):
        size += abs(du[j])
    if not np.isfinite(length + size):
        return False
    for j in range(r):
        u[j] += length * du[j]
    for i in range(n):
        t[i] += length * dt[i]
        P0[i] += length * da[i]
        P1[i] -= length * da[i]
        Q0[i] += length * dv[i]
        Q1[i] += length * dxi[i]
    return True


@kernel
def _normal(columns: Array, y: Array, d: Array, a: Array, t: Array) -> tuple[Array, Array, Array]:
    """Return the Newton matrix of the weights d, and the sums of ``y a`` and of ``-y d t``."""
    r, n = columns.shape
    wide = TILE * ((r + 2 + TILE - 1) // TILE)
    total = np.zeros((wide, wide))
    weighted = np.zeros((wide, CHUNK))
    roots = np.empty(CHUNK)
    for begin in range(0, n, CHUNK):
        size = min(CHUNK, n - begin)
        part = slice(begin, begin + size)
        signs, weights, first, second = y[part], d[part], a[part], t[part]
        pulls, predictors = weighted[r], weighted[r + 1]
        for i in range(size):
            roots[i] = np.sqrt(weights[i])
            pulls[i] = signs[i] * first[i] / roots[i]
            predictors[i] = -signs[i] * second[i] * roots[i]
        for j in range(r):
            column, product = columns[j, part], weighted[j]
            for i in range(size):
                product[i] = column[i] * roots[i]
        _add_products(weighted, size, total)
    K = np.empty((r, r))
    pull, predictor = np.empty(r), np.empty(r)
    for i in range(r):
        for j in range(i + 1):
            K[i, j] = K[j, i] = total[i, j]
        pull[i], predictor[i] = total[r, i], total[r + 1, i]
    for i in range(r - 1):
        K[i, i] += 1.0
    return K, pull, predictor


@kernel
def _add_products(B: Array, size: int, total: Array) -> None:
    """Add ``B B'`` of the first columns to the lower triangle, block by block."""
    for i in range(0, len(B), TILE):
        b0, b1, b2 = B[i, :size], B[i + 1, :size], B[i + 2, :size]
        for j in range(0, i + 1, TILE):
            c0, c1, c2 = B[j], B[j + 1], B[j + 2]
            s00 = s01 = s02 = s10 = s11 = s12 = s20 = s21 = s22 = 0.0
            for k in range(len(b0)):
                p0, p1, p2 = b0[k], b1[k], b2[k]
                q0, q1, q2 = c0[k], c1[k], c2[k]
                s00 += p0 * q0
                s01 += p0 * q1
                s02 += p0 * q2
                s10 += p1 * q0
                s11 += p1 * q1
                s12 += p1 * q2
                s20 += p2 * q0
                s21 += p2 * q1
                s22 += p2 * q2
            total[i, j] += s00
            total[i, j + 1] += s01
            total[i, j + 2] += s02
            total[i + 1, j] += s10
            total[i + 1, j + 1] += s11
            total[i + 1, j + 2] += s12
            total[i + 2, j] += s20
            total[i + 2, j + 1] += s21
            total[i + 2, j + 2] += s22


@kernel
def _scores(columns: Array, factors: Array, u: Array, out: Array) -> None:
    """Fill out with ``factors (X s + b)``."""
    np.dot(u, columns, out)
    for i in range(len(out)):
        out[i] *= factors[i]


@kernel
def _solve(
    columns: Array,
    y: Array,
    d: Array,
    factor: Array,
    unit: Array,
    right: Array,
    refinements: int,
) -> Array:
    """Solve with the factor and refine with the rows, which lose nothing to squaring."""
    r = len(right)
    du = right.copy()
    _substitute(factor, unit, du)
    scores = np.empty(len(y) if refinements > 0 else 0)
    for _ in range(refinements):
        _scores(columns, d, du, scores)
        rest = np.dot(columns, scores)
        error, size = 0.0, 0.0
        for j in range(r):
            rest[j] = right[j] - rest[j] - (du[j] if j + 1 < r else 0.0)
            error, size = max(error, abs(rest[j])), max(size, abs(right[j]))
        if error <= ACCURATE * size:
            break
        _substitute(factor, unit, rest)
        for j in range(r):
            du[j] += rest[j]
    return du


@kernel
def _factorise(K: Array, shift: float) -> tuple[Array, bool]:
    """Scale K to a unit diagonal and replace it by its Cholesky factor, shifted if need be."""
    r = len(K)
    unit = np.empty(r)
    for i in range(r):
        unit[i] = 1.0 / np.sqrt(max(K[i, i], TINY))
    for i in range(r):
        for j in range(r):
            K[i, j] *= unit[i] * unit[j]
    if _cholesky(K, 0.0):
        return unit, True
    return unit, _cholesky(K, shift)


@kernel
def _cholesky(K: Array, shift: float) -> bool:
    """Fill the lower triangle with the factor of the upper one; False if it is not definite."""
    r = len(K)
    for i in range(r):
        for j in range(i + 1):
            total = K[j, i] if i > j else 1.0 + shift
            for k in range(j):
                total -= K[i, k] * K[j, k]
            if i > j:
                K[i, j] = total / K[j, j]
            elif total > 0.0:
                K[i, i] = np.sqrt(total)
            else:
                return False
    return True


@kernel
def _substitute(factor: Array, unit: Array, right: Array) -> None:
    """Solve in place with the factor of the scaled matrix."""
    r = len(right)
    for i in range(r):
        total = right[i] * unit[i]
        for k in range(i):
            total -= factor[i, k] * right[k]
        right[i] = total / factor[i, i]
    for i in range(r - 1, -1, -1):
        right[i] /= factor[i, i]
        for k in range(i):
            right[k] -= factor[i, k] * right[i]
    for i in range(r):
        right[i] *= unit[i]


@ENTRY
def _solve_equations(
    problem: SVMProblem, free: Array, upper: Array, T: Tolerances
) -> tuple[bool, Array, Array, Array]:
    """Return whether the equations are regular, and s, the multipliers and the excess."""
    table, y, scale, N = problem.table, problem.signs, problem.scale, problem.deflated
    n, r, m = len(y), len(scale), len(free)
    dual, plane, total = np.zeros(n), np.empty(r + 1), 0.0
    for i in range(n):
        if upper[i]:
            dual[i] = problem.costs[i]
            total += y[i] * dual[i]
    s, _ = _dual_value(problem, dual)
    X = np.empty((m, r))
    for k in range(m):
        for j in range(r):
            X[k, j] = table[free[k], j] * scale[j]
    _project(N, X)
    centre = np.dot(np.full(m, 1.0 / max(m, 1)), X)
    for j in range(r):
        s[j] -= total * centre[j]
        for k in range(m):
            X[k, j] -= centre[j]
    system, size = np.dot(X, X.T), 0.0
    for k in range(m):
        size += system[k, k] / m
    size = size if size > T.copies * T.copies * np.dot(centre, centre) else 1.0
    for k in range(m):
        for h in range(m):
            system[k, h] = system[k, h] / size + 1.0
    unit, regular = _factorise(system, 0.0)
    for k in range(m):
        regular &= system[k, k] * system[k, k] > T.regular
    beta, intercept, left = np.zeros(m), 0.0, total
    for _ in range(1 + T.refinements if m > 0 and regular else 0):
        right, mean = np.dot(X, s), 0.0
        for k in range(m):
            right[k] = y[free[k]] - right[k] - intercept
            mean += right[k] / m
        intercept += mean
        for k in range(m):
            right[k] -= mean + left * size
        _substitute(system, unit, right)
        for k in range(m):
            right[k] /= size
            beta[k] += right[k]
            left += right[k]
        change = np.dot(right, X)
        for j in range(r):
            s[j] += change[j]
    _project(N, s.reshape(1, r))
    plane[r] = intercept
    for j in range(r):
        plane[j] = scale[j] * s[j]
        plane[r] -= centre[j] * s[j]
    for k in range(m):
        dual[free[k]] = y[free[k]] * beta[k]
    excess = np.dot(table, plane)
    for i in range(n):
        excess[i] = y[i] * excess[i] - 1.0
    return regular, s, dual, excess


@ENTRY
def _dual_bound(problem: SVMProblem, guess: Array) -> tuple[Array, Array, float]:
    y, c = problem.signs, problem.costs
    dual, positive, negative = np.empty(len(y)), 0.0, 0.0
    for i in range(len(y)):
        a = guess[i]
        dual[i] = min(max(a, 0.0), c[i]) if a == a else 0.0
        if y[i] > 0:
            positive += dual[i]
        else:
            negative += dual[i]
    least = min(positive, negative)
    if positive != negative:
        # At most 1: a compiler may divide by way of a reciprocal, which rounds once more.
        up = min(least / positive, 1.0) if positive > 0 else least
        down = min(least / negative, 1.0) if negative > 0 else least
        for i in range(len(y)):
            dual[i] *= up if y[i] > 0 else down
    pull, bound = _dual_value(problem, dual)
    return dual, pull, bound


@kernel
def _dual_value(problem: SVMProblem, dual: Array) -> tuple[Array, float]:
    """Return ``P_N X'(y a)`` and a lower bound of D(a)."""
    table, y, scale = problem.table, problem.signs, problem.scale
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
    _project(problem.deflated, pull.reshape(1, r))
    for j in range(r):
        lost = EPS * np.sqrt(squares[j]) * scale[j]
        value -= 0.5 * pull[j] * pull[j] + abs(pull[j]) * lost + 0.5 * lost * lost
    return pull, value


@ENTRY
def _evaluate(
    problem: SVMProblem, coef: Array, dual: Array, bound: float, T: Tolerances
) -> tuple[float, float, float]:
    """Return an upper bound of the objective, the best bias, and what stretches the direction."""
    table, centre, scale = problem.table, problem.centre, problem.scale
    y, c = problem.signs, problem.costs
    n, r = len(y), len(scale)
    weights, size = np.zeros(r + 1), 0.5 * np.dot(coef, coef)
    for j in range(r):
        weights[j] = scale[j] * coef[j]
    f = np.dot(table, weights)
    intercept = _best_bias(f, y, c)
    objective, shortest = size, 0.0
    for i in range(n):
        f[i] = y[i] * (f[i] + intercept)
        hinge = max(1.0 - f[i], 0.0)
        objective += c[i] * hinge
        if dual[i] < T.upper_share * c[i]:
            shortest = max(shortest, hinge)
    if not np.isfinite(objective):
        return np.inf, 0.0, 0.0
    if not shortest < T.stretch:
        return objective, intercept, 1.0
    near, summands, dear = 0, 0.0, 0.0
    for i in range(n):
        if dual[i] < T.upper_share * c[i] and abs(1.0 - f[i]) < T.stretch:
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
    rounding = T.rounding * (1.0 + summands)
    objective += rounding * dear
    if objective - bound <= T.exact * objective:
        return objective, intercept, 1.0
    factor = 1.0 + 2.0 * (shortest + rounding)
    stretched = factor * factor * size
    for i in range(n):
        stretched += c[i] * max(1.0 - factor * f[i], 0.0)
    if stretched < objective:
        return stretched, factor * intercept, factor
    return objective, intercept, 1.0


@kernel
def _best_bias(f: Array, y: Array, c: Array) -> float:
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
    flat = n * EPS * total
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
def _project(N: Array, vectors: Array) -> None:
    """Take off the parts of rows along the columns of N, in place."""
    for _ in range(PASSES if N.shape[1] else 0):
        parts = np.dot(np.dot(vectors, N), N.T)
        for k in range(len(vectors)):
            for j in range(len(N)):
                vectors[k, j] -= parts[k, j]
