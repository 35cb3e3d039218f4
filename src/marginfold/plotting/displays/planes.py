"""PlanesDisplay: the planes and the decision regions of a classifier on two columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from marginfold.errors import InvalidInputError
from marginfold.estimators.held_out import codes_of
from marginfold.estimators.nearest_plane import NearestPlane
from marginfold.linalg.tall import Array, dense
from marginfold.plotting.displays.rows import (
    Rows,
    marker_of,
    passed,
    side_masks,
    steps_to,
    two_sides,
)
from marginfold.runtime.extras import require
from marginfold.validation.parameters import shown
from marginfold.validation.types import (
    HeldOut,
    Images,
    Labels,
    Mask,
    Numbers,
    Predictor,
    SupportsArray,
)
from marginfold.validation.types import Rows as RowsLike

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SIZE = 200
"""Pixels of the regions along each axis."""

MARGIN = 0.08
"""Share of the range of the rows that the picture is wider on each side."""

AT_MEANS, AT_GIVEN = "other columns at their means", "other columns held where they were given"
"""What is said of a slice."""

BLOCK_ENTRIES = 1 << 22
"""Entries of the rows that are predicted at a time."""


class PlanesDisplay:
    """Rows over the class that a classifier predicts, on two columns, and the planes of classes.

    `GEPSVC`, `MRGEPSVC` and `TwinSVC` have planes: each is drawn in the colour of its class, with
    a kernel as a curve.  Of other classifiers, such as `GESVC` and scikit-learn's ``SVC``, there
    are the regions only.

    Parameters
    ----------
    coordinates : array of shape (n_rows, 2)
    labels : array of shape (n_rows,)
    regions : array of shape (n_heights, n_widths)
        The number of the predicted class of each pixel, the lowest row first.
    extent : sequence (left, right, bottom, top)
        What the pixels cover.
    classes : array of shape (n_classes,)
    heights : array of shape (n_planes, n_heights, n_widths), default=None
        The signed distance of each pixel from each plane.
    owners : array of shape (n_planes, 2), default=None
        The numbers of the class and of the opponent of each plane; -1 for all others.
    held_out : array of bool of shape (n_rows,), default=None
        Rows that the fit has not seen; None is no row.
    unlabeled : object, default=None
        The label that marks rows without one; they are grey.
    names : pair of str, default=("x0", "x1")
        Of the columns.
    note : str, default=""
        A sentence above the picture.

    Attributes
    ----------
    ax_, figure_ : matplotlib axes and figure
        Once drawn.

    Examples
    --------
    >>> import numpy as np
    >>> from marginfold import GEPSVC, PlanesDisplay
    >>> t = np.linspace(-1, 1, 50)
    >>> X = np.vstack([np.column_stack([t, t]), np.column_stack([t, -t])])
    >>> y = np.repeat(["up", "down"], 50)
    >>> model = GEPSVC().fit(X, y)
    >>> display = PlanesDisplay.from_estimator(model, X, y)
    >>> display.regions.shape, len(display.heights)
    ((200, 200), 2)
    """

    def __init__(
        self,
        coordinates: Images,
        labels: Labels,
        regions: Images,
        extent: Sequence[float],
        classes: Labels,
        *,
        heights: SupportsArray | None = None,
        owners: Labels | None = None,
        held_out: Mask | None = None,
        unlabeled: object = None,
        names: Sequence[str] = ("x0", "x1"),
        note: str = "",
    ) -> None:
        self.coordinates = coordinates
        self.labels = labels
        self.regions: Any = regions
        self.extent = extent
        self.classes: Any = classes
        self.heights: Any = heights
        self.owners: Any = owners
        self.held_out = held_out
        self.unlabeled = unlabeled
        self.names = names
        self.note = note

    @classmethod
    def from_estimator(
        cls,
        estimator: Predictor,
        X: RowsLike,
        y: Labels,
        *,
        held_out: HeldOut | None = None,
        columns: Sequence[int | str] = (0, 1),
        at: Numbers | None = None,
        size: int = SIZE,
        planes: bool = True,
        seen: bool = True,
        ax: Axes | None = None,
    ) -> Self:
        """Draw the regions, the planes and the rows of a fitted classifier.

        Parameters
        ----------
        estimator : fitted classifier
            Or a pipeline or search that ends with one.
        X, y : rows and labels
            Those that the fit has seen.
        held_out : pair (X, y), default=None
            Rows that it has not seen, and their labels.
        columns : pair of int or str, default=(0, 1)
            Numbers of columns, or names of those of a data frame.
        at : array of shape (n_features,), default=None
            Where the other columns are held; None is the mean of X.  With more than two columns
            this is a slice: rows are drawn over it that may lie far away from it.
        size : int, default=200
            Pixels along each axis.
        planes, seen, ax
            As in `plot`.

        Returns
        -------
        PlanesDisplay
        """
        check_is_fitted(estimator)
        classes: Any = getattr(estimator, "classes_", None)
        classifies = hasattr(estimator, "predict") and classes is not None
        if not classifies or get_tags(estimator).input_tags.pairwise:
            raise InvalidInputError(
                f"got {shown(estimator)}; regions need a fitted classifier of rows with columns."
            )
        sides = two_sides(X, y, held_out)
        pair, names = _columns(X, columns)
        parts = [_part(rows, pair) for rows, _ in sides]
        labels, new = side_masks(sides, [len(part) for part in parts])
        points = np.concatenate(parts)
        extent = [end for column in points.T for end in _limits(column)]
        grid = Slice(X, pair, _centre(X, at), extent, int(size))
        display = cls(
            points,
            labels,
            grid.regions(estimator),
            extent,
            classes,
            held_out=new,
            unlabeled=marker_of(estimator),
            names=names,
            note="" if len(grid.centre) == 2 else AT_MEANS if at is None else AT_GIVEN,
        )
        steps = steps_to(estimator, "planes_")
        if steps:
            display.heights = grid.heights(steps[:-1], steps[-1])
            display.owners = _owners(steps[-1])
        return display.plot(ax, planes=planes, seen=seen)

    def plot(self, ax: Axes | None = None, *, planes: bool = True, seen: bool = True) -> Self:
        """Draw the picture on axes of matplotlib, and return self.

        Parameters
        ----------
        ax : matplotlib axes, default=None
        planes : bool, default=True
            Whether planes are drawn, if there are any.
        seen : bool, default=True
            Whether rows that the fit has seen are drawn.
        """
        require("matplotlib", extra="plot")
        from marginfold.plotting.displays import canvas
        from marginfold.plotting.drawing import style

        points = np.asarray(self.coordinates, dtype=np.float64)
        rows = Rows.read(points, self.labels, self.held_out, self.unlabeled, self.classes)
        drawn = rows if seen else rows.without_seen()
        with canvas.canvas(ax) as axes:
            canvas.draw_regions(axes, self.regions, self.extent, len(self.classes))
            canvas.draw_rows(axes, drawn)
            others = canvas.side_keys(drawn)
            if planes and self.heights is not None:
                places = middles(self.extent, np.shape(self.regions))
                for (owner, opponent), heights in zip(self.owners, self.heights, strict=True):
                    look = replace(style(owner), dash=style(opponent + 1).dash)
                    canvas.draw_zero(axes, places, heights, look)
                others.append(("plane", canvas.line(canvas.ANY)))
            axes.set(xlim=self.extent[:2], ylim=self.extent[2:])
            canvas.label_axes(axes, *self.names)
            canvas.set_title(axes, [self.note])
            canvas.add_legend(axes, canvas.class_keys(drawn), others, own=ax is None)
        self.ax_, self.figure_ = axes, axes.figure
        return self


@dataclass(frozen=True, eq=False)
class Slice:
    """The middles of the pixels of two columns, as rows of all columns.

    Attributes
    ----------
    X : rows
        Whose type, and names of columns, those of the slice have.
    pair : sequence of int
        The two columns.
    centre : array of shape (n_features,)
        Where the others are held.
    extent : sequence (left, right, bottom, top)
    size : int
        Pixels along each axis.
    """

    X: Any
    pair: Sequence[int]
    centre: Array
    extent: Sequence[float]
    size: int

    def regions(self, estimator: Any) -> Array:
        """Return the number of the predicted class of each pixel."""
        predicted = [np.asarray(estimator.predict(rows)) for rows in self._blocks()]
        codes = codes_of(np.concatenate(predicted), np.asarray(estimator.classes_))
        return codes.reshape(self.size, self.size)

    def heights(self, steps: Sequence[Any], fitted: NearestPlane) -> Array:
        """Return the signed distance of each pixel from each plane, in feature coordinates."""
        parts = []
        for rows in self._blocks():
            inner = np.asarray(dense(passed(steps, rows)), dtype=np.float64)
            parts.append(fitted.feature_map_.images(inner, fitted.normals_.T) + fitted.offsets_)
        return np.concatenate(parts).T.reshape(-1, self.size, self.size)

    def _blocks(self) -> Iterator[Any]:
        grid = np.meshgrid(*middles(self.extent, (self.size, self.size)))
        points = np.column_stack([each.ravel() for each in grid])
        step = max(1, BLOCK_ENTRIES // len(self.centre))
        for start in range(0, len(points), step):
            part = points[start : start + step]
            rows = np.tile(self.centre, (len(part), 1))
            rows[:, self.pair] = part
            yield _like(self.X, rows)


def middles(extent: Sequence[float], shape: tuple[int, int]) -> tuple[Array, Array]:
    """Return the middles of pixels along both axes, of so many rows and columns."""
    n_heights, n_widths = shape
    left, right, bottom, top = extent
    return (
        left + (right - left) * (np.arange(n_widths) + 0.5) / n_widths,
        bottom + (top - bottom) * (np.arange(n_heights) + 0.5) / n_heights,
    )


def _columns(X: Any, columns: Sequence[Any]) -> tuple[list[int], list[str]]:
    """Return the numbers and the names of the two columns."""
    n_columns = X.shape[1] if hasattr(X, "shape") else np.shape(X)[1]
    names = [str(name) for name in getattr(X, "columns", [f"x{j}" for j in range(n_columns)])]
    numbers: list[Any] = [
        names.index(c) if isinstance(c, str) and c in names else c for c in columns
    ]
    whole = all(isinstance(c, (int, np.integer)) and 0 <= c < n_columns for c in numbers)
    if not whole or len(numbers) != 2 or numbers[0] == numbers[1]:
        raise InvalidInputError(
            f"columns must be two different ones, by number from 0 to {n_columns - 1} or by name; "
            f"got {shown(columns)}."
        )
    return [int(c) for c in numbers], [names[c] for c in numbers]


def _part(X: Any, pair: Sequence[int]) -> Array:
    """Return two columns of rows."""
    if sp.issparse(X):
        return np.asarray(sp.csc_array(X)[:, list(pair)].toarray(), dtype=np.float64)
    return _numbers(X)[:, list(pair)]


def _centre(X: Any, at: Any) -> Array:
    """Return where the columns that are not drawn are held: by default at their means."""
    if at is None:
        means = X.mean(axis=0) if sp.issparse(X) else np.nanmean(_numbers(X), axis=0)
        return np.asarray(means).ravel()
    centre = np.asarray(at, dtype=np.float64)
    n_columns = X.shape[1] if hasattr(X, "shape") else np.shape(X)[1]
    if centre.shape != (n_columns,):
        raise InvalidInputError(
            f"at must have one number for each of {n_columns} columns; got shape {centre.shape}."
        )
    return centre


def _numbers(X: Any) -> Array:
    try:
        return np.asarray(X, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(
            f"a picture of two columns needs numbers in all columns ({error}); draw the step "
            "after the one that encodes them."
        ) from error


def _limits(values: Array) -> tuple[float, float]:
    """Return the range of values, wider by `MARGIN` on both sides; missing ones do not count."""
    low, high = float(np.nanmin(values)), float(np.nanmax(values))
    margin = MARGIN * (high - low) or 1.0
    return low - margin, high + margin


def _like(X: Any, rows: Array) -> Any:
    """Return rows as a frame of the type of X, if that is one."""
    if hasattr(X, "iloc"):
        return type(X)(rows, columns=X.columns)
    if hasattr(X, "schema") and hasattr(X, "columns"):
        return type(X)(rows, schema=list(X.columns))
    return rows


def _owners(fitted: NearestPlane) -> Array:
    """Return the numbers of the class and the opponent of each plane, -1 for all others."""
    labels = fitted.classes_.tolist()
    return np.array(
        [
            (labels.index(p.label), -1 if p.opponent is None else labels.index(p.opponent))
            for p in fitted.planes_
        ]
    )
