"""Screening: solve on the rows that matter, certify on all rows.

At a point (w, b) the rows fall into three sets by their margin ``t = y f - 1``: near it (W,
``|t| <= delta``), deep inside (L), far outside (R).  The reduced problem has the rows W and one row
for each side of L: its mean, at the total cost.  The hinge is convex, so the reduced objective is
nowhere above the true one; a dual point of the reduced problem, spread over L in proportion to the
costs, is one of the full problem.  Its dual value is therefore a bound for the full problem,
whatever the sets; the primal value is summed over all rows.  When no row has changed sides the two
meet, and the solution is that of all rows.

Every pass over the rows is a pure function of one block (see `linalg.tall`), so that the same
lines serve an array and rows on many machines.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from marginfold.linalg.tall import Array, Block, LocalBlocks, RowBlocks
from marginfold.svm.problem import (
    EPS,
    TINY,
    TOLERANCES,
    CodedProblem,
    SVMProblem,
    SVMSolution,
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

GROWTH = 1.7
"""Factor by which the zone grows when many rows have changed sides."""

MANY = 0.05
"""Share of the zone above which rows that change sides are many."""

ROUNDS = 25
"""Zones tried before a problem is given up."""

NARROW = 0.5
"""Half-width with which a zone without rows is looked for anew at w = 0, where all are deep."""

LOCAL_BLOCK = 8192
"""Rows of a block in the memory of this process: its vectors stay in cache."""

STEPS = np.linspace(0.0, 1.0, 17)[1:]
"""Points of the line search between two solutions."""

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
"""Odd multiplier that scatters row numbers evenly over 64 bits (Knuth)."""

LARGEST_SHARE = 0.6
"""Share of the rows above which a zone or a working set no longer pays."""

SolveZone = Callable[[SVMProblem, "Array | None", float, float], SVMSolution]
"""Solves a problem, from given weights at a given zone width or cold, to a gap."""


@dataclass(frozen=True)
class ZoneDual:
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

    problem: CodedProblem
    plane: Array
    delta: float
    extra: Array = field(default_factory=lambda: np.zeros(0, dtype=np.intp))
    lower: float = 0.0
    best: SVMSolution | None = None
    sets: ZoneDual | None = None
    n_iter: int = 0
    gap: float = np.inf
    flat: bool = False  # no row of the zone fixes the bias of the best solution


def sift(
    blocks: RowBlocks,
    problems: Sequence[CodedProblem],
    solve: SolveZone,
    *,
    tol: float,
    starts: Sequence[tuple[Array, float]] | None = None,
    largest: float = np.inf,
) -> list[tuple[SVMSolution, ZoneDual | None]]:
    """Solve problems on the same rows side by side; each pass over the rows serves all of them.

    Parameters
    ----------
    blocks : RowBlocks
    problems : sequence of CodedProblem
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
    list of (SVMSolution, ZoneDual)
        The solutions (their ``dual`` is empty) and the sets from which `dual_of` makes it.
        ``converged`` is false for a problem whose zone grew too large.
    """
    if starts is None:
        starts = _sample_solutions(blocks, problems, solve)
    searches = [
        _Search(p, plane, delta) for p, (plane, delta) in zip(problems, starts, strict=True)
    ]
    active, aim = searches, TOLERANCES.exact if tol <= TOLERANCES.identified else tol
    for _ in range(ROUNDS):
        active = _round(blocks, active, solve, aim, largest)
        if not active:
            break
    _centre_biases(blocks, [search for search in searches if search.flat])
    return [_result(search, tol) for search in searches]


def _round(
    blocks: RowBlocks, searches: list[_Search], solve: SolveZone, aim: float, largest: float
) -> list[_Search]:
    """Solve each problem on its zone; return those that need another round."""
    parts = blocks.map(select_zone, _queries(searches))
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
            search.flat = zones[b].distance(search.problem, plane) > TOLERANCES.violation
            search.best = replace(
                solution, objective=objective, dual_objective=search.lower, gap=gap
            )
        if search.gap > aim:
            failed.append((search, plane))
    return anew + (_move(blocks, failed) if failed else [])


def _solve_zone(search: _Search, zone: Zone, solve: SolveZone, aim: float) -> SVMSolution:
    """Solve the reduced problem; its dual value bounds the full one."""
    problem = search.problem
    inside = zone.mass > 0
    means = zone.sums[inside] / zone.mass[inside, None]
    reduced = SVMProblem.of(
        problem.features(np.concatenate([zone.Z, means])),
        np.append(problem.signs[zone.codes], np.array([1.0, -1.0])[inside]),
        np.append(zone.weights * problem.costs[zone.codes], zone.mass[inside]),
        problem.scale,
        problem.deflated,
        np.zeros(len(problem.scale)),
    )
    start = problem.weights(search.plane) if np.isfinite(search.delta) else None
    solution = solve(reduced, start, search.delta, aim)
    n_zone = len(zone.Z)
    shares = np.zeros(2)
    shares[inside] = solution.dual[n_zone:] / zone.mass[inside]
    if solution.dual_objective >= search.lower or search.sets is None:
        search.lower = max(search.lower, solution.dual_objective)
        search.sets = ZoneDual(
            search.plane, search.delta, zone.numbers, solution.dual[:n_zone], shares
        )
    search.n_iter += solution.n_iter
    return solution


def _move(blocks: RowBlocks, failed: list[tuple[_Search, Array]]) -> list[_Search]:
    """Go to the best point of each segment; rows that changed sides stay in the zone for good.

    If none did, the zone is right and what is missing is the accuracy of its solution.
    """
    searches = [search for search, _ in failed]
    ends = np.stack([plane for _, plane in failed])
    parts = blocks.map(losses_along, _queries(searches), ends)
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
            search.delta *= GROWTH
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


def _result(search: _Search, tol: float) -> tuple[SVMSolution, ZoneDual | None]:
    if search.best is None:
        r = len(search.problem.scale)
        nothing = SVMSolution(np.zeros(r), 0.0, np.zeros(0), np.inf, 0.0, np.inf, 0, False)
        return nothing, None
    found = replace(
        search.best, dual=np.zeros(0), n_iter=search.n_iter, converged=bool(search.gap <= tol)
    )
    return found, search.sets


def _queries(searches: list[_Search]) -> list[ZoneQuery]:
    return [
        ZoneQuery(s.plane, s.delta, s.problem.signs, s.problem.costs, s.extra) for s in searches
    ]


def _sides(problems: Sequence[CodedProblem]) -> tuple[Array, Array]:
    return np.stack([p.signs for p in problems]), np.stack([p.costs for p in problems])


def dual_of(blocks: LocalBlocks, problem: CodedProblem, sets: ZoneDual) -> Array:
    """Return the multipliers of all rows."""
    parts = []
    for block in blocks.blocks:
        y = problem.signs[block.codes]
        t = y * scores_of(block, sets.plane[None])[0] - 1.0  # as in `select_zone`
        c = block.weights * problem.costs[block.codes]
        parts.append(np.where(t < -sets.delta, c * np.where(y > 0, *sets.shares), 0.0))
    dual = np.concatenate(parts)
    dual[sets.numbers] = sets.dual
    return dual


def _sample_solutions(
    blocks: RowBlocks, problems: Sequence[CodedProblem], solve: SolveZone
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
        width = max(1.0, float(np.median(np.abs(t))))  # a margin is 1 wide
        starts.append((plane, SPREAD * width * np.sqrt(len(problem.scale) / len(Z))))
    return starts


@dataclass(frozen=True)
class ZoneQuery:
    """What a pass needs to know of one problem."""

    plane: Array
    delta: float
    signs: Array
    costs: Array
    extra: Array


@dataclass(frozen=True)
class Zone:
    """The rows near the margin, and the rows inside it added up for each side."""

    Z: Array
    codes: Array
    weights: Array
    numbers: Array
    mass: Array  # (2,) costs of the rows inside, labelled +1 and -1
    sums: Array  # (2, r) their coordinates times their costs

    @classmethod
    def joined(cls, parts: Sequence[Zone]) -> Zone:
        """Return the rows of several parts as one zone."""
        return cls(
            Z=np.concatenate([part.Z for part in parts]),
            codes=np.concatenate([part.codes for part in parts]),
            weights=np.concatenate([part.weights for part in parts]),
            numbers=np.concatenate([part.numbers for part in parts]),
            mass=np.sum([part.mass for part in parts], axis=0),
            sums=np.sum([part.sums for part in parts], axis=0),
        )

    def distance(self, problem: CodedProblem, plane: Array) -> float:
        """Return the distance to the margin of the row that is nearest to it."""
        t = problem.signs[self.codes] * (self.Z @ plane[:-1] + plane[-1]) - 1.0
        return float(np.abs(t).min(initial=np.inf))

    @property
    def is_empty(self) -> bool:
        """Whether every row is far outside, so that nothing is left to solve."""
        return not len(self.Z) and not self.mass.any()


def scores_of(block: Block, planes: Array) -> Array:
    """Return f for every problem, shape (n_problems, n)."""
    scores = planes[:, :-1] @ block.Z.T
    scores += planes[:, -1:]
    return np.asarray(scores)


def select_zone(block: Block, queries: Sequence[ZoneQuery]) -> list[Zone]:
    """Part the rows of a block for each problem."""
    scores = scores_of(block, np.stack([q.plane for q in queries]))
    zones = []
    for q, t in zip(queries, scores, strict=True):
        y, c = q.signs[block.codes], block.weights * q.costs[block.codes]
        t *= y
        t -= 1.0
        near = (np.abs(t) <= q.delta) & (c > 0)
        near[_own(block, q.extra)] = True
        deep = (t < -q.delta) & ~near
        costs = np.zeros((2, len(t)))
        costs[0] = c * (deep & (y > 0))
        costs[1] = c * (deep & (y < 0))
        index = np.flatnonzero(near)
        zones.append(
            Zone(
                block.Z[index],
                block.codes[index],
                block.weights[index],
                index + block.start,
                costs.sum(axis=1),
                costs @ block.Z,
            )
        )
    return zones


def hinge(block: Block, planes: Array, signs: Array, costs: Array) -> Array:
    """Return the hinge loss of each plane on a block."""
    losses = np.empty(len(planes))
    for b, f in enumerate(scores_of(block, planes)):
        f *= signs[b][block.codes]
        np.subtract(1.0, f, out=f)
        np.maximum(f, 0.0, out=f)
        losses[b] = f @ (block.weights * costs[b][block.codes])
    return losses


def losses_along(
    block: Block, queries: Sequence[ZoneQuery], ends: Array
) -> list[tuple[Array, Array]]:
    """Return the hinge loss on the way to other planes, and the rows that change sides."""
    starts = scores_of(block, np.stack([q.plane for q in queries]))
    moved = scores_of(block, ends)
    found = []
    for q, f, g in zip(queries, starts, moved, strict=True):
        y, c = q.signs[block.codes], block.weights * q.costs[block.codes]
        t, change = y * f - 1.0, y * (g - f)
        losses = np.array([c @ np.maximum(-t - step * change, 0.0) for step in STEPS])
        end = t + change
        changed = ((t > q.delta) & (end < 0)) | ((t < -q.delta) & (end > 0))
        found.append((losses, np.flatnonzero(changed & (c > 0)) + block.start))
    return found


def _own(block: Block, numbers: Array) -> Array:
    """Return the positions in a block of the rows with the given numbers (sorted)."""
    low, high = np.searchsorted(numbers, (block.start, block.start + len(block)))
    return np.asarray(numbers[low:high] - block.start)


def count(block: Block, n_classes: int) -> Array:
    """Return the number of rows with a positive weight in each class."""
    known = block.codes[(block.codes >= 0) & (block.weights > 0)]
    return np.bincount(known, minlength=n_classes)


def sample(block: Block, rates: Array) -> tuple[Array, Array, Array]:
    """Return some rows of a block, chosen by their numbers, with weights for all."""
    numbers = np.arange(block.start, block.start + len(block), dtype=np.uint64)
    with np.errstate(over="ignore"):
        place = (numbers * GOLDEN) / np.float64(2**64)
    own = rates[block.codes]
    index = np.flatnonzero((place < own) & (block.weights > 0))
    return block.Z[index], block.codes[index], block.weights[index] / own[index]


def bias_shifts(blocks: RowBlocks, planes: Array, signs: Array, costs: Array) -> Array:
    """Return what moves each plane's bias to the middle of its flat interval; 0 without one."""
    parts = np.stack(blocks.map(flat_interval, planes, signs, costs))
    slope, total = parts[:, :, 0].sum(axis=0), parts[:, :, 1].sum(axis=0)
    down, up = parts[:, :, 2].max(axis=0), parts[:, :, 3].min(axis=0)
    flat = np.abs(slope) <= blocks.n_rows * EPS * total  # rounding of the summed costs
    flat &= np.isfinite(down) & np.isfinite(up)
    return 0.5 * (np.where(flat, down, 0.0) + np.where(flat, up, 0.0))


def flat_interval(block: Block, planes: Array, signs: Array, costs: Array) -> Array:
    """Return slope, total cost, and the changes of the bias at which a row comes to its margin.

    Shape (n_problems, 4); the changes are the nearest below and above 0.
    """
    found = np.empty((len(planes), 4))
    for b, f in enumerate(planes[:, :-1] @ block.Z.T + planes[:, -1:]):
        c = block.weights * costs[b][block.codes]
        y = signs[b][block.codes]
        taken = c > 0
        f, c, y = f[taken], c[taken], y[taken]
        changes = y - f  # y (f + change) = 1
        inside = y * changes > 0
        found[b] = (
            -float((y * c)[inside].sum()),
            float(c.sum()),
            changes[changes <= 0].max(initial=-np.inf),
            changes[changes >= 0].min(initial=np.inf),
        )
    return found
