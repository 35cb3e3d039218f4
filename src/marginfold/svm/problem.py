"""The support vector problem and its solution.

Problem b of a batch, in whitened coordinates s (one metric, all rows shared)::

    P(s, b) = 1/2 |s|^2 + sum_i c_i max(0, 1 - y_i (x_i's + b)),    s orthogonal to N_b
    D(a)    = sum_i a_i - 1/2 |P_N X'(y a)|^2,    0 <= a <= c,  y'a = 0

with ``x_i = scale_b * rows_i``.  Weak duality makes ``P - D`` an error bound, whatever produced
the point: the certificate evaluates both on the original problem.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike

from marginfold.errors import SolverError
from marginfold.linalg.tall import Array, Block, RowBlocks, SharedRows

EPS, TINY = float(np.finfo(np.float64).eps), float(np.finfo(np.float64).tiny)

PASSES = 2
"""Projections in a row: the second removes what rounding left of the first."""

LONG_WORK = 2_000_000
"""Numbers in the rows of a batch from which its progress is reported and it can be cancelled."""


class Tolerances(NamedTuple):
    """All tolerances of the iteration, the active set and the certificate, in one record.

    Compiled functions take it as an argument, so that both implementations have the same numbers.
    They were chosen on 400 random problems from easy to hostile (``tests/svm/random_problems.py``).
    """

    exact: float = 1e-12  # relative gap as good as exact; the right active set gives 1e-14
    rounding: float = 4.0 * EPS  # of a margin, in its summands; 1 eps fails for costs above 1e8
    stretch: float = 1e-6  # largest relative change of a direction against such rounding
    upper_share: float = 1.0 - 1e-6  # of its bound, above which a multiplier's row is inside
    step_to_boundary: float = 0.995  # of one step; 0.9 to 0.9995 differ by one iteration
    least_centring: float = 1e-8  # centring parameter of the corrector
    diagonal_shift: float = 1e-9  # of a scaled Newton matrix that is not numerically definite
    refinements: int = 2  # of a solve in the last iterations and on an active set
    refined: float = 1e-5  # gap below which the Newton systems are refined
    refresh_every: int = 8  # iterations after which the margins are recomputed
    progress: float = 0.999  # share of the best gap above which an iteration made no progress
    nearly: float = 1e-2  # gap below which a standstill is noticed
    patience: int = 4  # iterations without progress before the point is taken as it is
    identified: float = 1e-8  # gap at which the active set is usually known
    copies: float = 1e-12  # distance, relative to their size, of rows that differ by rounding only
    regular: float = 1e-9  # relative size of the pivots of regular equations
    bound: float = 1e-9  # share of the cost within which a multiplier is at its bound
    violation: float = 1e-9  # of a margin, above which a row belongs to another set
    spare_rows: int = 60  # free rows beyond twice the dimension: the set is not identified yet


TOLERANCES = Tolerances()


class SVMProblem(NamedTuple):
    """One problem on rows in an array, as both implementations of a solver take it.

    Attributes
    ----------
    table : array of shape (n, r + 1)
        Centred rows and a column of ones.
    centre : array of shape (r,)
        The mean row that was taken off.
    signs, costs : arrays of shape (n,)
    scale : array of shape (r,)
    deflated : array of shape (r, k)
        As in `SVMBatch`.
    """

    table: Array
    centre: Array
    signs: Array
    costs: Array
    scale: Array
    deflated: Array

    @classmethod
    def of(
        cls, Z: Array, signs: Array, costs: Array, scale: Array, deflated: Array, origin: Array
    ) -> SVMProblem:
        """Return the problem on rows Z, which are centred here; they lack the origin already."""
        rows = SharedRows(Z)
        return cls(rows.table, origin + rows.centre, signs, costs, scale, deflated)

    def on(self, rows: Array) -> SVMProblem:
        """Return the problem on some of its rows."""
        signs, costs = self.signs[rows], self.costs[rows]
        return SVMProblem.of(
            self.features[rows], signs, costs, self.scale, self.deflated, self.centre
        )

    @property
    def features(self) -> Array:
        """The centred rows, shape (n, r)."""
        return self.table[:, :-1]

    def uncentred(self, solution: SVMSolution) -> SVMSolution:
        """Return the solution with the intercept of the rows as they were given."""
        shift = float(self.centre @ (self.scale * solution.coef))
        return replace(solution, intercept=solution.intercept - shift)

    @property
    def most_free(self) -> int:
        """The number of free rows above which an active set cannot be the right one."""
        return 2 * len(self.scale) + TOLERANCES.spare_rows

    def coded(self) -> CodedProblem:
        """Return the problem for its centred rows in blocks, with their costs as weights."""
        sides, r = np.array([-1.0, 1.0]), len(self.scale)
        return CodedProblem(sides, np.abs(sides), self.scale, self.deflated, None, np.zeros(r))

    def pull(self, dual: Array) -> Array:
        """Return ``P_N X'(y a)``, the direction of multipliers a."""
        return without(self.deflated, self.scale * ((self.signs * dual) @ self.features))

    def whitened(self, rows: Array | slice = slice(None)) -> Array:
        """Return the features as the problem sees them, without what is deflated."""
        return without(self.deflated, (self.features[rows] * self.scale).T).T


class Point(NamedTuple):
    """A primal and a dual point with the bounds of the optimal value that they give."""

    coef: Array
    intercept: float
    dual: Array
    objective: float
    bound: float


class Face(NamedTuple):
    """The point that satisfies the equations of an active set.

    ``excess`` is ``y (x's + b) - 1`` of all rows.
    """

    coef: Array
    dual: Array
    excess: Array


class Kernels(NamedTuple):
    """The seam to what numba compiles: four functions, in NumPy or those of `svm.kernels`.

    Attributes
    ----------
    iterate
        `interior_point.iterate`: steps of the interior point method.
    solve_equations
        `active_set.solve_equations`: the point of an active set.
    dual_bound, evaluate
        `certificate.dual_bound` and `certificate.evaluate`: the two bounds of a certificate.
    """

    iterate: Callable[..., bool]
    solve_equations: Callable[[SVMProblem, Array, Array], Face | None]
    dual_bound: Callable[[SVMProblem, Array], tuple[Array, Array, float]]
    evaluate: Callable[[SVMProblem, Array, Array, float], Point]


def without(N: Array, vectors: Array) -> Array:
    """Return vectors (in columns) without their parts along orthonormal (or zero) columns of N."""
    for _ in range(PASSES if N.shape[1] else 0):
        vectors = vectors - N @ (N.T @ vectors)
    return vectors


def gap_of(point: Point) -> float:
    """Return the relative duality gap of a point."""
    return float(max(point.objective - point.bound, 0.0) / max(point.objective, TINY))


@dataclass(frozen=True)
class SVMSolution:
    """One solved problem with its certificate.

    Attributes
    ----------
    coef : array of shape (r,)
        The weight vector in whitened coordinates.
    intercept : float
        The unregularised bias, the midpoint of the interval of optimal values.
    dual : array of shape (n,)
        A strictly feasible dual point: ``0 <= dual <= costs`` and ``y'dual = 0``.
    objective, dual_objective : float
        Primal value of (coef, intercept) and dual value of ``dual``.
    gap : float
        ``(objective - dual_objective) / objective``: a bound of the relative error.
    n_iter : int
        Iterations used.
    converged : bool
        Whether the gap is within the tolerance.
    """

    coef: Array
    intercept: float
    dual: Array
    objective: float
    dual_objective: float
    gap: float
    n_iter: int
    converged: bool

    @classmethod
    def of(cls, point: Point, *, n_iter: int, tol: float) -> SVMSolution:
        """Return the solution that a certified point is."""
        gap = gap_of(point)
        return cls(
            coef=point.coef,
            intercept=float(point.intercept),
            dual=point.dual,
            objective=float(point.objective),
            dual_objective=float(point.bound),
            gap=gap,
            n_iter=n_iter,
            converged=bool(gap <= tol),
        )


@dataclass(frozen=True)
class BlockRows:
    """Labelled rows in blocks, on this machine or on others; unlabelled rows take no part.

    Attributes
    ----------
    blocks : RowBlocks
    rotation : array of shape (r, r) or None
        The solver sees ``(z - centre) @ rotation``.
    centre : array of shape (r,)
        The mean labelled row.
    variances : array of shape (r,)
        Variances of the rotated features.
    class_means : array of shape (n_classes, r)
        Weighted mean of each class, rotated and centred.
    class_weights : array of shape (n_classes,)
        Summed weights of each class.
    """

    blocks: RowBlocks
    rotation: Array | None
    centre: Array
    variances: Array
    class_means: Array
    class_weights: Array

    @classmethod
    def of(cls, blocks: RowBlocks, rotation: Array | None, n_classes: int) -> BlockRows:
        """Look at all rows twice: for the means, then for the scatter about them."""
        counts, sums, masses, class_sums = (
            np.sum(part, axis=0) for part in zip(*blocks.map(label_sums, n_classes), strict=True)
        )
        centre = sums / counts
        covariance = np.sum(blocks.map(label_scatter, centre), axis=0) / counts
        means = class_sums / masses[:, None] - centre
        if rotation is None:
            return cls(blocks, None, centre, covariance.diagonal().copy(), means, masses)
        variances = np.einsum("ji,jk,ki->i", rotation, covariance, rotation)
        return cls(blocks, rotation, centre, variances, means @ rotation, masses)

    @property
    def n_columns(self) -> int:
        """Number of features."""
        return len(self.centre)


def label_sums(block: Block, n_classes: int) -> tuple[Array, Array, Array, Array]:
    """Return number and sum of the labelled rows, and weights and weighted sums by class."""
    labelled = _labelled(block)
    Z, codes, weights = block.Z[labelled], block.codes[labelled], block.weights[labelled]
    indicator = np.zeros((n_classes, len(Z)))
    indicator[codes, np.arange(len(Z))] = weights
    return np.asarray(float(len(Z))), Z.sum(axis=0), indicator.sum(axis=1), indicator @ Z


def label_scatter(block: Block, centre: Array) -> Array:
    """Return the scatter of the labelled rows about a centre."""
    Z = block.Z[_labelled(block)] - centre
    return np.asarray(Z.T @ Z)


def _labelled(block: Block) -> Array:
    return np.flatnonzero((block.codes >= 0) & (block.weights > 0))


class CodedProblem(NamedTuple):
    """One problem on rows in blocks, which know their class and weight only.

    Attributes
    ----------
    signs, costs : arrays of shape (n_classes + 1,)
        Label +1 or -1 and cost of each class; the cost of a row is its weight times that of its
        class.  The last entry, 0, belongs to rows without a class.
    scale : array of shape (r,)
    deflated : array of shape (r, k)
        As in `SVMBatch`.
    rotation : array of shape (r, r) or None
        The solver sees ``(z - centre) @ rotation * scale``.
    centre : array of shape (r,)
    """

    signs: Array
    costs: Array
    scale: Array
    deflated: Array
    rotation: Array | None
    centre: Array

    def features(self, Z: Array) -> Array:
        """Return rows as the solver sees them, before the scale."""
        Z = Z - self.centre
        return Z if self.rotation is None else Z @ self.rotation

    def plane(self, s: Array, intercept: float) -> Array:
        """Return [w ; b] with ``f = z'w + b`` for weights s of the solver."""
        w = self.scale * s
        w = w if self.rotation is None else self.rotation @ w
        return np.append(w, intercept - float(self.centre @ w))

    def weights(self, plane: Array) -> Array:
        """Return the solver's weights and bias [s ; b] of a plane."""
        w = plane[:-1]
        rotated = w if self.rotation is None else self.rotation.T @ w
        return np.append(rotated / self.scale, plane[-1] + float(self.centre @ w))


@dataclass(frozen=True)
class SVMBatch:
    """Support vector problems that share their rows, in an array or in blocks.

    Attributes
    ----------
    rows : SharedRows or BlockRows
        Rows with r features; they are centred, which a free bias makes lossless.
    signs : array of shape (B, n), for rows in blocks (B, n_classes)
        Labels, +1 or -1.
    costs : array of shape (B, n), for rows in blocks (B, n_classes)
        Upper bounds of the multipliers, for rows in blocks times the weight of the row; a row with
        cost 0 does not take part.
    scale : array of shape (B, r)
        Problem b sees the features ``rows.features * scale[b]``.
    deflated : array of shape (B, r, k)
        Orthonormal columns (or zero columns) to which ``coef`` must be orthogonal.
    """

    rows: SharedRows | BlockRows
    signs: Array
    costs: Array
    scale: Array
    deflated: Array

    def __len__(self) -> int:
        return len(self.signs)

    @cached_property
    def smaller_sides(self) -> Array:
        """The total cost of the cheaper side of each problem."""
        costs = self.costs
        if isinstance(self.rows, BlockRows):
            costs = costs * self.rows.class_weights
        above = self.signs > 0
        positive = np.where(above, costs, 0.0).sum(axis=1)
        return np.minimum(positive, np.where(above, 0.0, costs).sum(axis=1))

    @cached_property
    def _arrays(self) -> list[Array]:
        """The arrays of all problems; compiled functions need them of one kind."""
        assert isinstance(self.rows, SharedRows)
        own = self.signs, self.costs, self.scale, self.deflated
        parts = self.rows.table, self.rows.centre, *own
        return [np.require(part, np.float64, ("C", "W")) for part in parts]

    def problem(self, b: int) -> SVMProblem:
        """Return problem b of rows in an array."""
        table, centre, *own = self._arrays
        return SVMProblem(table, centre, *(part[b] for part in own))

    def coded(self, b: int) -> CodedProblem:
        """Return problem b of rows in blocks."""
        assert isinstance(self.rows, BlockRows)
        signs, costs = np.append(self.signs[b], 0.0), np.append(self.costs[b], 0.0)
        placed = self.rows.rotation, self.rows.centre
        return CodedProblem(signs, costs, self.scale[b], self.deflated[b], *placed)


class SVMSolver(Protocol):
    """What a solver must offer: arrays in, frozen solutions out."""

    def solve(self, U: ArrayLike, y: ArrayLike, C: ArrayLike) -> SVMSolution:
        """Solve one problem with features U, labels +1/-1 and costs C (scalar or per row)."""

    def solve_batch(self, batch: SVMBatch) -> list[SVMSolution]:
        """Solve every problem of a batch."""


def single(U: ArrayLike, y: ArrayLike, C: ArrayLike) -> SVMBatch:
    """Return the batch of one plain problem, checked."""
    rows = np.asarray(U, dtype=np.float64)
    signs = np.asarray(y, dtype=np.float64)
    if rows.ndim != 2 or signs.shape != (len(rows),):
        raise SolverError(
            f"A problem needs features of shape (n, r) and n labels; got {rows.shape} and "
            f"{signs.shape}."
        )
    if not (np.abs(signs) == 1.0).all():
        raise SolverError("Labels must be +1 or -1; encode the classes first.")
    costs = np.asarray(C, dtype=np.float64)
    if costs.ndim == 0:
        costs = np.full(signs.shape, float(costs))
    if costs.shape != signs.shape:
        raise SolverError(
            f"Costs must be one number or one for each row; got shape {costs.shape} for "
            f"{len(signs)} rows."
        )
    r = rows.shape[1]
    with np.errstate(all="ignore"):
        shared = SharedRows(rows)
    return SVMBatch(shared, signs[None], costs[None], np.ones((1, r)), np.zeros((1, r, 0)))


def check_batch(batch: SVMBatch) -> None:
    """Refuse numbers that no solver can work with, and problems with one side only."""
    assert isinstance(batch.rows, SharedRows)
    finite = np.isfinite(batch.rows.centre).all()  # then its summands are finite
    if not ((finite or np.isfinite(batch.rows.table).all()) and np.isfinite(batch.scale).all()):
        raise SolverError("Features must be finite; got NaN or infinity.")
    with np.errstate(over="ignore"):
        finite = np.isfinite(batch.costs.sum(axis=1)).all()
    if not finite or (batch.costs < 0).any():
        raise SolverError("Costs must be finite, also their sum, and not negative.")
    for side in (1.0, -1.0):
        if not ((batch.signs == side) & (batch.costs > 0)).any(axis=1).all():
            raise SolverError(
                "Each problem needs rows of both labels with a positive cost; "
                f"one has no row labelled {side:+.0f}."
            )
