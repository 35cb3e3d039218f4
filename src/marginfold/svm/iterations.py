"""The interior point iteration of a batch, until every problem is certified.

A point that is near the end suggests a face; a crossover to it gives the exact solution, and the
certificate on the original problem decides.  Compiled, the problems are iterated one by one; with
NumPy all of them side by side, so that one call serves the whole batch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from marginfold.errors import SolverError
from marginfold.linalg.tall import Array
from marginfold.runtime.extras import require
from marginfold.runtime.jit import compiled_module
from marginfold.runtime.progress import report
from marginfold.svm.certificate import certify
from marginfold.svm.crossover import crossover
from marginfold.svm.interior_point_numpy import (
    NEARLY,
    PATIENCE,
    PROGRESS,
    REFINED,
    REFRESH_EVERY,
    Problems,
    Rules,
    advance,
    gaps,
    linearise,
    start,
)
from marginfold.svm.problem import EXACT, SVMBatch, SVMSolution, project
from marginfold.validation.parameters import Choice, Either, Flag

LONG_WORK = 2_000_000
"""Numbers in the rows of a batch from which its iterations are reported and can be cancelled."""

LONG_PAUSE = 10_000_000
"""Numbers that compiled iterations may pass over before they report: a pause costs a pass."""

IDENTIFIED = 1e-8
"""Gap at which the face of the solution is usually known; a step more costs less than a guess."""

ROUGH = 1e-4
"""Tolerance above which nobody asks for the face."""

STRICT, MUCH_WORK = 1e-8, 1_000_000
"""Tolerance down to which the face is not worth its price if the rows have more numbers."""

SAFE = 0.1
"""Share of the tolerance that the running gap must reach where no face is tried."""


COMPILED = Either(Flag(), Choice("auto"))
"""What a solver may be told about compiling."""


def compiled_iteration() -> Any:
    """Return the module of compiled functions, or None if numba is missing or cannot work here."""
    return compiled_module("marginfold.svm.kernels")


def require_compiled(wanted: bool | str) -> None:
    """Refuse a solver that must be compiled but cannot be."""
    if wanted is True and compiled_iteration() is None:
        require("numba")
        raise SolverError(
            "numba is installed but cannot be used here: its version does not fit, or there is no "
            "folder to keep what it compiles (NUMBA_CACHE_DIR names one); use compiled=False."
        )


@dataclass(frozen=True)
class Iterations:
    """How problems are iterated.

    Attributes
    ----------
    tol : float
        Relative duality gap to reach.
    max_iter : int
        Largest number of iterations.
    """

    tol: float
    max_iter: int

    def run(self, batch: SVMBatch, mu: float, weights: Array | None) -> list[SVMSolution]:
        """Solve all problems, from the central path at mu above the weights if they are known."""
        if batch.compiled_functions("kernels") is None:
            return self._side_by_side(batch, mu, weights)
        solutions = []
        for b in range(len(batch)):
            if 1 < len(batch) and batch.rows.table.size * len(batch) > LONG_WORK:
                report("problems", b, len(batch))
            known = None if weights is None else weights[b]
            solutions.append(self._one(batch, b, mu, known))
        return solutions

    def _wants_face(self, batch: SVMBatch) -> bool:
        return self.tol <= (ROUGH if batch.rows.table.size <= MUCH_WORK else STRICT)

    def _ready(self, batch: SVMBatch) -> float:
        """Return the gap from which a point is looked at."""
        if self._wants_face(batch):
            return min(self.tol, IDENTIFIED)
        return self.tol if self.tol > ROUGH else SAFE * self.tol

    def _one(self, batch: SVMBatch, b: int, mu: float, weights: Array | None) -> SVMSolution:
        """Iterate on one problem with compiled functions, in units of the mean cost."""
        compiled, rules = batch.compiled_functions("kernels"), Rules()
        unit = float(batch.costs[b].mean())
        scale, costs = batch.scale[b] * np.sqrt(unit), batch.costs[b] / unit
        basis = compiled.complement(batch.deflated[b]) if batch.deflated.shape[2] else None
        columns = _columns(batch.rows.features, scale, basis)
        u = np.empty(len(columns))
        if weights is not None:
            coef = weights[:-1] / np.sqrt(unit)
            u[:-1] = coef if basis is None else coef @ basis
            u[-1] = weights[-1]
        problem = columns, batch.signs[b], costs
        P, Q, t = compiled.start(*problem, u, weights is not None, float(mu), rules)
        tally = np.array([0.0, np.inf, 0.0])
        best: SVMSolution | None = None
        is_long, ready = columns.size > LONG_WORK, float(self._ready(batch))
        most = max(1, LONG_PAUSE // columns.size) if is_long else int(self.max_iter)
        while True:
            n_iter = int(tally[0])
            if is_long:
                report("iterations", n_iter)
            pause = min(most, int(self.max_iter) - n_iter)
            looks = compiled.iterate(*problem, u, P, Q, t, tally, ready, pause, rules)
            n_iter = int(tally[0])
            done = tally[2] > PATIENCE or n_iter >= self.max_iter
            if not (looks or done):
                continue
            s = u[:-1] if basis is None else basis @ u[:-1]
            solution = self._finish(batch, b, unit, s, P, Q, n_iter)
            if best is None or solution.gap < best.gap:
                best = solution
            if done or solution.converged:
                return best

    def _side_by_side(self, batch: SVMBatch, mu: float, weights: Array | None) -> list[SVMSolution]:
        """Iterate on all problems with NumPy; those that are finished leave the batch."""
        problems = Problems.of(batch)
        if weights is not None:
            weights = problems.in_units(weights)
        state = start(problems, mu, weights)
        solutions: dict[int, SVMSolution] = {}
        best_gap = np.full(len(batch), np.inf)
        idle = np.zeros(len(batch), dtype=int)
        ready = self._ready(batch)
        for n_iter in range(self.max_iter + 1):
            if batch.rows.table.size * len(batch) > LONG_WORK:
                report("iterations", n_iter)
            index = problems.index
            line = linearise(problems, state)
            gap = gaps(problems, state, line.pull)
            better = (gap < PROGRESS * best_gap[index]) | (best_gap[index] > NEARLY)
            idle[index] = np.where(better & (idle[index] <= PATIENCE), 0, idle[index] + 1)
            best_gap[index] = np.fmin(gap, best_gap[index])
            done = (idle[index] > PATIENCE) | (n_iter == self.max_iter)
            for position in np.flatnonzero((gap <= ready) | (idle[index] > 0) | done):
                b = int(index[position])
                s, P, Q = state.u[position, :-1], state.P[position], state.Q[position]
                unit = problems.cost_unit[position]
                solution = self._finish(batch, b, unit, s, P, Q, n_iter)
                if b not in solutions or solution.gap < solutions[b].gap:
                    solutions[b] = solution
                done[position] |= solution.converged
            if done.all():
                break
            if done.any():
                problems, state = problems.take(~done), state.take(~done)
                line, gap = line.take(~done), gap[~done]
            finite = advance(problems, state, line, refine=bool(gap.min() < REFINED))
            idle[problems.index[~finite]] = PATIENCE + 1
            if (n_iter + 1) % REFRESH_EVERY == 0:
                np.subtract(problems.signs * problems.scores(state.u), 1.0, out=state.t)
        return [solutions[b] for b in range(len(batch))]

    def _finish(
        self, batch: SVMBatch, b: int, unit: float, s: Array, P: Array, Q: Array, n_iter: int
    ) -> SVMSolution:
        """Cross over to the face that a point suggests, or certify the point itself."""
        coef = project(batch, b, s * np.sqrt(unit))
        dual = P[0] * unit
        exact: SVMSolution | None = None
        costs = batch.costs[b]
        if self._wants_face(batch):
            lower = dual < costs * Q[0]
            upper = ~lower & (unit * P[1] < costs * Q[1])
            exact = crossover(batch, b, lower, upper, dual, n_iter=n_iter, tol=self.tol)
            if exact is not None and exact.gap <= EXACT:
                return exact
        plain = certify(batch, b, coef, dual, n_iter=n_iter, tol=self.tol)
        return plain if exact is None or plain.gap <= exact.gap else exact


def _columns(features: Array, scale: Array, basis: Array | None) -> Array:
    """Return the features of one problem, one after the other, and a column of ones."""
    n, r = features.shape
    q = r if basis is None else basis.shape[1]
    columns = np.ones((q + 1, n))
    if basis is None:
        np.multiply(features.T, scale[:, None], out=columns[:q])
    else:
        np.matmul((scale[:, None] * basis).T, features.T, out=columns[:q])
    return columns
