"""The interior point iteration of `newton`, compiled by numba: one problem at a time.

NumPy pays for every call and for every temporary array: on a few hundred rows that is most of the
time.  The arithmetic is that of `newton`, with two savings: the Newton matrix and both right-hand
sides come from one product, and the corrector is linear in the centring, so what it adds to the
affine right-hand side needs no pass of its own.  The features (``columns``, the last one is that of
ones) are those of the problem itself, scaled and without what is deflated; each lies in one piece,
so that every inner loop runs over neighbouring numbers.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from marginfold.linalg.tall import Array
from marginfold.runtime.jit import OPTIONS
from marginfold.svm.interior_point_numpy import Rules

CHUNK = 256
"""Rows whose weighted features are multiplied at a time: they stay in the cache."""

TILE = 3
"""Features on each side of a block of products that fits the registers."""

ACCURATE = 1e-13
"""Relative residual of a solve that needs no refinement."""

TINY = float(np.finfo(np.float64).tiny)

kernel = njit(**OPTIONS)


def first_call() -> None:
    """Compile what is called from outside, or load what was compiled before."""
    problem = np.array([[-1.0, 1.0], [1.0, 1.0]]), np.array([-1.0, 1.0]), np.ones(2)
    u, tally = np.empty(2), np.array([0.0, np.inf, 0.0])
    P, Q, t = start(*problem, u, False, 1.0, Rules())
    iterate(*problem, u, P, Q, t, tally, 0.0, 1, Rules())
    complement(np.ones((2, 1)))


@kernel
def complement(N: Array) -> Array:
    """Return an orthonormal basis of what is orthogonal to orthonormal (or zero) columns.

    By Householder's reflections, which take the columns to the first axes.
    """
    r, k = N.shape
    A, lengths = np.empty((r, k)), np.zeros(k)
    taken = 0
    for h in range(k):
        whole = 0.0
        for j in range(r):
            A[j, taken] = N[j, h]
            whole += N[j, h] * N[j, h]
        if whole == 0.0 or taken == r:
            continue
        for before in range(taken):
            _reflect(A, before, lengths[before], taken)
        size = 0.0
        for j in range(taken, r):
            size += A[j, taken] * A[j, taken]
        size = np.sqrt(size)
        A[taken, taken] += size if A[taken, taken] >= 0 else -size
        for j in range(taken, r):
            lengths[taken] += 0.5 * A[j, taken] * A[j, taken]
        taken += 1
    basis = np.zeros((r, r - taken))
    for i in range(r - taken):
        basis[taken + i, i] = 1.0
    parts = np.empty(r - taken)
    for h in range(taken - 1, -1, -1):
        for i in range(r - taken):
            parts[i] = 0.0
        for j in range(h, r):
            for i in range(r - taken):
                parts[i] += A[j, h] * basis[j, i]
        for j in range(h, r):
            for i in range(r - taken):
                basis[j, i] -= A[j, h] / lengths[h] * parts[i]
    return basis


@kernel
def _reflect(A: Array, h: int, length: float, column: int) -> None:
    """Apply a reflection, whose vector is in column h from row h on, to another column."""
    part = 0.0
    for j in range(h, len(A)):
        part += A[j, h] * A[j, column]
    for j in range(h, len(A)):
        A[j, column] -= part / length * A[j, h]


@kernel
def start(
    columns: Array, y: Array, c: Array, u: Array, known: bool, mu: float, rules: Rules
) -> tuple[Array, Array, Array]:
    """Lift weights to the central path; unless they are known, they become the ridge regression."""
    n = len(y)
    P, Q, t = np.empty((2, n)), np.empty((2, n)), np.empty(n)
    if not known:
        for i in range(n):
            P[0, i], t[i] = 0.0, -1.0
        K, _, right = _normal(columns, y, c, P[0], t)
        unit, _ = _factorise(K, rules.diagonal_shift)
        _substitute(K, unit, right)
        for j in range(len(u)):
            u[j] = right[j]
    _margins(columns, y, u, t)
    for i in range(n):
        m = mu / c[i]
        half = abs(0.5 * t[i])
        rho = np.hypot(half, m)
        near = m + m * (m / (rho + half))
        far = m + half + rho
        v, xi = (far, near) if t[i] > 0 else (near, far)
        Q[0, i], Q[1, i] = v, xi
        P[0, i], P[1, i] = mu / v, mu / xi
    return P, Q, t


@kernel
def iterate(
    columns: Array,
    y: Array,
    c: Array,
    u: Array,
    P: Array,
    Q: Array,
    t: Array,
    tally: Array,
    ready: float,
    pause: int,
    rules: Rules,
) -> bool:
    """Iterate in place until the point deserves a look (True), at most ``pause`` times.

    ``tally`` holds the iterations so far, the best gap, and how many did not lower it.
    """
    d = np.empty(len(y))
    P0, P1, Q0, Q1 = P[0], P[1], Q[0], Q[1]
    for step in range(pause + 1):
        for i in range(len(y)):
            d[i] = 1.0 / (Q0[i] / P0[i] + Q1[i] / P1[i])
        K, pull, predictor = _normal(columns, y, d, P0, t)
        gap = _gap(c, u, P0, t, pull)
        if step > 0 or tally[0] == 0:
            better = gap < rules.progress * tally[1] or tally[1] > rules.nearly
            tally[2] = 0.0 if better and tally[2] <= rules.patience else tally[2] + 1.0
            if gap < tally[1]:
                tally[1] = gap
            if gap <= ready or tally[2] > 0:
                return True
        if step == pause:
            break
        refine = gap < rules.refined
        if not _advance(columns, y, u, P, Q, t, d, K, pull, predictor, refine, rules):
            tally[2] = rules.patience + 1
        tally[0] += 1
        if tally[0] % rules.refresh_every == 0:
            _margins(columns, y, u, t)
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
    rules: Rules,
) -> bool:
    """Take one predictor-corrector step in place; return whether the problem could move at all."""
    r, n = len(u), len(y)
    unit, regular = _factorise(K, rules.diagonal_shift)
    if not regular:
        return False
    right = predictor
    for j in range(r):
        right[j] += pull[j] - (u[j] if j + 1 < r else 0.0)
    dt, da, dv, dxi = np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    P0, P1, Q0, Q1 = P[0], P[1], Q[0], Q[1]

    du = _solve(columns, y, d, K, unit, right, 0)
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
    sigma = min(max((mu_affine / mu) ** 3, rules.least_centring), rules.most_centring)
    centring = sigma * mu

    for i in range(n):  # what the corrector adds to the affine right-hand side
        dv[i] += centring / P0[i]
        dxi[i] += centring / P1[i]
        da[i] = y[i] * d[i] * (dv[i] - dxi[i])
    more = _sums(columns, da)
    for j in range(r):
        right[j] += more[j]
    du = _solve(columns, y, d, K, unit, right, rules.refinements if refine else 0)
    _scores(columns, y, du, dt)
    blocked = TINY
    for i in range(n):
        a, s, v, xi = P0[i], P1[i], Q0[i], Q1[i]
        change = d[i] * (dv[i] - dxi[i] - t[i] - dt[i])
        da[i] = change
        dv[i] += -v - v / a * change
        dxi[i] += -xi + xi / s * change
        blocked = max(blocked, max(max(-change / a, change / s), max(-dv[i] / v, -dxi[i] / xi)))
    length = min(1.0, rules.step_to_boundary / blocked)
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
def _margins(columns: Array, y: Array, u: Array, t: Array) -> None:
    """Fill t with ``y f - 1``."""
    _scores(columns, y, u, t)
    for i in range(len(t)):
        t[i] -= 1.0


@kernel
def _scores(columns: Array, factors: Array, u: Array, out: Array) -> None:
    """Fill out with ``factors (X s + b)``, several features at a time."""
    r, n = columns.shape
    for begin in range(0, n, CHUNK):
        part = slice(begin, min(begin + CHUNK, n))
        scores, signs = out[part], factors[part]
        for i in range(len(scores)):
            scores[i] = 0.0
        first = r % TILE
        for j in range(first):
            w0, x0 = u[j], columns[j, part]
            for i in range(len(scores)):
                scores[i] += w0 * x0[i]
        for j in range(first, r, TILE):
            w0, w1, w2 = u[j], u[j + 1], u[j + 2]
            x0, x1, x2 = columns[j, part], columns[j + 1, part], columns[j + 2, part]
            for i in range(len(scores)):
                scores[i] += w0 * x0[i] + w1 * x1[i] + w2 * x2[i]
        for i in range(len(scores)):
            scores[i] *= signs[i]


@kernel
def _sums(columns: Array, p: Array) -> Array:
    """Return ``[X'p ; 1'p]``."""
    r, n = columns.shape
    sums = np.empty(r)
    for j in range(r):
        column, total = columns[j], 0.0
        for i in range(n):
            total += column[i] * p[i]
        sums[j] = total
    return sums


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
        rest = _sums(columns, scores)
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
