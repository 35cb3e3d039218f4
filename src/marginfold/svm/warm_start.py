"""Chains of problems on the same rows, each begun where the last one ended.

Problems that follow each other with the same labels and costs differ in the metric or in what is
deflated.  Often the next solution lies on the face of the last: then one small linear system gives
it, and the certificate on all rows says whether it did.  Otherwise, and for single problems on very
many rows, near-margin rows are sifted out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from marginfold.linalg.blocks import LocalBlocks
from marginfold.linalg.tall import Array
from marginfold.runtime.progress import report
from marginfold.svm.certificate import Limits
from marginfold.svm.crossover import from_face
from marginfold.svm.iterations import LONG_WORK
from marginfold.svm.problem import SVMBatch, SVMSolution, project
from marginfold.svm.screening import LOCAL_BLOCK, Solve, dual_of, sift
from marginfold.svm.shared_face import solve_on_face
from marginfold.svm.sifting_passes import BlockProblem

COLD_ROWS = 25_000
"""Rows from which a single problem is sifted."""

COLD_ROWS_WIDE, WIDE = 10_000, 150
"""The same with so many dimensions that a step on all rows is dear."""

MANY_NUMBERS, FLAT = 800_000, 300
"""Numbers in the rows, and rows per dimension, from which a single problem is sifted too."""

WARM_ROWS = 3000
"""Rows from which a problem is sifted that starts at the solution of a similar one."""

WARM_COLUMNS = 200
"""Dimensions above which a face is too large, and too many rows are near the margin."""

SEED_EVERY = 4
"""Of few rows, every so many problems of a chain are solved first."""

MISSES = 3
"""Faces in a row that were not the next one's, after which no more are tried in a chain."""

AHEAD_ENTRIES = 25_000
"""Multipliers of the problems that are tried on one face at once: few enough to stay in cache."""

FACE_MU = 1e-3
"""Mean complementarity above which the next solution is surely on another face."""

FIRST_WIDTH = 0.3
"""Half-width of the zone of a first warm start, in medians of the distance to the margin."""

DRIFT = 1.5
"""Half-width of the zone, in drifts of the margins during the last sifting."""

QUANTILE = 0.999
"""Share of the rows whose margins drift by less than what counts as the drift."""

SHRINKAGE = 0.3
"""Share of the last half-width below which the next one does not fall."""

LARGEST_ZONE = 0.7
"""Share of the rows above which a zone is no longer worth it."""

FEWEST = 5
"""Rows per dimension that a zone has at least."""


@dataclass(frozen=True)
class Nearby:
    """The solution of a similar problem, for another one.

    Attributes
    ----------
    weights : array of shape (1, r + 1)
        Its plane in the whitened coordinates of the other problem, and its bias.
    mu : float
        Its mean complementarity there, in units of the mean cost: how far it is from optimal.
    """

    weights: Array
    mu: float


class SolveWhole(Protocol):
    """A solver of whole problems, of a single one also from a point nearby."""

    def __call__(self, batch: SVMBatch, near: Nearby | None = None) -> Sequence[SVMSolution]: ...


def pays(batch: SVMBatch) -> bool:
    """Return whether the problems are tall, or alike so that one can begin at another."""
    n, r = batch.rows.features.shape
    if _is_tall(n, r):
        return True
    return 1 < len(batch) and r <= WARM_COLUMNS and len(_chains(batch)) < len(batch)


def _is_tall(n: int, r: int) -> bool:
    if n >= (COLD_ROWS_WIDE if r >= WIDE else COLD_ROWS):
        return True
    return n * r >= MANY_NUMBERS and n >= FLAT * r


def solve_chains(
    batch: SVMBatch, solve_zone: Solve, solve_whole: SolveWhole, *, tol: float, in_turn: bool
) -> dict[int, SVMSolution]:
    """Return the solutions that are certified; what is missing is left to other means.

    Parameters
    ----------
    batch : SVMBatch
        Its rows are centred, and so are the solutions.
    solve_zone : callable
        Solver of the reduced problems of sifting.
    solve_whole : callable
        Solver of whole problems.
    tol : float
        Relative duality gap to reach.
    in_turn : bool
        Whether problems on few rows are solved one after the other too.  Else some are solved side
        by side first, which saves calls.
    """
    found: dict[int, SVMSolution] = {}
    for indices in _chains(batch):
        found |= _Chain(batch, indices, solve_zone, solve_whole, tol, in_turn).run()
    return {b: solution for b, solution in found.items() if solution.converged}


def _chains(batch: SVMBatch) -> list[list[int]]:
    """Return the problems with the same labels and costs, each group in its order."""
    groups: dict[tuple[bytes, bytes], list[int]] = {}
    for b, (signs, costs) in enumerate(zip(batch.signs, batch.costs, strict=True)):
        groups.setdefault((signs.tobytes(), costs.tobytes()), []).append(b)
    return list(groups.values())


@dataclass
class _Chain:
    """Problems with the same labels and costs, in their order."""

    batch: SVMBatch
    indices: list[int]
    solve_zone: Solve
    solve_whole: SolveWhole
    tol: float
    in_turn: bool
    width: float | None = None

    @property
    def n_rows(self) -> int:
        return self.batch.signs.shape[1]

    @property
    def _tall(self) -> bool:
        return _is_tall(*self.batch.rows.features.shape)

    def run(self) -> dict[int, SVMSolution]:
        one_by_one = self.in_turn or self.n_rows >= WARM_ROWS
        return self._one_by_one() if one_by_one else self._side_by_side()

    def _side_by_side(self) -> dict[int, SVMSolution]:
        """Solve every few problems in one batch, those between by faces or in another."""
        found = self._cold(self.indices[::SEED_EVERY])
        left: list[int] = []
        last, misses = found[self.indices[0]], 0
        for b in self.indices:
            if b not in found and last.converged and misses < MISSES:
                solution = from_face(self.batch, b, last.dual, tol=self.tol)
                misses = 0 if solution is not None else misses + 1
                if solution is not None:
                    found[b] = solution
            if b in found:
                last = found[b]
            else:
                left.append(b)
        return found | self._cold(left)

    def _cold(self, problems: list[int]) -> dict[int, SVMSolution]:
        if not problems:
            return {}
        return dict(zip(problems, self.solve_whole(self.batch.take(problems)), strict=True))

    def _one_by_one(self) -> dict[int, SVMSolution]:
        """Solve each problem by the face of the one before, else from its solution."""
        found: dict[int, SVMSolution] = {}
        left, ahead, misses = list(self.indices), 1, 0
        before: int | None = None  # the last problem that has multipliers to begin with
        is_long = self.batch.rows.table.size * len(left) > LONG_WORK
        while left:
            b, near = left[0], None
            if is_long:
                report("problems", len(self.indices) - len(left), len(self.indices))
            if before is not None:
                near = None if misses == 0 else self._near(found[before], before, b)
                if misses < MISSES and (near is None or near.mu < FACE_MU):
                    same = self._on_face(left[:ahead], found[before].dual)
                    if same:
                        found |= zip(left, same, strict=False)
                        before, left = left[len(same) - 1], left[len(same) :]
                        ahead, misses = min(2 * len(same), self._most_ahead), 0
                        continue
                    ahead, misses = 1, misses + 1
                near = near or self._near(found[before], before, b)
            found[b] = self._solve(b, before, near, found)
            before = b if found[b].converged else before
            left = left[1:]
        return found

    @property
    def _most_ahead(self) -> int:
        """Problems that may be tried on one face at once."""
        return max(1, AHEAD_ENTRIES // self.n_rows)

    def _on_face(self, problems: list[int], dual: Array) -> list[SVMSolution]:
        """Return the solutions of the first problems that are on a face, repaired if need be."""
        if len(problems) > 1:
            same = solve_on_face(self.batch, problems, dual, tol=self.tol)
            if same:
                return same
        repaired = from_face(self.batch, problems[0], dual, tol=self.tol)
        return [] if repaired is None else [repaired]

    def _solve(
        self, b: int, before: int | None, near: Nearby | None, found: dict[int, SVMSolution]
    ) -> SVMSolution:
        """Solve one problem from where the one before ended; sift if there are many rows."""
        warm = before is not None and self.n_rows >= WARM_ROWS
        if not warm and not self._tall:
            return self.solve_whole(self.batch.take([b]), near)[0]
        problem, starts = self._problem(b), None
        if warm and before is not None:
            last = found[before]
            plane = self._problem(before).plane(last.coef, last.intercept)
            starts = [(plane, self._zone_width(plane))]
        blocks = self._blocks()
        solution, sets = sift(
            blocks,
            [problem],
            self.solve_zone,
            tol=self.tol,
            starts=starts,
            largest=LARGEST_ZONE * self.n_rows,
        )[0]
        if sets is None or not solution.converged:
            return self.solve_whole(self.batch.take([b]))[0] if not self._tall else solution
        if starts:
            self._note_drift(starts[0], problem.plane(solution.coef, solution.intercept))
        return replace(solution, dual=dual_of(blocks, problem, sets))

    def _near(self, solution: SVMSolution, before: int, b: int) -> Nearby:
        """Return what the solution of one problem is for another."""
        batch, y, c = self.batch, self.batch.signs[b], self.batch.costs[b]
        X, scale = batch.rows.features, batch.scale[b]
        coef = solution.coef * batch.scale[before] / scale
        compiled = batch.compiled_functions("compiled_finish")
        if compiled is not None:
            point = coef, solution.intercept, solution.dual
            mu = compiled.nearby(batch.arrays(b), *point, Limits())
            return Nearby(np.append(coef, solution.intercept)[None], float(mu))
        coef = project(batch, b, coef)
        hinge = np.maximum(1.0 - y * (X @ (scale * coef) + solution.intercept), 0.0)
        pull = project(batch, b, scale * ((y * solution.dual) @ X))
        excess = 0.5 * (coef @ coef + pull @ pull) + c @ hinge - solution.dual.sum()
        weights = np.append(coef, solution.intercept)[None]
        return Nearby(weights, float(excess / (2.0 * c.sum())))

    def _blocks(self) -> LocalBlocks:
        codes = (self._signs > 0).astype(np.intp)
        costs = self.batch.costs[self.indices[0]]
        return LocalBlocks.cut(self.batch.rows.features, codes, costs, LOCAL_BLOCK)

    @property
    def _signs(self) -> Array:
        return np.asarray(self.batch.signs[self.indices[0]])

    def _problem(self, b: int) -> BlockProblem:
        return BlockProblem(
            signs=np.array([-1.0, 1.0, 0.0]),
            costs=np.array([1.0, 1.0, 0.0]),
            scale=self.batch.scale[b],
            deflated=self.batch.deflated[b],
            rotation=None,
            centre=np.zeros(self.batch.scale.shape[1]),
        )

    def _scores(self, plane: Array) -> Array:
        return np.asarray(self.batch.rows.table @ plane)

    def _zone_width(self, plane: Array) -> float:
        """Return the half-width of the next zone.

        A solution may stay where it is for a while and then jump: the zone never gets too small.
        """
        distances = np.abs(self._signs * self._scores(plane) - 1.0)
        rank = min(len(distances) - 1, FEWEST * len(plane))
        least = float(np.partition(distances, rank)[rank])
        if self.width is None:
            self.width = FIRST_WIDTH * float(np.median(distances))
        return max(least, self.width)

    def _note_drift(self, start: tuple[Array, float], plane: Array) -> None:
        moves = np.abs(self._scores(plane - start[0]))
        self.width = max(DRIFT * float(np.quantile(moves, QUANTILE)), SHRINKAGE * start[1])
