"""Maps of rows: EmbeddingDisplay of two components, MarginMapDisplay among anchors of classes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

import numpy as np
from sklearn.neighbors import NearestNeighbors

from marginfold.errors import InvalidInputError
from marginfold.estimators.projection import check_components
from marginfold.linalg.tall import Array
from marginfold.plotting.displays.rows import (
    Rows,
    images_of,
    marker_of,
    part_with,
    read_coordinates,
    side_masks,
    two_sides,
)
from marginfold.protocols.statistics import share_interval
from marginfold.runtime.extras import require
from marginfold.validation.parameters import shown
from marginfold.validation.rows import UNLABELLED
from marginfold.validation.types import FittedMap, HeldOut, Images, Labels, Mask
from marginfold.validation.types import Rows as RowsLike

if TYPE_CHECKING:
    from matplotlib.axes import Axes

JITTER = 0.3
"""Largest distance of a row from the line of its class where there is one component only."""

ROTATED = 12
"""Classes from which on their names stand along the radius, so that they do not overlap."""


@dataclass(frozen=True)
class NeighborError:
    """The share of rows whose nearest seen row has another label."""

    wrong: int
    n_rows: int

    @classmethod
    def of(cls, wrong: Array) -> Self:
        """Count the rows that are wrong."""
        return cls(int(np.count_nonzero(wrong)), len(wrong))

    @property
    def share(self) -> float:
        """Wrong rows among all."""
        return self.wrong / self.n_rows

    def __str__(self) -> str:
        low, high = share_interval(self.wrong, self.n_rows)
        return (
            f"{100 * self.share:.1f} % wrong ({100 * low:.1f} to {100 * high:.1f}) of {self.n_rows}"
        )


class EmbeddingDisplay:
    """Rows in two components of an embedding, coloured by their labels.

    Maps of methods that are given labels look better on the rows that they were fitted on than on
    others.  So rows that the fit has seen are hollow and held-out ones filled.

    Parameters
    ----------
    coordinates : array of shape (n_rows, n_components)
        Of one component only, each class has a line of its own.
    labels : array of shape (n_rows,), default=None
        None draws all rows alike.
    held_out : array of bool of shape (n_rows,), default=None
        Rows that the fit has not seen; None is no row.
    components : pair of int, default=(0, 1)
        The columns that are drawn.
    unlabeled : object, default=None
        The label that marks rows without one; they are grey.
    errors : bool, default=False
        Whether the title says how often the nearest row that the fit has seen, on the drawn axes,
        has another label: of held-out rows, and of the seen ones (not counting themselves), with
        intervals of 95 %.

    Attributes
    ----------
    ax_, figure_ : matplotlib axes and figure
        Once drawn.

    See Also
    --------
    MarginMapDisplay : A map with anchors.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.model_selection import train_test_split
    >>> from sklearn.preprocessing import scale
    >>> from marginfold import LSVA, EmbeddingDisplay
    >>> X, y = load_wine(return_X_y=True)
    >>> X, new, y, new_y = train_test_split(scale(X), y, stratify=y, random_state=0)
    >>> model = LSVA(2).fit(X, y)
    >>> display = EmbeddingDisplay.from_estimator(model, X, y, held_out=(new, new_y))
    >>> [text.get_text() for text in display.ax_.get_legend().get_texts()]
    ['0', '1', '2', 'held out', 'training']
    """

    def __init__(
        self,
        coordinates: Images,
        labels: Labels | None = None,
        *,
        held_out: Mask | None = None,
        components: Sequence[int] = (0, 1),
        unlabeled: object = None,
        errors: bool = False,
    ) -> None:
        self.coordinates = coordinates
        self.labels = labels
        self.held_out = held_out
        self.components = components
        self.unlabeled = unlabeled
        self.errors = errors

    @classmethod
    def from_estimator(
        cls,
        estimator: FittedMap,
        X: RowsLike,
        y: Labels | None = None,
        *,
        held_out: HeldOut | None = None,
        components: Sequence[int] = (0, 1),
        errors: bool = False,
        seen: bool = True,
        ax: Axes | None = None,
    ) -> Self:
        """Draw rows as a fitted transformer maps them.

        Parameters
        ----------
        estimator : fitted transformer
            A pipeline of them, or a search, too.
        X, y : rows and labels
            Those that the fit has seen.
        held_out : pair (X, y), default=None
            Rows that it has not seen, and their labels.
        components, errors
            As in the class.
        seen, ax
            As in `plot`.

        Returns
        -------
        EmbeddingDisplay
        """
        sides = two_sides(X, y, held_out)
        images = [images_of(estimator, rows) for rows, _ in sides]
        labels, new = side_masks(sides, [len(part) for part in images])
        display = cls(
            np.concatenate(images),
            labels,
            held_out=new,
            components=components,
            unlabeled=marker_of(estimator),
            errors=errors,
        )
        return display.plot(ax, seen=seen)

    @classmethod
    def from_embedding(
        cls,
        coordinates: Images,
        y: Labels | None = None,
        *,
        held_out: Mask | None = None,
        components: Sequence[int] = (0, 1),
        errors: bool = False,
        seen: bool = True,
        ax: Axes | None = None,
    ) -> Self:
        """Draw rows by coordinates that are there already.

        Parameters
        ----------
        coordinates, y, held_out, components, errors
            As in the class; y are the labels.
        seen, ax
            As in `plot`.

        Returns
        -------
        EmbeddingDisplay

        Examples
        --------
        >>> from sklearn.datasets import load_wine
        >>> from sklearn.preprocessing import scale
        >>> from marginfold import EmbeddingDisplay, LaplacianEigenmaps
        >>> X, y = load_wine(return_X_y=True)
        >>> coordinates = LaplacianEigenmaps(2).fit_transform(scale(X))
        >>> display = EmbeddingDisplay.from_embedding(coordinates, y)
        >>> display.ax_.get_xlabel()
        'component 1'
        """
        display = cls(coordinates, y, held_out=held_out, components=components, errors=errors)
        return display.plot(ax, seen=seen)

    def plot(self, ax: Axes | None = None, *, seen: bool = True) -> Self:
        """Draw the rows on axes of matplotlib, and return self.

        Parameters
        ----------
        ax : matplotlib axes, default=None
        seen : bool, default=True
            Whether rows that the fit has seen are drawn.
        """
        require("matplotlib", extra="plot")
        from marginfold.plotting.displays import canvas

        rows, names = self._read()
        drawn = rows if seen else rows.without_seen()
        with canvas.canvas(ax) as axes:
            canvas.draw_rows(axes, drawn)
            canvas.label_axes(axes, *names)
            if not names[1]:
                canvas.name_heights(axes, rows.names)
            if self.errors:
                errors = self.neighbor_errors()
                canvas.set_title(axes, [f"{name}: {error}" for name, error in errors.items()])
            classes = canvas.class_keys(drawn) if names[1] else []
            canvas.add_legend(axes, classes, canvas.side_keys(drawn), own=ax is None)
        self.ax_, self.figure_ = axes, axes.figure
        return self

    def neighbor_errors(self) -> dict[str, NeighborError]:
        """Return the errors on "held out" and "training" rows that have a label, if there are any.

        A row is wrong if the nearest seen row, other than itself, has another label on the drawn
        axes.
        """
        rows, names = self._read()
        known = rows.codes != UNLABELLED
        xy = rows.xy if names[1] else rows.xy[:, :1]
        seen, new = known & ~rows.held_out, known & rows.held_out
        if np.count_nonzero(seen) < 2:
            return {}
        neighbors = NearestNeighbors(n_neighbors=1).fit(xy[seen])
        own = rows.codes[seen]
        found = {}
        if new.any():
            nearest = neighbors.kneighbors(xy[new], return_distance=False)[:, 0]
            found["held out"] = NeighborError.of(own[nearest] != rows.codes[new])
        nearest = neighbors.kneighbors(return_distance=False)[:, 0]
        return found | {"training": NeighborError.of(own[nearest] != own)}

    def _read(self) -> tuple[Rows, tuple[str, str]]:
        """Return the rows as they are drawn, and the names of both axes."""
        Z = read_coordinates(self.coordinates)
        alone = Z.shape[1] == 1
        rows = Rows.read(Z, self.labels, self.held_out, self.unlabeled)
        if alone:
            return replace(rows, xy=_strips(Z[:, 0], rows.codes)), ("component 1", "")
        chosen = check_components(self.components, Z.shape[1])
        if len(chosen) != 2:
            raise InvalidInputError(
                f"components must be two numbers of components; got {shown(self.components)}."
            )
        return replace(rows, xy=Z[:, chosen]), (
            f"component {chosen[0] + 1}",
            f"component {chosen[1] + 1}",
        )


def _strips(x: Array, codes: Array) -> Array:
    """Return rows beside the line of their class, so that they do not hide each other."""
    jitter = np.random.default_rng(0).uniform(-JITTER, JITTER, len(x))
    return np.column_stack([x, codes + jitter])


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
