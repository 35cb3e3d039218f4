"""A low-rank interior point method for support vector machines.

Mehrotra's predictor-corrector method on the primal-dual conditions (s, b primal; a dual)::

    y f + xi - v = 1,  f = X s + b        s = P_N X'(y a),  y'a = 0
    a v = mu,  (c - a) xi = mu            a, c - a, xi, v > 0

Eliminating everything but (s, b) leaves one (r+1) x (r+1) system per iteration: a step costs
O(n r^2) and nothing of size n x n exists.  A crossover to the exact active set and a certificate on
the original problem finish it.  `iterate` is the readable reference; `kernels.iterate`, compiled by
numba, has the same signature and takes the same steps where there is enough work to be done.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal, NamedTuple, cast

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import lapack

from marginfold.linalg.decompositions import cholesky, product
from marginfold.linalg.tall import Array, SharedRows, row_blocks
from marginfold.runtime.jit import compiled_module, require_compiled
from marginfold.runtime.progress import report
from marginfold.runtime.threads import threads_for
from marginfold.svm.active_set import crossover, solve_equations
from marginfold.svm.certificate import certify, dual_bound, evaluate
from marginfold.svm.problem import (
    LONG_WORK,
    TINY,
    TOLERANCES,
    BlockRows,
    Kernels,
    Point,
    SVMBatch,
    SVMProblem,
    SVMSolution,
    check_batch,
    gap_of,
    single,
    without,
)
from marginfold.svm.screening import sift
from marginfold.validation.parameters import (
    TOLERANCE,
    Choice,
    Count,
    Either,
    Flag,
    check_parameters,
)

COLD_MU, AGAIN_MU = 1.0, 100.0
"""Start of the central path in units of the mean cost, and of a second attempt."""

WARM_MU = 0.5
"""Start of the central path at known weights, in units of the cost times the zone's width."""

ROUGH = 1e-4
"""Tolerance above which no crossover is tried."""

MANY_DIMENSIONS = 100
"""Dimensions above which most of the time is spent in matrix products, so that compiling does not
pay, and coordinate descent finds the active set 2.5 to 40 times sooner."""

LONG_PAUSE = 10_000_000
"""Numbers that iterations may pass over before they report: a pause costs a pass."""

DWARFED = 1e-4
"""Share of the variance outside the deflated directions below which rounding drowns it."""

NEWTON_SECONDS, ROW_SECONDS, CALL_SECONDS = 8e-9, 1e-6, 3e-3
"""NumPy's time for one problem: for each row and pair of columns, for each row, and at least."""


COMPILED = Either(Flag(), Choice("auto"))
"""What a solver may be told about compiling."""


class Start(NamedTuple):
    """Where the iteration begins: on the central path at mu above weights [s ; b], if known."""

    mu: float = COLD_MU
    weights: Array | None = None


COLD = Start()


class Scaled(NamedTuple):
    """A problem in the units of the iteration: the mean cost is 1, the bias is a coordinate.

    Attributes
    ----------
    columns : array of shape (q + 1, n)
        Its features, one after the other, without what is deflated, and ones.
    signs, costs : arrays of shape (n,)
    unit : float
        The mean cost.
    basis : array of shape (r, q) or None
        Orthonormal basis of what is not deflated; None if nothing is.
    """

    columns: Array
    signs: Array
    costs: Array
    unit: float
    basis: Array | None

    @classmethod
    def of(cls, problem: SVMProblem) -> Scaled:
        """Return the features, scaled by the metric and by the root of the mean cost."""
        unit = float(problem.costs.mean())
        scale = problem.scale * np.sqrt(unit)
        basis = complement(problem.deflated) if problem.deflated.shape[1] else None
        q = len(scale) if basis is None else basis.shape[1]
        columns = np.ones((q + 1, len(problem.costs)))
        if basis is None:
            np.multiply(problem.features.T, scale[:, None], out=columns[:q])
        else:
            product((scale[:, None] * basis).T, problem.features.T, out=columns[:q])
        return cls(columns, problem.signs, problem.costs / unit, unit, basis)

    def from_weights(self, weights: Array) -> Array:
        """Return the iteration's coordinates of weights and bias [s ; b]."""
        s = weights[:-1] / np.sqrt(self.unit)
        return np.append(s if self.basis is None else s @ self.basis, weights[-1])

    def direction(self, u: Array) -> Array:
        """Return s of the iteration's coordinates."""
        s = u[:-1] * np.sqrt(self.unit)
        return s if self.basis is None else self.basis @ s


def complement(N: Array) -> Array | None:
    """Return an orthonormal basis of what is orthogonal to orthonormal (or zero) columns."""
    N = N[:, N.any(axis=0)]
    r, k = N.shape
    if not k:
        return None
    reflections = np.zeros((r, r), order="F")
    reflections[:, :k], factors = lapack.dgeqrf(N)[:2]
    return np.ascontiguousarray(lapack.dorgqr(reflections, factors)[0][:, k:])


def solve(
    problem: SVMProblem, start: Start, kernels: Kernels, *, tol: float, max_iter: int
) -> tuple[Point, int]:
    """Iterate until the gap is within the tolerance; return the best point and the iterations."""
    scaled = Scaled.of(problem)
    state = State.of(scaled, start)
    crosses, size, best = tol <= ROUGH, scaled.columns.size, None
    ready = min(tol, TOLERANCES.identified) if crosses else tol
    pause = max(1, LONG_PAUSE // size) if size > LONG_WORK else max_iter
    while True:
        n_iter = int(state.tally[0])
        if size > LONG_WORK:
            report("iterations", n_iter)
        ended = kernels.iterate(scaled, state, ready, min(pause, max_iter - n_iter))
        n_iter, idle = int(state.tally[0]), state.tally[2]
        done = idle > TOLERANCES.patience or n_iter >= max_iter
        if not (ended or done):
            continue
        found = _finish(problem, scaled, state, crosses, kernels)
        best = found if best is None or gap_of(found) < gap_of(best) else best
        if done or gap_of(best) <= tol:
            return best, n_iter


def _finish(
    problem: SVMProblem, scaled: Scaled, state: State, crosses: bool, kernels: Kernels
) -> Point:
    """Cross over to the active set that an interior point suggests, or certify the point itself."""
    coef, dual = without(problem.deflated, scaled.direction(state.u)), state.P[0] * scaled.unit
    exact: Point | None = None
    if crosses:
        lower = dual < problem.costs * state.Q[0]
        upper = ~lower & (scaled.unit * state.P[1] < problem.costs * state.Q[1])
        exact = crossover(problem, lower, upper, dual, kernels)
        if exact is not None and gap_of(exact) <= TOLERANCES.exact:
            return exact
    plain = certify(problem, coef, dual, kernels)
    return plain if exact is None or gap_of(plain) <= gap_of(exact) else exact


class State(NamedTuple):
    """A primal-feasible point: t = v - xi = y f - 1 and a + s = c hold exactly.

    The two complementary pairs (a, v) and (c - a, xi) obey the same equations: they are stacked.
    """

    u: Array  # (q + 1,) weights and bias
    P: Array  # (2, n) multipliers a, and s = c - a
    Q: Array  # (2, n) excess v of the margin, and hinge xi
    t: Array  # (n,) y f - 1
    tally: Array  # iterations, best gap, how many did not lower it; mu of a start, -mu without u

    @classmethod
    def of(cls, scaled: Scaled, start: Start) -> State:
        """Return a start: everything but the weights, if they are given, is still unknown."""
        q, n = scaled.columns.shape
        known = start.weights is not None
        u = np.zeros(q) if start.weights is None else scaled.from_weights(start.weights)
        tally = np.array([0.0, np.inf, 0.0, start.mu if known else -start.mu])
        return cls(u, np.empty((2, n)), np.empty((2, n)), np.empty(n), tally)


def iterate(scaled: Scaled, state: State, ready: float, steps: int) -> bool:
    """Take so many steps, in place; return True as soon as the point may be certified."""
    T, tally = TOLERANCES, state.tally
    is_new = bool(tally[3])
    if is_new:
        _begin(scaled, state)
    for left in reversed(range(steps + 1)):
        step = _Step(scaled, state)
        gap = step.gap()
        if is_new or left < steps:
            better = gap < T.progress * tally[1] or tally[1] > T.nearly
            idle = 0.0 if better and tally[2] <= T.patience else tally[2] + 1.0
            tally[1:] = min(tally[1], gap), idle, 0.0
            if gap <= ready or idle > 0:
                return True
        if left:
            moved = step.advance(refine=gap < T.refined)
            tally[0], tally[2] = tally[0] + 1.0, tally[2] if moved else T.patience + 1
            if tally[0] % T.refresh_every == 0:
                state.t[:] = scaled.signs * (state.u @ scaled.columns) - 1.0
    return False


def _begin(scaled: Scaled, state: State) -> None:
    """Lift weights to the central path, ``a v = (c - a) xi = mu`` with ``v - xi = t``.

    Unknown weights become the ridge regression on the labels.
    """
    A, y, c, mu = scaled.columns, scaled.signs, scaled.costs, abs(state.tally[3])
    if state.tally[3] < 0:
        state.u[:] = _Factor(_newton_matrix(A, c)).solve(A @ (c * y))
    state.t[:] = y * (state.u @ A) - 1.0
    m, half, outside = mu / c, np.abs(0.5 * state.t), state.t > 0
    rho = np.hypot(half, m)
    near, far = m + m * (m / (rho + half)), m + half + rho
    state.Q[0], state.Q[1] = np.where(outside, far, near), np.where(outside, near, far)
    state.P[:] = mu / state.Q


class _Step:
    """One predictor-corrector step from a state, which it changes."""

    def __init__(self, scaled: Scaled, state: State) -> None:
        self.scaled, self.state = scaled, state
        self.ratios = state.Q / state.P
        self.d = 1.0 / (self.ratios[0] + self.ratios[1])  # inverse Hessian of the barrier
        self.pull = scaled.columns @ (scaled.signs * state.P[0])  # [P_N X'(y a) ; y'a]

    def gap(self) -> float:
        """Return the relative gap of the running point (an estimate: y'a is not yet zero)."""
        s, p, state = self.state.u[:-1], self.pull[:-1], self.state
        primal = 0.5 * (s @ s) - self.scaled.costs @ np.minimum(state.t, 0.0)
        dual = state.P[0].sum() - 0.5 * (p @ p)
        return float((abs(primal - dual) + abs(self.pull[-1])) / max(primal, TINY))

    def advance(self, *, refine: bool) -> bool:
        """Move the state; return False if it could not move at all."""
        y, A, d, t = self.scaled.signs, self.scaled.columns, self.d, self.state.t
        P, Q, ratios = self.state.P, self.state.Q, self.ratios
        factor = _Factor(_newton_matrix(A, d))
        residual = self.pull - np.append(self.state.u[:-1], 0.0)
        du = factor.solve(residual - A @ (y * d * t))
        change = d * (y * (du @ A) + t)  # -da of the affine step
        dP = np.stack([-change, change])
        products = dP * (Q + ratios * dP)  # -dp dq: what the corrector removes
        shares = dP / P
        affine = 1.0 / max(-shares.min(), 1.0 + shares.max(), 1.0)
        comp = float(np.vdot(P, Q))
        mu = comp / (2.0 * len(y))
        mu_affine = (comp * (1.0 - affine) - affine**2 * products.sum()) / (2.0 * len(y))
        sigma = min(max((mu_affine / mu) ** 3, TOLERANCES.least_centring), 1.0)

        dQ = (products + sigma * mu) / P
        g = dQ[0] - dQ[1] - t
        right = residual + A @ (y * d * g)
        du = factor.solve(right)
        for _ in range(TOLERANCES.refinements if refine else 0):  # with the rows: no squaring
            image = A @ (d * (du @ A))
            image[:-1] += du[:-1]
            du += factor.solve(right - image)
        dt = y * (du @ A)
        da = d * (g - dt)
        dP = np.stack([da, -da])
        dQ -= Q + ratios * dP
        blocked = max(-(dP / P).min(), -(dQ / Q).min(), TINY)
        length = min(1.0, TOLERANCES.step_to_boundary / blocked)
        if not (np.isfinite(length) and np.isfinite(du).all()):
            return False
        for part, move in zip(self.state[:4], (du, dP, dQ, dt), strict=True):
            part += length * move
        return True


def _newton_matrix(A: Array, d: Array) -> Array:
    """Return ``diag(1, .., 1, 0) + A diag(d) A'``, in blocks that stay in cache."""
    roots, total = np.sqrt(d), np.zeros((len(A), len(A)))
    for block in row_blocks(A.shape[1], len(A)):
        part = A[:, block] * roots[block]
        total += part @ part.T
    total.flat[: -1 : len(A) + 1] += 1.0
    return total


class _Factor:
    """The Cholesky factor of a matrix scaled to a unit diagonal, shifted if need be."""

    def __init__(self, K: Array) -> None:
        self.unit = 1.0 / np.sqrt(np.maximum(K.diagonal(), TINY))
        K *= self.unit[:, None] * self.unit
        self.factor, self.failed = cholesky(K, lower=False)
        if self.failed:
            K.flat[:: len(K) + 1] += TOLERANCES.diagonal_shift
            self.factor, self.failed = cholesky(K, lower=False)

    def solve(self, right: Array) -> Array:
        """Solve with the factor; NaN if there is none."""
        if self.failed:
            return np.full_like(right, np.nan)
        return np.asarray(self.unit * lapack.dpotrs(self.factor, self.unit * right, lower=0)[0])


def without_dwarfing(problem: SVMProblem) -> SVMProblem:
    """Return the problem on rows without their deflated part if that would drown the rest.

    With a deflated direction along which the rows vary far more than elsewhere, projections in
    each step would leave rounding errors only.  In exact arithmetic it is the same problem; the
    certificate is that of the rows without this part.
    """
    N, X = problem.deflated, problem.features
    if not N.any():
        return problem
    total = float(np.einsum("ij,ij->j", X, X) @ problem.scale**2)
    inside = X @ (problem.scale[:, None] * N)
    if total - float((inside**2).sum()) >= DWARFED * total:
        return problem
    table = np.ascontiguousarray(np.column_stack([problem.whitened(), np.ones(len(X))]))
    centre = without(N, problem.centre * problem.scale)
    return problem._replace(table=table, centre=centre, scale=np.ones(len(centre)))


NUMPY = Kernels(iterate, solve_equations, dual_bound, evaluate)


@dataclass(frozen=True)
class InteriorPoint:
    """Solve support vector problems one by one to a certified relative duality gap.

    Parameters
    ----------
    tol : float, default=1e-8
        Relative duality gap to reach.
    max_iter : int, default=120
        Largest number of iterations.
    compiled : bool or "auto", default="auto"
        Whether the iterations are compiled by numba (``pip install "marginfold[compiled]"``).
        "auto" does it once a process has some seconds of work: short fits never wait for it.

    Examples
    --------
    >>> import numpy as np
    >>> from marginfold.svm import InteriorPoint
    >>> U = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> solution = InteriorPoint().solve(U, [-1, -1, 1, 1], C=10.0)
    >>> round(float(solution.coef[0]), 6), round(solution.intercept, 6)
    (2.0, -3.0)
    >>> solution.converged
    True
    """

    tol: float = 1e-8
    max_iter: int = 120
    compiled: bool | Literal["auto"] = "auto"

    def __post_init__(self) -> None:
        check_parameters(
            self,
            {"tol": TOLERANCE, "max_iter": Count(0), "compiled": COMPILED},
        )
        require_compiled(self.compiled)

    def solve(self, U: ArrayLike, y: ArrayLike, C: ArrayLike) -> SVMSolution:
        """Solve one problem with features U, labels +1/-1 and costs C (scalar or per row)."""
        return self.solve_batch(single(U, y, C))[0]

    def solve_batch(self, batch: SVMBatch) -> list[SVMSolution]:
        """Solve every problem of the batch; rows without cost do not take part.

        The multipliers of rows in blocks stay with them: the ``dual`` of such a solution is empty.
        """
        if isinstance(batch.rows, BlockRows):
            return self.solve_blocks(batch)
        check_batch(batch)
        B, n = batch.signs.shape
        kernels = self.kernels(n, batch.scale.shape[1], B)
        return solve_each(batch, partial(self.solve_problem, kernels=kernels))

    def kernels(self, n: int, r: int, n_problems: int = 1) -> Kernels:
        """Return the implementation for problems of this shape: compiled where it pays."""
        if r > MANY_DIMENSIONS:
            return NUMPY
        seconds = CALL_SECONDS + n * (ROW_SECONDS + NEWTON_SECONDS * (r + 1) ** 2)
        module = compiled_module("marginfold.svm.kernels", self.compiled, n_problems * seconds)
        return NUMPY if module is None else cast(Kernels, module.KERNELS)

    def solve_problem(self, problem: SVMProblem, kernels: Kernels) -> SVMSolution:
        """Solve one problem without idle rows, with a second attempt if the first one fails."""
        if problem.deflated.shape[1]:
            problem = without_dwarfing(problem)
        solution = self.iterate(problem, kernels)
        if not solution.converged:
            again = self.iterate(problem, kernels, Start(AGAIN_MU))
            solution = min(solution, again, key=lambda found: found.gap)
        return solution

    def iterate(
        self,
        problem: SVMProblem,
        kernels: Kernels,
        start: Start = COLD,
        tol: float | None = None,
    ) -> SVMSolution:
        """Iterate from a start to a gap."""
        tol = self.tol if tol is None else tol
        point, n_iter = solve(problem, start, kernels, tol=tol, max_iter=self.max_iter)
        return SVMSolution.of(point, n_iter=n_iter, tol=tol)

    def solve_blocks(self, batch: SVMBatch) -> list[SVMSolution]:
        """Solve problems on rows in blocks by screening."""
        assert isinstance(batch.rows, BlockRows)
        problems = [batch.coded(b) for b in range(len(batch))]
        with np.errstate(all="ignore"):
            found = sift(batch.rows.blocks, problems, self.solve_zone, tol=self.tol)
        return [
            replace(solution, intercept=problem.plane(solution.coef, solution.intercept)[-1])
            for problem, (solution, _) in zip(problems, found, strict=True)
        ]

    def solve_zone(
        self, zone: SVMProblem, weights: Array | None, delta: float, tol: float
    ) -> SVMSolution:
        """Solve a reduced problem, from weights that are right up to margins of about delta."""
        kernels, solution = self.kernels(len(zone.costs), len(zone.scale)), None
        if weights is not None:
            shift = float(zone.centre @ (zone.scale * weights[:-1]))
            mu = WARM_MU * delta * float(np.median(zone.costs) / zone.costs.mean())
            start = Start(mu, np.append(weights[:-1], weights[-1] + shift))
            solution = self.iterate(zone, kernels, start, tol)
        if solution is None or not solution.converged:
            solution = replace(self, tol=tol).solve_problem(zone, kernels)
        return zone.uncentred(solution)


def solve_each(
    batch: SVMBatch, solve_one: Callable[[SVMProblem], SVMSolution]
) -> list[SVMSolution]:
    """Solve every problem of a batch on its rows with a positive cost; report long work."""
    assert isinstance(batch.rows, SharedRows)
    solutions, n_problems = [], len(batch)
    is_long = n_problems > 1 and batch.rows.table.size * n_problems > LONG_WORK
    # what overflows is not certified
    with np.errstate(all="ignore"), threads_for(*batch.rows.features.shape):
        for b, costs in enumerate(batch.costs):
            if is_long:
                report("problems", b, n_problems)
            problem, rows = batch.problem(b), None
            if not costs.all():
                rows = np.flatnonzero(costs)
                problem = problem.on(rows)
            found = problem.uncentred(solve_one(problem))
            if rows is not None:
                dual = np.zeros(len(costs))
                dual[rows] = found.dual
                found = replace(found, dual=dual)
            solutions.append(found)
    return solutions
