"""The common part of the nonparallel-plane classifiers: planes of classes, the nearest wins."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from marginfold.errors import ExhaustedWarning, MarginfoldWarning, warn
from marginfold.estimators.inputs import Coordinates, WithFeatureMap, coordinates
from marginfold.estimators.multiclass import OneVsRestClassifier, one_vs_one_values
from marginfold.estimators.plane_problem import PlaneTask, plane_tasks
from marginfold.estimators.plane_rows import Heights, PlaneRows
from marginfold.feature_maps import is_linear
from marginfold.geometry.one_vs_rest import class_factors
from marginfold.linalg.tall import Array
from marginfold.planner.check import check_memory
from marginfold.runtime.threads import threads_for
from marginfold.validation.parameters import (
    POSITIVE_FACTOR,
    Choice,
    Constraint,
    Flag,
    atomic_fit,
    check_parameters,
)
from marginfold.validation.rows import (
    UNLABELLED,
    read_labelled,
    read_new_rows,
    refuse_lazy,
    row_by_row,
)
from marginfold.validation.types import Labels, Rows, Weights

DEGENERATE = 1e-6
"""A plane whose function varies over the rows by less than this share of its value is degenerate:
it is infinitely far from all rows."""

EVEN = 1e-9
"""The rest lies on both sides of a plane if its mean height is below this share of the heights."""

SHOWN_TERMS = 10
"""A printed plane has its largest coefficients, up to this many."""

NO_OFFSET = 1e-12
"""An offset below this, beside a unit normal, is printed as 0."""

BLOCK_BYTES = 1 << 26
"""Size of the distances of the rows that are decided upon at a time."""

NAMED = 5
"""Planes that are missing are named in a warning up to this many."""

LABELLED_ONLY = "fit the labelled rows alone with unlabeled=None"
"""What to do with a dask collection some of whose rows have no label."""

SMALL_TERM = 5e-3
"""A coefficient below this share of the largest is left out when a plane is printed."""


@dataclass(frozen=True, eq=False)
class Plane:
    """One plane, ``x'normal + offset = 0``, with a unit normal; str(plane) is its equation.

    It belongs to the class ``label`` and is far from the class ``opponent``, or from all others if
    that is None.  The normal of a class that no plane describes is 0.
    """

    label: Any
    normal: Array
    offset: float
    names: tuple[str, ...]
    opponent: Any = None

    def __str__(self) -> str:
        largest = np.abs(self.normal).max(initial=0.0)
        name = _plane_name(self.label, self.opponent)
        if largest == 0:
            return f"{name}: nowhere"
        order = np.argsort(-np.abs(self.normal), kind="stable")[:SHOWN_TERMS]
        terms = [
            f"{self.normal[j]:+.3g} {self.names[j]}"
            for j in np.sort(order)
            if abs(self.normal[j]) >= SMALL_TERM * largest
        ]
        rest = " ..." if len(self.normal) > SHOWN_TERMS else ""
        offset = 0.0 if abs(self.offset) < NO_OFFSET else self.offset
        return f"{name}: {' '.join(terms)}{rest} {offset:+.3g} = 0"


class NearestPlane(WithFeatureMap, OneVsRestClassifier):
    """Planes close to a class and far from others; a row belongs to the nearest one.

    One against one, each pair of classes has two planes, and the class that wins most pairs is
    predicted; one against the rest, each class has one.
    """

    CONSTRAINTS: ClassVar[dict[str, Constraint]] = {
        "ridge": POSITIVE_FACTOR,
        "tikhonov": Choice("rkhs", "dual"),
        "normalize": Flag(),
        "multiclass": Choice("one_vs_one", "one_vs_rest"),
    }

    tikhonov: str
    normalize: bool
    class_weight: Any
    multiclass: str
    unlabeled: Any = None

    @property
    def _class_graph(self) -> Any:
        """The graph on the rows of each class that the planes need, or None."""
        return None

    @abstractmethod
    def _planes(self, rows: PlaneRows) -> tuple[Array, Array]:
        """Return normals (rows) and offsets of the planes, and set what certifies them."""

    def _keep_lengths(self, lengths: Array, placed: Array) -> None:
        """Take note of the lengths of the normals, which are made 1, and of which there are."""

    def fit(self, X: Rows, y: Labels, sample_weight: Weights | None = None) -> Self:
        """Fit the planes.

        Parameters
        ----------
        X : array, sparse matrix, data frame, dask array or dask data frame
            Rows and features, (n_samples, n_features).  A dask collection is fitted on the current
            client of ``distributed``, without gathering it.
        y : array of shape (n_samples,)
            Class labels of any type; rows equal to ``unlabeled``, where there is this parameter,
            have none.
        sample_weight : array of shape (n_samples,), optional
            A weight of 2 counts like the row given twice, a weight of 0 like no row.

        Returns
        -------
        self
        """
        check_parameters(self, self.CONSTRAINTS)
        if self.unlabeled is not None:
            refuse_lazy(X, f"{type(self).__name__}(unlabeled={self.unlabeled!r})", LABELLED_ONLY)
        with atomic_fit(self):
            check_memory(self, X)
            graph = self._class_graph
            parts = () if graph is None else (graph,)
            read = read_labelled(self, X, y, sample_weight, self.unlabeled, parts)
            self.classes_ = read.classes
            c = coordinates(self.kernel, read.X, read.weights, read.codes)
            self.feature_map_ = c.feature_map
            rows = PlaneRows.of(
                c,
                self._class_factors(c),
                plane_tasks(len(self.classes_), self.multiclass),
                graph=graph,
                tikhonov=self.tikhonov,
                normalize=bool(self.normalize),
            )
            with threads_for(rows.n_unknowns, rows.n_unknowns):
                self._store(rows)
            if graph is not None and not rows.joins_rows:
                warn(
                    f"{type(self).__name__}: {graph!r} joins no different rows of a class, so that "
                    "it has no effect. Use a graph such as NeighborGraph(mode='mutual').",
                    MarginfoldWarning,
                )
        return self

    def _class_factors(self, c: Coordinates) -> Array:
        """Return what the weights of each class are multiplied by; "balanced" makes all equal."""
        balanced, factors = class_factors(self.class_weight, self.classes_)
        if not balanced:
            return factors
        counted = (c.weights > 0) & (np.asarray(c.codes) != UNLABELLED)
        totals = np.bincount(np.asarray(c.codes)[counted], c.weights[counted])
        return np.asarray(totals.sum() / (len(totals) * totals))

    def _store(self, rows: PlaneRows) -> None:
        """Set the planes as unit normals and offsets, with the rest on the negative side."""
        normals, offsets = self._planes(rows)
        heights = rows.heights(normals, offsets)
        placed = heights.high - heights.low > DEGENERATE * heights.largest
        normals = rows.basis.weights(normals.T).T
        norms = np.where(placed, np.sqrt(np.einsum("ij,ij->i", normals, normals)), 1.0)
        norms[placed] *= -_sides(heights, normals)[placed]
        normals /= norms[:, None]
        normals[~placed] = 0.0
        self._keep_lengths(np.abs(norms), placed)
        self.normals_, self.offsets_ = np.ascontiguousarray(normals), offsets / norms
        if not placed.all():
            distances = heights.largest / np.abs(norms)
            self.offsets_[~placed] = self._far_away(rows, distances, placed)
        if is_linear(self.kernel):
            self.coef_ = self.feature_map_.in_input_units(self.normals_.T).T.copy()
            self.intercept_ = self.offsets_ - self.coef_ @ self.feature_map_.mean_

    def _far_away(self, rows: PlaneRows, distances: Array, placed: Array) -> Any:
        """Warn of planes that are nowhere near the data; return their constant distance."""
        labels = self.classes_.tolist()
        pairs = rows.tasks[0].rest is not None
        advice = f"try {'a' if is_linear(self.kernel) else 'another'} kernel"
        if not pairs and len(labels) > 2:
            advice += ' or multiclass="one_vs_one"'
        advice = (
            f"A class between others has no plane that leaves them on one side: {advice}. "
            "Look for constant features, too."
        )
        if placed.any():
            missing = np.flatnonzero(~placed)
            names = ", ".join(self._name_of(rows.tasks[k]) for k in missing[:NAMED])
            more = f" and {len(missing) - NAMED} more" if len(missing) > NAMED else ""
            effect = "The other pairs decide" if pairs else "Such a class is hardly ever predicted"
            warn(
                f"{type(self).__name__}: no plane describes {names}{more}: it would be infinitely "
                f"far from all rows. {effect}. {advice}",
                ExhaustedWarning,
            )
            return float(distances[placed].max())
        largest = int(rows.sizes.argmax())
        warn(
            f"{type(self).__name__}: no class has a plane near the rows; the prediction is "
            f"{labels[largest]!r} for every row. {advice}",
            ExhaustedWarning,
        )
        return np.array([0.0 if task.own == largest else 1.0 for task in rows.tasks])

    def _name_of(self, task: PlaneTask) -> str:
        return _plane_name(*self._labels_of(task))

    def _labels_of(self, task: PlaneTask) -> tuple[Any, Any]:
        """Return the class of a plane and its opponent, None for all others."""
        labels = self.classes_.tolist()
        return labels[task.own], None if task.rest is None else labels[task.rest]

    @property
    def planes_(self) -> list[Plane]:
        """The planes, readable: in input features for the linear kernel.

        One for each class, or two for each pair of three and more classes, in the order of the
        pairs (0, 1), (0, 2), ..., (1, 2), ...: that of the first class, then that of the second.
        """
        check_is_fitted(self)
        linear = is_linear(self.kernel)
        normals = self.coef_ if linear else self.normals_
        offsets = self.intercept_ if linear else self.offsets_
        names = [f"z{j}" for j in range(normals.shape[1])]
        if linear:
            default = [f"x{j}" for j in range(normals.shape[1])]
            names = [str(name) for name in getattr(self, "feature_names_in_", default)]
        alone = len(normals) == len(self.classes_)  # whatever was set after the fit
        tasks = plane_tasks(len(self.classes_), "one_vs_rest" if alone else "one_vs_one")
        labels = [self._labels_of(task) for task in tasks]
        return [
            Plane(label, normal.copy(), float(offset), tuple(names), opponent)
            for (label, opponent), normal, offset in zip(labels, normals, offsets, strict=True)
        ]

    @row_by_row
    def distances(self, X: Rows) -> Array:
        """Return the distance of each row to each plane, shape (n_samples, n_planes).

        The columns are in the order of `planes_`.  ``|w'z + b| / |w|`` (003 eq. (29) and (39)
        divide by the squared norm, which makes the rule depend on the arbitrary length of an
        eigenvector).
        """
        return self._distances(read_new_rows(self, X))

    def _distances(self, X: Any) -> Array:
        if len(self.normals_) <= self.normals_.shape[1]:
            heights = self.feature_map_.images(X, self.normals_.T)
        else:  # more planes than coordinates
            heights = self.feature_map_.coordinates(X) @ self.normals_.T
        heights += self.offsets_
        return np.asarray(np.abs(heights, out=heights))

    def _heights(self, X: Any) -> Array:
        """Return how far valid rows are from each plane, in the measure that decides."""
        return self._distances(X)

    def _decision_values(self, X: Any) -> Array:
        """Return how much nearer the plane of a class is: the negative heights.

        Two classes: the height above the first plane minus that above the second.  One against one:
        the votes of all pairs, each by that difference; a pair that lacks a plane has no opinion.
        """
        n_classes, n_planes = len(self.classes_), len(self.normals_)
        if n_planes == n_classes:
            heights = self._heights(X)
            return heights[:, 0] - heights[:, 1] if n_classes == 2 else -heights
        missing = np.logical_not(np.any(self.normals_, axis=1))
        silent = np.zeros(n_planes // 2, dtype=bool)
        if not missing.all():
            silent = missing[0::2] | missing[1::2]
        values, size = np.empty((X.shape[0], n_classes)), max(1, BLOCK_BYTES // (8 * n_planes))
        for start in range(0, len(values), size):
            heights = self._heights(X[start : start + size])
            margins = np.where(silent, 0.0, heights[:, 0::2] - heights[:, 1::2])
            values[start : start + size] = one_vs_one_values(margins, n_classes)
        return values


def _plane_name(label: Any, opponent: Any) -> str:
    return f"{label!r}" if opponent is None else f"{label!r} against {opponent!r}"


def _sides(heights: Heights, normals: Array) -> Array:
    """Return the side of each plane on which the rest lies, by its largest entry if on both."""
    sides = np.sign(heights.sums)
    for k in np.flatnonzero(np.abs(heights.sums) <= EVEN * heights.sizes):
        sizes = np.abs(normals[k])
        first = int((sizes >= (1 - EVEN) * sizes.max(initial=0.0)).argmax()) if len(sizes) else 0
        sides[k] = -np.sign(normals[k, first]) if len(sizes) else 1.0
    return sides
