"""The certificate that every solution must pass, whoever found it.

Weak duality makes ``P(s, b) - D(a)`` an error bound for any point: both are evaluated on the
original problems (see `svm`), side by side for a whole batch, with a bound of their rounding.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from marginfold.linalg.tall import Array
from marginfold.svm.problem import EPS, EXACT, PASSES, TINY, SVMBatch, SVMSolution

ROUNDING = 4.0 * EPS
"""Relative rounding error of a margin, in units of its summands."""

STRETCH_LIMIT = 1e-6
"""Largest relative change of a direction that may remove rounding errors of the margins."""

UPPER_SHARE = 1.0 - 1e-6
"""Multipliers above this share of their bound belong to rows inside the margin."""


class Limits(NamedTuple):
    """The constants of the certificate, for functions that were compiled before one changed."""

    eps: float = EPS
    exact: float = EXACT
    rounding: float = ROUNDING
    stretch: float = STRETCH_LIMIT
    upper_share: float = UPPER_SHARE
    passes: int = PASSES


def certify(
    batch: SVMBatch, b: int, coef: Array, dual: Array, *, n_iter: int, tol: float
) -> SVMSolution:
    """Turn any primal direction and any dual guess of problem b into a solution with a valid gap.

    The intercept belongs to the centred rows; `uncentre` turns it into that of the given rows.
    """
    return certify_all(batch.only(b), coef[None], dual[None], n_iter=n_iter, tol=tol)[0]


def certify_all(
    batch: SVMBatch, coefs: Array, duals: Array, *, n_iter: int, tol: float
) -> list[SVMSolution]:
    """Do the same for all problems of a batch: directions (B, r) and guesses (B, n)."""
    compiled = batch.compiled_functions("compiled_finish")
    if compiled is None:
        points = _side_by_side(batch, coefs, duals)
    else:
        points = _one_by_one(compiled, batch, coefs, duals)
    return [solution_of(point, n_iter=n_iter, tol=tol) for point in points]


def solution_of(
    point: tuple[Array, float, Array, float, float], *, n_iter: int, tol: float
) -> SVMSolution:
    """Return the solution of a direction, intercept, multipliers, objective and dual objective."""
    coef, intercept, dual, objective, bound = point
    gap = max(objective - bound, 0.0) / max(objective, TINY)
    return SVMSolution(
        coef=coef,
        intercept=float(intercept),
        dual=dual,
        objective=float(objective),
        dual_objective=float(bound),
        gap=float(gap),
        n_iter=n_iter,
        converged=bool(gap <= tol),
    )


def _one_by_one(compiled: Any, batch: SVMBatch, coefs: Array, duals: Array) -> Iterable[Any]:
    """Yield the point of each problem by a compiled function."""
    for b in range(len(batch)):
        guess = np.ascontiguousarray(coefs[b]), np.ascontiguousarray(duals[b])
        yield compiled.certify(batch.arrays(b), *guess, Limits())


def _side_by_side(batch: SVMBatch, coefs: Array, duals: Array) -> Iterable[Any]:
    """Return the points of all problems by NumPy."""
    duals = _feasible(batch, duals)
    pulls, bounds = _dual_values(batch, duals)
    worse = ~(bounds >= 0)
    if worse.any():  # a = 0 is feasible and better
        for part in (duals, pulls, bounds):
            part[worse] = 0.0
    found = _evaluate(batch, coefs, duals, bounds)
    doubtful = _is_doubtful(found.objectives, bounds)
    if doubtful.any():
        other = _evaluate(batch, pulls, duals, bounds)
        found = found.replaced(doubtful & (other.objectives < found.objectives), other)
        useless = doubtful & ~(found.objectives <= 2.0 * batch.smaller_sides)
        if useless.any():  # s = 0 is better
            found = found.replaced(useless, _evaluate(batch, np.zeros_like(coefs), duals, bounds))
    return zip(found.coefs, found.intercepts, duals, found.objectives, bounds, strict=True)


def _is_doubtful(objectives: Array, bounds: Array) -> Array:
    """Return whether an objective is not as good as exact."""
    return np.asarray(~(objectives - bounds <= EXACT * objectives) | ~np.isfinite(objectives))


def _feasible(batch: SVMBatch, duals: Array) -> Array:
    """Return multipliers within their bounds, the heavier side scaled so that ``y'a = 0``."""
    if not np.isfinite(duals).all():
        duals = np.nan_to_num(duals, nan=0.0)
    duals = np.minimum(np.maximum(duals, 0.0), batch.costs)
    above = batch.signs > 0
    positive = np.where(above, duals, 0.0).sum(axis=1, keepdims=True)
    negative = np.where(above, 0.0, duals).sum(axis=1, keepdims=True)
    least = np.minimum(positive, negative)
    if not (positive == negative).all():
        duals *= np.where(above, _ratio(least, positive), _ratio(least, negative))
    return np.asarray(duals)


def _ratio(part: Array, whole: Array) -> Array:
    return part / np.where(whole > 0, whole, 1.0)


def _dual_values(batch: SVMBatch, duals: Array) -> tuple[Array, Array]:
    """Return ``P_N X'(y a)`` and lower bounds of D(a).

    Each entry of the centred rows was stored with a relative error of eps, independent of the
    others: what this may add to the value is taken off.
    """
    pulls = batch.project_all(batch.scale * ((batch.signs * duals) @ batch.rows.features))
    values = duals.sum(axis=1) - 0.5 * _dots(pulls, pulls)
    sizes = np.sqrt(_dots(duals, duals))
    lost = EPS * batch.rows.largest * batch.scale * sizes[:, None]
    values -= _dots(np.abs(pulls), lost) + 0.5 * _dots(lost, lost)
    return pulls, values


def _dots(first: Array, second: Array) -> Array:
    """Return the inner products of the rows."""
    return np.asarray(np.einsum("bi,bi->b", first, second))


class _Values(NamedTuple):
    """Primal points with upper bounds of their objectives."""

    objectives: Array
    coefs: Array
    intercepts: Array

    def replaced(self, chosen: Array, other: _Values) -> _Values:
        """Return the points with some of them exchanged."""
        return _Values(
            np.where(chosen, other.objectives, self.objectives),
            np.where(chosen[:, None], other.coefs, self.coefs),
            np.where(chosen, other.intercepts, self.intercepts),
        )


def _evaluate(batch: SVMBatch, coefs: Array, duals: Array, bounds: Array) -> _Values:
    """Return directions with their best bias, or slightly stretched ones where that is not exact.

    A row on the margin that rounding puts inside it costs ``c * eps``: for huge costs more than
    the certificate allows.  The bound counts this; stretching (s, b) by as much as rounding can
    take away puts such rows outside again.
    """
    y, c, X = batch.signs, batch.costs, batch.rows.features
    weights = batch.scale * coefs
    f = weights @ X.T
    low, high = intercept_intervals(f, y, c)
    intercepts = 0.5 * (low + high)
    margins = y * (f + intercepts[:, None])
    short = 1.0 - margins
    hinge = np.maximum(short, 0.0)
    sizes = 0.5 * _dots(coefs, coefs)
    objectives = sizes + _dots(c, hinge)
    finite = np.isfinite(objectives)
    if not finite.all():
        objectives = np.where(finite, objectives, np.inf)
        coefs, intercepts = np.where(finite[:, None], coefs, 0.0), np.where(finite, intercepts, 0.0)
    free = duals < UPPER_SHARE * c
    shortest = np.where(free, hinge, 0.0).max(axis=1)
    near = free & (np.abs(short) < STRETCH_LIMIT)
    near &= (finite & (shortest < STRETCH_LIMIT))[:, None]
    rows = np.flatnonzero(near.any(axis=0))
    if not len(rows):
        return _Values(objectives, coefs, intercepts)
    near = near[:, rows]
    lengths = np.abs(weights)
    summands = np.where(near, lengths @ np.abs(X[rows]).T, 0.0).max(axis=1)
    summands += np.abs(intercepts) + 2.0 * (lengths @ np.abs(batch.rows.centre))
    rounding = ROUNDING * (1.0 + summands)
    objectives = objectives + rounding * np.where(near, c[:, rows], 0.0).sum(axis=1)
    doubtful = _is_doubtful(objectives, bounds)
    if not doubtful.any():
        return _Values(objectives, coefs, intercepts)
    factors = 1.0 + 2.0 * (shortest + rounding)
    hinge = np.maximum(1.0 - factors[:, None] * margins, 0.0)
    stretched = factors**2 * sizes + _dots(c, hinge)
    better = doubtful & near.any(axis=1) & (stretched < objectives)
    factors = np.where(better, factors, 1.0)
    return _Values(
        np.where(better, stretched, objectives), factors[:, None] * coefs, factors * intercepts
    )


def intercept_intervals(f: Array, y: Array, c: Array) -> tuple[Array, Array]:
    """Return the intervals of biases that minimise the hinge loss of the scores ``f + b``.

    The slope in b is ``-sum_{y>0} c + sum_{y_i - f_i <= b} c_i``: a weighted quantile of the break
    points.  With a zero slope between two of them the optimum is an interval.  Rows without cost
    do not count.  Shapes (B, n).
    """
    points = np.where(c > 0, y - f, np.inf)
    order = np.argsort(points, axis=1)
    points = _ordered(points, order)
    slopes = np.cumsum(_ordered(c, order), axis=1)
    slopes -= np.where(y > 0, c, 0.0).sum(axis=1, keepdims=True)
    flat = f.shape[1] * EPS * c.sum(axis=1, keepdims=True)  # rounding of the cumulated costs
    each, first = np.arange(len(f)), (slopes >= -flat).argmax(axis=1)
    low = points[each, first]
    is_flat = np.abs(slopes[each, first]) <= flat[:, 0]
    if not is_flat.any():
        return low, low
    following = points[each, np.minimum(first + 1, f.shape[1] - 1)]
    return low, np.where(is_flat & np.isfinite(following), following, low)


def _ordered(values: Array, order: Array) -> Array:
    if len(values) == 1:  # much quicker
        return np.asarray(values[0][order[0]][None])
    return np.take_along_axis(values, order, axis=1)
