"""One policy for all problems: every answer is certified, whichever way it was found.

In this order, because each is cheaper than the next where it works: the active set of the last
similar problem (one small linear system), a warm start from its solution (screened if there are
many rows), the nearest rows if the classes are apart, screening from a sample if there are very
many rows, the plain iteration.  In many dimensions coordinate descent finds the active set.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from marginfold.linalg.decompositions import qr
from marginfold.linalg.tall import Array, LocalBlocks
from marginfold.runtime.jit import compiled_module, require_compiled
from marginfold.svm.active_set import on_sets_of
from marginfold.svm.certificate import certify
from marginfold.svm.coordinate_descent import descend
from marginfold.svm.interior_point import (
    COLD_MU,
    COMPILED,
    MANY_DIMENSIONS,
    NEWTON_SECONDS,
    InteriorPoint,
    Start,
    solve_each,
)
from marginfold.svm.problem import (
    BlockRows,
    Kernels,
    SVMBatch,
    SVMProblem,
    SVMSolution,
    check_batch,
    single,
    without,
)
from marginfold.svm.screening import LARGEST_SHARE, LOCAL_BLOCK, SAMPLE_TOL, dual_of, sift
from marginfold.validation.parameters import (
    TOLERANCE,
    check_parameters,
)

SMALL = 16_000
"""Numbers in the rows up to which it is not asked which rows matter."""

WARM_ROWS, TALL = 3000, 30_000
"""Rows from which a problem is screened, from the solution of a similar one and from a sample."""

SIMILAR = 2.0
"""Largest ratio of two metrics up to which the active set of one is tried on the other."""

NEAR_MU = 0.03
"""Start of the central path at a similar solution, for each squared ratio of the metrics."""

FIRST_WIDTH, FEWEST = 0.3, 5
"""Half-width of a first warm zone, in medians of the distance to the margin, and its fewest rows
per dimension."""

APART = 0.005
"""Share of rows on the wrong side of the plane between the means, up to which classes are apart."""

FIRST_ROWS = 4
"""Rows per dimension that go first when the classes are apart."""

INSIDE = 1e-10
"""How far inside the margin a row must be to join the working set."""


@dataclass
class _Chain:
    """The last solution of problems with the same labels and costs, how far its margins moved."""

    scale: Array
    solution: SVMSolution
    width: float = 0.0


@dataclass(frozen=True)
class Automatic:
    """Solve support vector problems by the interior point method, or by what is quicker.

    Parameters
    ----------
    tol : float, default=1e-8
        Relative duality gap to reach, whichever way the solution is found.
    compiled : bool or "auto", default="auto"
        As for `InteriorPoint`.

    Examples
    --------
    >>> from marginfold.svm import Automatic
    >>> solution = Automatic().solve([[0.0], [1.0], [2.0], [3.0]], [-1, -1, 1, 1], C=10.0)
    >>> round(float(solution.coef[0]), 6), solution.converged
    (2.0, True)
    """

    tol: float = 1e-8
    compiled: bool | Literal["auto"] = "auto"

    def __post_init__(self) -> None:
        check_parameters(self, {"tol": TOLERANCE, "compiled": COMPILED})
        require_compiled(self.compiled)

    def solve(self, U: ArrayLike, y: ArrayLike, C: ArrayLike) -> SVMSolution:
        """Solve one problem with features U, labels +1/-1 and costs C (scalar or per row)."""
        return self.solve_batch(single(U, y, C))[0]

    def solve_batch(self, batch: SVMBatch) -> list[SVMSolution]:
        """Solve every problem of a batch, those with the same labels and costs in a chain."""
        if isinstance(batch.rows, BlockRows):
            return self._plain.solve_blocks(batch)
        check_batch(batch)
        (B, n), r, sweeps = batch.signs.shape, batch.scale.shape[1], None
        if r > MANY_DIMENSIONS:
            work = NEWTON_SECONDS * batch.signs.size * r**2
            sweeps = compiled_module("marginfold.svm.sweeps", self.compiled, work)
        kernels = self._plain.kernels(min(n, TALL), r, B)
        return solve_each(batch, _Solver(self._plain, kernels, sweeps, B > 1, {}).solve)

    @cached_property
    def _plain(self) -> InteriorPoint:
        return InteriorPoint(self.tol, compiled=self.compiled)


@dataclass(frozen=True)
class _Solver:
    """The policy for the problems of one batch."""

    plain: InteriorPoint
    kernels: Kernels
    sweeps: Any
    remembers: bool
    chains: dict[tuple[bytes, bytes], _Chain]

    def solve(self, problem: SVMProblem) -> SVMSolution:
        """Solve a problem, from where the last one with its labels and costs ended."""
        if not self.remembers:
            return self._alone(problem)
        key = problem.signs.tobytes(), problem.costs.tobytes()
        chain = self.chains.get(key)
        solution = self._alone(problem) if chain is None else self._after(problem, chain)
        if solution.converged:
            chain = self.chains.setdefault(key, _Chain(problem.scale, solution))
            chain.scale, chain.solution = problem.scale, solution
        return solution

    def _after(self, problem: SVMProblem, chain: _Chain) -> SVMSolution:
        """Solve a problem that differs from the last one in the metric or in what is deflated."""
        last = chain.solution
        if len(problem.scale) > MANY_DIMENSIONS:
            return self._alone(problem, last.dual)
        ratios = chain.scale / problem.scale
        apart = float(ratios.max(initial=1.0) / ratios.min(initial=1.0))
        if apart <= SIMILAR:
            point = on_sets_of(problem, last.dual, self.kernels)
            if point is not None:
                return SVMSolution.of(point, n_iter=0, tol=self.plain.tol)
        coef = without(problem.deflated, last.coef * ratios)
        weights = np.append(coef, last.intercept)
        if len(last.dual) >= WARM_ROWS:
            screened = self._screened(problem, weights, chain)
            if screened is not None:
                return screened
        start = Start(min(COLD_MU, NEAR_MU * apart * apart), weights)
        solution = self.plain.iterate(problem, self.kernels, start)
        return solution if solution.converged else self._alone(problem)

    def _alone(self, problem: SVMProblem, dual: Array | None = None) -> SVMSolution:
        """Solve a problem by itself."""
        n, r = len(problem.costs), len(problem.scale)
        found: SVMSolution | None = None
        if r > MANY_DIMENSIONS:
            if self.sweeps is not None:
                found = descend(self.sweeps, problem, tol=self.plain.tol, start=dual)
        elif n * r > SMALL:
            found = solve_nearest(problem, self._solve_part, self.kernels, tol=self.plain.tol)
            if found is None and n >= TALL:
                found = self._screened(problem)
        if found is not None and found.converged:
            return found
        if n < r:
            return self._in_span(problem)
        return self.plain.solve_problem(problem, self.kernels)

    def _in_span(self, problem: SVMProblem) -> SVMSolution:
        """Solve in the dimensions that the rows span, when they are fewer; certify on the rows."""
        basis, R = qr(problem.whitened().T)
        m = len(R)
        parts = problem.signs, problem.costs, np.ones(m), np.zeros((m, 0)), np.zeros(m)
        found = self.plain.solve_problem(SVMProblem.of(R.T, *parts), self.kernels)
        coef = without(problem.deflated, basis @ found.coef)
        point = certify(problem, coef, found.dual, self.kernels)
        return SVMSolution.of(point, n_iter=found.n_iter, tol=self.plain.tol)

    def _solve_part(self, part: SVMProblem, tol: float) -> SVMSolution:
        return self.plain.iterate(part, self.kernels, tol=tol)

    def _screened(
        self, problem: SVMProblem, weights: Array | None = None, chain: _Chain | None = None
    ) -> SVMSolution | None:
        """Solve on the rows near the margin: of a sample's solution, or of the last one."""
        y, coded = problem.signs, problem.coded()
        codes = (y > 0).astype(np.intp)
        blocks = LocalBlocks.cut(problem.features, codes, problem.costs, LOCAL_BLOCK)
        starts = None
        if weights is not None and chain is not None:
            plane = coded.plane(weights[:-1], weights[-1])
            distances = np.abs(y * (problem.table @ plane) - 1.0)
            rank = min(len(y) - 1, FEWEST * len(plane))
            chain.width = chain.width or FIRST_WIDTH * float(np.median(distances))
            starts = [(plane, max(float(np.partition(distances, rank)[rank]), chain.width))]
        found, zone = sift(
            blocks,
            [coded],
            self.plain.solve_zone,
            tol=self.plain.tol,
            starts=starts,
            largest=LARGEST_SHARE * len(y),
        )[0]
        if zone is None or not found.converged:
            return None
        if starts and chain is not None:
            end = coded.plane(found.coef, found.intercept)
            chain.width = float(np.abs(problem.table @ (end - starts[0][0])).max())
        return replace(found, dual=dual_of(blocks, coded, zone))


def solve_nearest(
    problem: SVMProblem,
    solve: Callable[[SVMProblem, float], SVMSolution],
    kernels: Kernels,
    *,
    tol: float,
) -> SVMSolution | None:
    """Solve a problem whose classes are apart on a working set of rows, certified on all.

    The classes are apart if hardly a row is on the wrong side of the plane between their means, in
    units of each feature's variance and without what is deflated.  The rows of both sides that are
    nearest to it go first, roughly; rows that turn out to be inside the margin join them until none
    is left.

    Returns None if the classes are not apart, or too many rows matter.
    """
    y, X, scale, n = problem.signs, problem.table[:, :-1], problem.scale, len(problem.signs)
    above = y > 0
    sides = np.stack([above, ~above]).astype(np.float64)
    means = (sides @ X) / sides.sum(axis=1, keepdims=True)
    variances = np.einsum("ij,ij->j", X, X) / n
    apart = (means[0] - means[1]) / np.where(variances > 0, variances, 1.0)
    if problem.deflated.shape[1]:
        apart = scale * without(problem.deflated, apart / scale)
    scores = y * (X @ apart - 0.5 * (means[0] + means[1]) @ apart)
    if np.count_nonzero(scores <= 0) > APART * n:
        return None
    count = FIRST_ROWS * (len(scale) + 1) // 2
    working = np.sort(np.concatenate([_least(scores, side, count) for side in (above, ~above)]))
    n_iter, rough = 0, True
    while len(working) <= LARGEST_SHARE * n:
        part = problem.on(working)
        found = solve(part, SAMPLE_TOL if rough else tol)
        n_iter += found.n_iter
        shift = float((part.centre - problem.centre) @ (scale * found.coef))
        excess = y * (X @ (scale * found.coef) + (found.intercept - shift)) - 1.0
        excess[working] = 0.0
        inside = np.flatnonzero(excess < -INSIDE)
        if len(inside):
            worst = inside[np.argsort(excess[inside])[: len(working)]]
            working = np.union1d(working, worst)
        elif not rough:
            dual = np.zeros(n)
            dual[working] = found.dual
            point = certify(problem, found.coef, dual, kernels)
            return SVMSolution.of(point, n_iter=n_iter, tol=tol)
        rough = False
    return None


def _least(scores: Array, chosen: Array, count: int) -> Array:
    """Return the rows of least score among those chosen."""
    rows = np.flatnonzero(chosen)
    if len(rows) > count:
        rows = rows[np.argpartition(scores[rows], count)[:count]]
    return rows
