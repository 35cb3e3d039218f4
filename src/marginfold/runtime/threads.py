"""One thread for linear algebra and neighbor searches where more of them would only wait.

A number of OpenMP threads belongs to the thread that sets it, a number of BLAS threads to the whole
process: that limit is shared by all who hold it at the same time, and lifted by the last of them.

Estimators, feature maps and graph rules inherit `SizedCalls`, so that a new one need not think of
it.  How large a call is follows from its rows and from the kernel.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, lru_cache, wraps
from inspect import isfunction
from math import inf
from numbers import Integral
from threading import Lock
from typing import Any, Literal, NamedTuple, TypeVar, cast

from threadpoolctl import OpenBLASController, ThreadpoolController

FEW_COLUMNS = 200
"""Coordinates up to which rows are multiplied on one thread, however many they are: the blocks that
stay in the cache are too small to be cut.  Two threads, on two cores with a load of one to two by
others, take this share of the time of one, in squares of so many columns (best of seven):

=============  ====  ====  ====  ====  ====  ====
columns         100   200   300   500   700  1000
matrix product  1.3   .71   .63   .57   .54   .52
Cholesky        1.0   1.3   1.1   1.0   .89   .71
QR              2.2   1.4   4.7   1.1   1.0   .88
eigenvectors    3.6   3.2   1.8   1.1   .91   .85
=============  ====  ====  ====  ====  ====  ====
"""

SMALL_WORK = 1e9
"""Multiplications of the largest operation of a call up to which it runs on one thread: all of a
kernel on 1000 rows, a tenth of a second.  Two threads would save 0.02 s of it.  Beside other
processes they wait for each other at every step of a decomposition: eigenvectors of 1400 columns
took 13 times, QR 3 times, Cholesky 0.8 and a product 0.9 times as long as on one thread, in the
best of three runs."""
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

M = TypeVar("M", bound=Callable[..., Any])


@contextmanager
def threads_for(n_rows: float, n_columns: float) -> Iterator[None]:
    """Run linear algebra on so many rows and coordinates on one thread, or on all if it is large.

    This is the one rule; a call inside another is measured by itself.

    Examples
    --------
    >>> from marginfold.runtime.threads import threads_for
    >>> with threads_for(500, 500):
    ...     sum(range(10))
    45
    """
    if n_columns > FEW_COLUMNS and n_rows * n_columns * min(n_rows, n_columns) > SMALL_WORK:
        yield
    else:
        with one_thread("blas"):
            yield


@contextmanager
def one_thread(kind: Literal["blas", "openmp"] | None = None) -> Iterator[None]:
    """Run the block on one thread; the former numbers are restored afterwards.

    Parameters
    ----------
    kind : {"blas", "openmp"}, optional
        Limit only these, as far as they were loaded when they were first limited: this takes
        microseconds.  By default both, with all libraries that are loaded now.

    Examples
    --------
    >>> from marginfold.runtime.threads import one_thread
    >>> with one_thread():
    ...     sum(range(10))
    45
    """
    libraries = _scan(len(sys.modules)) if kind is None else _known(kind)
    with libraries.own.limit(limits=1):
        if kind == "openmp":
            yield
        else:
            with _SHARED.hold(libraries.shared):
                yield


@contextmanager
def openmp_threads(most: int) -> Iterator[None]:
    """Run the block on at most so many OpenMP threads.

    Examples
    --------
    >>> from marginfold.runtime.threads import openmp_threads
    >>> with openmp_threads(2):
    ...     sum(range(10))
    45
    """
    own = _known("openmp").own
    if all(library.num_threads <= most for library in own.lib_controllers):
        yield
    else:
        with own.limit(limits=most):
            yield


class _SharedLimit:
    """One limit for all that run at the same time; any of their threads may lift it."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._users = 0
        self._limiter: Any = None

    @contextmanager
    def hold(self, libraries: Any) -> Iterator[None]:
        with self._lock:
            if self._users == 0:
                self._limiter = libraries.limit(limits=1)
                _let_others_change_limits()
            self._users += 1
        try:
            yield
        finally:
            with self._lock:
                self._users -= 1
                if self._users == 0:
                    self._limiter.restore_original_limits()
                    _let_others_change_limits()


_SHARED = _SharedLimit()


def _let_others_change_limits() -> None:
    """Give up what threadpoolctl 3.8 reserves for the thread that was first to limit OpenBLAS.

    All changes by other threads would be ignored in silence, the restoration of the limit too.
    """
    give_up = getattr(OpenBLASController, "clear_controlling_thread", None)
    if give_up is not None:
        give_up()


class _Libraries(NamedTuple):
    """Libraries by what a number of threads belongs to; a limit restores all that it knows."""

    own: Any
    shared: Any


def _loaded(kind: str | None = None) -> _Libraries:
    """Return the libraries of one kind, or all, that are loaded now."""
    found = ThreadpoolController()
    found = found if kind is None else found.select(user_api=kind)
    parts: tuple[list[str], list[str]] = [], []
    for library in found.lib_controllers:
        parts[_is_shared(library)].append(library.filepath)
    return _Libraries(*(found.select(filepath=part) for part in parts))


_known = cache(_loaded)
"""The libraries that were loaded when this kind was first limited."""


@lru_cache(maxsize=1)
def _scan(n_modules: int) -> _Libraries:
    """Return all libraries; they are looked for again when Python modules were added."""
    return _loaded()


def _is_shared(library: Any) -> bool:
    """Return whether a number of threads belongs to the process; OpenBLAS may use OpenMP's."""
    layer = getattr(library, "threading_layer", None)
    return library.user_api == "blas" and (library.internal_api, layer) != ("openblas", "openmp")


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
    n, d = (int(size) if isinstance(size, Integral) else inf for size in shape)
    return n, d
