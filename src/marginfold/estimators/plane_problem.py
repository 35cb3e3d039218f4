"""The problem of one plane: its own class, what it is to be far from, and their moments.

With rows ``h = (z, 1)`` and coordinates in which the Tikhonov term is the identity these are the
matrices P, Q and M of the paper.  `plane_rows` has the coordinates and computes the moments.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

import numpy as np

from marginfold.estimators.multiclass import class_pairs
from marginfold.geometry.metric import NO_SCATTER
from marginfold.linalg.tall import Array

if TYPE_CHECKING:
    from marginfold.estimators.plane_rows import PlaneRows

AUTOMATIC_RIDGE = 5e-4
"""``ridge="auto"`` as a share of the trace of P, which does not depend on the number of coordinates
as the mean eigenvalue does.  Of 1e-5 to 3e-3 a choice for the linear and the rbf kernel at once, on
vowel, glass, satellite, wine, german and image: 1e-4 loses 3 points on german with the rbf kernel,
3e-3 loses 5 on image with it and 1 on vowel without (`benchmarks/twin_planes.py`)."""


@dataclass(frozen=True)
class PlaneTask:
    """The plane of the class ``own`` against one class, or against all others (None)."""

    own: int
    rest: int | None = None

    def is_against(self, codes: Array) -> Array:
        """Return which of some classes the plane is to be far from."""
        return np.asarray(codes != self.own if self.rest is None else codes == self.rest)


def plane_tasks(n_classes: int, multiclass: str) -> list[PlaneTask]:
    """Return a task for each class, or two for each pair: (0, 1), (1, 0), (0, 2), (2, 0), ..."""
    if n_classes == 2 or multiclass == "one_vs_rest":
        return [PlaneTask(code) for code in range(n_classes)]
    pairs = class_pairs(n_classes)
    return [PlaneTask(*order) for pair in pairs for order in (pair, pair[::-1])]


class PlaneSpace(Protocol):
    """Coordinates in which the problem of a plane is solved."""

    @property
    def offset(self) -> Array:
        """The vector o with ``h'o = 1`` for every row."""

    def own(self, code: int) -> Array:
        """Return the moments of the rows of a class."""

    def rest(self, task: PlaneTask) -> Array:
        """Return the moments of the rows that a plane is to be far from."""

    def graph_moments(self, code: int) -> Array | None:
        """Return the scatter of the graph on the rows of a class, None without a graph."""

    def rest_rows(self, task: PlaneTask) -> tuple[Array, Array]:
        """Return the rows that a plane is to be far from, and their weights."""

    def lift(self, v: Array) -> Array:
        """Return a plane in the coordinates of `PlaneRows`."""


@dataclass(frozen=True, eq=False)
class PlaneProblem:
    """One plane to be found: P, Q and M of 003 eqs. (4) and (24), in the coordinates of a space."""

    rows: PlaneRows
    space: PlaneSpace
    task: PlaneTask

    @cached_property
    def own(self) -> Array:
        """P, the moments of the rows of the class."""
        return self.space.own(self.task.own)

    @cached_property
    def rest(self) -> Array:
        """Q, the moments of the rows that the plane is to be far from."""
        return self.space.rest(self.task)

    @property
    def graph(self) -> Array | None:
        """M, the scatter of the graph on the rows of the class; None without a graph."""
        return self.space.graph_moments(self.task.own)

    @property
    def rest_sum(self) -> Array:
        """The weighted sum of the rows that the plane is to be far from."""
        return np.asarray(self.rest @ self.space.offset)

    def near(self, ridge: float | str, normalize: bool) -> Array:
        """Return P + dT T; the ridge is in units of the mean eigenvalue of P if normalised."""
        trace = float(np.trace(self.own))
        if isinstance(ridge, str):
            weight = AUTOMATIC_RIDGE * trace
        else:
            weight = float(ridge) * (trace / self.rows.rank if normalize else 1.0)
        return np.asarray(self.own + weight * np.eye(len(self.own)))

    def graph_term(self, target: Array, weight: float, normalize: bool) -> Array | float:
        """Return dM M, in units of the matrix that it is added to (without the offset)."""
        M, o = self.graph, self.space.offset
        if M is None or not normalize:
            return 0.0 if M is None else weight * M
        size, features = float(np.trace(M)), float(np.trace(target) - o @ target @ o)
        return weight * features / size * M if size > NO_SCATTER * features else 0.0
