"""Labels: classes, codes and the marker of unlabelled rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.multiclass import check_classification_targets

from marginfold.errors import InvalidInputError
from marginfold.rows import Array

UNLABELLED = -1
"""The code of a row without a label."""


def encode_labels(y: Array, unlabeled: Any, weights: Array) -> tuple[Array, Array]:
    """Return (classes, codes); rows that carry the marker or have weight 0 get the code -1."""
    counted = weights > 0
    labelled = counted & ~is_unlabelled(y, unlabeled)
    if not labelled.any():
        raise InvalidInputError(
            f"All {np.count_nonzero(counted)} rows are unlabelled (y == {unlabeled!r}); "
            "at least two classes need a labelled row."
        )
    known = y[labelled]
    check_classification_targets(known)
    classes, known_codes = np.unique(known, return_inverse=True)
    if len(classes) < 2:
        hint = ""
        if np.count_nonzero(labelled) < np.count_nonzero(counted):
            hint = (
                f" Rows with y == {unlabeled!r} count as unlabelled: if that is a class, pass "
                "unlabeled=None or another marker."
            )
        raise InvalidInputError(
            f"The data has 1 class, {classes[0]!r}; at least 2 classes are needed.{hint}"
        )
    codes = np.full(len(y), UNLABELLED)
    codes[labelled] = known_codes
    return classes, codes


def is_unlabelled(y: Array, unlabeled: Any) -> Array:
    """Return which labels equal the marker; text labels are compared as text."""
    if unlabeled is None:
        return np.zeros(len(y), dtype=bool)
    if y.dtype.kind in "US":
        return np.asarray(y == str(unlabeled))
    return np.fromiter((label == unlabeled for label in y), dtype=bool, count=len(y))
