"""The common part of the nonparallel-plane classifiers: one plane per class, the nearest wins."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from marginfold.errors import ExhaustedWarning, warn
from marginfold.estimators.inputs import Coordinates, coordinates
from marginfold.estimators.multiclass import OneVsRestClassifier
from marginfold.estimators.plane_problems import Heights, PlaneRows
from marginfold.feature_maps import is_linear
from marginfold.geometry.one_vs_rest import class_factors
from marginfold.linalg.tall import Array, one_blas_thread
from marginfold.planner.check import check_memory
from marginfold.validation.parameters import (
    Choice,
    Constraint,
    Flag,
    Number,
    atomic_fit,
    check_parameters,
)
from marginfold.validation.rows import read_labelled, read_new_rows, row_by_row

DEGENERATE = 1e-6
"""A plane whose function varies over the rows by less than this share of its value is degenerate:
it is infinitely far from all rows."""

EVEN = 1e-9
"""The rest lies on both sides of a plane if its mean height is below this share of the heights."""

SHOWN_TERMS = 10
"""A printed plane has its largest coefficients, up to this many."""

NO_OFFSET = 1e-12
"""An offset below this, beside a unit normal, is printed as 0."""

SMALL_TERM = 5e-3
"""A coefficient below this share of the largest is left out when a plane is printed."""


@dataclass(frozen=True, eq=False)
class Plane:
    """One plane, ``x'normal + offset = 0``, with a unit normal; str(plane) is its equation.

    The normal of a class that no plane describes is 0.
    """

    label: Any
    normal: Array
    offset: float
    names: tuple[str, ...]

    def __str__(self) -> str:
        largest = np.abs(self.normal).max(initial=0.0)
        if largest == 0:
            return f"{self.label!r}: nowhere"
        order = np.argsort(-np.abs(self.normal), kind="stable")[:SHOWN_TERMS]
        terms = [
            f"{self.normal[j]:+.3g} {self.names[j]}"
            for j in np.sort(order)
            if abs(self.normal[j]) >= SMALL_TERM * largest
        ]
        rest = " ..." if len(self.normal) > SHOWN_TERMS else ""
        offset = 0.0 if abs(self.offset) < NO_OFFSET else self.offset
        return f"{self.label!r}: {' '.join(terms)}{rest} {offset:+.3g} = 0"


class NearestPlane(OneVsRestClassifier):
    """A plane close to each class and far from the rest; a row belongs to the nearest one."""

    CONSTRAINTS: ClassVar[dict[str, Constraint]] = {
        "ridge": Number(0.0, inclusive=False),
        "tikhonov": Choice("rkhs", "dual"),
        "normalize": Flag(),
    }

    ridge: float
    tikhonov: str
    normalize: bool
    class_weight: Any

    @property
    def _rules(self) -> Sequence[Any]:
        """The graphs that the planes need."""
        return ()

    @abstractmethod
    def _planes(self, rows: PlaneRows) -> Array:
        """Return the planes (columns, offset last) and set what certifies them."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit one plane per class.

        Parameters
        ----------
        X : array, sparse matrix, data frame, dask array or dask data frame
            Rows and features, (n_samples, n_features).  A dask collection is fitted on the current
            client of ``distributed``, without gathering it.
        y : array of shape (n_samples,)
            Class labels of any type.
        sample_weight : array of shape (n_samples,), optional
            Weight 2 is the row twice, weight 0 the row absent.

        Returns
        -------
        self
        """
        check_parameters(self, self.CONSTRAINTS)
        with atomic_fit(self):
            check_memory(self, X)
            read = read_labelled(self, X, y, sample_weight, parts=self._rules)
            self.classes_ = read.classes
            c = coordinates(self.kernel, read.X, read.weights, read.codes)
            self.feature_map_ = c.feature_map
            with one_blas_thread(len(c.total) + 1):
                factors = self._class_factors(c)
                rows = PlaneRows.of(c, factors, self.tikhonov, normalize=bool(self.normalize))
                self._store(rows, self._planes(rows))
        return self

    def _class_factors(self, c: Coordinates) -> Array:
        """Return what the weights of each class are multiplied by; "balanced" makes all equal."""
        balanced, factors = class_factors(self.class_weight, self.classes_)
        if not balanced:
            return factors
        counted = c.weights > 0
        totals = np.bincount(np.asarray(c.codes)[counted], c.weights[counted])
        return np.asarray(totals.sum() / (len(totals) * totals))

    def _store(self, rows: PlaneRows, planes: Array) -> None:
        """Set the planes as unit normals and offsets, with the rest on the negative side."""
        normals = rows.basis.weights(planes[:-1])
        heights = rows.heights(planes)
        placed = heights.high - heights.low > DEGENERATE * heights.largest
        norms = np.where(placed, np.linalg.norm(normals, axis=0), 1.0)
        for code in np.flatnonzero(placed):
            norms[code] *= -_side(heights, normals[:, code], int(code))
        self.normals_ = np.where(placed, normals / norms, 0.0).T.copy()
        self.offsets_ = planes[-1] / norms
        if not placed.all():
            distances = heights.largest / np.abs(norms)
            self.offsets_[~placed] = self._far_away(rows, distances, placed)
        if is_linear(self.kernel):
            self.coef_ = self.feature_map_.in_input_units(self.normals_.T).T.copy()
            self.intercept_ = self.offsets_ - self.coef_ @ self.feature_map_.mean_

    def _far_away(self, rows: PlaneRows, distances: Array, placed: Array) -> Any:
        """Warn of classes whose plane is nowhere near the data; return their constant distance."""
        labels = self.classes_.tolist()
        names = ", ".join(repr(labels[code]) for code in np.flatnonzero(~placed))
        advice = (
            "A class between others has no plane that leaves them on one side: try a kernel or "
            "sklearn.multiclass.OneVsOneClassifier. Look for constant features, too."
        )
        if placed.any():
            warn(
                f"{type(self).__name__}: no plane describes {names}: it would be infinitely far "
                f"from all rows. Such a class is hardly ever predicted. {advice}",
                ExhaustedWarning,
            )
            return float(distances[placed].max())
        largest = int(rows.sizes.argmax())
        warn(
            f"{type(self).__name__}: no class has a plane near the rows; the prediction is "
            f"{labels[largest]!r} for every row. {advice}",
            ExhaustedWarning,
        )
        return np.where(np.arange(len(labels)) == largest, 0.0, 1.0)

    @property
    def planes_(self) -> list[Plane]:
        """The planes, readable: in input features for the linear kernel."""
        check_is_fitted(self)
        linear = is_linear(self.kernel)
        normals = self.coef_ if linear else self.normals_
        offsets = self.intercept_ if linear else self.offsets_
        names = [f"z{j}" for j in range(normals.shape[1])]
        if linear:
            default = [f"x{j}" for j in range(normals.shape[1])]
            names = [str(name) for name in getattr(self, "feature_names_in_", default)]
        return [
            Plane(label, normal.copy(), float(offset), tuple(names))
            for label, normal, offset in zip(self.classes_.tolist(), normals, offsets, strict=True)
        ]

    @row_by_row
    def distances(self, X: Any) -> Any:
        """Return the distance of each row to each plane, shape (n_samples, n_classes).

        ``|w'z + b| / |w|`` (003 eq. (29) and (39) divide by the squared norm, which makes the rule
        depend on the arbitrary length of an eigenvector).
        """
        return self._distances(read_new_rows(self, X))

    def _distances(self, X: Any) -> Array:
        return np.abs(self.feature_map_.images(X, self.normals_.T) + self.offsets_)

    def _decision_values(self, X: Any) -> Array:
        """Return how much nearer the plane of a class is: the negative distances.

        Two classes: the distance to the first plane minus that to the second.
        """
        distances = self._distances(X)
        if distances.shape[1] == 2:
            return np.asarray(distances[:, 0] - distances[:, 1])
        return -distances


def _side(heights: Heights, normal: Array, code: int) -> float:
    """Return the side of a plane on which the rest lies, by the largest entry if on both alike."""
    rest, size = heights.of_rest(code)
    if abs(rest) > EVEN * size:
        return float(np.sign(rest))
    sizes = np.abs(normal)
    first = int((sizes >= (1 - EVEN) * sizes.max()).argmax())  # equal entries: not by rounding
    return -float(np.sign(normal[first]))
