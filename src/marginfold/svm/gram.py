"""Support vector machines given by a kernel matrix instead of coordinates, certified in the dual.

With multipliers a and ``f = K (y a)`` both values that the certificate compares follow from f::

    P = 1/2 (y a)'f + sum_i c_i max(0, 1 - y_i (f_i + b)),    D(a) = sum_i a_i - 1/2 (y a)'f

libsvm finds the multipliers to its own tolerance; the equations of the active set that they tell
make them exact (`active_set` has the same for rows in coordinates).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any, NamedTuple
from warnings import catch_warnings, simplefilter

import numpy as np
from sklearn import config_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC

from marginfold.feature_maps.kernel_values import KernelFunction
from marginfold.linalg.decompositions import eigh
from marginfold.linalg.tall import Array
from marginfold.linalg.tall import dense as _dense
from marginfold.runtime.progress import report
from marginfold.svm.active_set import definite_solver, repaired, sets_of
from marginfold.svm.certificate import best_bias, feasible
from marginfold.svm.policy import Automatic
from marginfold.svm.problem import EPS, TINY, TOLERANCES, SVMSolver, single
from marginfold.validation.rows import taken_as_classes

KKT_TOLERANCES = (1e-3, 1e-6)
"""libsvm's stopping tolerances, one after the other: after the first, the default of scikit-learn,
the active set is nearly always right or repaired in a few rounds."""

MOST_ITERATIONS, ITERATIONS_PER_ROW = 10_000_000, 1000
"""Iterations of libsvm after which its multipliers are taken as they are, and that many for each of
few rows, where coordinates are quicker than a search that does not end."""

EXACT = 1e-10
"""Relative gap as good as exact: the right active set gives 1e-13 to 1e-10, by its rounding."""

ROUNDS = 12
"""Repaired active sets before libsvm is asked for more digits."""

MOST_FREE = 4000
"""Rows above which a matrix of them is not factorised: that of the free ones for the equations of
the active set, and that of all rows where libsvm fails, to give them coordinates."""

CACHE_MEGABYTES, KEPT_BYTES, PART_BYTES = 500, 256 << 20, 32 << 20
"""Memory of libsvm for kernel columns, of the columns that the certificate keeps, and of those that
it evaluates at a time where they are too many to keep."""

SAMPLE = 250
"""Rows that tell the variance in feature space where the kernel matrix is not there."""

SEEDS = np.random.RandomState(0)
"""libsvm draws a seed, to no purpose here: from a generator that is there, not the global one.  To
make one takes a quarter of the time of a fit of 150 rows."""

LIBSVM_KERNELS = ("rbf", "poly", "sigmoid", "linear")
"""Kernels that libsvm evaluates itself."""


class Gram(ABC):
    """A kernel matrix K of n rows, given or evaluated where it is needed."""

    diagonal: Array
    K: Array | None = None

    @property
    @abstractmethod
    def for_libsvm(self) -> tuple[Any, dict[str, Any]]:
        """What `SVC` is fitted on, and the parameters of its kernel."""

    @abstractmethod
    def times(self, coefs: Array) -> Array:
        """Return K times coefficients, most of which may be 0."""

    @abstractmethod
    def among(self, rows: Array) -> Array:
        """Return K among some rows."""

    @abstractmethod
    def columns(self, rows: Array) -> Array | None:
        """Return the columns of some rows; None if they are too many to be kept."""

    @property
    def spread(self) -> float:
        """The variance of the rows in feature space, from some of them where K is not there."""
        K, n = self.K, len(self.diagonal)
        K = self.among(np.arange(0, n, -(-n // SAMPLE))) if K is None else K
        return max(float(np.trace(K)) / len(K) - float(K.mean()), 0.0)


class GivenGram(Gram):
    """A kernel matrix in memory."""

    K: Array

    def __init__(self, K: Array) -> None:
        self.K, self.diagonal = K, np.diagonal(K)

    @property
    def for_libsvm(self) -> tuple[Any, dict[str, Any]]:
        """The matrix itself."""
        return self.K, {"kernel": "precomputed"}

    def times(self, coefs: Array) -> Array:
        """Return K times coefficients."""
        return np.asarray(self.K @ coefs)

    def among(self, rows: Array) -> Array:
        """Return K among some rows."""
        return np.asarray(self.K[np.ix_(rows, rows)])

    def columns(self, rows: Array) -> Array:
        """Return the columns of some rows."""
        return np.asarray(self.K[:, rows])


class RowGram(Gram):
    """The kernel among rows X, of which only the columns of support vectors are evaluated."""

    def __init__(self, diagonal: Array, function: KernelFunction, X: Any) -> None:
        self.diagonal, self.function, self.X = diagonal, function, X
        self._kept = np.zeros(0, dtype=np.intp)
        self._columns = np.zeros((len(diagonal), 0))

    @property
    def for_libsvm(self) -> tuple[Any, dict[str, Any]]:
        """The rows, and the kernel's name and parameters."""
        f = self.function
        names = {"kernel": f.kernel, "gamma": f.gamma, "degree": f.degree, "coef0": f.coef0}
        return self.X, names

    def times(self, coefs: Array) -> Array:
        """Return K times coefficients; its columns are kept as long as they are few."""
        taken = np.flatnonzero(coefs)
        new = np.setdiff1d(taken, self._kept, assume_unique=True)
        if 8 * len(coefs) * (len(self._kept) + len(new)) > KEPT_BYTES:
            width = max(1, PART_BYTES // (8 * len(coefs)))
            parts = (taken[first : first + width] for first in range(0, len(taken), width))
            return np.sum([self._evaluated(part) @ coefs[part] for part in parts], axis=0)
        if len(new):
            self._kept = np.append(self._kept, new)
            columns = self._evaluated(new)
            whole = self._columns.shape[1]
            self._columns = np.hstack([self._columns, columns]) if whole else columns
        return np.asarray(self._columns @ coefs[self._kept])

    def among(self, rows: Array) -> Array:
        """Return K among some rows."""
        return self.function(self.X[rows], self.X[rows])

    def columns(self, rows: Array) -> Array | None:
        """Return the columns of some rows; None if they are too many to be kept."""
        few = 8 * len(self.diagonal) * len(rows) <= KEPT_BYTES
        return self._evaluated(rows) if few else None

    def _evaluated(self, columns: Array) -> Array:
        report("kernel columns", 0)
        return self.function(self.X, self.X[columns])


class Multipliers(NamedTuple):
    """Nearly optimal multipliers of one problem, and the iterations that they took."""

    dual: Array
    n_iter: int


class Certificate(NamedTuple):
    """Values of points, lower bounds of the optimal ones, and the relative gaps between them."""

    objectives: Array
    bounds: Array
    gaps: Array


@dataclass(frozen=True)
class GramSolution:
    """One solved problem with its certificate.

    Attributes
    ----------
    coefs : array of shape (n,)
        Coefficients of the rows, ``y a``: the machine is ``sum_j coefs_j k(x, x_j) + intercept``.
    intercept : float
        The middle of the interval of optimal values.
    objective, gap : float
        Primal value, and ``(P - D) / P``: a bound of its relative error.
    n_iter : int
        Iterations of libsvm.
    converged : bool
        Whether the gap is within the tolerance.
    """

    coefs: Array
    intercept: float
    objective: float
    gap: float
    n_iter: int = 0
    converged: bool = False


def solve_gram(
    gram: Gram, signs: Array, costs: Array, *, tol: float, start: Multipliers | None = None
) -> GramSolution:
    """Solve one problem with labels +1 and -1 and positive costs.

    Parameters
    ----------
    gram : Gram
        The kernel matrix of the n rows.
    signs, costs : arrays of shape (n,)
    tol : float
        Relative duality gap to reach.
    start : Multipliers, optional
        Those of libsvm, if it has solved this problem (`pairs.libsvm_pairs`).

    Examples
    --------
    >>> import numpy as np
    >>> from marginfold.svm.gram import GivenGram, solve_gram
    >>> x, y = np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([-1.0, -1.0, 1.0, 1.0])
    >>> found = solve_gram(GivenGram(x @ x.T), y, np.full(4, 10.0), tol=1e-8)
    >>> round(float(found.coefs @ x[:, 0]), 6), found.converged
    (2.0, True)
    """
    points: list[GramSolution] = []
    iterations = 0
    for kkt_tol in KKT_TOLERANCES:
        near, start = start or _from_libsvm(gram, signs, costs, kkt_tol), None
        iterations += near.n_iter
        points.append(_made_exact(gram, signs, costs, near.dual, tol))
        if points[-1].gap <= tol:
            break
    else:
        if len(signs) <= MOST_FREE:
            points.append(solve_in_coordinates(gram, signs, costs, Automatic(tol)))
    best = min(points, key=lambda point: point.gap)
    return replace(best, n_iter=iterations, converged=best.gap <= tol)


def _from_libsvm(gram: Gram, signs: Array, costs: Array, kkt_tol: float) -> Multipliers:
    """Return libsvm's multipliers for one problem, zeros if it fails."""
    svc = fitted(gram, signs, costs, kkt_tol)
    dual = np.zeros(len(signs))
    if svc is None:
        return Multipliers(dual, 0)
    dual[svc.support_] = np.abs(_dense(svc.dual_coef_)[0])
    return Multipliers(dual, int(np.max(svc.n_iter_)))


def fitted(gram: Gram, y: Array, costs: Array, kkt_tol: float) -> SVC | None:
    """Return libsvm's machines, None if one of them is not finite, as for copies of one row."""
    X, kernel = gram.for_libsvm
    svc = SVC(
        C=1.0,
        tol=kkt_tol,
        max_iter=ITERATIONS_PER_ROW * len(y) if len(y) <= MOST_FREE else MOST_ITERATIONS,
        cache_size=CACHE_MEGABYTES,
        random_state=SEEDS,
        **kernel,
    )
    with config_context(assume_finite=True, skip_parameter_validation=True), catch_warnings():
        simplefilter("ignore", ConvergenceWarning)  # the certificate tells
        try:
            with taken_as_classes():
                return svc.fit(X, y, sample_weight=costs)
        except ValueError:
            return None


def _made_exact(gram: Gram, signs: Array, costs: Array, dual: Array, tol: float) -> GramSolution:
    """Return the best certified point on the active sets that nearly optimal multipliers tell."""
    dual = feasible(signs, costs, dual)
    lower, upper = sets_of(dual, costs)
    best: GramSolution | None = None
    for _ in range(ROUNDS):
        free = np.flatnonzero(~(lower | upper))
        if len(free) > MOST_FREE:
            break
        coefs = np.where(upper, signs * costs, 0.0)
        pushed = gram.times(coefs)
        beta, intercept = _on_margin(gram.among(free), signs[free] - pushed[free], -coefs.sum())
        if not np.isfinite(beta).all():
            break
        coefs[free] = beta
        f = pushed + gram.times(np.where(upper, 0.0, coefs))
        found = _certified(gram, signs, costs, coefs, f)
        best = found if best is None or found.gap < best.gap else best
        if best.gap <= EXACT:
            break
        excess = signs * (f + intercept) - 1.0
        new_lower, new_upper = repaired(lower, upper, signs * coefs, costs, excess)
        if (new_lower == lower).all() and (new_upper == upper).all():
            break
        lower, upper = new_lower, new_upper
    if best is not None and best.gap <= tol:
        return best
    coefs = signs * dual
    plain = _certified(gram, signs, costs, coefs, gram.times(coefs))
    return plain if best is None or plain.gap < best.gap else best


def _on_margin(K: Array, values: Array, total: float) -> tuple[Array, float]:
    """Solve ``K beta + b = values, sum(beta) = total``, with the least norm if it is singular.

    What beta differs from its mean by solves the centred equations.
    """
    m = len(K)
    if not m:
        return np.zeros(0), 0.0
    means = K.mean(axis=0)
    system = K - means
    system -= (means - means.mean())[:, None]
    size = float(np.trace(system)) / m or 1.0
    system /= size
    system += 1.0
    solve = definite_solver(system, least_norm=True)
    if solve is None:
        return np.full(m, np.nan), 0.0
    beta = np.full(m, total / m)
    for _ in range(1 + TOLERANCES.refinements):
        left = values - K @ beta
        change = solve(left - left.mean()) / size
        beta += change - change.mean()
    return beta, float((values - K @ beta).mean())


def certified(
    diagonal: Array, signs: Array, costs: Array, coefs: Array, f: Array, intercepts: Array
) -> Certificate:
    """Return what points with a bias are worth, and their gaps to bounds of the optimal values.

    Rows are along the last axis; there may be several problems along others.  The bound belongs to
    multipliers that are feasible.  With ``d`` their difference from the given ones its quadratic
    part is at most ``coefs'f + 2 d'f + (sum_i |d_i| sqrt(K_ii))^2``.  Rounding of f, in its
    summands, is counted on both sides.
    """
    lengths = np.sqrt(np.maximum(diagonal, 0.0))
    dual = feasible(signs, costs, signs * coefs)
    moved = signs * dual - coefs
    square = np.maximum((coefs * f).sum(axis=-1), 0.0)
    sizes = np.abs(coefs)
    rounding = EPS * (sizes * lengths).sum(axis=-1) * lengths.max(axis=-1, initial=0.0)
    lost = rounding * sizes.sum(axis=-1)
    quadratic = (
        square + 2.0 * (moved * f).sum(axis=-1) + (np.abs(moved) * lengths).sum(axis=-1) ** 2 + lost
    )
    bounds = np.maximum(dual.sum(axis=-1) - 0.5 * quadratic, 0.0)
    short = 1.0 - signs * (f + np.expand_dims(intercepts, -1))
    near = np.where(short > -np.expand_dims(rounding, -1), costs, 0.0).sum(axis=-1)
    objectives = 0.5 * (square + lost) + (costs * np.maximum(short, 0.0)).sum(axis=-1)
    objectives = objectives + rounding * near
    gaps = np.maximum(objectives - bounds, 0.0) / np.maximum(objectives, TINY)
    return Certificate(objectives, bounds, gaps)


def _certified(gram: Gram, signs: Array, costs: Array, coefs: Array, f: Array) -> GramSolution:
    """Return a point with its best bias, or the constant machine if that is better."""
    intercept = best_bias(f, signs, costs)
    objective, bound, gap = map(
        float, certified(gram.diagonal, signs, costs, coefs, f, np.array(intercept))
    )
    if not np.isfinite(objective):
        return GramSolution(coefs, intercept, np.inf, np.inf)
    side = float(costs[signs > 0].sum())
    constant = 2.0 * min(side, float(costs.sum()) - side)
    if objective > constant:
        sign = 1.0 if 2.0 * side > costs.sum() else -1.0
        coefs, intercept, objective = np.zeros_like(coefs), sign, constant
        gap = max(constant - bound, 0.0) / max(constant, TINY)
    return GramSolution(coefs, float(intercept), objective, gap)


def solve_in_coordinates(gram: Gram, signs: Array, costs: Array, solver: SVMSolver) -> GramSolution:
    """Solve in coordinates ``Z Z' = K`` of the rows with a solver that needs such.

    The gap is that of the kernel, which the coordinates lose digits of: it decides whether the
    tolerance of the solver, or what it reached if it has none, is kept.
    """
    n = len(signs)
    values, vectors = eigh(gram.among(np.arange(n)))
    kept = values > n * EPS * values[-1]
    Z = np.ascontiguousarray(vectors[:, kept] * np.sqrt(values[kept]))
    found = solver.solve_batch(single(Z, signs, costs))[0]
    coefs = signs * found.dual
    point = _certified(gram, signs, costs, coefs, gram.times(coefs))
    gap = max(point.gap, found.gap)
    tol = float(getattr(solver, "tol", max(found.gap, EXACT)))
    converged = found.converged and gap <= tol
    return replace(point, gap=gap, n_iter=found.n_iter, converged=converged)
