"""One-vs-rest and other two-sided tasks of several classes, and the order of their solution.

A task is the tuple of the class codes on its positive side.  A schedule proposes the next task of
one problem and is told the gain that it brought.  Deflation can only lower the gain of a task: one
without gain need not be tried again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from marginfold.errors import InvalidParameterError
from marginfold.geometry.moments import class_means
from marginfold.linalg.blocks import Block, LocalBlocks
from marginfold.linalg.tall import Array
from marginfold.validation.parameters import Number

Task = tuple[int, ...]

TIE, TIE_ROUNDING = 1e-9, 1e-14
"""Gains that differ by less, relative to the gain or to what it lacks to 1, are equal."""


@dataclass(frozen=True)
class LabelledRows:
    """Class codes and weights of the rows that carry a label, and what an error on each costs.

    ``factors`` are per class; "balanced" gives both sides of every task the same total cost.
    """

    codes: Array
    weights: Array
    n_classes: int
    balanced: bool
    factors: Array

    def signs(self, task: Task) -> Array:
        """Return +1 on the positive side of the task and -1 elsewhere."""
        return np.asarray(self.class_signs(task)[self.codes])

    def class_signs(self, task: Task) -> Array:
        """Return the signs of the classes."""
        signs = np.full(self.n_classes, -1.0)
        signs[list(task)] = 1.0
        return signs

    def class_costs(self, task: Task, C: float) -> Array:
        """Return the cost of the hinge loss of a row of weight 1, for each class."""
        costs = self.factors
        if self.balanced:
            masses = np.bincount(self.codes, self.weights, self.n_classes) * costs
            positive = self.class_signs(task) > 0
            total, above = masses.sum(), masses[positive].sum()
            costs = costs * np.where(positive, total / (2 * above), total / (2 * (total - above)))
        return np.asarray(C * costs)

    def lean(self, task: Task) -> float:
        """Return by how much the sides differ in total cost, as a share: 1 for all on the positive.

        A constant costs least where it agrees with the dearer side.
        """
        masses = np.bincount(self.codes, self.weights, self.n_classes)
        masses = masses * self.class_costs(task, 1.0)
        return float(self.class_signs(task) @ masses / masses.sum())

    def costs(self, task: Task, C: float) -> Array:
        """Return the cost of each row's hinge loss."""
        return np.asarray(self.weights * self.class_costs(task, C)[self.codes])

    def pair(self, first: int, second: int) -> tuple[Array, LabelledRows]:
        """Return the rows of two classes, and these alone: the task ``(1,)`` parts them."""
        rows = np.sort(np.concatenate([self._class_rows[first], self._class_rows[second]]))
        codes = (self.codes[rows] == second).astype(np.intp)
        factors = self.factors[[first, second]]
        return rows, LabelledRows(codes, self.weights[rows], 2, self.balanced, factors)

    @cached_property
    def _class_rows(self) -> list[Array]:
        order = np.argsort(self.codes, kind="stable")
        return np.split(order, np.cumsum(np.bincount(self.codes, minlength=self.n_classes))[:-1])

    def class_means(self, rows: Array) -> Array:
        """Return the weighted mean row of each class."""
        return class_means(LocalBlocks([Block(rows, self.codes, self.weights)]), self.n_classes)[1]


def class_factors(class_weight: Any, classes: Array) -> tuple[bool, Array]:
    """Return (balanced, factor per class) for scikit-learn's ``class_weight``."""
    if class_weight is None or (isinstance(class_weight, str) and class_weight == "balanced"):
        return class_weight is not None, np.ones(len(classes))
    if not isinstance(class_weight, Mapping):
        raise InvalidParameterError(
            "class_weight must be None, 'balanced' or a dict of class labels to weights; "
            f"got {class_weight!r}."
        )
    labels = classes.tolist()
    unknown = [label for label in class_weight if label not in labels]
    if unknown:
        raise InvalidParameterError(
            f"class_weight names {unknown[0]!r}, which is not among the classes {labels}."
        )
    factors = [class_weight.get(label, 1.0) for label in labels]
    if not all(Number(0.0, inclusive=False).allows(factor) for factor in factors):
        raise InvalidParameterError(
            f"class_weight must hold finite weights > 0; got {dict(class_weight)!r}."
        )
    return False, np.array(factors, dtype=np.float64)


def one_vs_rest_tasks(n_classes: int) -> list[Task]:
    """Return one task per class, or the single one of a two-class problem."""
    return [(1,)] if n_classes == 2 else [(code,) for code in range(n_classes)]


def task_name(task: Task, classes: Array) -> Any:
    """Return the class of a task, or the tuple of classes on its positive side."""
    labels = classes.tolist()
    return labels[task[0]] if len(task) == 1 else tuple(labels[code] for code in task)


class Schedule(Protocol):
    """The order of tasks for one problem."""

    def propose(self, deflated_means: Callable[[], Array]) -> list[Task]:
        """Return the tasks to solve next in the current subspace; none when nothing is left."""

    def report(self, task: Task, gain: float, enough: bool) -> None:
        """Take note of the gain of a task that was solved."""

    def choose(self, fresh: Collection[Task]) -> Task | None:
        """Return which of the tasks solved in the current subspace gives the next direction."""


class RoundRobin:
    """The papers' order: class after class, dropping those that are exhausted."""

    def __init__(self, n_classes: int) -> None:
        self._queue = one_vs_rest_tasks(n_classes)

    def propose(self, deflated_means: Callable[[], Array]) -> list[Task]:
        """Return the task at the head of the queue."""
        return self._queue[:1]

    def report(self, task: Task, gain: float, enough: bool) -> None:
        """Drop a task without gain."""
        if not enough:
            self._queue.remove(task)

    def choose(self, fresh: Collection[Task]) -> Task | None:
        """Return the head of the queue and move it to the end."""
        if not self._queue or self._queue[0] not in fresh:
            return None
        self._queue.append(self._queue.pop(0))
        return self._queue[-1]


class Greedy:
    """The class with the largest gain next; of equal gains the earlier class.

    A gain never rises under deflation, so the last known gain is an upper bound: a task is solved
    again only while its bound is the largest, and kept when its fresh gain still is.
    """

    def __init__(self, n_classes: int) -> None:
        self._bounds = dict.fromkeys(one_vs_rest_tasks(n_classes), np.inf)

    def propose(self, deflated_means: Callable[[], Array]) -> list[Task]:
        """Return all tasks of which nothing is known, or the one with the largest bound."""
        unknown = [task for task, bound in self._bounds.items() if bound == np.inf]
        leader = self._leader()
        return unknown or ([] if leader is None else [leader])

    def report(self, task: Task, gain: float, enough: bool) -> None:
        """Lower the bound of the task, or drop it."""
        if enough:
            self._bounds[task] = gain
        else:
            del self._bounds[task]

    def choose(self, fresh: Collection[Task]) -> Task | None:
        """Return the leading task if its gain is fresh: no other can beat it."""
        leader = self._leader()
        return leader if leader in fresh else None

    def _leader(self) -> Task | None:
        best = max(self._bounds.values(), default=0.0)
        least = best - TIE * max(0.0, min(best, 1.0 - best)) - TIE_ROUNDING
        return next((task for task, bound in self._bounds.items() if bound >= least), None)


class Splits:
    """Balanced bipartitions of the classes that part the pairs not yet parted.

    Classes that no kept task has parted form a cell.  Each cell is halved along the direction in
    which the class means of all cells vary most, so about log2(n_classes) tasks part all pairs;
    then a new cycle begins in what is left.  A cycle without any gain is the end.
    """

    def __init__(self, n_classes: int) -> None:
        self._n_classes = n_classes
        self._begin_cycle()

    def _begin_cycle(self) -> None:
        self._cells: list[list[int]] = [list(range(self._n_classes))]
        self._gained = False

    def propose(self, deflated_means: Callable[[], Array]) -> list[Task]:
        """Return the task with the classes on the upper side of the halved cells."""
        if all(len(cell) == 1 for cell in self._cells):
            if not self._gained:
                return []
            self._begin_cycle()
        means = deflated_means()
        spread = np.vstack([means[cell] - means[cell].mean(axis=0) for cell in self._cells])
        direction = np.linalg.svd(spread, full_matrices=False)[2][0]
        heights = (means - means.mean(axis=0)) @ direction
        heights *= np.sign(heights[np.abs(heights).argmax()]) or 1.0  # the SVD leaves it open
        self._halves = [_halve(cell, heights) for cell in self._cells]
        upper = [code for _, high in self._halves for code in high]
        return [tuple(sorted(_canonical(upper, self._n_classes)))]

    def report(self, task: Task, gain: float, enough: bool) -> None:
        """Refine the cells; a split without gain counts as done in this cycle."""
        self._cells = [half for halves in self._halves for half in halves if half]
        self._gained |= enough

    def choose(self, fresh: Collection[Task]) -> Task | None:
        """Return the only task that was solved."""
        return next(iter(fresh), None)


def _halve(cell: list[int], heights: Array) -> tuple[list[int], list[int]]:
    """Return the lower and the upper half; a class in the middle joins the nearer side."""
    if len(cell) == 1:
        return ([], cell) if heights[cell[0]] > 0 else (cell, [])
    ordered = sorted(cell, key=lambda code: (heights[code], code))
    middle = len(cell) // 2
    if len(cell) % 2:
        below = heights[ordered[middle]] - heights[ordered[middle - 1]]
        above = heights[ordered[middle + 1]] - heights[ordered[middle]]
        middle += int(below < above)
    return ordered[:middle], ordered[middle:]


def _canonical(upper: list[int], n_classes: int) -> list[int]:
    """Return the side without the first class, so that the sign of a split is not chance."""
    if 0 in upper:
        return [code for code in range(n_classes) if code not in upper]
    return upper


SCHEDULES: dict[str, Callable[[int], Schedule]] = {
    "one_vs_rest": RoundRobin,
    "greedy": Greedy,
    "splits": Splits,
}
