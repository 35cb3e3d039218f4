"""Dual coordinate descent with Newton steps, for problems of many dimensions.

An interior point step costs ``n r^2`` operations, a visit to one row ``r``.  Sweeps over the rows
soon tell which multipliers are at their bounds; those rows are left out until the rest is settled.
A few hundred free multipliers remain, whose best values are slow to come by coordinates when costs
are large, but are the solution of a small linear system: projected Newton steps, then some sweeps
to see who enters and leaves, until neither changes anything.  The crossover makes the face exact
and certifies it on all rows.

The bias is the multiplier of ``y'a = 0`` (Hestenes and Powell's method): the dual value is less
``bias_size / 2 (y'a)^2``, so that steps move the bias by ``bias_size`` times the change of ``y'a``;
now and then it moves by ``bias_size y'a`` itself.  A Newton step that meets no bound finds it
exactly.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import lapack

from marginfold.linalg.decompositions import cholesky
from marginfold.linalg.tall import Array, gram
from marginfold.runtime.progress import report
from marginfold.runtime.threads import threads_for
from marginfold.svm.active_set import crossover, sets_of
from marginfold.svm.certificate import best_bias
from marginfold.svm.interior_point import NUMPY, without_dwarfing
from marginfold.svm.problem import EPS, LONG_WORK, SVMProblem, SVMSolution

BIAS_SHARE = 0.02
"""First size of the bias, in mean squared lengths of a row: more slows the sweeps."""

SHRINKING = 0.5
"""Share of the last move of the bias above which its size is doubled."""

SETTLED = 0.03
"""Violation, in margins, at which the face is nearly right and Newton steps begin."""

BETWEEN, ROUNDS = 20, 40
"""Sweeps between Newton steps, and how often there are such, and such steps, at most."""

SWEEPS_PER_DIMENSION, PROMISING = (0.25, 1.0), 0.5
"""Sweeps after which it is given up: soon if more than a share of the rows is free, as for large
costs, where sweeps never get ahead (C = 30 on 5000 rows of rank 500 would take 1.4 times as long);
late otherwise (C = 1 there takes 0.6 of the time, five bipartitions of 60,000 x 784 0.45)."""

FREE_ROWS = 2
"""Free rows up to which Newton steps are tried, in those that an active set may have: most of the
surplus meets a bound at once.  On 100,000 rows of rank 200, 1 takes 2.9 times as long."""

FAR_OFF = 10.0
"""Violation, in margins, from which a start is worse than none."""

RIDGE = 1e-8
"""Relative weight that keeps the Newton matrix of dependent rows positive definite."""

RIDGES, RIDGE_GROWTH = 4, 100.0
"""How the ridge grows (Levenberg and Marquardt) while no share of a step gains: with more free rows
than their rank, as rows that are nearly copies leave, a step along the rest is far too long.  It
makes rows of mail (57 columns, many of them 0) three times as fast."""

SHARES = 0.4 ** np.arange(6)
"""Shares of a Newton step that are tried in turn until one gains."""

SEEN = 1e-6
"""Violation, in margins, that a Newton step may leave: the crossover does the rest."""


def descend(
    sweeps: Any, problem: SVMProblem, *, tol: float, start: Array | None = None
) -> SVMSolution | None:
    """Return the certified solution, or None if too many sweeps would be needed.

    Parameters
    ----------
    sweeps : module
        The compiled sweeps.
    problem : SVMProblem
    tol : float
        Relative duality gap to reach.
    start : array of shape (n,), optional
        Feasible multipliers of another problem with the same labels and costs: a warm start.
    """
    if without_dwarfing(problem) is not problem:
        return None
    descent = _Descent(sweeps, problem)
    if start is not None:
        descent.begin_at(start)
    if not (descent.is_possible and descent.sweep_until_stable()):
        return None
    for _ in range(ROUNDS):
        if descent.n_free > FREE_ROWS * problem.most_free:
            return None
        if descent.newton_steps() and descent.largest_violation() <= SEEN:
            break
        descent.sweep(BETWEEN)
        if descent.move_bias() > SETTLED:
            descent.visit_all()
    else:
        return None
    point = crossover(problem, *sets_of(descent.a, descent.c), descent.a, NUMPY)
    return None if point is None else SVMSolution.of(point, n_iter=descent.n_sweeps, tol=tol)


class _Descent:
    """A problem, a point and the rows that are still visited (shrinking).

    With ``u = X'(y a)`` the direction is ``w = u - N N'u``.  Neither the rows in the metric nor
    their parts without the deflated directions are stored: ``x'w = rows'plane - (X N)'along`` with
    ``plane = scale * u`` and ``along = N'u``.
    """

    def __init__(self, sweeps: Any, problem: SVMProblem) -> None:
        self.sweeps, self.problem = sweeps, problem
        self.y, self.c = problem.signs, problem.costs
        table, scale, N = problem.table, problem.scale, problem.deflated
        T = np.ascontiguousarray(problem.features @ (scale[:, None] * N))
        self.sizes = sweeps.lengths(table, scale**2, T)
        self.arrays = table, scale**2, T, self.y, self.c, self.sizes
        sizes = len(table), len(scale), N.shape[1], 1
        self.a, self.plane, self.along, self.bias = (np.zeros(size) for size in sizes)
        self.order = np.flatnonzero(self.c > 0)
        self.seed = np.zeros(1, dtype=np.uint64)
        self.worst, self.n_sweeps, self.n_visits, self.ridge = np.inf, 0, 0, RIDGE
        self.mean_size = float(self.sizes.mean())
        self.bias_size, self.moved = BIAS_SHARE * self.mean_size, np.inf
        self.visit_all()

    def begin_at(self, dual: Array) -> None:
        """Take these multipliers and the bias that is best for them, unless they are far off."""
        scale = self.problem.scale
        self.a[:] = dual
        pull = scale * ((self.y * dual) @ self.problem.features)
        self.plane[:], self.along[:] = scale * pull, self.problem.deflated.T @ pull
        self._take_best_bias()
        if not self.largest_violation() <= FAR_OFF:
            for part in (self.a, self.plane, self.along, self.bias):
                part[:] = 0.0

    def _take_best_bias(self) -> None:
        self.bias[0] = best_bias(self._scores(), self.y, self.c)

    def visit_all(self) -> None:
        """Let the next sweep visit all rows."""
        self.active, self.shrink_above = len(self.order), np.inf

    @property
    def is_possible(self) -> bool:
        """Whether the numbers are finite and a row has any length."""
        return bool(np.isfinite(self.sizes).all() and self.sizes[self.order].any())

    @property
    def is_free(self) -> Array:
        """Which multipliers are between their bounds."""
        return np.asarray((self.a > 0) & (self.a < self.c))

    @property
    def n_free(self) -> int:
        """Number of multipliers between their bounds."""
        return int(np.count_nonzero(self.is_free))

    @property
    def direction(self) -> Array:
        """The direction w in whitened coordinates."""
        return self.plane / self.problem.scale - self.problem.deflated @ self.along

    def sweep_until_stable(self) -> bool:
        """Sweep until the face is nearly right; return False if that takes too long."""
        n, r = len(self.order), len(self.plane)
        for share in SWEEPS_PER_DIMENSION:
            while self.n_visits < share * r * (n + r):
                all_rows = self.shrink_above == np.inf
                self.sweep(1)
                if self.worst <= SETTLED:
                    balanced = self.move_bias() <= SETTLED
                    if all_rows and balanced and self.n_free <= FREE_ROWS * self.problem.most_free:
                        return True
                    self.visit_all()
            if self.n_free > PROMISING * n:
                break
        return False

    def sweep(self, count: int) -> None:
        """Visit all active rows so many times."""
        point = self.a, self.plane, self.along, self.bias
        for _ in range(count):
            if self.problem.table.size > LONG_WORK:
                report("sweeps", self.n_sweeps)
            self.n_sweeps += 1
            self.n_visits += self.active
            rows = self.order, self.active, self.shrink_above, self.seed
            self.active, self.worst = self.sweeps.sweep(self.arrays, self.bias_size, point, *rows)
            self.shrink_above = max(self.worst, SETTLED)

    def move_bias(self) -> float:
        """Let the bias bring the sides into balance; return by how many margins it moved."""
        move = self.bias_size * float(self.y @ self.a)
        if abs(move) > max(SETTLED, SHRINKING * self.moved):
            self.bias_size = min(2.0 * self.bias_size, self.mean_size)
        self.bias[0] += move
        self.moved = abs(move)
        return self.moved

    def largest_violation(self) -> float:
        """Return how far a row is on the wrong side for its bound; all are visited next."""
        self.visit_all()
        excess = self.y * (self._scores() + self.bias[0]) - 1.0
        at_upper = np.where(self.a >= self.c, excess, np.abs(excess))
        wrong = np.where(self.a <= 0, -excess, at_upper)
        return float(wrong[self.order].max())

    def _balance(self) -> bool:
        """Without free multipliers, take the best bias; return whether they are in balance."""
        self.visit_all()
        self._take_best_bias()
        return bool(abs(self.y @ self.a) <= len(self.a) * EPS * self.a.sum())

    def _scores(self) -> Array:
        weights = self.problem.scale * self.direction
        return np.asarray(self.problem.features @ weights)

    def newton_steps(self) -> bool:
        """Take Newton steps of the free multipliers; those that meet a bound stay there.

        Returns whether the last step met none: the rest is where it would be without bounds.
        """
        free = np.flatnonzero(self.is_free)
        if not len(free):
            return self._balance()
        with threads_for(len(free), self.problem.features.shape[1]):
            return self._newton_steps(free)

    def _newton_steps(self, free: Array) -> bool:
        X = self.problem.whitened(free) * self.y[free, None]
        K = gram(X.T)
        for _ in range(ROUNDS):
            whole, gained = self._newton_step(free, X, K)
            inside = self.is_free[free]
            if whole or not gained or not inside.any():
                return whole
            if not inside.all():
                free, X, K = free[inside], X[inside], K[np.ix_(inside, inside)]
        return False

    def _newton_step(self, free: Array, X: Array, K: Array) -> tuple[bool, bool]:
        """Step to where the free rows are on the margin, or towards it as far as it gains.

        X are the free rows times their labels, K is X X'.  Returns whether the step was taken whole
        and whether one was taken.
        """
        y, upper, before = self.y[free], self.c[free], self.a[free]
        slopes, first_ridge = 1.0 - X @ self.direction, max(RIDGE, self.ridge / RIDGE_GROWTH)
        for self.ridge in first_ridge * RIDGE_GROWTH ** np.arange(RIDGES):
            shifted = np.array(K, order="F")  # LAPACK's own order
            shifted.flat[:: len(free) + 1] += self.ridge * self.mean_size
            factor, failed = cholesky(shifted, lower=True, overwrite=True)
            if failed:
                break
            first, second = lapack.dpotrs(factor, np.stack([slopes, y], axis=1), lower=1)[0].T
            bias = (self.y @ self.a + y @ first) / (y @ second)
            after = before + first - bias * second
            if ((after > 0) & (after < upper)).all():
                self._take(free, after, X)
                self.bias[0] = bias
                return True, True
            size, pulls = self.bias_size, slopes - self.bias[0] * y
            step = first - self.bias[0] * second
            step -= second * (size * (y @ step) / (1.0 + size * (y @ second)))
            for share in SHARES:
                after = np.clip(before + share * step, 0.0, upper)
                change = after - before
                if change @ pulls > 0.5 * (change @ (K @ change) + size * (y @ change) ** 2):
                    self._take(free, after, X)
                    self.bias[0] += size * (y @ change)
                    return False, True
        return False, False

    def _take(self, free: Array, after: Array, X: Array) -> None:
        """Set the free multipliers, whose rows times their labels are X."""
        self.plane += self.problem.scale * ((after - self.a[free]) @ X)
        self.a[free] = after
