"""One-vs-rest and other two-sided tasks of several classes, and the order of their solution.

A task is the tuple of the class codes on its positive side.  A schedule proposes the next task of
one problem and is told the gain that it brought.  Deflation can only lower the gain of a task: one
without gain need not be tried again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from scipy.spatial.distance import cdist, pdist, squareform

from marginfold.errors import InvalidParameterError
from marginfold.geometry.moments import class_means
from marginfold.linalg.tall import Array, Block, LocalBlocks, column_signs
from marginfold.validation.parameters import Number

Task = tuple[int, ...]

TIE, TIE_ROUNDING = 1e-9, 1e-14
"""Gains that differ by less, relative to the gain or to what it lacks to 1, are equal."""

LEAST_OVERLAP = 1e-20
"""Overlap of two classes below which they are parted for good; its square is no rounding yet."""

COINCIDENCE = 1e-6
"""Share of the largest distance of two class means at the start below which means coincide: what
a direction between them gains is of the order of the square."""


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
            masses = self.masses * costs
            positive = self.class_signs(task) > 0
            total, above = masses.sum(), masses[positive].sum()
            costs = costs * np.where(positive, total / (2 * above), total / (2 * (total - above)))
        return np.asarray(C * costs)

    @cached_property
    def masses(self) -> Array:
        """The total weight of each class."""
        return np.bincount(self.codes, self.weights, self.n_classes)

    def lean(self, task: Task) -> float:
        """Return by how much the sides differ in total cost, as a share: 1 for all on the positive.

        A constant costs least where it agrees with the dearer side.
        """
        masses = self.masses * self.class_costs(task, 1.0)
        return float(self.class_signs(task) @ masses / masses.sum())

    def costs(self, task: Task, C: float) -> Array:
        """Return the cost of each row's hinge loss."""
        return np.asarray(self.weights * self.class_costs(task, C)[self.codes])

    def pair(self, first: int, second: int) -> tuple[Array, LabelledRows]:
        """Return the rows of two classes, and these alone: the task ``(1,)`` parts them."""
        rows = self.rows_of(first, second)
        codes = (self.codes[rows] == second).astype(np.intp)
        factors = self.factors[[first, second]]
        return rows, LabelledRows(codes, self.weights[rows], 2, self.balanced, factors)

    def rows_of(self, first: int, second: int) -> Array:
        """Return the rows of two classes, in their order."""
        return np.sort(np.concatenate([self._class_rows[first], self._class_rows[second]]))

    def sorted(self) -> LabelledRows:
        """Return the rows class by class."""
        order = np.argsort(self.codes, kind="stable")
        return replace(self, codes=self.codes[order], weights=self.weights[order])

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
            f"class_weight must have finite weights > 0; got {dict(class_weight)!r}."
        )
    return False, np.array(factors, dtype=np.float64)


def one_vs_rest_tasks(n_classes: int) -> list[Task]:
    """Return one task per class, or the single one of a two-class problem."""
    return [(1,)] if n_classes == 2 else [(code,) for code in range(n_classes)]


def task_name(task: Task, classes: Array) -> Any:
    """Return the class of a task, or the tuple of classes on its positive side."""
    labels = classes.tolist()
    return labels[task[0]] if len(task) == 1 else tuple(labels[code] for code in task)


@dataclass(frozen=True)
class ClassMeans:
    """Where the class means are, in units of the margin.

    Attributes
    ----------
    left : array of shape (n_classes, r)
        In what no component has taken yet, whitened.
    found : array of shape (n_classes, k)
        Along the components found so far: differences are those of the decision values.
    """

    left: Array
    found: Array


class Schedule(Protocol):
    """The order of tasks for one problem."""

    def propose(self, classes: Callable[[], ClassMeans]) -> list[Task]:
        """Return the tasks to solve next in the current subspace; none when nothing is left."""

    def report(self, task: Task, gain: float, enough: bool) -> None:
        """Take note of the gain of a task that was solved."""

    def choose(self, fresh: Collection[Task]) -> Task | None:
        """Return which of the tasks solved in the current subspace gives the next direction."""


class RoundRobin:
    """The papers' order: class after class, dropping those that are exhausted."""

    def __init__(self, n_classes: int) -> None:
        self._queue = one_vs_rest_tasks(n_classes)

    def propose(self, classes: Callable[[], ClassMeans]) -> list[Task]:
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


class BySize(RoundRobin):
    """The same with the heaviest class first (000 section III: "the number of samples").

    Of equal masses the earlier class.
    """

    def __init__(self, masses: Array) -> None:
        super().__init__(len(masses))
        self._queue.sort(key=lambda task: -float(masses[task[0]]))


class AtRandom(RoundRobin):
    """Each class once, then at random one that is not exhausted (000 section III: "random chosen").

    The same seed draws the same tasks, whatever number of components is asked for.
    """

    def __init__(self, n_classes: int, random_state: int) -> None:
        super().__init__(n_classes)
        self._untried = len(self._queue)
        self._rng = np.random.default_rng(random_state)

    def report(self, task: Task, gain: float, enough: bool) -> None:
        """Drop a task without gain and draw another."""
        super().report(task, gain, enough)
        self._untried -= 1
        if not enough:
            self._draw()

    def choose(self, fresh: Collection[Task]) -> Task | None:
        """Return the head of the queue and draw the next."""
        task = super().choose(fresh)
        if task is not None:
            self._draw()
        return task

    def _draw(self) -> None:
        if self._untried <= 0 and self._queue:
            drawn = int(self._rng.integers(len(self._queue)))
            self._queue.insert(0, self._queue.pop(drawn))


class Greedy:
    """The class with the largest gain next; of equal gains the earlier class.

    A gain never rises under deflation, so the last known gain is an upper bound: a task is solved
    again only while its bound is the largest, and kept when its fresh gain still is.
    """

    def __init__(self, n_classes: int) -> None:
        self._bounds = dict.fromkeys(one_vs_rest_tasks(n_classes), np.inf)

    def propose(self, classes: Callable[[], ClassMeans]) -> list[Task]:
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
    """Bipartitions of the classes that part the pairs which the components so far confuse.

    Two classes overlap by ``o_ij = exp(-|f_i - f_j|^2 / 2)``, f their mean decision values.  The
    next task has the longest ``sum o_ij (m_i - m_j) / |m_i - m_j|`` over the pairs that it parts, m
    the class means in what is left: pairs that are still confused and can be parted by one
    direction.  With signs s of the classes its square is ``s'Hs / 4``, ``H = L M M' L`` and L the
    Laplacian of the weights ``o_ij / |m_i - m_j|``.  The signs are those of the leading eigenvector
    of H, then classes change sides while that makes it longer.  A task without gain gives way to
    the next eigenvector.
    """

    def __init__(self, n_classes: int) -> None:
        self._n_classes = n_classes
        self._exhausted: set[Task] = set()
        self._extent = 0.0

    def propose(self, classes: Callable[[], ClassMeans]) -> list[Task]:
        """Return the bipartition of the first eigenvector whose task is not exhausted."""
        means = classes()
        H = self._confusion(means)
        vectors = np.linalg.eigh(H)[1]
        for vector in (vectors * column_signs(vectors)).T[::-1]:
            signs = _improved(np.where(vector > 0, 1.0, -1.0), H)
            signs = _settled(signs, H, means.left)
            task = tuple(np.flatnonzero(signs != signs[0]).tolist())  # without the first class
            if task and task not in self._exhausted:
                return [task]
        return []

    def _confusion(self, classes: ClassMeans) -> Array:
        """Return H; it is zero when all class means coincide in what is left."""
        overlaps = np.exp(-0.5 * pdist(classes.found, "sqeuclidean")).clip(LEAST_OVERLAP)
        distances = pdist(classes.left)
        self._extent = max(self._extent, float(distances.max()))
        apart = distances > COINCIDENCE * self._extent
        weights = np.divide(overlaps, distances, out=np.zeros_like(overlaps), where=apart)
        L = -squareform(weights)
        np.fill_diagonal(L, -L.sum(axis=0))
        pulls = L @ classes.left
        total = squareform(overlaps * apart).sum(axis=0)  # the lengths of what each pull sums
        pulls[np.linalg.norm(pulls, axis=1) <= TIE * total] = 0.0
        return np.asarray(pulls @ pulls.T)

    def report(self, task: Task, gain: float, enough: bool) -> None:
        """Drop a task without gain."""
        if not enough:
            self._exhausted.add(task)

    def choose(self, fresh: Collection[Task]) -> Task | None:
        """Return the only task that was solved."""
        return next(iter(fresh), None)


def _improved(signs: Array, H: Array) -> Array:
    """Return signs of which no single one can change to make s'Hs larger.

    Each class is judged by its own row of H, which for a class that is parted from all others is
    tiny: such a class still goes to the side where it lies.
    """
    coupling = H - np.diag(np.diag(H))
    resolution = TIE * np.abs(coupling).sum(axis=1)
    while True:
        losses = -signs * (coupling @ signs)
        wrong = losses > resolution
        if not wrong.any():
            return signs
        worst = np.where(wrong, losses, -np.inf).argmax()
        signs = np.where(np.arange(len(signs)) == worst, -signs, signs)


def _settled(signs: Array, H: Array, means: Array) -> Array:
    """Return signs in which a class that makes no difference is where its nearest neighbor is.

    The pulls on the middle one of three means in a line cancel: rounding may not choose its side.
    """
    coupling = H - np.diag(np.diag(H))
    free = np.abs(coupling @ signs) <= TIE * np.abs(coupling).sum(axis=1)
    if not free.any() or free.all():
        return signs
    bound = np.flatnonzero(~free)
    nearest = bound[cdist(means[free], means[bound]).argmin(axis=1)]
    settled = signs.copy()
    settled[free] = signs[nearest]
    return settled


SCHEDULES: dict[str, Callable[[Array, int], Schedule]] = {
    "one_vs_rest": lambda masses, _: RoundRobin(len(masses)),
    "by_size": lambda masses, _: BySize(masses),
    "random": lambda masses, random_state: AtRandom(len(masses), random_state),
    "greedy": lambda masses, _: Greedy(len(masses)),
    "splits": lambda masses, _: Splits(len(masses)),
}
"""By their names, as functions of the total weights of the classes and of a seed."""

AUTO = "auto"
"""Bipartitions for fewer components than one-vs-rest tasks, else the papers' round robin."""


def resolved_schedule(name: str, n_classes: int, n_components: int) -> str:
    """Return the schedule that a name stands for when so many components are asked for."""
    if name != AUTO:
        return name
    few = n_components < len(one_vs_rest_tasks(n_classes))
    return "splits" if few else "one_vs_rest"
