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
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from marginfold.linalg.tall import Array
from marginfold.svm.block_rows import BlockBatch
from marginfold.svm.iterations import (
    COMPILED,
    Iterations,
    compiled_iteration,
    require_compiled,
)
from marginfold.svm.problem import (
    SVMBatch,
    SVMSolution,
    check_batch,
    single,
    uncentre,
)
from marginfold.svm.screening import sift
from marginfold.svm.warm_start import Nearby, solve_chains
from marginfold.svm.warm_start import pays as chains_pay
from marginfold.svm.working_set import (
    is_dwarfed,
    solve_on_working_set,
    without_deflated_part,
)
from marginfold.svm.working_set import pays as working_set_pays
from marginfold.validation.parameters import Count, Number, check_parameters

FIRST_MU, SECOND_MU = 1.0, 100.0
"""Start of the central path in units of the mean cost, and of a second attempt."""

NEAR_MU, LEAST_MU = 10.0, 1e-4
"""The same at the solution of a similar problem, in units of its complementarity; the least."""

WARM_MU = 0.5
"""Start of the central path at known weights, in units of the cost times the zone's width."""

BATCH_BYTES, STATE_ARRAYS = 16 << 20, 25
"""Memory that the problems of one pass may use, and the arrays of a number per row each needs."""


@dataclass(frozen=True)
class InteriorPoint:
    """Solve support vector problems to a certified relative duality gap.

    Parameters
    ----------
    tol : float, default=1e-8
        Relative duality gap to reach.
    max_iter : int, default=120
        Largest number of iterations.
    compiled : bool or "auto", default="auto"
        Whether the iterations are compiled, which numba does once for an installation; "auto" does
        it where numba is installed (``pip install "marginfold[compiled]"``).

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
    compiled: bool | str = "auto"

    def __post_init__(self) -> None:
        check_parameters(
            self,
            {
                "tol": Number(0.0, inclusive=False),
                "max_iter": Count(0),
                "compiled": COMPILED,
            },
        )
        require_compiled(self.compiled)

    def solve(self, U: ArrayLike, y: ArrayLike, C: ArrayLike) -> SVMSolution:
        """Solve one problem with features U, labels +1/-1 and costs C (scalar or per row)."""
        return self.solve_batch(single(U, y, C))[0]

    def solve_batch(self, batch: SVMBatch | BlockBatch) -> list[SVMSolution]:
        """Solve every problem of the batch; rows without cost do not take part.

        The multipliers of rows in blocks stay with them: the ``dual`` of such a solution is empty.
        """
        if isinstance(batch, BlockBatch):
            return self._solve_blocks(batch)
        check_batch(batch)
        batch = batch.marked(self.is_compiled)
        solutions: dict[int, SVMSolution] = {}
        for problems, kept in _same_support(batch):
            part = batch.take(problems, None if kept.all() else np.flatnonzero(kept))
            with np.errstate(all="ignore"):  # what overflows is not certified
                part_solutions = self._solve_part(part)
            for position, solution in enumerate(part_solutions):
                b = problems[position]
                solutions[b] = uncentre(part, position, solution)
                if not kept.all():  # the part has its own centre, relative to the batch's
                    dual = np.zeros(len(kept))
                    dual[kept] = solution.dual
                    solutions[b] = replace(uncentre(batch, b, solutions[b]), dual=dual)
        return [solutions[b] for b in range(len(batch))]

    def solve_from(self, batch: SVMBatch, b: int, rows: Array) -> SVMSolution | None:
        """Solve problem b on some rows; those inside the margin join, until all are certified.

        Returns None if most rows turn out to matter.
        """
        batch = batch.marked(self.is_compiled)
        with np.errstate(all="ignore"):
            found = solve_on_working_set(batch, b, self._solve_one, tol=self.tol, first=rows)
        return None if found is None else uncentre(batch, b, found)

    @property
    def is_compiled(self) -> bool:
        """Whether the iterations are compiled."""
        return self.compiled is not False and compiled_iteration() is not None

    def _solve_part(self, batch: SVMBatch, chains: bool = True) -> list[SVMSolution]:
        """Solve problems without idle rows; some are better off alone than in the batch."""
        solutions: dict[int, SVMSolution] = {}
        if chains and chains_pay(batch):
            solutions |= solve_chains(
                batch, self._solve_zone, self._solve_whole, tol=self.tol, in_turn=self.is_compiled
            )
        for b in range(len(batch)):
            alone = None if b in solutions else self._solve_alone(batch, b)
            if alone is not None:
                solutions[b] = alone
        rest = [b for b in range(len(batch)) if b not in solutions]
        size = max(1, BATCH_BYTES // (8 * STATE_ARRAYS * batch.signs.shape[1]))
        for group in (rest[i : i + size] for i in range(0, len(rest), size)):
            part = batch if len(group) == len(batch) else batch.take(group)
            solutions |= zip(group, self._solve_all(part), strict=True)
        for b, solution in solutions.items():
            if not solution.converged:
                again = self._solve_all(batch.take([b]), mu=SECOND_MU)[0]
                solutions[b] = min(solution, again, key=lambda found: found.gap)
        return [solutions[b] for b in range(len(batch))]

    def _solve_alone(self, batch: SVMBatch, b: int) -> SVMSolution | None:
        """Solve a problem on its working set, or without a deflated part that dwarfs the rest."""
        if working_set_pays(batch):
            solution = solve_on_working_set(batch, b, self._solve_one, tol=self.tol)
            if solution is not None and solution.converged:
                return solution
        if is_dwarfed(batch, b):
            return self._solve_all(without_deflated_part(batch, b))[0]
        return None

    def _solve_one(self, batch: SVMBatch, tol: float) -> SVMSolution:
        return uncentre(batch, 0, self._solve_all(batch, tol=tol)[0])

    def _solve_blocks(self, batch: BlockBatch) -> list[SVMSolution]:
        """Solve problems on rows in blocks by sifting."""
        problems = [batch.problem(b) for b in range(len(batch))]
        with np.errstate(all="ignore"):
            found = sift(batch.rows.blocks, problems, self._solve_zone, tol=self.tol)
        return [
            replace(solution, intercept=problem.plane(solution.coef, solution.intercept)[-1])
            for problem, (solution, _) in zip(problems, found, strict=True)
        ]

    def _solve_whole(self, batch: SVMBatch, near: Nearby | None = None) -> list[SVMSolution]:
        """Solve whole problems, a single one from a point nearby if it is given."""
        if near is not None and not working_set_pays(batch):
            mu = min(max(NEAR_MU * near.mu, LEAST_MU), FIRST_MU)
            solutions = self._solve_all(batch, mu, near.weights)
            if solutions[0].converged:
                return solutions
        return self._solve_part(batch, chains=False)

    def _solve_zone(
        self, batch: SVMBatch, weights: Array | None, delta: float, tol: float
    ) -> SVMSolution:
        """Solve a reduced problem, from weights that are right up to margins of about delta."""
        solver = self if tol <= self.tol else replace(self, tol=tol)
        batch = batch.marked(self.is_compiled)
        if weights is None or working_set_pays(batch):
            return uncentre(batch, 0, solver._solve_whole(batch)[0])
        weights = np.append(
            weights[:-1], weights[-1] + batch.rows.centre @ (batch.scale[0] * weights[:-1])
        )
        mu = WARM_MU * delta * float(np.median(batch.costs) / batch.costs.mean())
        solution = solver._solve_all(batch, mu, weights[None])[0]
        if not solution.converged:
            solution = solver._solve_whole(batch)[0]
        return uncentre(batch, 0, solution)

    def _solve_all(
        self,
        batch: SVMBatch,
        mu: float = FIRST_MU,
        weights: Array | None = None,
        tol: float | None = None,
    ) -> list[SVMSolution]:
        """Iterate on all problems of the batch."""
        return Iterations(tol or self.tol, self.max_iter).run(batch, mu, weights)


def _same_support(batch: SVMBatch) -> Iterator[tuple[list[int], Array]]:
    """Group the problems whose rows with a positive cost are the same."""
    groups: dict[bytes, list[int]] = {}
    positive = batch.costs > 0
    for b, row in enumerate(positive):
        groups.setdefault(np.packbits(row).tobytes(), []).append(b)
    for problems in groups.values():
        yield problems, positive[problems[0]]
