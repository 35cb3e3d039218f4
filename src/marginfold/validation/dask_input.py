"""Dask collections as input: found by their type, refused where rows must be in one place.

NumPy and scikit-learn would turn a dask array into a NumPy array without a word, so that whatever
takes rows either goes another way or refuses.
"""

from __future__ import annotations

from typing import Any

from marginfold.errors import InvalidInputError

PACKAGES = ("dask", "dask_expr")
"""Packages whose collections are lazy."""


def is_lazy(X: Any) -> bool:
    """Return whether X is a dask collection; dask is not imported for that."""
    return type(X).__module__.split(".")[0] in PACKAGES


def gathered(values: Any) -> Any:
    """Return labels or weights, one number per row, in the memory of this process."""
    return values.compute() if is_lazy(values) else values


def refuse_lazy(X: Any, owner: object, instead: str) -> None:
    """Refuse a dask collection where rows must be in one place."""
    if is_lazy(X):
        name = owner if isinstance(owner, str) else type(owner).__name__
        raise InvalidInputError(
            f"{name} got a dask {type(X).__name__}; it needs all rows in the memory of this "
            f"process. Give it X.compute() if they fit, or {instead}."
        )
