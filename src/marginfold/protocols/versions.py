"""The versions that a result depends on."""

from __future__ import annotations

import platform
from functools import cache
from importlib.metadata import PackageNotFoundError, version

from marginfold._version import __version__

COMPUTES_WITH = ("numpy", "scipy", "scikit-learn")
"""The packages whose numbers enter ours."""


@cache
def versions() -> str:
    """Return the versions of marginfold, Python and what is computed with, in one line."""
    parts = [f"marginfold {__version__}", f"Python {platform.python_version()}"]
    return ", ".join(parts + [f"{name} {_version(name)}" for name in COMPUTES_WITH])


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "unknown"
