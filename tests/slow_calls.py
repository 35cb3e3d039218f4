"""Work for workers: what listens, what does not, and what dies."""

from __future__ import annotations

import os
import sys
import time

import numpy as np

from marginfold.errors import InvalidInputError
from marginfold.runtime.progress import report


def count_to(n: int) -> int:
    """Report every hundredth of a second."""
    for done in range(n):
        report("counting", done, n)
        time.sleep(0.01)
    return n


def deaf(seconds: float) -> str:
    """Compute in one call, without a report."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        np.linalg.eigvalsh(np.ones((300, 300)))
    return "done"


def refuse() -> None:
    raise InvalidInputError("not this way")


def fail() -> None:
    sys.stdout.write("what is printed is no answer")
    raise KeyError("defect")


def die() -> None:
    os._exit(3)


def process() -> int:
    return os.getpid()
