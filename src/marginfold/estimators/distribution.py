"""The way to `marginfold.on_dask`, which fits and applies estimators on dask collections."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from marginfold.validation.dask_input import is_lazy


def distributed() -> Any:
    """Return the layer that works on dask collections, imported when it is needed."""
    return import_module("marginfold.on_dask")


def check_lazy_graphs(X: Any, *rules: Any) -> None:
    """Refuse graphs that need all rows at one place, before a dask collection is read."""
    if is_lazy(X):
        distributed().check_graphs(rules)
