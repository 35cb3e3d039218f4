"""A batched low-rank interior point method for support vector machines.

Mehrotra's predictor-corrector method on the primal-dual conditions (s, b primal; a dual)::

    y f + xi - v = 1,  f = X s + b        s = P_N X'(y a),  y'a = 0
    a v = mu,  (c - a) xi = mu            a, c - a, xi, v > 0

Eliminating everything but (s, b) leaves one (r+1) x (r+1) system per problem and iteration: a
step costs O(n r^2) and nothing of size n x n exists.  All problems of a batch share the rows, so
one iteration is a few matrix products for all of them.  A crossover to the exact active set and a
certificate on the original problem finish each problem.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import lapack

from marginfold.parameters import Count, Number, check_parameters
from marginfold.rows import Array, SharedRows
from marginfold.solvers.crossover import EXACT, crossover
from marginfold.solvers.svm import (
    SVMBatch,
    SVMSolution,
    certify,
    check_batch,
    project,
    single,
    uncentre,
)
from marginfold.solvers.working_set import (
    is_dwarfed,
    pays,
    solve_on_working_set,
    without_deflated_part,
)

STEP_TO_BOUNDARY = 0.995
"""Share of the way to the boundary that one step may go."""

SIGMA_RANGE = (1e-8, 1.0)
"""Range of the centring parameter."""

DIAGONAL_SHIFT = 1e-9
"""Added to the unit diagonal of a Newton matrix that is not numerically definite."""

FIRST_MU, SECOND_MU = 1.0, 100.0
"""Start of the central path in units of the mean cost, and of a second attempt."""

REFRESH_EVERY = 8
"""Iterations after which the margins are recomputed from the weights."""

REFINEMENTS = 2
"""Steps of iterative refinement after each solve of the last iterations."""

PROGRESS = 0.999
"""A gap that is not below this share of the best one so far counts as no progress."""

NEARLY = 1e-2
"""Gap below which the last iterations begin: solves are refined, a standstill is noticed."""

PATIENCE = 4
"""Iterations without progress after which a problem is certified as it stands."""


@dataclass(frozen=True)
class InteriorPoint:
    """Solve support vector problems to a certified relative duality gap.

    Parameters
    ----------
    tol : float, default=1e-8
        Relative duality gap to reach.
    max_iter : int, default=120
        Largest number of iterations.

    Examples
    --------
    >>> import numpy as np
    >>> from marginfold.solvers import InteriorPoint
    >>> U = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> solution = InteriorPoint().solve(U, [-1, -1, 1, 1], C=10.0)
    >>> round(float(solution.coef[0]), 6), round(solution.intercept, 6)
    (2.0, -3.0)
    >>> solution.converged
    True
    """

    tol: float = 1e-8
    max_iter: int = 120

    def __post_init__(self) -> None:
        check_parameters(self, {"tol": Number(0.0, inclusive=False), "max_iter": Count(0)})

    def solve(self, U: ArrayLike, y: ArrayLike, C: ArrayLike) -> SVMSolution:
        """Solve one problem with features U, labels +1/-1 and costs C (scalar or per row)."""
        return self.solve_batch(single(U, y, C))[0]

    def solve_batch(self, batch: SVMBatch) -> list[SVMSolution]:
        """Solve every problem of the batch; rows without cost do not take part."""
        check_batch(batch)
        solutions: dict[int, SVMSolution] = {}
        for problems, kept in _same_support(batch):
            part = batch.take(problems, None if kept.all() else np.flatnonzero(kept))
            with np.errstate(all="ignore"):  # what overflows is not certified
                part_solutions = self._solve_part(part)
            for position, solution in enumerate(part_solutions):
                dual = np.zeros(len(kept))
                dual[kept] = solution.dual
                b = problems[position]
                moved = uncentre(part, position, solution)
                if not kept.all():  # the part has its own centre, relative to the batch's
                    moved = uncentre(batch, b, moved)
                solutions[b] = replace(moved, dual=dual)
        return [solutions[b] for b in range(len(batch))]

    def _solve_part(self, batch: SVMBatch) -> list[SVMSolution]:
        """Solve problems without idle rows; some are better off alone than in the batch."""
        solutions: dict[int, SVMSolution] = {}
        for b in range(len(batch)):
            alone = self._solve_alone(batch, b)
            if alone is not None:
                solutions[b] = alone
        rest = [b for b in range(len(batch)) if b not in solutions]
        if rest:
            part = batch.take(rest) if solutions else batch
            solutions |= zip(rest, self._solve_all(part), strict=True)
        for b, solution in solutions.items():
            if not solution.converged:
                again = self._solve_all(batch.take([b]), mu=SECOND_MU)[0]
                solutions[b] = min(solution, again, key=lambda found: found.gap)
        return [solutions[b] for b in range(len(batch))]

    def _solve_alone(self, batch: SVMBatch, b: int) -> SVMSolution | None:
        """Solve a problem on its working set, or without a deflated part that dwarfs the rest."""
        if pays(batch):
            solution = solve_on_working_set(batch, b, self._solve_one, tol=self.tol)
            if solution is not None and solution.converged:
                return solution
        if is_dwarfed(batch, b):
            return self._solve_all(without_deflated_part(batch, b))[0]
        return None

    def _solve_one(self, batch: SVMBatch) -> SVMSolution:
        return uncentre(batch, 0, self._solve_all(batch)[0])

    def _solve_all(self, batch: SVMBatch, mu: float = FIRST_MU) -> list[SVMSolution]:
        problems = _Problems.of(batch)
        state = _start(problems, mu)
        solutions: dict[int, SVMSolution] = {}
        best_gap = np.full(len(batch), np.inf)
        idle = np.zeros(len(batch), dtype=int)
        for n_iter in range(self.max_iter + 1):
            pull = problems.pull(state.a)
            gaps = problems.gaps(state, pull)
            index = problems.index
            better = (gaps < PROGRESS * best_gap[index]) | (best_gap[index] > NEARLY)
            idle[index] = np.where(better, 0, idle[index] + 1)
            best_gap[index] = np.fmin(gaps, best_gap[index])
            give_up = (idle[index] > PATIENCE) | (n_iter == self.max_iter)
            step = _step(problems, state, pull, refine=bool(gaps.min() < NEARLY))
            give_up |= ~step.finite
            done = np.zeros(len(gaps), dtype=bool)
            for position in np.flatnonzero((gaps <= self.tol) | (idle[index] > 0) | give_up):
                b = int(problems.index[position])
                solution = _finish(batch, problems, state, int(position), n_iter, self.tol)
                if b not in solutions or solution.gap < solutions[b].gap:
                    solutions[b] = solution
                done[position] = give_up[position] or solution.converged
            if done.all():
                break
            state = _advance(state, step)
            if done.any():
                problems, state = problems.take(~done), state.take(~done)
            if (n_iter + 1) % REFRESH_EVERY == 0:
                state = replace(state, t=problems.signs * problems.scores(state.u) - 1.0)
        return [solutions[b] for b in range(len(batch))]


def _same_support(batch: SVMBatch) -> Iterator[tuple[list[int], Array]]:
    """Group the problems whose rows with a positive cost are the same."""
    groups: dict[bytes, list[int]] = {}
    positive = batch.costs > 0
    for b, row in enumerate(positive):
        groups.setdefault(np.packbits(row).tobytes(), []).append(b)
    for problems in groups.values():
        yield problems, positive[problems[0]]


@dataclass(frozen=True)
class _Problems:
    """The batch in the units of the iteration: the mean cost is 1, the bias is a coordinate.

    The unit of the costs is absorbed by ``scale``, whose last column belongs to the bias.
    """

    rows: SharedRows
    signs: Array  # (B, n)
    costs: Array  # (B, n)
    scale: Array  # (B, r + 1)
    deflated: Array  # (B, r + 1, k)
    cost_unit: Array  # (B,)
    index: Array  # (B,) position in the original batch

    @classmethod
    def of(cls, batch: SVMBatch) -> _Problems:
        r = batch.scale.shape[1]
        cost_unit = batch.costs.mean(axis=1)
        scale = np.ones((len(batch), r + 1))
        scale[:, :r] = batch.scale * np.sqrt(cost_unit)[:, None]
        deflated = np.zeros((len(batch), r + 1, batch.deflated.shape[2]))
        deflated[:, :r] = batch.deflated
        return cls(
            rows=batch.rows,
            signs=batch.signs,
            costs=batch.costs / cost_unit[:, None],
            scale=scale,
            deflated=deflated,
            cost_unit=cost_unit,
            index=np.arange(len(batch)),
        )

    def take(self, kept: Array) -> _Problems:
        return replace(
            self,
            **{
                name: getattr(self, name)[kept]
                for name in ("signs", "costs", "scale", "deflated", "cost_unit", "index")
            },
        )

    def scores(self, u: Array) -> Array:
        """Return f = X s + b for all rows, shape (B, n)."""
        return np.asarray((u * self.scale) @ self.rows.table.T)

    def sums(self, p: Array) -> Array:
        """Return [P_N X'p ; 1'p], shape (B, r + 1)."""
        return self.project((p @ self.rows.table) * self.scale)

    def pull(self, a: Array) -> Array:
        """Return [P_N X'(y a) ; y'a]."""
        return self.sums(self.signs * a)

    def project(self, u: Array) -> Array:
        if self.deflated.shape[2] == 0:
            return u
        inner = np.einsum("bik,bi->bk", self.deflated, u)
        return np.asarray(u - np.einsum("bik,bk->bi", self.deflated, inner))

    def newton_matrices(self, d: Array) -> Array:
        """Return P (diag(1, .., 1, 0) + A' diag(d) A) P + N N' with A = [X, 1]."""
        K = self.rows.grams(d) * self.scale[:, :, None] * self.scale[:, None, :]
        diagonal = np.arange(K.shape[1] - 1)
        K[:, diagonal, diagonal] += 1.0
        N = self.deflated
        if N.shape[2]:
            NK = N.transpose(0, 2, 1) @ K
            K -= N @ NK
            K -= (K @ N) @ N.transpose(0, 2, 1)
            K += N @ N.transpose(0, 2, 1)
        return K

    def solve_newton(self, factors: _Factors, d: Array, right: Array, refine: bool) -> Array:
        """Solve with the factors and refine with the rows, which lose nothing to squaring."""
        du = self.project(factors.solve(right))
        for _ in range(REFINEMENTS if refine else 0):
            image = self.sums(d * self.scores(du))
            image[:, :-1] += du[:, :-1]
            du += self.project(factors.solve(right - image))
        return du

    def gaps(self, state: _State, pull: Array) -> Array:
        """Return the relative gaps of the running point (estimates: y'a is not yet zero)."""
        s = state.u[:, :-1]
        primal = 0.5 * (s * s).sum(axis=1) - (self.costs * np.minimum(state.t, 0.0)).sum(axis=1)
        dual = state.a.sum(axis=1) - 0.5 * (pull[:, :-1] ** 2).sum(axis=1)
        imbalance = np.abs(pull[:, -1])
        return (np.abs(primal - dual) + imbalance) / np.maximum(primal, np.finfo(float).tiny)


@dataclass(frozen=True)
class _State:
    """A primal-feasible point: t = v - xi = y f - 1 and a + s = c hold exactly."""

    u: Array  # (B, r + 1) weights and bias
    a: Array  # (B, n) multipliers
    s: Array  # (B, n) c - a
    v: Array  # (B, n) excess of the margin
    xi: Array  # (B, n) hinge
    t: Array  # (B, n) y f - 1

    def take(self, kept: Array) -> _State:
        return _State(*(getattr(self, field.name)[kept] for field in fields(self)))


def _start(problems: _Problems, mu: float) -> _State:
    """Lift the ridge regression on the labels to the central path at mu (the mean cost is 1)."""
    y, c = problems.signs, problems.costs
    K = problems.newton_matrices(c)
    u = _Factors(K).solve(problems.sums(c * y))
    t = y * problems.scores(u) - 1.0
    m = mu / c
    half = 0.5 * t
    rho = np.hypot(half, m)
    near = m + m * (m / (rho + np.abs(half)))
    far = m + np.abs(half) + rho
    v = np.where(t > 0, far, near)
    xi = np.where(t > 0, near, far)
    return _State(u=u, a=mu / v, s=mu / xi, v=v, xi=xi, t=t)


@dataclass(frozen=True)
class _Step:
    length: Array  # (B,)
    du: Array
    da: Array
    dv: Array
    dxi: Array
    dt: Array

    @property
    def finite(self) -> Array:
        return np.asarray(np.isfinite(self.length) & np.isfinite(self.du).all(axis=1))


def _step(problems: _Problems, state: _State, pull: Array, *, refine: bool) -> _Step:
    """Return one predictor-corrector step; primal feasibility is kept exactly."""
    y, a, s, v, xi = problems.signs, state.a, state.s, state.v, state.xi
    n = y.shape[1]
    with np.errstate(all="ignore"):
        v_a, xi_s = v / a, xi / s
        d = 1.0 / (v_a + xi_s)
        factors = _Factors(problems.newton_matrices(d))
        residual = pull - state.u
        residual[:, -1] = pull[:, -1]
        g = xi - v
        yd = y * d

        du = problems.solve_newton(factors, d, problems.sums(yd * g) + residual, refine)
        da = d * (g - y * problems.scores(du))
        da_a, da_s = da / a, da / s
        dv = -v - v_a * da
        dxi = -xi + xi_s * da
        affine = np.minimum(
            1.0,
            1.0
            / np.maximum(
                np.maximum(-da_a.min(axis=1), da_s.max(axis=1)),
                np.maximum(1.0 + da_a.max(axis=1), 1.0 - da_s.min(axis=1)),
            ),
        )
        comp = (a * v + s * xi).sum(axis=1)
        linear = (a * dv + v * da + s * dxi - xi * da).sum(axis=1)
        square = (da * (dv - dxi)).sum(axis=1)
        mu = comp / (2 * n)
        mu_affine = (comp + affine * linear + affine**2 * square) / (2 * n)
        sigma = np.clip((mu_affine / mu) ** 3, *SIGMA_RANGE)

        target = (sigma * mu)[:, None]
        k1_a = (target - da * dv) / a
        k2_s = (target + da * dxi) / s
        g2 = g - k2_s + k1_a
        du = problems.solve_newton(factors, d, problems.sums(yd * g2) + residual, refine)
        dt = y * problems.scores(du)
        da = d * (g2 - dt)
        dv = k1_a - v - v_a * da
        dxi = k2_s - xi + xi_s * da
        blocked = np.maximum(
            np.maximum((-da / a).max(axis=1), (da / s).max(axis=1)),
            np.maximum((-dv / v).max(axis=1), (-dxi / xi).max(axis=1)),
        )
        length = np.minimum(1.0, STEP_TO_BOUNDARY / np.maximum(blocked, np.finfo(float).tiny))
    return _Step(length=length, du=du, da=da, dv=dv, dxi=dxi, dt=dt)


def _advance(state: _State, step: _Step) -> _State:
    length = step.length[:, None]
    return _State(
        u=state.u + length * step.du,
        a=state.a + length * step.da,
        s=state.s - length * step.da,
        v=state.v + length * step.dv,
        xi=state.xi + length * step.dxi,
        t=state.t + length * step.dt,
    )


class _Factors:
    """Cholesky factors of a stack of matrices, each scaled to a unit diagonal."""

    def __init__(self, K: Array) -> None:
        diagonal = np.einsum("bii->bi", K)
        self._unit = 1.0 / np.sqrt(np.maximum(diagonal, np.finfo(float).tiny))
        self._factors = [
            _cholesky(matrix) for matrix in K * self._unit[:, :, None] * self._unit[:, None, :]
        ]

    def solve(self, right: Array) -> Array:
        scaled = right * self._unit
        out = np.empty_like(right)
        for b, factor in enumerate(self._factors):
            out[b] = np.nan if factor is None else lapack.dpotrs(factor, scaled[b], lower=1)[0]
        return out * self._unit


def _cholesky(matrix: Array) -> Array | None:
    """Return the factor, of a slightly shifted matrix if need be, or None."""
    factor, failed = lapack.dpotrf(matrix, lower=1)
    if failed:
        shifted = matrix + DIAGONAL_SHIFT * np.eye(len(matrix))
        factor, failed = lapack.dpotrf(shifted, lower=1)
    return None if failed else factor


def _finish(
    batch: SVMBatch, problems: _Problems, state: _State, position: int, n_iter: int, tol: float
) -> SVMSolution:
    """Cross over to the face that a point suggests, or certify the point itself."""
    b, unit = int(problems.index[position]), float(problems.cost_unit[position])
    coef = project(batch, b, state.u[position, :-1] * np.sqrt(unit))
    dual = state.a[position] * unit
    c = problems.costs[position]
    lower = state.a[position] < c * state.v[position]
    upper = ~lower & (state.s[position] < c * state.xi[position])
    exact = crossover(batch, b, lower, upper, dual, n_iter=n_iter, tol=tol)
    if exact is not None and exact.gap <= EXACT:
        return exact
    plain = certify(batch, b, coef, dual, n_iter=n_iter, tol=tol)
    return plain if exact is None or plain.gap <= exact.gap else exact
