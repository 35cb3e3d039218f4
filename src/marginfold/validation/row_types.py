"""A registry of row types: who reads collections that are not in the memory of this process.

The package registers the module that serves the types of another package by its name, when it is
imported; the module itself is imported when the first of its collections is met.  NumPy and
scikit-learn would turn a dask array into a NumPy array without a word, so that whatever takes rows
either asks here or refuses.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any, Protocol, cast

from marginfold.errors import InvalidInputError


class RowsBackend(Protocol):
    """What a module offers that fits and applies estimators to rows elsewhere."""

    def read_rows(self, estimator: Any, X: Any, parts: Sequence[Any] = ()) -> Any:
        """Validate rows for a fit.

        ``parts`` are the graphs and the solver of the fit: one that needs all rows at one place is
        refused before a row is read.
        """

    def read_labelled(
        self, estimator: Any, X: Any, y: Any, parts: Sequence[Any] = ()
    ) -> tuple[Any, Any]:
        """Validate rows and labels for a fit."""

    def apply(self, estimator: Any, method: str, X: Any) -> Any:
        """Return what a method of a fitted estimator gives, not yet computed."""


_SERVED_BY: dict[str, str] = {}
"""The module that serves the collections of each package."""


def register_row_types(packages: Sequence[str], module: str) -> None:
    """Let a module, which is imported when it is needed, serve the collections of some packages."""
    _SERVED_BY.update(dict.fromkeys(packages, module))


def is_lazy(X: Any) -> bool:
    """Return whether X is a collection of a registered package; nothing is imported for that."""
    return _package(X) in _SERVED_BY


def backend_of(X: Any) -> RowsBackend | None:
    """Return who reads rows of this type, None for rows in the memory of this process."""
    module = _SERVED_BY.get(_package(X))
    return None if module is None else cast(RowsBackend, import_module(module))


def gathered(values: Any) -> Any:
    """Return labels or weights, one number per row, in the memory of this process."""
    return values.compute() if is_lazy(values) else values


def refuse_lazy(X: Any, owner: object, instead: str) -> None:
    """Refuse a lazy collection where rows must be in one place."""
    if is_lazy(X):
        name = owner if isinstance(owner, str) else type(owner).__name__
        raise InvalidInputError(
            f"{name} got a {_package(X).split('_')[0]} {type(X).__name__}; it needs all rows in "
            f"the memory of this process. Give it X.compute() if they fit, or {instead}."
        )


def _package(X: Any) -> str:
    return type(X).__module__.split(".")[0]
