"""Modules that numba compiles, where it is installed and where it pays.

Such a module does the same as one in NumPy that stands beside it.  Compiling takes some seconds,
once for an installation, and loading what was compiled about one in every process: a process that
has less work than that never waits for it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from importlib import import_module
from pickle import UnpicklingError
from typing import Any

from marginfold.errors import SolverError
from marginfold.runtime.extras import require
from marginfold.runtime.progress import report

OPTIONS = {
    "cache": True,
    "nogil": True,
    "fastmath": {"contract", "reassoc"},
    "error_model": "numpy",
}
"""How functions are compiled: kept for later sessions, sums in any order, infinities kept."""

WORTH = 3.0
"""Seconds of work in NumPy, in this process so far and at hand, from which compiling pays.

Measured: 57 fits of LSVA on 569 rows, 78 of GESVC, 4 of SubspaceSearchCV, which are 1 to 3 s."""

VARIABLE = "MARGINFOLD_COMPILE"
"""Environment variable: "never" leaves everything to NumPy, "always" compiles at once."""

_work: dict[str, float] = {}
_never: ContextVar[bool] = ContextVar("marginfold_never_compile", default=False)
_own_work: ContextVar[dict[str, float] | None] = ContextVar("marginfold_own_work", default=None)


@contextmanager
def without_compiling() -> Iterator[None]:
    """Leave everything to NumPy: results then do not depend on what the process did before.

    Both implementations agree to about 1e-12, but rows on a margin have equal images, and the last
    bits decide which of them is the nearest neighbor.
    """
    token = _never.set(True)
    try:
        yield
    finally:
        _never.reset(token)


@contextmanager
def compiling_by_own_work() -> Iterator[None]:
    """Compile for what is announced from here on only, whatever the process did or loaded before.

    Results are then those of the same work in another process, which `without_compiling` grants as
    well, but long work is not left to NumPy.
    """
    token = _own_work.set({})
    try:
        yield
    finally:
        _own_work.reset(token)


def compiled_module(name: str, wanted: bool | str = "auto", seconds: float = 0.0) -> Any:
    """Return a module of compiled functions, or None where NumPy is to be used.

    True as ``wanted`` loads the module, False never does, "auto" does as soon as enough work was
    announced; ``seconds`` is the work at hand, in seconds that NumPy would take.

    Examples
    --------
    >>> from marginfold.runtime.jit import compiled_module
    >>> compiled_module("marginfold.svm.kernels", False) is None
    True
    """
    if wanted == "auto":
        mode = "never" if _never.get() else os.environ.get(VARIABLE, "auto")
        own = _own_work.get()
        work = _work if own is None else own
        work[name] = work.get(name, 0.0) + seconds
        loaded = own is None and name in sys.modules
        wanted = mode == "always" or (mode != "never" and (loaded or work[name] >= WORTH))
    return _load(name) if wanted else None


@cache
def _load(name: str) -> Any:
    """Import a module and compile its functions; None if numba is missing or cannot work here."""
    report("compiling, once", 0, 1)
    try:
        import_module("numba")
    except ImportError:  # missing, or of a version that does not fit
        return None
    try:
        module = import_module(name)
        module.first_call()
    except (RuntimeError, OSError):  # nowhere to keep what was compiled
        return None
    except (EOFError, UnpicklingError):  # what was kept is damaged
        return None
    report("compiling, once", 1, 1)
    return module


def require_compiled(wanted: bool | str) -> None:
    """Refuse a solver that must be compiled but cannot be."""
    if wanted is True and compiled_module("marginfold.svm.kernels", True) is None:
        require("numba")
        raise SolverError(
            "numba is installed but cannot be used here: its version does not fit, or there is no "
            "folder to keep what it compiles (NUMBA_CACHE_DIR names one); use compiled=False."
        )
