"""The papers' data sets as arrays; one that is not here is a reason to skip, not an error."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from marginfold import data as datasets
from marginfold.errors import MarginfoldError
from marginfold.linalg.tall import Array
from marginfold.protocols.study_tasks import Skip


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


def size(name: str) -> tuple[int, int]:
    """Return the numbers of rows and columns, from the catalogue."""
    entry = datasets.catalogue()[name]
    return entry.rows, entry.columns
