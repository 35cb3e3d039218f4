"""Modules that numba compiles, where it is installed.

Such a module does the same as one in NumPy that stands beside it and serves where numba is missing.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
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

    Examples
    --------
    >>> from marginfold.compiling import compiled_module
    >>> compiled_module("marginfold.no_such_module") is None
    True
    """
    try:
        return import_module(name)
    except (ImportError, RuntimeError):  # RuntimeError: nowhere to keep what was compiled
        return None
