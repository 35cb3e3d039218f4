"""Modules that numba compiles, where it is installed.

Such a module does the same as one in NumPy that stands beside it and serves where numba is missing.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pickle import UnpicklingError
from typing import Any

OPTIONS = {
    "cache": True,
    "nogil": True,
    "fastmath": {"contract", "reassoc"},
    "error_model": "numpy",
}
"""How functions are compiled: kept for later sessions, sums in any order, infinities kept."""


@cache
def compiled_module(name: str) -> Any:
    """Return a module of compiled functions, or None if numba is missing or cannot work here.

    The first call compiles them (``first_call`` of the module), once for an installation.

    Examples
    --------
    >>> from marginfold.runtime.jit import compiled_module
    >>> solver = compiled_module("marginfold.svm.kernels")
    >>> solver is None or solver.__name__
    'marginfold.svm.kernels'
    """
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
    return module
