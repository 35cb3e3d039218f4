"""The certificate that every solution must pass, whatever found it.

Weak duality makes ``P(s, b) - D(a)`` an error bound for any point: both are evaluated on the
original problem (see `problem`), with a bound of their rounding.
"""

from __future__ import annotations

import numpy as np

from marginfold.linalg.tall import Array
from marginfold.svm.problem import EPS, TINY, TOLERANCES, Kernels, Point, SVMProblem


def certify(problem: SVMProblem, coef: Array, dual: Array, kernels: Kernels) -> Point:
    """Turn any primal direction and any dual guess into a point with valid bounds.

    The intercept belongs to the centred rows.
    """
    dual, pull, bound = kernels.dual_bound(problem, dual)
    if not bound >= 0.0:  # a = 0 is feasible and better
        dual, pull, bound = np.zeros_like(dual), np.zeros_like(pull), 0.0
    best = kernels.evaluate(problem, coef, dual, bound)
    if _is_doubtful(best.objective, bound):
        other = kernels.evaluate(problem, pull, dual, bound)
        best = min(best, other, key=lambda point: point.objective)
        side = problem.costs[problem.signs > 0].sum()
        side = min(side, problem.costs.sum() - side)
        if not best.objective <= 2.0 * side:  # s = 0 is better
            best = kernels.evaluate(problem, np.zeros_like(coef), dual, bound)
    return best


def _is_doubtful(objective: float, bound: float) -> bool:
    """Return whether an objective is not as good as exact."""
    close = objective - bound <= TOLERANCES.exact * objective
    return not close or not bool(np.isfinite(objective))


def feasible(signs: Array, costs: Array, guess: Array) -> Array:
    """Return multipliers within their bounds, the heavier side scaled so that ``y'a = 0``.

    Rows are along the last axis; there may be several problems along others.
    """
    dual = np.minimum(np.maximum(np.nan_to_num(guess, nan=0.0), 0.0), costs)
    above = signs > 0
    positive = np.where(above, dual, 0.0).sum(axis=-1, keepdims=True)
    negative = np.where(above, 0.0, dual).sum(axis=-1, keepdims=True)
    least = np.minimum(positive, negative)
    dual *= np.where(above, least / np.maximum(positive, TINY), least / np.maximum(negative, TINY))
    return np.asarray(dual)


def dual_bound(problem: SVMProblem, guess: Array) -> tuple[Array, Array, float]:
    """Return feasible multipliers a near a guess, ``P_N X'(y a)`` and a lower bound of D(a).

    Each entry of the centred rows was stored with a relative error of eps, independent of the
    others: what this may add to the value is taken off.
    """
    dual = feasible(problem.signs, problem.costs, guess)
    pull = problem.pull(dual)
    taken = np.flatnonzero(dual)
    pushed = problem.features[taken] * dual[taken, None]
    lost = EPS * problem.scale * np.sqrt(np.einsum("ij,ij->j", pushed, pushed))
    value = dual.sum() - 0.5 * (pull @ pull) - np.abs(pull) @ lost - 0.5 * (lost @ lost)
    return dual, pull, float(value)


def evaluate(problem: SVMProblem, coef: Array, dual: Array, bound: float) -> Point:
    """Return a direction with its best bias, slightly stretched where that is not exact.

    A row on the margin that rounding puts inside it costs ``c * eps``: for huge costs more than
    the certificate allows.  The objective counts this; stretching (s, b) by as much as rounding can
    take away puts such rows outside again.
    """
    y, c, X = problem.signs, problem.costs, problem.features
    weights = problem.scale * coef
    f = X @ weights
    intercept = best_bias(f, y, c)
    margins = y * (f + intercept)
    short = 1.0 - margins
    hinge = np.maximum(short, 0.0)
    size = 0.5 * float(coef @ coef)
    objective = size + float(c @ hinge)
    if not np.isfinite(objective):
        return Point(np.zeros_like(coef), 0.0, dual, np.inf, bound)
    free = dual < TOLERANCES.upper_share * c
    shortest = float(hinge.max(where=free, initial=0.0))
    near = np.flatnonzero(free & (np.abs(short) < TOLERANCES.stretch))
    if not len(near) or not shortest < TOLERANCES.stretch:
        return Point(coef, intercept, dual, objective, bound)
    lengths = np.abs(weights)
    summands = float((np.abs(X[near]) @ lengths).max())
    summands += abs(intercept) + 2.0 * float(lengths @ np.abs(problem.centre))
    rounding = TOLERANCES.rounding * (1.0 + summands)
    objective += rounding * float(c[near].sum())
    if _is_doubtful(objective, bound):
        factor = 1.0 + 2.0 * (shortest + rounding)
        stretched = factor * factor * size + float(c @ np.maximum(1.0 - factor * margins, 0.0))
        if stretched < objective:
            return Point(factor * coef, factor * intercept, dual, stretched, bound)
    return Point(coef, intercept, dual, objective, bound)


def best_bias(f: Array, y: Array, c: Array) -> float:
    """Return the middle of the interval of biases that minimise the hinge loss of ``f + b``.

    The slope in b is ``-sum_{y>0} c + sum_{y_i - f_i <= b} c_i``: a weighted quantile of the break
    points.  With a zero slope between two of them the optimum is an interval.  Rows without cost
    do not count.
    """
    points = y - f
    if not c.all():
        points = np.where(c > 0, points, np.inf)
    order = np.argsort(points)
    slopes = np.cumsum(c[order]) - c[y > 0].sum()
    flat = len(f) * EPS * float(c.sum())  # rounding of the cumulated costs
    first = int((slopes >= -flat).argmax())
    low = float(points[order[first]])
    following = float(points[order[min(first + 1, len(f) - 1)]])
    if abs(slopes[first]) <= flat and np.isfinite(following):
        return 0.5 * (low + following)
    return low
