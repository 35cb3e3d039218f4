"""MarginMapDisplay: a map of many classes with the names of its anchors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

import numpy as np

from marginfold.errors import InvalidInputError
from marginfold.plotting.displays.rows import (
    Rows,
    images_of,
    marker_of,
    part_with,
    read_coordinates,
    side_masks,
    two_sides,
)
from marginfold.runtime.extras import require
from marginfold.validation.types import FittedMap, HeldOut, Images, Labels, Mask
from marginfold.validation.types import Rows as RowsLike

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ROTATED = 12
"""Classes from which on their names stand along the radius, so that they do not overlap."""


class MarginMapDisplay:
    """Rows among the anchors of their classes, as `MarginMap` draws them.

    A row near an anchor is one that the classifier is sure of.  Rows that the fit has seen are
    hollow and stand nearer to their anchors than others; held-out ones are filled.

    Parameters
    ----------
    coordinates : array of shape (n_rows, 2)
    labels : array of shape (n_rows,)
    anchors : array of shape (n_classes, 2)
    classes : array of shape (n_classes,)
        The class of each anchor.
    held_out : array of bool of shape (n_rows,), default=None
        Rows that the fit has not seen; None is no row.
    unlabeled : object, default=None
        The label that marks rows without one; they are grey.

    Attributes
    ----------
    ax_, figure_ : matplotlib axes and figure
        Once drawn.

    See Also
    --------
    EmbeddingDisplay : Two components of any embedding.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import scale
    >>> from marginfold import MarginMap, MarginMapDisplay
    >>> wine = load_wine()
    >>> X, y = scale(wine.data), wine.target_names[wine.target]
    >>> model = MarginMap().fit(X[::2], y[::2])
    >>> display = MarginMapDisplay.from_estimator(
    ...     model, X[::2], y[::2], held_out=(X[1::2], y[1::2])
    ... )
    >>> [text.get_text() for text in display.ax_.texts]
    ['class_0', 'class_1', 'class_2']
    """

    def __init__(
        self,
        coordinates: Images,
        labels: Labels,
        anchors: Images,
        classes: Labels,
        *,
        held_out: Mask | None = None,
        unlabeled: object = None,
    ) -> None:
        self.coordinates = coordinates
        self.labels = labels
        self.anchors = anchors
        self.classes = classes
        self.held_out = held_out
        self.unlabeled = unlabeled

    @classmethod
    def from_estimator(
        cls,
        estimator: FittedMap,
        X: RowsLike,
        y: Labels,
        *,
        held_out: HeldOut | None = None,
        seen: bool = True,
        ax: Axes | None = None,
    ) -> Self:
        """Draw rows as a fitted map places them.

        Parameters
        ----------
        estimator : fitted MarginMap
            Or a pipeline or search with one at its end.
        X, y : rows and labels
            Those that the fit has seen.
        held_out : pair (X, y), default=None
            Rows that it has not seen, and their labels.
        seen, ax
            As in `plot`.

        Returns
        -------
        MarginMapDisplay
        """
        _, fitted = part_with(estimator, "anchors_")
        sides = two_sides(X, y, held_out)
        images = [images_of(estimator, rows) for rows, _ in sides]
        labels, new = side_masks(sides, [len(part) for part in images])
        display = cls(
            np.concatenate(images),
            labels,
            fitted.anchors_,
            fitted.classes_,
            held_out=new,
            unlabeled=marker_of(estimator),
        )
        return display.plot(ax, seen=seen)

    def plot(self, ax: Axes | None = None, *, seen: bool = True) -> Self:
        """Draw the anchors, their names and the rows on axes of matplotlib, and return self.

        Parameters
        ----------
        ax : matplotlib axes, default=None
        seen : bool, default=True
            Whether rows that the fit has seen are drawn.
        """
        require("matplotlib", extra="plot")
        from marginfold.plotting.displays import canvas

        xy, anchors = read_coordinates(self.coordinates), np.asarray(self.anchors, dtype=float)
        names = [str(name) for name in np.asarray(self.classes).tolist()]
        if xy.shape[1] != 2 or anchors.shape != (len(names), 2):
            raise InvalidInputError(
                f"got coordinates of shape {xy.shape} and anchors of shape {anchors.shape} for "
                f"{len(names)} classes; both need 2 columns, and every class an anchor."
            )
        rows = Rows.read(xy, self.labels, self.held_out, self.unlabeled, self.classes)
        drawn = rows if seen else rows.without_seen()
        with canvas.canvas(ax) as axes:
            canvas.draw_anchors(axes, anchors, names, rotated=len(names) > ROTATED)
            canvas.draw_rows(axes, drawn)
            axes.set_aspect("equal")
            axes.set_axis_off()
            canvas.add_legend(axes, canvas.side_keys(drawn), own=ax is None)
        self.ax_, self.figure_ = axes, axes.figure
        return self
