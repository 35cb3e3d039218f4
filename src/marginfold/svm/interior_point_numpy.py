"""One iteration of the interior point method, for a whole batch of problems at once.

The state is primal feasible; eliminating everything but the weights and the bias leaves one
(r+1) x (r+1) system per problem.  The two complementary pairs (a, v) and (c - a, xi) obey the same
equations: they are stacked, so that one array operation serves both.  `compiled` does the same for
one problem at a time, where numba is installed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.linalg import lapack

from marginfold.linalg.tall import Array, SharedRows
from marginfold.svm.problem import SVMBatch

STEP_TO_BOUNDARY = 0.995
"""Share of the way to the boundary that one step may go."""

SIGMA_RANGE = (1e-8, 1.0)
"""Range of the centring parameter."""

DIAGONAL_SHIFT = 1e-9
"""Added to the unit diagonal of a Newton matrix that is not numerically definite."""

REFINEMENTS = 2
"""Steps of iterative refinement of the corrector in the last iterations."""

REFINED = 1e-5
"""Gap below which the solves are refined."""

REFRESH_EVERY = 8
"""Iterations after which the margins are recomputed from the weights."""

PROGRESS = 0.999
"""A gap that is not below this share of the best one so far counts as no progress."""

NEARLY = 1e-2
"""Gap below which a standstill is noticed."""

PATIENCE = 4
"""Iterations without progress after which a problem is certified as it stands."""

TINY = float(np.finfo(np.float64).tiny)


class Rules(NamedTuple):
    """The constants above, for functions that were compiled before one of them changed."""

    step_to_boundary: float = STEP_TO_BOUNDARY
    least_centring: float = SIGMA_RANGE[0]
    most_centring: float = SIGMA_RANGE[1]
    diagonal_shift: float = DIAGONAL_SHIFT
    refinements: int = REFINEMENTS
    refined: float = REFINED
    refresh_every: int = REFRESH_EVERY
    progress: float = PROGRESS
    nearly: float = NEARLY
    patience: int = PATIENCE


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
        B, r = batch.scale.shape
        cost_unit = batch.costs.mean(axis=1)
        scale = np.ones((B, r + 1))
        np.multiply(batch.scale, np.sqrt(cost_unit)[:, None], out=scale[:, :r])
        deflated = np.zeros((B, r + 1, batch.deflated.shape[2]))
        deflated[:, :r] = batch.deflated
        return cls(
            rows=batch.rows,
            signs=batch.signs,
            costs=batch.costs / cost_unit[:, None],
            scale=scale,
            deflated=deflated,
            cost_unit=cost_unit,
            index=np.arange(B),
        )

    def in_units(self, weights: Array) -> Array:
        """Return weights and bias of the batch, (B, r + 1), in the units of the iteration."""
        u = weights.copy()
        u[:, :-1] /= np.sqrt(self.cost_unit)[:, None]
        return self.project(u)

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
        u = p @ self.rows.table
        u *= self.scale
        return self.project(u)

    def pair_of_sums(self, p: Array) -> tuple[Array, Array]:
        """Return the sums of two stacked vectors per problem, p of shape (B, 2, n)."""
        B, _, n = p.shape
        u = (p.reshape(2 * B, n) @ self.rows.table).reshape(B, 2, -1)
        return self.project(u[:, 0] * self.scale), self.project(u[:, 1] * self.scale)

    def project(self, u: Array) -> Array:
        N = self.deflated
        if N.shape[2] == 0:
            return u
        return np.asarray(u - (N @ (N.mT @ u[..., None]))[..., 0])

    def newton_matrices(self, d: Array) -> Array:
        """Return P (diag(1, .., 1, 0) + A' diag(d) A) P + N N' with A = [X, 1]."""
        K = self.rows.grams(d)
        K *= self.scale[:, :, None]
        K *= self.scale[:, None, :]
        r = K.shape[1] - 1
        np.einsum("bii->bi", K)[:, :r] += 1.0
        N = self.deflated
        if N.shape[2]:
            K -= N @ (N.mT @ K)
            K -= (K @ N) @ N.mT
            K += N @ N.mT
        return K


@dataclass(frozen=True)
class State:
    """A primal-feasible point: t = v - xi = y f - 1 and a + s = c hold exactly."""

    u: Array  # (B, r + 1) weights and bias
    P: Array  # (B, 2, n) multipliers a, and s = c - a
    Q: Array  # (B, 2, n) excess v of the margin, and hinge xi
    t: Array  # (B, n) y f - 1

    def take(self, kept: Array) -> State:
        return State(self.u[kept], self.P[kept], self.Q[kept], self.t[kept])


def start(problems: Problems, mu: float, u: Array | None = None) -> State:
    """Lift weights to the central path at mu (the mean cost is 1): the ridge regression on the
    labels, unless others are given."""
    y, c = problems.signs, problems.costs
    if u is None:
        factors = _Factors(problems.newton_matrices(c))
        u = factors.solve(problems.sums(c * y))
    t = y * problems.scores(u) - 1.0
    m = mu / c
    half = np.abs(0.5 * t)
    rho = np.hypot(half, m)
    near = m + m * (m / (rho + half))
    far = m + half + rho
    outside = t > 0
    Q = np.stack([np.where(outside, far, near), np.where(outside, near, far)], axis=1)
    return State(u=u, P=mu / Q, Q=Q, t=t)


@dataclass(frozen=True)
class Linearised:
    """The equations of one Newton step.

    Attributes
    ----------
    ratios : array of shape (B, 2, n)
        v / a and xi / s.
    d : array of shape (B, n)
        ``1 / (v / a + xi / s)``, the inverse of the barrier's Hessian.
    pull : array of shape (B, r + 1)
        ``[P_N X'(y a) ; y'a]``.
    predictor : array of shape (B, r + 1)
        The same sums of the affine step's right-hand side.
    """

    ratios: Array
    d: Array
    pull: Array
    predictor: Array

    def take(self, kept: Array) -> Linearised:
        return Linearised(self.ratios[kept], self.d[kept], self.pull[kept], self.predictor[kept])


def linearise(problems: Problems, state: State) -> Linearised:
    """Form everything of the next step that one pass over the rows can give."""
    ratios = state.Q / state.P
    d = ratios[:, 0] + ratios[:, 1]
    np.reciprocal(d, out=d)
    wanted = np.empty_like(ratios)
    wanted[:, 0] = state.P[:, 0]
    np.multiply(d, state.t, out=wanted[:, 1])
    wanted *= problems.signs[:, None]
    pull, predictor = problems.pair_of_sums(wanted)
    return Linearised(ratios, d, pull, -predictor)


def gaps(problems: Problems, state: State, pull: Array) -> Array:
    """Return the relative gaps of the running point (estimates: y'a is not yet zero)."""
    s, p = state.u[:, :-1], pull[:, :-1]
    hinge = np.minimum(state.t, 0.0)
    hinge *= problems.costs
    primal = 0.5 * (s * s).sum(axis=1) - hinge.sum(axis=1)
    dual = state.P[:, 0].sum(axis=1) - 0.5 * (p * p).sum(axis=1)
    return (np.abs(primal - dual) + np.abs(pull[:, -1])) / np.maximum(primal, TINY)


def advance(problems: Problems, state: State, line: Linearised, *, refine: bool) -> Array:
    """Take one predictor-corrector step in place; return which problems could move at all."""
    y, P, Q, d, ratios = problems.signs, state.P, state.Q, line.d, line.ratios
    newton = _Newton(problems, d)
    residual = line.pull - state.u
    residual[:, -1] = line.pull[:, -1]

    du = newton.solve(line.predictor + residual, refinements=0)
    change = problems.scores(du)
    change *= y
    change += state.t
    dP = np.empty_like(P)
    np.multiply(d, change, out=dP[:, 1])  # -da
    np.negative(dP[:, 1], out=dP[:, 0])
    dQ = ratios * dP
    dQ += Q
    dQ *= dP  # -dp dq: the product that the corrector removes
    dP /= P
    affine = 1.0 / np.maximum(np.maximum(-_least(dP), 1.0 + _largest(dP)), 1.0)
    comp = np.einsum("bji,bji->b", P, Q)
    size = 2.0 * y.shape[1]
    mu_affine = (comp * (1.0 - affine) - affine**2 * dQ.sum(axis=(1, 2))) / size
    mu = comp / size
    sigma = np.minimum(np.maximum((mu_affine / mu) ** 3, SIGMA_RANGE[0]), SIGMA_RANGE[1])

    dQ += (sigma * mu)[:, None, None]
    dQ /= P  # (sigma mu - dp dq) / p
    g = dQ[:, 0] - dQ[:, 1]
    g -= state.t
    np.multiply(d, g, out=change)
    change *= y
    du = newton.solve(problems.sums(change) + residual, REFINEMENTS if refine else 0)
    dt = problems.scores(du)
    dt *= y
    g -= dt
    np.multiply(d, g, out=dP[:, 0])
    np.negative(dP[:, 0], out=dP[:, 1])
    dQ -= Q
    ratios *= dP
    dQ -= ratios
    blocked = np.maximum(-_least(dP / P), -_least(dQ / Q))
    length = np.minimum(1.0, STEP_TO_BOUNDARY / np.maximum(blocked, TINY))
    moves = (du, dP, dQ, dt)
    finite = np.isfinite(length) & np.isfinite(du).all(axis=1)
    if not finite.all():  # such a problem stays where it is
        for move in (length, *moves):
            move[~finite] = 0.0
    for part, move in zip((state.u, P, Q, state.t), moves, strict=True):
        move *= length.reshape(-1, *(1,) * (move.ndim - 1))
        part += move
    return finite


def _least(stack: Array) -> Array:
    """Return the smallest entry of each problem."""
    return np.asarray(np.minimum.reduce(stack.reshape(len(stack), -1), axis=1))


def _largest(stack: Array) -> Array:
    """Return the largest entry of each problem."""
    return np.asarray(np.maximum.reduce(stack.reshape(len(stack), -1), axis=1))


class _Newton:
    """The Newton systems of a batch."""

    def __init__(self, problems: Problems, d: Array) -> None:
        self._problems, self._d = problems, d
        self._factors = _Factors(problems.newton_matrices(d))

    def solve(self, right: Array, refinements: int) -> Array:
        """Solve with the factors and refine with the rows, which lose nothing to squaring."""
        problems = self._problems
        du = problems.project(self._factors.solve(right))
        for _ in range(refinements):
            image = problems.sums(self._d * problems.scores(du))
            image[:, :-1] += du[:, :-1]
            du += problems.project(self._factors.solve(right - image))
        return du


class _Factors:
    """Cholesky factors of a stack of matrices, each scaled to a unit diagonal."""

    def __init__(self, K: Array) -> None:
        self._unit = 1.0 / np.sqrt(np.maximum(np.einsum("bii->bi", K), TINY))
        K *= self._unit[:, :, None]
        K *= self._unit[:, None, :]
        self._factors = [_cholesky(matrix) for matrix in K]

    def solve(self, right: Array) -> Array:
        scaled = right * self._unit
        for b, factor in enumerate(self._factors):
            scaled[b] = np.nan if factor is None else lapack.dpotrs(factor, scaled[b], lower=0)[0]
        scaled *= self._unit
        return scaled


def _cholesky(matrix: Array) -> Array | None:
    """Return the factor, of a slightly shifted matrix if need be, or None."""
    factor, failed = lapack.dpotrf(matrix.T, lower=0, clean=0)
    if failed:
        shifted = matrix + DIAGONAL_SHIFT * np.eye(len(matrix))
        factor, failed = lapack.dpotrf(shifted.T, lower=0, clean=0)
    return None if failed else factor
