"""How much memory there is, and a refusal before more than that is asked for.

The environment variable MARGINFOLD_MEMORY_LIMIT ("4GB", "500 MB", "2GiB" or a number of bytes)
lowers what is counted as available; it cannot raise it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from math import isfinite
from pathlib import Path, PurePosixPath

from marginfold.errors import InvalidParameterError, TooLargeError

LIMIT_VARIABLE = "MARGINFOLD_MEMORY_LIMIT"
"""Environment variable that lowers the available memory."""

ALWAYS_THERE = 64 << 20
"""Bytes that are granted without a look at the system, so that small fits pay nothing."""

UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
"""Decimal units of a size; with an i (KiB, MiB, ...) their binary neighbors are meant."""

CGROUPS = Path("/sys/fs/cgroup")
"""Where Linux shows control groups."""

PROC = Path("/proc")
"""Where Linux shows processes and memory."""


def require_memory(n_bytes: float, what: str, instead: str) -> None:
    """Raise `TooLargeError` if work needs more memory than there is.

    Call it before the first large allocation.

    Parameters
    ----------
    n_bytes : float
        Largest amount that will be allocated at one time.
    what : str
        What needs it, the subject of the sentence: "An exact kernel of 100000 rows".
    instead : str
        What to do instead, best as a line of code.

    Examples
    --------
    >>> require_memory(10**6, "A table of 1000 rows", "take fewer rows")
    >>> require_memory(10**18, "A kernel of 353553391 rows", "take fewer rows")
    Traceback (most recent call last):
    marginfold.errors.TooLargeError: A kernel of 353553391 rows needs 1e+06 TB of memory, ...
    """
    if has_memory(n_bytes):
        return
    there = readable(available_memory() or 0)
    raise TooLargeError(
        f"{what} needs {readable(n_bytes)} of memory, but {there} are available. Instead: {instead}"
    )


def has_memory(n_bytes: float) -> bool:
    """Return whether so much memory is there, or it is unknown how much there is."""
    limit = _environment_limit()
    if n_bytes <= (ALWAYS_THERE if limit is None else min(limit, ALWAYS_THERE)):
        return True
    available = available_memory()
    return available is None or n_bytes <= available


def available_memory() -> int | None:
    """Return the bytes that can still be allocated without harm, None if that is unknown.

    The smallest of what the system has free, what the control groups of this process leave it, what
    its address space (RLIMIT_AS) leaves it, and MARGINFOLD_MEMORY_LIMIT.
    """
    known = [_system_memory(), *_cgroup_rests(), _address_space_rest(), _environment_limit()]
    bounds = [bound for bound in known if bound is not None]
    return max(0, min(bounds)) if bounds else None


def readable(n_bytes: float) -> str:
    """Return a size in a unit that makes it short.

    Examples
    --------
    >>> readable(3_210_000_000), readable(512), readable(2e6)
    ('3.21 GB', '512 bytes', '2 MB')
    """
    for letter, unit in reversed(UNITS.items()):
        if letter and n_bytes >= unit:
            return f"{n_bytes / unit:.3g} {letter.upper()}B"
    return f"{n_bytes:.0f} bytes"


def _environment_limit() -> int | None:
    text = os.environ.get(LIMIT_VARIABLE, "").strip()
    if not text:
        return None
    parts = re.fullmatch(r"([0-9.]+(?:e[0-9]+)?)\s*([kmgt]?)(i?)b?", text.lower())
    try:
        number = float(parts[1]) if parts else None
    except ValueError:
        number = None
    if parts is None or number is None or not isfinite(number):
        raise InvalidParameterError(
            f"The environment variable {LIMIT_VARIABLE} must be a size such as '4GB' or '500MB'; "
            f"got {text!r}."
        )
    step = 1024 if parts[3] else 1000
    return int(number * step ** list(UNITS).index(parts[2]))


def _system_memory() -> int | None:
    """Return what Linux calls available; elsewhere the installed memory, if Python can tell."""
    free = re.search(r"MemAvailable:\s*(\d+) kB", _text(PROC / "meminfo"))
    if free:
        return int(free[1]) * 1024
    names = getattr(os, "sysconf_names", {})
    if "SC_PHYS_PAGES" not in names or "SC_PAGE_SIZE" not in names:
        return None
    pages, size = os.sysconf("SC_PHYS_PAGES"), os.sysconf("SC_PAGE_SIZE")
    return pages * size if pages > 0 and size > 0 else None


def _cgroup_rests() -> Iterator[int]:
    """Yield what each control group above this process leaves, of version 1 and 2."""
    for line in _text(PROC / "self" / "cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            roots, names = [CGROUPS, CGROUPS / "unified"], ("memory.max", "memory.current")
        elif "memory" in controllers.split(","):
            roots = [CGROUPS / "memory"]
            names = ("memory.limit_in_bytes", "memory.usage_in_bytes")
        else:
            continue
        for root in roots:
            for folder in _upwards(root, path):
                limit, used = (_text(folder / name).strip() for name in names)
                if limit.isdigit() and used.isdigit():
                    yield int(limit) - int(used) + _reclaimable(folder)


def _upwards(root: Path, path: str) -> Iterator[Path]:
    inside = PurePosixPath(path.lstrip("/"))
    yield root / inside
    yield from (root / parent for parent in inside.parents)


def _reclaimable(folder: Path) -> int:
    """Return the cached files of a group, which count as used and go when memory is short."""
    cached = re.search(r"^(?:total_)?inactive_file (\d+)$", _text(folder / "memory.stat"), re.M)
    return int(cached[1]) if cached else 0


def _address_space_rest() -> int | None:
    try:
        import resource
    except ImportError:  # Windows
        return None
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit == resource.RLIM_INFINITY:
        return None
    taken = _text(PROC / "self" / "statm").split()
    return limit - (int(taken[0]) * resource.getpagesize() if taken else 0)


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
