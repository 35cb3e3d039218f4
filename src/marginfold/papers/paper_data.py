"""The papers' data sets as arrays, and the scalings of their features."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from marginfold import data as datasets
from marginfold.errors import InvalidParameterError, MarginfoldError
from marginfold.linalg.tall import Array
from marginfold.protocols.splits import Fold
from marginfold.protocols.studies import Skip

SCALINGS = {
    "train": "each feature to [-1, 1] on the training rows",
    "whole": "each feature to [-1, 1] on all rows before they are split, as the papers did",
    "global": "one factor for the whole matrix to [-1, 1] before it is split (001: 'uniformly')",
}
"""The scalings by name, in words."""


def rows_and_labels(name: str) -> tuple[Array, Array]:
    """Return X with NaN for missing values, and class numbers 0, 1, ... in sorted order.

    Examples
    --------
    >>> from marginfold.papers.paper_data import rows_and_labels
    >>> X, y = rows_and_labels("wine")
    >>> X.shape, sorted(set(y.tolist()))
    ((178, 13), [0, 1, 2])
    """
    try:
        return _load(name)
    except (MarginfoldError, OSError) as error:
        raise Skip(f"{name}: {error}") from error


@lru_cache(maxsize=32)
def _load(name: str) -> tuple[Array, Array]:
    data = datasets.load(name)
    codes = np.unique(data.y, return_inverse=True)[1]
    X = np.asarray(data.X, dtype=np.float64)
    X.setflags(write=False)
    return X, np.asarray(codes)


def row_count(name: str) -> int:
    """Return the number of rows, from the catalogue."""
    return datasets.catalogue()[name].rows


def split_scaled(
    X: Array, train: Array, test: Array, scaling: str = "train"
) -> tuple[Array, Array]:
    """Return scaled training and test rows, by their numbers and a name in `SCALINGS`.

    NaN marks a missing value, which becomes the mean of its feature.

    Examples
    --------
    >>> import numpy as np
    >>> from marginfold.papers.paper_data import split_scaled
    >>> X = np.array([[0.0], [2.0], [4.0]])
    >>> split_scaled(X, np.array([0, 1]), np.array([2]))
    (array([[-1.], [ 1.]]), array([[3.]]))
    """
    if scaling not in SCALINGS:
        raise InvalidParameterError(f"scaling must be one of {list(SCALINGS)}; got {scaling!r}.")
    seen = X[train] if scaling == "train" else X
    filled = np.where(np.isnan(X), _means(seen, within_range=scaling == "global"), X)
    seen = filled[train] if scaling == "train" else filled
    centre, half = _range(seen, scaling)
    scaled = (filled - centre) / half
    return scaled[train], scaled[test]


def scaled_fold(X: Array, y: Array, train: Array, test: Array, scaling: str) -> Fold:
    """Return scaled training and test rows with their labels."""
    rows, new = split_scaled(X, train, test, scaling)
    return Fold(rows, y[train], new, y[test])


def _means(seen: Array, *, within_range: bool) -> Array:
    """Return the mean of each feature; one without any value gets 0, or the mean of all values."""
    present = ~np.isnan(seen)
    values = np.where(present, seen, 0.0)
    nothing = values.sum() / max(present.sum(), 1) if within_range else 0.0
    counts = present.sum(axis=0)
    return np.asarray(np.where(counts > 0, values.sum(axis=0) / np.maximum(counts, 1), nothing))


def _range(seen: Array, scaling: str) -> tuple[Array, Array]:
    low, high = seen.min(axis=0), seen.max(axis=0)
    if scaling == "global":
        low, high = np.full_like(low, low.min()), np.full_like(high, high.max())
    half = (high - low) / 2
    return (high + low) / 2, np.where(half > 0, half, 1.0)
