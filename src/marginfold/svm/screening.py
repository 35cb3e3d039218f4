"""Sifting: solve on the rows near the margin, certify on all rows.

At a point (w, b) the rows fall into three sets by their margin ``t = y f - 1``: near it (W,
``|t| <= delta``), deep inside (L), far outside (R).  The reduced problem has the rows W and one row
for each side of L: its mean, at the total cost.  The hinge is convex, so the reduced objective is
nowhere above the true one; a dual point of the reduced problem, spread over L in proportion to the
costs, is one of the full problem.  Its dual value is therefore a bound for the full problem,
whatever the sets; the primal value is summed over all rows.  When no row has changed sides the two
meet, and the solution is that of all rows.

Every pass over the rows is a pure function of one block (see `linalg.blocks`), so that the same
lines serve an array and rows on many machines.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from marginfold.linalg.blocks import LocalBlocks, RowBlocks
from marginfold.linalg.tall import Array, SharedRows
from marginfold.svm.block_bias import bias_shifts
from marginfold.svm.problem import EXACT, TINY, SVMBatch, SVMSolution
from marginfold.svm.sifting_passes import (
    STEPS,
    BlockProblem,
    Question,
    Zone,
    along,
    count,
    hinge,
    sample,
    scores_of,
    screen,
)

SAMPLE_SHARE = 0.1
"""Share of the rows on which a problem is solved first."""

SAMPLE_ROWS = 4000
"""Rows up to which all are solved as they are; a larger sample is sifted in its turn."""

SMALL_CLASS = 500
"""A class is sampled to no fewer rows than this."""

SAMPLE_TOL = 1e-3
"""Relative gap to which a sample is solved."""

SPREAD = 7.0
"""Half-width of the first zone, in expected changes of the margins from the sample to all rows."""

FIRST_SHARE = 0.2
"""Share of the rows that the first zone has at most."""

NEAR_MARGIN = 1e-6
"""Distance to the margin, in margins, below which a row of a sample counts as on it."""

LEAST_WIDTH = 1e-3
"""Half-width that the first zone has at least."""

FAST_GROWTH, SHORT_STEP = 3.0, 0.2
"""The same factor when only a step shorter than this share of the way was an improvement."""

GROWTH = 1.7
"""Factor by which the zone grows when many rows have changed sides."""

MANY = 0.05
"""Share of the zone above which rows that change sides are many."""

STRICT = 1e-8
"""Tolerance from which on the solution is made exact, not only good enough."""

ROUNDS = 25
"""Zones tried before a problem is given up."""

ON_MARGIN = 1e-9
"""Largest distance to the margin of a row that is on it."""

NARROW = 0.5
"""Half-width with which a zone without rows is looked for anew at w = 0, where all are deep."""

LOCAL_BLOCK = 8192
"""Rows of a block in the memory of this process: its vectors stay in cache."""

Solve = Callable[[SVMBatch, "Array | None", float, float], SVMSolution]
"""Solves a batch of one problem, from given weights at a given zone width or cold, to a gap."""


@dataclass(frozen=True)
class Sets:
    """How the rows of the last reduced problem were parted, and its multipliers.

    ``shares`` are the multipliers of the two sides of L as shares of their costs.
    """

    plane: Array
    delta: float
    numbers: Array
    dual: Array
    shares: Array


@dataclass
class _Search:
    """One problem on its way: the point, the zone, the bounds so far."""

    problem: BlockProblem
    plane: Array
    delta: float
    extra: Array = field(default_factory=lambda: np.zeros(0, dtype=np.intp))
    lower: float = 0.0
    best: SVMSolution | None = None
    sets: Sets | None = None
    n_iter: int = 0
    gap: float = np.inf
    flat: bool = False  # no row of the zone fixes the bias of the best solution


def sift(
    blocks: RowBlocks,
    problems: Sequence[BlockProblem],
    solve: Solve,
    *,
    tol: float,
    starts: Sequence[tuple[Array, float]] | None = None,
    largest: float = np.inf,
) -> list[tuple[SVMSolution, Sets | None]]:
    """Solve problems on the same rows side by side; each pass over the rows serves all of them.

    Parameters
    ----------
    blocks : RowBlocks
    problems : sequence of BlockProblem
    solve : callable
        Solver of the reduced problems.
    tol : float
        Relative duality gap to reach, over all rows.
    starts : sequence of (plane, half-width of the zone), optional
        Where to begin; by default at the solutions on a sample of the rows.
    largest : float
        Rows of a zone above which a problem is given up.

    Returns
    -------
    list of (SVMSolution, Sets)
        The solutions (their ``dual`` is empty) and the sets from which `dual_of` makes it.
        ``converged`` is false for a problem whose zone grew too large.
    """
    if starts is None:
        starts = _sample_solutions(blocks, problems, solve)
    searches = [
        _Search(p, plane, delta) for p, (plane, delta) in zip(problems, starts, strict=True)
    ]
    active, aim = searches, EXACT if tol <= STRICT else tol
    for _ in range(ROUNDS):
        active = _round(blocks, active, solve, aim, largest)
        if not active:
            break
    _centre_biases(blocks, [search for search in searches if search.flat])
    return [_result(search, tol) for search in searches]


def _round(
    blocks: RowBlocks, searches: list[_Search], solve: Solve, aim: float, largest: float
) -> list[_Search]:
    """Solve each problem on its zone; return those that need another round."""
    parts = blocks.map(screen, _questions(searches))
    trials: list[tuple[_Search, SVMSolution, Array]] = []
    zones, anew = [], []
    for b, search in enumerate(searches):
        zone = Zone.joined([part[b] for part in parts])
        if len(zone.Z) > largest:
            continue  # the caller has better means
        if zone.is_empty:
            search.plane, search.delta = np.zeros_like(search.plane), min(search.delta, NARROW)
            anew.append(search)
            continue
        solution = _solve_zone(search, zone, solve, aim)
        trials.append((search, solution, search.problem.plane(solution.coef, solution.intercept)))
        zones.append(zone)
    if not trials:
        return anew
    planes = np.stack([plane for _, _, plane in trials])
    costs = [search.problem for search, _, _ in trials]
    hinges = np.sum(blocks.map(hinge, planes, *_sides(costs)), axis=0)
    failed = []
    for b, (search, solution, plane) in enumerate(trials):
        objective = 0.5 * float(solution.coef @ solution.coef) + float(hinges[b])
        gap = max(0.0, objective - search.lower) / max(objective, TINY)
        if gap < search.gap:
            search.gap = gap
            search.flat = zones[b].distance(search.problem, plane) > ON_MARGIN
            search.best = replace(
                solution, objective=objective, dual_objective=search.lower, gap=gap
            )
        if search.gap > aim:
            failed.append((search, plane))
    return anew + (_move(blocks, failed) if failed else [])


def _solve_zone(search: _Search, zone: Zone, solve: Solve, aim: float) -> SVMSolution:
    """Solve the reduced problem; its dual value bounds the full one."""
    problem = search.problem
    inside = zone.mass > 0
    means = zone.sums[inside] / zone.mass[inside, None]
    batch = SVMBatch(
        rows=SharedRows(problem.features(np.concatenate([zone.Z, means]))),
        signs=np.append(problem.signs[zone.codes], np.array([1.0, -1.0])[inside])[None],
        costs=np.append(zone.weights * problem.costs[zone.codes], zone.mass[inside])[None],
        scale=problem.scale[None],
        deflated=problem.deflated[None],
    )
    start = problem.weights(search.plane) if np.isfinite(search.delta) else None
    solution = solve(batch, start, search.delta, aim)
    n_zone = len(zone.Z)
    shares = np.zeros(2)
    shares[inside] = solution.dual[n_zone:] / zone.mass[inside]
    if solution.dual_objective >= search.lower or search.sets is None:
        search.lower = max(search.lower, solution.dual_objective)
        search.sets = Sets(search.plane, search.delta, zone.numbers, solution.dual[:n_zone], shares)
    search.n_iter += solution.n_iter
    return solution


def _move(blocks: RowBlocks, failed: list[tuple[_Search, Array]]) -> list[_Search]:
    """Go to the best point of each segment; rows that changed sides stay in the zone for good.

    If none did, the zone is right and what is missing is the accuracy of its solution.
    """
    searches = [search for search, _ in failed]
    ends = np.stack([plane for _, plane in failed])
    parts = blocks.map(along, _questions(searches), ends)
    again = []
    for b, (search, end) in enumerate(failed):
        hinges = np.sum([part[b][0] for part in parts], axis=0)
        changed = np.concatenate([part[b][1] for part in parts])
        points = search.plane + STEPS[:, None] * (end - search.plane)
        sizes = [float(s @ s) for s in (search.problem.weights(p)[:-1] for p in points)]
        best = int(np.argmin(0.5 * np.array(sizes) + hinges))
        n_zone = len(search.sets.numbers) if search.sets else 0
        if not len(changed):
            continue
        again.append(search)
        search.plane = points[best]
        if len(changed) > MANY * n_zone:
            search.delta *= GROWTH if STEPS[best] > SHORT_STEP else FAST_GROWTH
        else:
            search.extra = np.union1d(search.extra, changed)
    return again


def _centre_biases(blocks: RowBlocks, searches: list[_Search]) -> None:
    """Move each bias to the middle of its optimal values over all rows."""
    found = [(search, search.best) for search in searches if search.best is not None]
    if not found:
        return
    problems = [search.problem for search, _ in found]
    planes = np.stack([s.problem.plane(best.coef, best.intercept) for s, best in found])
    shifts = bias_shifts(blocks, planes, *_sides(problems))
    for (search, best), shift in zip(found, shifts, strict=True):
        search.best = replace(best, intercept=best.intercept + float(shift))


def _result(search: _Search, tol: float) -> tuple[SVMSolution, Sets | None]:
    if search.best is None:
        r = len(search.problem.scale)
        nothing = SVMSolution(np.zeros(r), 0.0, np.zeros(0), np.inf, 0.0, np.inf, 0, False)
        return nothing, None
    found = replace(
        search.best, dual=np.zeros(0), n_iter=search.n_iter, converged=bool(search.gap <= tol)
    )
    return found, search.sets


def _questions(searches: list[_Search]) -> list[Question]:
    return [Question(s.plane, s.delta, s.problem.signs, s.problem.costs, s.extra) for s in searches]


def _sides(problems: Sequence[BlockProblem]) -> tuple[Array, Array]:
    return np.stack([p.signs for p in problems]), np.stack([p.costs for p in problems])


def dual_of(blocks: LocalBlocks, problem: BlockProblem, sets: Sets) -> Array:
    """Return the multipliers of all rows."""
    parts = []
    for block in blocks.blocks:
        y = problem.signs[block.codes]
        t = y * scores_of(block, sets.plane[None])[0] - 1.0  # to the last bit as `screen` has it
        c = block.weights * problem.costs[block.codes]
        parts.append(np.where(t < -sets.delta, c * np.where(y > 0, *sets.shares), 0.0))
    dual = np.concatenate(parts)
    dual[sets.numbers] = sets.dual
    return dual


def _sample_solutions(
    blocks: RowBlocks, problems: Sequence[BlockProblem], solve: Solve
) -> list[tuple[Array, float]]:
    """Solve on a sample, in which every class keeps its total weight."""
    if blocks.n_rows <= SAMPLE_ROWS:
        return [(np.zeros(blocks.n_columns + 1), np.inf) for _ in problems]
    n_classes = len(problems[0].signs) - 1
    counts = np.sum(blocks.map(count, n_classes), axis=0)
    wanted = np.maximum(SAMPLE_SHARE * counts, np.minimum(counts, SMALL_CLASS))
    rates = np.append(wanted / np.maximum(counts, 1), 0.0)
    parts = blocks.map(sample, rates)
    Z, codes, weights = (np.concatenate(column) for column in zip(*parts, strict=True))
    small = LocalBlocks.cut(Z, codes, weights, LOCAL_BLOCK)
    found = sift(small, problems, solve, tol=SAMPLE_TOL)
    planes = [p.plane(s.coef, s.intercept) for p, (s, _) in zip(problems, found, strict=True)]
    starts = []
    for problem, plane in zip(problems, planes, strict=True):
        t = problem.signs[codes] * (Z @ plane[:-1] + plane[-1]) - 1.0
        distances = np.abs(t)
        width = max(1.0, float(np.median(distances)))  # a margin is 1 wide
        delta = SPREAD * width * np.sqrt(len(problem.scale) / len(Z))
        off = distances[distances > NEAR_MARGIN * width]  # the sample's own free rows are on it
        few = float(np.quantile(off, FIRST_SHARE)) if len(off) else 0.0
        starts.append((plane, max(min(delta, few), LEAST_WIDTH)))
    return starts
