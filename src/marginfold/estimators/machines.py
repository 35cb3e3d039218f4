"""Support vector machines of several classes, one against one or one against the rest.

The rows have coordinates in which the penalty is a factor of each of them; `kernel_machines` has
the same for rows that are known by their kernel only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from marginfold.estimators.inputs import Prepared
from marginfold.estimators.multiclass import class_pairs
from marginfold.geometry.directions import batch_of, gain_of, gain_over_constant
from marginfold.geometry.one_vs_rest import LabelledRows, Task, one_vs_rest_tasks
from marginfold.linalg.tall import Array, SharedRows
from marginfold.runtime.jit import compiled_module
from marginfold.runtime.progress import report
from marginfold.svm import Automatic, SVMBatch, SVMSolution, SVMSolver
from marginfold.svm.gram import (
    GivenGram,
    Gram,
    GramSolution,
    Multipliers,
    solve_gram,
    solve_in_coordinates,
)
from marginfold.svm.interior_point import MANY_DIMENSIONS
from marginfold.svm.pairs import PairMultipliers, class_products, exact_pairs

GRAM_ROWS, GRAM_SECONDS = 4.0, 2.2e-11
"""Rows, in units of the (many) coordinates, up to which a pair is solved by the Gram matrix of its
rows, and the time of that for each pair of rows and coordinate.  Compiled coordinate descent takes
a quarter of it (15,000 rows, 26 classes, rank 1000)."""

CLEAR_RATIO = 19.0
"""Ratio of the costs of two classes from which a constant, which agrees with the dearer one, has
a vote."""

NO_SPREAD = 1e-9
"""Variance of rows in feature space, as a share of their mean square, that is rounding."""

PART: Task = (1,)
"""The task of a pair: its second class against its first one."""


@dataclass(frozen=True)
class Machine:
    """One certified machine: weights in the coordinates of the solver, and its intercept.

    Attributes
    ----------
    gain : float
        Relative gain over a constant.
    separates : bool
        Whether the gain is more than nothing.
    """

    weights: Array
    intercept: float
    gain: float
    separates: bool
    gap: float
    n_iter: int
    converged: bool


@dataclass(frozen=True)
class Machines:
    """All machines of one fit, in columns.

    Attributes
    ----------
    directions : array of shape (n_coordinates, n_machines)
        Weights in the coordinates of the feature map.
    intercepts, gaps, gains, separates, converged : arrays of shape (n_machines,)
    n_iter : int
        Iterations of the slowest.
    """

    directions: Array
    intercepts: Array
    gaps: Array
    gains: Array
    separates: Array
    converged: Array
    n_iter: int

    @classmethod
    def of(
        cls, directions: Array, machines: Sequence[Machine], voters: LabelledRows | None = None
    ) -> Machines:
        """Collect machines; those that separate nothing are constants, without a direction.

        Such a pair has no margin, so that neither of its classes is silenced, unless its costs
        are so unequal that the constant tells something.
        """
        intercepts = np.array([machine.intercept for machine in machines])
        separates = np.array([machine.separates for machine in machines])
        directions[:, ~separates] = 0.0  # rounding would decide between equal constants
        if voters is not None and not separates.all():
            pairs = class_pairs(voters.n_classes)
            clear = (CLEAR_RATIO - 1.0) / (CLEAR_RATIO + 1.0)
            for column in np.flatnonzero(~separates):
                lean = voters.pair(*pairs[column])[1].lean(PART)
                intercepts[column] = np.sign(lean) if abs(lean) > clear else 0.0
        return cls(
            directions,
            intercepts,
            np.array([machine.gap for machine in machines]),
            np.array([machine.gain for machine in machines]),
            separates,
            np.array([machine.converged for machine in machines]),
            max(machine.n_iter for machine in machines),
        )


def solve_machines(
    prepared: Prepared,
    scales: Sequence[Array],
    costs: Sequence[float],
    solver: SVMSolver,
    *,
    one_vs_one: bool,
) -> list[Machines]:
    """Solve the machines of all classes for every metric and cost."""
    voting = one_vs_one and len(prepared.classes) > 2
    if not voting:
        found = _against_the_rest(prepared, scales, costs, solver)
    elif isinstance(prepared.rows, SharedRows):
        found = _pair_by_pair(prepared.rows, prepared.labelled, scales, costs, solver)
    else:
        found = _pairs_of_blocks(prepared, scales, costs, solver)
    return [
        Machines.of(
            prepared.metric.rotate_back(np.column_stack([machine.weights for machine in machines])),
            machines,
            prepared.labelled if voting else None,
        )
        for machines in found
    ]


def _against_the_rest(
    prepared: Prepared, scales: Sequence[Array], costs: Sequence[float], solver: SVMSolver
) -> list[list[Machine]]:
    """Solve the tasks of all classes, for every metric and cost, in one batch."""
    tasks = one_vs_rest_tasks(len(prepared.classes))
    batch = batch_of(
        prepared.rows,
        prepared.labelled,
        [task for _ in costs for task in tasks],
        [C for C in costs for _ in tasks],
        np.repeat(np.stack(scales), len(tasks), axis=0),
        np.zeros((len(costs) * len(tasks), len(scales[0]), 0)),
    )
    report("classes", 0, len(batch))
    machines = _solved(batch, solver)
    report("classes", len(batch), len(batch))
    return [machines[m : m + len(tasks)] for m in range(0, len(machines), len(tasks))]


def _pair_by_pair(
    rows: SharedRows,
    labelled: LabelledRows,
    scales: Sequence[Array],
    costs: Sequence[float],
    solver: SVMSolver,
) -> list[list[Machine]]:
    """Solve pair after pair on the rows of its two classes."""
    pairs = class_pairs(labelled.n_classes)
    by_grams = _by_grams(rows, labelled, solver)
    found: list[list[Machine]] = [[] for _ in costs]
    for done, pair in enumerate(pairs):
        report("pairs of classes", done, len(pairs))
        places, both = labelled.pair(*pair)
        part = rows.part(places)
        few = len(places) <= GRAM_ROWS * rows.n_columns
        solve = _solve_grams if by_grams and few else _solve_batch
        solved = solve(part, both, scales, costs, solver)
        for machines, machine in zip(found, solved, strict=True):
            machines.append(machine)
    report("pairs of classes", len(pairs), len(pairs))
    return found


def _pairs_of_blocks(
    prepared: Prepared, scales: Sequence[Array], costs: Sequence[float], solver: SVMSolver
) -> list[list[Machine]]:
    """Solve all pairs in one batch on rows in blocks, in which the other classes cost nothing."""
    n_classes = len(prepared.classes)
    pairs, signs, class_costs = class_pairs(n_classes), [], []
    for C in costs:
        for pair in pairs:
            signs.append(np.where(np.arange(n_classes) == pair[1], 1.0, -1.0))
            class_costs.append(np.zeros(n_classes))
            class_costs[-1][list(pair)] = prepared.labelled.pair(*pair)[1].class_costs(PART, C)
    batch = SVMBatch(
        prepared.rows,
        np.stack(signs),
        np.stack(class_costs),
        np.repeat(np.stack(scales), len(pairs), axis=0),
        np.zeros((len(signs), len(scales[0]), 0)),
    )
    machines = _solved(batch, solver)
    return [machines[m : m + len(pairs)] for m in range(0, len(machines), len(pairs))]


def _by_grams(rows: SharedRows, labelled: LabelledRows, solver: SVMSolver) -> bool:
    """Return whether Gram matrices of rows in many dimensions are quicker than compiling."""
    if not isinstance(solver, Automatic) or rows.n_columns <= MANY_DIMENSIONS:
        return False
    sizes = np.bincount(labelled.codes).astype(np.float64)
    squares = len(sizes) * (sizes @ sizes) + sizes.sum() ** 2
    work = GRAM_SECONDS * rows.n_columns * float(squares)
    return compiled_module("marginfold.svm.sweeps", solver.compiled, work) is None


def _solve_batch(
    rows: SharedRows,
    labelled: LabelledRows,
    scales: Sequence[Array],
    costs: Sequence[float],
    solver: SVMSolver,
) -> list[Machine]:
    tasks, r = [PART] * len(costs), rows.n_columns
    deflated = np.zeros((len(costs), r, 0))
    return _solved(batch_of(rows, labelled, tasks, costs, np.stack(scales), deflated), solver)


def _solve_grams(
    rows: SharedRows,
    labelled: LabelledRows,
    scales: Sequence[Array],
    costs: Sequence[float],
    solver: SVMSolver,
) -> list[Machine]:
    """Solve problems of few rows in many dimensions by the Gram matrix of their rows."""
    machines = []
    for scale, C in zip(scales, costs, strict=True):
        features = rows.features * scale
        found = gram_machine(GivenGram(features @ features.T), labelled, PART, C, solver)
        weights = scale * (found.weights @ features)
        intercept = found.intercept - float(rows.centre @ weights)
        machines.append(replace(found, weights=weights, intercept=intercept))
    return machines


def gram_machine(
    gram: Gram,
    labelled: LabelledRows,
    task: Task,
    C: float,
    solver: SVMSolver,
    start: Multipliers | None = None,
) -> Machine:
    """Solve one task by the Gram matrix of its rows, whose coefficients are the weights."""
    signs, costs = labelled.signs(task), labelled.costs(task, C)
    if isinstance(solver, Automatic):
        found = solve_gram(gram, signs, costs, tol=solver.tol, start=start)
    else:
        found = solve_in_coordinates(gram, signs, costs, solver)
    above = float(costs[signs > 0].sum())
    side = min(above, float(costs.sum()) - above)
    return _gram_machine(found, side, gram.spread, float(gram.diagonal.mean()))


def pair_machines(
    gram: Gram, labelled: LabelledRows, C: float, near: PairMultipliers
) -> list[Machine | None]:
    """Solve pairs of classes together, of rows that go class by class; None for those left.

    The weights are coefficients of the rows of the first class, then of the second.
    """
    costs = labelled.costs(PART, C)
    found = exact_pairs(gram, costs, near)
    if all(machine is None for machine in found):
        return [None] * len(found)
    a, b = near.pairs
    n, starts = np.diff(near.starts), near.starts[:-1]
    own, means = np.add.reduceat(gram.diagonal, starts), class_products(gram, near.starts)
    inner = own + n * (n - 1) * means.diagonal()
    products = inner[a] + inner[b] + 2 * n[a] * n[b] * means[a, b]
    sizes = (own[a] + own[b]) / (n[a] + n[b])
    spreads = np.maximum(sizes - products / (n[a] + n[b]) ** 2, 0.0)
    masses = np.add.reduceat(costs, starts)
    sides = np.minimum(masses[a], masses[b])
    parts = zip(found, sides.tolist(), spreads.tolist(), sizes.tolist(), strict=True)
    return [None if solved is None else _gram_machine(solved, *part) for solved, *part in parts]


def _gram_machine(found: GramSolution, side: float, spread: float, size: float) -> Machine:
    """Return a machine; rows of mean square ``size`` that do not spread are not separated."""
    gain, separates = gain_over_constant(found.objective, side, spread)
    separates &= spread > NO_SPREAD * size
    return Machine(
        found.coefs, found.intercept, gain, separates, found.gap, found.n_iter, found.converged
    )


def _solved(batch: SVMBatch, solver: SVMSolver) -> list[Machine]:
    return [_machine(batch, b, solution) for b, solution in enumerate(solver.solve_batch(batch))]


def _machine(batch: SVMBatch, b: int, solution: SVMSolution) -> Machine:
    gain, separates = gain_of(batch, b, solution)
    return Machine(
        batch.scale[b] * solution.coef,
        solution.intercept,
        gain,
        separates,
        solution.gap,
        solution.n_iter,
        solution.converged,
    )
