"""Nothing is taken for a data set that differs from its entry in the catalogue."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from marginfold.data.canonical import fingerprint, unordered_fingerprint
from marginfold.data.catalogue import Entry
from marginfold.errors import InvalidInputError


def verify(entry: Entry, X: NDArray[Any], y: NDArray[Any], origin: str) -> None:
    """Raise `InvalidInputError` that names the origin and the first thing that differs."""
    got, need = _first_difference(entry, X, y)
    if got != need:
        raise InvalidInputError(
            f"{origin} is not the data set {entry.name!r}: got {got}, need {need}. "
            f"Use the original file ({entry.source})."
        )


def _first_difference(entry: Entry, X: NDArray[Any], y: NDArray[Any]) -> tuple[str, str]:
    shape, expected = f"{X.shape[0]} x {X.shape[1]} values", f"{entry.rows} x {entry.columns}"
    if shape != f"{expected} values":
        return shape, f"{expected} values"
    missing = int(np.isnan(X).sum())
    if missing != entry.missing:
        return f"{missing} missing values", str(entry.missing)
    classes, counts = np.unique(y, return_counts=True)
    found = dict(zip(map(str, classes.tolist()), counts.tolist(), strict=True))
    if found != dict(entry.class_counts):
        return f"rows by class {found}", str(dict(entry.class_counts))
    digest = fingerprint(X, y)
    if digest != entry.sha256 and unordered_fingerprint(X, y) == entry.sha256_unordered:
        return "its rows in another order", f"the order {entry.order}"
    return f"values with hash {digest[:12]}", f"values with hash {entry.sha256[:12]}"
