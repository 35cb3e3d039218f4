"""Dask collections as input: found by their type, handled by `marginfold.distributed` if at all.

scikit-learn would turn a dask array into a NumPy array without a word, so that every estimator
either takes the other route or refuses.
"""

from __future__ import annotations

from importlib import import_module
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


def distributed() -> Any:
    """Return the layer that works on dask collections, imported when it is needed."""
    return import_module("marginfold.distributed")


def check_lazy_graphs(X: Any, *rules: Any) -> None:
    """Refuse graphs that need all rows at one place, before a dask collection is read."""
    if is_lazy(X):
        distributed().check_graphs(rules)


def refuse_lazy(X: Any, owner: object, instead: str) -> None:
    """Refuse a dask collection where rows must be in one place."""
    if is_lazy(X):
        name = owner if isinstance(owner, str) else type(owner).__name__
        raise InvalidInputError(
            f"{name} got a dask {type(X).__name__}; it needs all rows in the memory of this "
            f"process. Give it X.compute() if they fit, or {instead}."
        )
