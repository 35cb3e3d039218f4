"""One iteration of the interior point method, for a whole batch of problems at once.

The state is primal feasible; eliminating everything but the weights and the bias leaves one
(r+1) x (r+1) system per problem.  A compiled kernel could replace this file behind `Problems`,
`start`, `predictor_corrector` and `advance`.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np
from scipy.linalg import lapack

from marginfold.rows import Array, SharedRows
from marginfold.solvers.svm import SVMBatch

STEP_TO_BOUNDARY = 0.995
"""Share of the way to the boundary that one step may go."""

SIGMA_RANGE = (1e-8, 1.0)
"""Range of the centring parameter."""

DIAGONAL_SHIFT = 1e-9
"""Added to the unit diagonal of a Newton matrix that is not numerically definite."""

REFINEMENTS = 2
"""Steps of iterative refinement after each solve of the last iterations."""


@dataclass(frozen=True)
class Problems:
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
    def of(cls, batch: SVMBatch) -> Problems:
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

    def take(self, kept: Array) -> Problems:
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

    def gaps(self, state: State, pull: Array) -> Array:
        """Return the relative gaps of the running point (estimates: y'a is not yet zero)."""
        s = state.u[:, :-1]
        primal = 0.5 * (s * s).sum(axis=1) - (self.costs * np.minimum(state.t, 0.0)).sum(axis=1)
        dual = state.a.sum(axis=1) - 0.5 * (pull[:, :-1] ** 2).sum(axis=1)
        imbalance = np.abs(pull[:, -1])
        return (np.abs(primal - dual) + imbalance) / np.maximum(primal, np.finfo(float).tiny)


@dataclass(frozen=True)
class State:
    """A primal-feasible point: t = v - xi = y f - 1 and a + s = c hold exactly."""

    u: Array  # (B, r + 1) weights and bias
    a: Array  # (B, n) multipliers
    s: Array  # (B, n) c - a
    v: Array  # (B, n) excess of the margin
    xi: Array  # (B, n) hinge
    t: Array  # (B, n) y f - 1

    def take(self, kept: Array) -> State:
        return State(*(getattr(self, field.name)[kept] for field in fields(self)))


def start(problems: Problems, mu: float) -> State:
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
    return State(u=u, a=mu / v, s=mu / xi, v=v, xi=xi, t=t)


@dataclass(frozen=True)
class Step:
    """Changes of the state, and how far along them to go."""

    length: Array  # (B,)
    finite: Array  # (B,) whether there is a step at all
    du: Array
    da: Array
    dv: Array
    dxi: Array
    dt: Array


def predictor_corrector(problems: Problems, state: State, pull: Array, *, refine: bool) -> Step:
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
    finite = np.isfinite(length) & np.isfinite(du).all(axis=1)
    if not finite.all():  # such a problem stays where it is
        for part in (length, du, da, dv, dxi, dt):
            part[~finite] = 0.0
    return Step(length=length, finite=finite, du=du, da=da, dv=dv, dxi=dxi, dt=dt)


def advance(state: State, step: Step) -> State:
    """Take the steps."""
    length = step.length[:, None]
    return State(
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
