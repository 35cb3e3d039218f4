"""What a Display reads: rows with their labels, and the parts of a fitted pipeline or search."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils import column_or_1d

from marginfold.errors import InvalidInputError
from marginfold.linalg.tall import Array, dense
from marginfold.protocols.held_out import parameters_named
from marginfold.validation.parameters import shown
from marginfold.validation.rows import UNLABELLED, is_unlabelled, refuse_lazy, unique_labels


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of a picture.

    Attributes
    ----------
    xy : array of shape (n_rows, 2)
    codes : array of shape (n_rows,)
        The place of each label among the classes; UNLABELLED for none.
    names : sequence of str
        The classes.
    held_out : array of bool of shape (n_rows,)
        Rows that the fit has not seen.
    """

    xy: Array
    codes: Array
    names: Sequence[str]
    held_out: Array

    @classmethod
    def read(
        cls, xy: Array, labels: Any, held_out: Any, unlabeled: Any = None, classes: Any = None
    ) -> Rows:
        """Read the labels of rows, and which of them are held out; None is none.

        Given classes come first, others that the labels have after them.
        """
        n_rows = len(xy)
        mask = np.zeros(n_rows, dtype=bool) if held_out is None else np.asarray(held_out)
        if mask.shape != (n_rows,) or mask.dtype != bool:
            raise InvalidInputError(
                f"held_out must be {n_rows} values True or False, one for each row; got "
                f"{mask.dtype} of shape {mask.shape}."
            )
        codes = np.full(n_rows, UNLABELLED)
        if labels is None:
            return cls(xy, codes, [], mask)
        labels = column_or_1d(labels, warn=True)
        if len(labels) != n_rows:
            raise InvalidInputError(
                f"got {len(labels)} labels for {n_rows} rows; give one label for each row."
            )
        known = ~is_unlabelled(labels, unlabeled)
        present = unique_labels(labels[known])[0].tolist()
        first = [] if classes is None else np.asarray(classes).tolist()
        places = {label: place for place, label in enumerate(dict.fromkeys([*first, *present]))}
        codes[known] = [places[label] for label in labels[known].tolist()]
        return cls(xy, codes, [str(label) for label in places], mask)

    def without_seen(self) -> Rows:
        """Return the held-out rows only."""
        kept = self.held_out
        return Rows(self.xy[kept], self.codes[kept], self.names, kept[kept])


def two_sides(X: Any, y: Any, held_out: Any) -> list[tuple[Any, Any]]:
    """Return the rows that a fit has seen and those held out, each with their labels."""
    sides = [(X, y)]
    if held_out is not None:
        if not isinstance(held_out, (tuple, list)) or len(held_out) != 2:
            raise InvalidInputError(
                "held_out must be a pair (X, y) of rows that the fit has not seen and their "
                f"labels; got {shown(held_out)}."
            )
        sides.append((held_out[0], held_out[1]))
    for rows, labels in sides:
        refuse_lazy(rows, "A display", "a sample of the rows")
        if (labels is None) != (y is None):
            raise InvalidInputError(
                "got labels of some rows only; give y and held_out=(X, y) both with labels, or "
                "None for both."
            )
    return sides


def side_masks(sides: Sequence[tuple[Any, Any]], sizes: Sequence[int]) -> tuple[Any, Array]:
    """Return the labels of both sides in one array, None for none, and which are held out."""
    held_out = np.repeat(np.arange(len(sides)) == 1, sizes)
    if sides[0][1] is None:
        return None, held_out
    parts = [column_or_1d(labels, warn=True) for _, labels in sides]
    if len({part.dtype.kind in "US" for part in parts}) > 1:  # numbers stay numbers beside text
        parts = [part.astype(object) for part in parts]
    return np.concatenate(parts), held_out


def images_of(estimator: Any, X: Any) -> Array:
    """Return the coordinates that a fitted transformer gives rows."""
    if not hasattr(estimator, "transform"):
        raise InvalidInputError(
            f"{shown(estimator)} has no transform; a display of its rows needs a fitted "
            "transformer, such as LSVA or the part of a pipeline before its classifier: "
            "pipeline[:-1]."
        )
    return read_coordinates(estimator.transform(X))


def read_coordinates(coordinates: Any) -> Array:
    """Return coordinates as an array with a column for each component."""
    array = np.asarray(dense(coordinates), dtype=np.float64)
    if array.ndim != 2 or not array.shape[1]:
        raise InvalidInputError(
            f"got coordinates of shape {array.shape}; a display needs rows and at least one column."
        )
    return array


def marker_of(estimator: Any) -> Any:
    """Return the label by which an estimator, or a step of it, marks rows without one, or None."""
    if not hasattr(estimator, "get_params"):
        return None
    parameters = estimator.get_params(deep=True)
    markers = [parameters[name] for name in parameters_named(estimator, "unlabeled")]
    return next((marker for marker in markers if marker is not None), None)


def part_with(estimator: Any, attribute: str) -> tuple[list[Any], Any]:
    """Return the last part of a fitted pipeline or search that has an attribute.

    Before it come the fitted steps that rows pass on their way to it.
    """
    steps = steps_to(estimator, attribute)
    if not steps:
        raise InvalidInputError(
            f"{shown(estimator)} has no {attribute}; give a fitted estimator that has it, or "
            "a pipeline or search around one."
        )
    return steps[:-1], steps[-1]


def steps_to(estimator: Any, attribute: str) -> list[Any]:
    """Return the fitted steps up to the last one that has an attribute; none if none has it."""
    steps = [estimator]
    while steps and not hasattr(steps[-1], attribute):
        last = steps.pop()
        if isinstance(last, Pipeline):
            steps += [step for _, step in last.steps if step not in (None, "passthrough")]
        elif hasattr(last, "best_estimator_"):
            steps.append(last.best_estimator_)
    return steps


def passed(steps: Sequence[Any], X: Any) -> Any:
    """Return rows after the fitted steps of a pipeline."""
    for step in steps:
        X = step.transform(X)
    return X
