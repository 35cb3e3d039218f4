"""Labels: classes, codes and the marker of unlabelled rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.multiclass import check_classification_targets

from marginfold.errors import InvalidInputError, InvalidParameterError
from marginfold.linalg.tall import Array

UNLABELLED = -1
"""The code of a row without a label."""


def is_unlabelled(y: Array, unlabeled: Any) -> Array:
    """Return which labels equal the marker.

    Text and numbers are compared by what they say: the marker -1 is found in ``["a", "-1"]`` and
    the marker "-1" in ``[0, -1]``.  The marker NaN finds every missing value.
    """
    if unlabeled is None:
        return np.zeros(len(y), dtype=bool)
    if np.ndim(unlabeled) != 0:
        raise InvalidParameterError(
            f"unlabeled must be one label that marks rows without a class; got {unlabeled!r}."
        )
    if y.dtype.kind in "iufb" and not isinstance(unlabeled, str):
        return np.asarray(y != y if is_missing(unlabeled) else y == unlabeled)
    known: dict[Any, bool] = {}
    return np.fromiter(
        (known.setdefault(label, _says(label, unlabeled)) for label in y.tolist()),
        dtype=bool,
        count=len(y),
    )


def is_missing(label: Any) -> bool:
    """Return whether a label is None, NaN or a missing value of pandas."""
    if label is None or np.ndim(label):
        return label is None
    try:
        return bool(label != label)
    except TypeError:  # pandas.NA has no truth value
        return True


def _says(label: Any, marker: Any) -> bool:
    if is_missing(label) or is_missing(marker):
        return is_missing(label) and is_missing(marker)
    if label == marker or str(label) == str(marker):
        return True
    try:
        return float(label) == float(marker)
    except (TypeError, ValueError):
        return False


def encode_labels(y: Array, unlabelled: Array, weights: Array, marker: Any) -> tuple[Array, Array]:
    """Return (classes, codes); unlabelled rows and rows with weight 0 get the code -1."""
    counted = weights > 0
    labelled = counted & ~unlabelled
    everyone = bool(labelled.all())
    if not everyone and not labelled.any():
        raise InvalidInputError(
            f"All {np.count_nonzero(counted)} rows are unlabelled (y is {marker!r}); at least two "
            "classes need a labelled row."
        )
    known = y if everyone else y[labelled]
    classes, known_codes = unique_labels(known)
    if known.dtype.kind not in "iub" or 2 * len(classes) > len(known):
        check_classification_targets(known)  # few whole numbers are classes
    if len(classes) < 2:
        hint = ""
        if (counted & unlabelled).any():
            hint = (
                f" Rows with the label {marker!r} count as unlabelled: if that is a class, pass "
                "unlabeled=None or another marker."
            )
        raise InvalidInputError(
            f"The data has 1 class, {classes.tolist()[0]!r}; at least 2 classes are needed.{hint}"
        )
    if everyone:
        return classes, known_codes
    codes = np.full(len(y), UNLABELLED)
    codes[labelled] = known_codes
    return classes, codes


def unique_labels(labels: Array) -> tuple[Array, Array]:
    """Return the sorted classes and the code of each label."""
    if labels.dtype.kind in "iu" and len(labels):
        low, high = int(labels.min()), int(labels.max())
        if high - low < len(labels):  # a table of all whole numbers between saves the sorting
            return _numbered(labels, low, high)
    try:
        classes, codes = np.unique(labels, return_inverse=True)
    except TypeError as error:
        raise InvalidInputError(
            f"The labels are of types that do not compare ({error}); give labels of one type. "
            "Rows without a label need a marker: unlabeled=np.nan takes None and NaN."
        ) from error
    return classes, codes


def _numbered(labels: Array, low: int, high: int) -> tuple[Array, Array]:
    """Return the sorted classes and codes of whole numbers between two that are not far apart."""
    wide = labels if labels.dtype.itemsize == 8 else labels.astype(np.int64)  # no overflow
    places = (wide - wide.dtype.type(low)).astype(np.intp)
    present = np.flatnonzero(np.bincount(places, minlength=high - low + 1))
    codes = np.zeros(high - low + 1, dtype=np.intp)
    codes[present] = np.arange(len(present))
    classes = present.astype(wide.dtype) + wide.dtype.type(low)
    return classes.astype(labels.dtype), codes[places]
