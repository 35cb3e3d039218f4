"""Successive maximum-margin directions: the loop behind MMDA, LSVA and WSVDA.

Component k minimises ``1/2 w'Aw + sum_i C_i max(0, 1 - y_i (w'z_i + b))`` over all w orthogonal to
the earlier directions (000 eq. (1), 001 eq. (15)), or over all w whose scores are uncorrelated with
theirs.  Several metrics (graph weights) and costs are solved side by side: the rows are shared, so
one iteration of the solver serves them all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import Self

import numpy as np
import scipy.linalg

from marginfold.errors import CancelledError
from marginfold.geometry.moments import TotalScatter
from marginfold.geometry.one_vs_rest import (
    SCHEDULES,
    ClassMeans,
    LabelledRows,
    Schedule,
    Task,
    resolved_schedule,
)
from marginfold.linalg.decompositions import eigh
from marginfold.linalg.tall import Array, Block, LocalBlocks, SharedRows, column_signs
from marginfold.runtime.progress import report
from marginfold.svm import BlockRows, SVMBatch, SVMSolution, SVMSolver
from marginfold.svm.problem import PASSES, without
from marginfold.validation.rows import UNLABELLED

NO_VARIANCE = 1e-12
"""Share of the total variance below which a direction has none."""


@dataclass(frozen=True)
class Deflation:
    """Directions found so far, in the eigenvectors' coordinates.

    Later directions w have ``V'w = 0``.  Either V is W, then they are orthogonal; or it is
    ``S w_j / w_j'S w_j`` for each w_j, S the total scatter, then their scores are uncorrelated.

    Attributes
    ----------
    W : array of shape (r, k)
        Directions of length 1.
    V : array of shape (r, k)
        The dual directions: ``V'W = I``.
    N : array of shape (r, k)
        Orthonormal basis of ``scale * V``: where whitened weights must not go.
    scatter : TotalScatter or None
        The scatter in whose metric directions are orthogonal; None is the Euclidean metric.
    """

    W: Array
    V: Array
    N: Array
    scatter: TotalScatter | None = None

    @classmethod
    def none(cls, n_coordinates: int, scatter: TotalScatter | None = None) -> Self:
        """Return the start: nothing is deflated."""
        nothing = np.zeros((n_coordinates, 0))
        return cls(W=nothing, V=nothing, N=nothing, scatter=scatter)

    def append(self, w: Array, scale: Array) -> Self:
        """Add the direction of w (not zero)."""
        direction = conjugate_part(w, self.W, self.V)  # 000 Alg. 1 step 7; P_k of (7) is I - W W'
        dual = direction if self.scatter is None else self.scatter.dual(direction)
        normal = orthonormal_part(scale * dual, self.N)
        return type(self)(
            W=np.column_stack([self.W, direction]),
            V=np.column_stack([self.V, dual]),
            N=np.column_stack([self.N, normal]),
            scatter=self.scatter,
        )

    def complement(self, s: Array) -> Array:
        """Return whitened vectors (rows) without their deflated part."""
        return without(self.N, s.T).T


def orthonormal_part(w: Array, W: Array) -> Array:
    """Return the unit vector along the part of w that is orthogonal to the columns of W."""
    return conjugate_part(w, W, W)


def conjugate_part(w: Array, W: Array, V: Array) -> Array:
    """Return the unit vector along ``w - W V'w``, which is orthogonal to V if ``V'W = I``."""
    w = w / np.sqrt(w @ w)
    for _ in range(PASSES if W.shape[1] else 0):
        w = w - W @ (V.T @ w)
    return np.asarray(w / np.sqrt(w @ w))


def leading_directions(total: Array, W: Array, n_directions: int) -> Array:
    """Return the leading eigenvectors of the total scatter in the complement of independent W.

    The sign of each makes its largest entry positive; directions without variance are left out.
    """
    r, k = W.shape
    if k == r:  # SciPy before 1.14 decomposes no empty matrix
        return np.zeros((r, 0))
    basis = scipy.linalg.qr(W)[0][:, k:] if k else np.eye(r)
    variances, vectors = eigh(basis.T @ total @ basis)
    varying = np.flatnonzero(variances > NO_VARIANCE * np.trace(total))[::-1]
    directions = basis @ vectors[:, varying[:n_directions]]
    return np.asarray(directions * column_signs(directions))


MIN_GAIN = 1e-4
"""Share of the attainable gain below which a task is exhausted."""

GAIN_RESOLUTION = 1e-12
"""Gains below this are rounding errors of the objective."""


@dataclass(frozen=True)
class Component:
    """One direction that was kept: its task, gain and certified solution.

    ``new_gain`` is the gain of the part of it that no direction before it has, see `NewParts`.
    """

    task: Task
    gain: float
    norm: float
    intercept: float
    solution: SVMSolution
    new_gain: float = np.nan


@dataclass(frozen=True)
class Subspace:
    """The directions of one problem.

    Attributes
    ----------
    W : array of shape (r, k)
        Directions of length 1 in columns, orthonormal or with uncorrelated scores.
    C : float
        The cost of a margin violation.
    components : tuple of Component
    exhausted : dict
        For each task with nothing left to separate, the gain at which it was given up.
    worst_gap : float
        The largest duality gap above the solver's tolerance, of kept and dropped tasks; else 0.
    cancelled : bool
        Whether a watcher ended the search before its time.
    """

    W: Array
    C: float
    components: tuple[Component, ...]
    exhausted: dict[Task, float]
    worst_gap: float
    cancelled: bool = False


@dataclass
class NewParts:
    """What each direction adds: the part whose scores are uncorrelated with those before it.

    Attributes
    ----------
    scatter : TotalScatter
    W, V : arrays of shape (r, k)
        The parts, of length 1, and their duals, as in `Deflation`.
    """

    scatter: TotalScatter
    W: Array
    V: Array

    def add(self, w: Array) -> Array | None:
        """Return the part of a direction that is new, of length 1; None if it has no variance."""
        part = conjugate_part(w, self.W, self.V)
        along_w, along_part = self.scatter.along(np.column_stack([w, part])).T
        variance = part @ along_part
        if variance <= NO_VARIANCE * (w @ along_w):
            return None
        self.W = np.column_stack([self.W, part])
        self.V = np.column_stack([self.V, along_part / variance])
        return part


@dataclass
class _Track:
    """One problem on its way: its metric, cost, directions so far and schedule."""

    scale: Array
    C: float
    schedule: Schedule
    deflation: Deflation
    parts: NewParts
    components: list[Component] = field(default_factory=list)
    exhausted: dict[Task, float] = field(default_factory=dict)
    fresh: dict[Task, Component] = field(default_factory=dict)
    worst_gap: float = 0.0

    def class_means(self, means: Callable[[], Array]) -> ClassMeans:
        whitened = means() * self.scale
        found = [whitened @ component.solution.coef for component in self.components]
        return ClassMeans(
            left=self.deflation.complement(whitened),
            found=np.column_stack([np.zeros(len(whitened)), *found]),
        )

    def record(self, task: Task, solution: SVMSolution, gain: float, enough: bool) -> None:
        """Take note of a solution in the current subspace."""
        if not solution.converged:
            self.worst_gap = max(self.worst_gap, solution.gap)
        self.schedule.report(task, gain, enough)
        if enough:
            norm = float(np.linalg.norm(self.scale * solution.coef))
            self.fresh[task] = Component(task, gain, norm, solution.intercept, solution)
        else:
            self.exhausted[task] = gain

    def keep_chosen(self, gain: Callable[[Array, Task, Array, float], float]) -> None:
        """Add the direction that the schedule chooses; what was solved before it is stale.

        ``gain`` is that of a task along one direction.
        """
        task = self.schedule.choose(self.fresh)
        if task is not None:
            component = self.fresh[task]
            w = self.scale * component.solution.coef  # 000 eq. (5): w = A^-1/2 s
            deflation = self.deflation.append(w, self.scale)
            new_gain = component.gain  # all of it: the first direction, or uncorrelated scores
            if deflation.scatter is None:
                part = self.parts.add(deflation.W[:, -1])
                if self.components:
                    new_gain = 0.0 if part is None else gain(part, task, self.scale, self.C)
            self.deflation = deflation
            self.components.append(replace(component, new_gain=new_gain))
            self.fresh.clear()


def successive_directions(
    rows: SharedRows | BlockRows,
    labelled: LabelledRows,
    scales: Sequence[Array],
    costs: Sequence[float],
    *,
    n_components: int,
    schedule: str,
    solver: SVMSolver,
    uncorrelated: bool = False,
    scatter: TotalScatter | None = None,
    random_state: int = 0,
) -> list[Subspace]:
    """Return the directions of every problem; problem b has the metric ``diag(scales[b])^-2``.

    They are orthogonal, or the scores along them are ``uncorrelated``.  What correlates is told by
    the total ``scatter``, by default that of the given rows (those in blocks with unlabelled ones).
    ``random_state`` seeds the schedule "random", for each problem alike.

    Cancelled by a watcher (see `runtime.progress`), one problem gives the components found so far:
    later ones do not change them.  Several problems, and one without a component, raise
    `CancelledError`.
    """
    r, c = rows.n_columns, labelled.n_classes
    make_schedule = SCHEDULES[resolved_schedule(schedule, c, n_components)]
    scatter = _scatter_of(rows, labelled) if scatter is None else scatter
    nothing = np.zeros((r, 0))
    tracks = [
        _Track(
            scale,
            C,
            make_schedule(labelled.masses, random_state),
            Deflation.none(r, scatter if uncorrelated else None),
            NewParts(scatter, nothing, nothing),
        )
        for scale, C in zip(scales, costs, strict=True)
    ]
    limit = min(n_components, r)
    try:
        _extract(tracks, rows, labelled, limit, solver)
    except CancelledError:
        if len(tracks) > 1 or not tracks[0].components:
            raise
        cancelled = len(tracks[0].components) < limit
    else:
        cancelled = False
    return [
        Subspace(t.deflation.W, t.C, tuple(t.components), t.exhausted, t.worst_gap, cancelled)
        for t in tracks
    ]


def _scatter_of(rows: SharedRows | BlockRows, labelled: LabelledRows) -> TotalScatter:
    if isinstance(rows, BlockRows):
        return TotalScatter(rows.blocks, rows.rotation)
    return TotalScatter(LocalBlocks([Block(rows.features, labelled.codes, labelled.weights)]))


def _extract(
    tracks: list[_Track],
    rows: SharedRows | BlockRows,
    labelled: LabelledRows,
    limit: int,
    solver: SVMSolver,
) -> None:
    """Find the components of all problems, round by round."""

    @cache
    def means() -> Array:
        """Return the class means, which few schedules ask for."""
        if isinstance(rows, BlockRows):
            return np.asarray(rows.class_means)
        return labelled.class_means(rows.features)

    gain = partial(gain_along, rows, labelled, solver)
    _report(tracks, limit)
    while proposals := _proposals(tracks, means, limit):
        batch = _batch(rows, labelled, proposals)
        for b, solution in enumerate(solver.solve_batch(batch)):
            track, task = proposals[b]
            track.record(task, solution, *gain_of(batch, b, solution))
        for track in tracks:
            track.keep_chosen(gain)
        _report(tracks, limit)


def _report(tracks: list[_Track], limit: int) -> None:
    found = sum(len(track.components) for track in tracks)
    report("components", found, limit * len(tracks))


def _proposals(
    tracks: list[_Track], means: Callable[[], Array], n_components: int
) -> list[tuple[_Track, Task]]:
    return [
        (track, task)
        for track in tracks
        if len(track.components) < n_components
        for task in track.schedule.propose(partial(track.class_means, means))
    ]


def _batch(
    rows: SharedRows | BlockRows, labelled: LabelledRows, proposals: list[tuple[_Track, Task]]
) -> SVMBatch:
    depth = max(track.deflation.N.shape[1] for track, _ in proposals)
    deflated = np.zeros((len(proposals), rows.n_columns, depth))
    for b, (track, _) in enumerate(proposals):
        deflated[b, :, : track.deflation.N.shape[1]] = track.deflation.N
    return batch_of(
        rows,
        labelled,
        [task for _, task in proposals],
        [track.C for track, _ in proposals],
        np.stack([track.scale for track, _ in proposals]),
        deflated,
    )


def batch_of(
    rows: SharedRows | BlockRows,
    labelled: LabelledRows,
    tasks: Sequence[Task],
    costs: Sequence[float],
    scale: Array,
    deflated: Array,
) -> SVMBatch:
    """Return the problems of tasks with their costs, on rows in an array or in blocks."""
    pairs = list(zip(tasks, costs, strict=True))
    if isinstance(rows, SharedRows):
        signs = {task: labelled.signs(task) for task in set(tasks)}
        row_costs = {pair: labelled.costs(*pair) for pair in set(pairs)}
        return SVMBatch(
            rows,
            np.stack([signs[task] for task in tasks]),
            np.stack([row_costs[pair] for pair in pairs]),
            scale,
            deflated,
        )
    class_signs = np.stack([labelled.class_signs(task) for task in tasks])
    class_costs = np.stack([labelled.class_costs(task, C) for task, C in pairs])
    return SVMBatch(rows, class_signs, class_costs, scale, deflated)


def gain_along(
    rows: SharedRows | BlockRows,
    labelled: LabelledRows,
    solver: SVMSolver,
    direction: Array,
    task: Task,
    scale: Array,
    C: float,
) -> float:
    """Return the gain of a task if w may only be a multiple of one direction."""
    if isinstance(rows, BlockRows):
        turned = direction if rows.rotation is None else rows.rotation @ direction
        found = rows.blocks.map(labelled_scores, rows.centre, turned)
        scores, codes, weights = (np.concatenate(part) for part in zip(*found, strict=True))
        labelled = replace(labelled, codes=codes, weights=weights)
    else:
        scores = rows.features @ direction
    length = np.linalg.norm(direction / scale)  # in the metric A: 1/2 w'Aw = 1/2 s^2
    nothing = np.zeros((1, 1, 0))
    line = SharedRows(scores[:, None])
    batch = batch_of(line, labelled, [task], [C], np.array([[1.0 / length]]), nothing)
    return gain_of(batch, 0, solver.solve_batch(batch)[0])[0]


def labelled_scores(block: Block, centre: Array, w: Array) -> tuple[Array, Array, Array]:
    """Return the scores of the labelled rows of a block, with their codes and weights."""
    some = np.flatnonzero(block.codes != UNLABELLED)
    return (block.Z[some] - centre) @ w, block.codes[some], block.weights[some]


def gain_of(batch: SVMBatch, b: int, solution: SVMSolution) -> tuple[float, bool]:
    """Return the relative gain ``1 - P(w, b) / P(0)`` and whether it is more than nothing.

    ``P(0) = 2 min(cost of either side)``.  With a cost so small that every row stays inside the
    margin the gain is ``min(cost) |m1 - m2|^2 / 4``, m1 and m2 the means of the sides.  The gain is
    judged as a share of what means as far apart as the rows' spread would give, so that a small C
    does not look like exhausted data.
    """
    square_norm = float(batch.rows.variances @ batch.scale[b] ** 2)
    return gain_over_constant(solution.objective, float(batch.smaller_sides[b]), square_norm)


def gain_over_constant(objective: float, side: float, square_norm: float) -> tuple[float, bool]:
    """Return what `gain_of` does, for the cheaper side's cost and the variance of the rows."""
    gain = 1.0 - objective / (2.0 * side)
    attainable = min(1.0, side * square_norm / 4.0)
    return max(gain, 0.0), bool(gain > max(MIN_GAIN * attainable, GAIN_RESOLUTION))
