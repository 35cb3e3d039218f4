"""The door of all calls with rows: small ones run their linear algebra on one thread.

Estimators, feature maps and graph rules inherit it, so that a new one need not think of it.  How
large a call is follows from its rows and from the kernel; `threads_for` says what that means.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import isfunction
from numbers import Integral
from typing import Any, TypeVar, cast

import numpy as np

from marginfold.runtime.threads import threads_for

M = TypeVar("M", bound=Callable[..., Any])

CALLS = (
    "build",
    "decision_function",
    "describe",
    "distances",
    "feature_contributions",
    "fit",
    "fit_transform",
    "jacobian",
    "loadings",
    "memberships",
    "predict",
    "project",
    "transform",
)
"""Public methods whose first argument is rows."""


class SizedCalls:
    """Base of whatever takes rows: each of its `CALLS` has as many threads as its size deserves.

    Methods behind a descriptor such as ``available_if`` are decorated with `sized` one by one.
    """

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)  # scikit-learn's mixins have options
        for name in CALLS:
            method = cls.__dict__.get(name)
            if isfunction(method):
                setattr(cls, name, sized(method))


def sized(method: M) -> M:
    """Let a method, or a function of an estimator, use threads if its rows are worth it."""
    fits = method.__name__.startswith("fit") or method.__name__ == "path"

    @wraps(method)
    def on_enough_threads(self: Any, *args: Any, **named: Any) -> Any:
        n, d = shape_of(args[0] if args else named.get("X"))
        with threads_for(n, coordinates_of(self, n, d) if fits else _held(self, d)):
            return method(self, *args, **named)

    return cast(M, on_enough_threads)


def coordinates_of(model: Any, n_rows: float, n_columns: float) -> float:
    """Return how many coordinates a fit gives each row, at most.

    Unless the kernel says otherwise that is one for each row, in a matrix of rows by rows.

    Examples
    --------
    >>> from marginfold import LSVA, LowRankKernel
    >>> [coordinates_of(LSVA(kernel=k), 500, 20) for k in ("linear", "rbf", LowRankKernel(rank=99))]
    [20, 500, 99]
    """
    model = getattr(model, "estimator", model)  # a search fits what it is given
    kernel: Any = model if hasattr(model, "fit_coordinates") else getattr(model, "kernel", None)
    if type(kernel).__name__ == "Linear" or (isinstance(kernel, str) and kernel == "linear"):
        return min(n_rows, n_columns)
    if hasattr(kernel, "max_rank"):
        rank = kernel.max_rank if kernel.rank is None else kernel.rank
        return min(n_rows, int(rank)) if isinstance(rank, Integral) else n_rows
    return n_rows


def _held(model: Any, n_columns: float) -> float:
    """Return what a fitted model compares each new row with: columns, or training rows."""
    feature_map = getattr(model, "feature_map_", model)
    return max(n_columns, len(getattr(feature_map, "share_", ())))


def shape_of(X: Any) -> tuple[float, float]:
    """Return the numbers of rows and columns, infinity for what a lazy collection does not know.

    What are no rows has one column; the call itself will refuse it.
    """
    shape = getattr(X, "shape", None)
    if not isinstance(shape, tuple) or len(shape) != 2:
        return len(X) if isinstance(X, list | tuple) else 0, 1
    n, d = (int(size) if isinstance(size, Integral) else np.inf for size in shape)
    return n, d
