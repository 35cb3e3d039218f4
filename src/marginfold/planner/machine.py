"""The machine on which a fit is planned: how fast it computes, and how long a process waits on it.

Both are measured once in a process, at the first plan, in about 20 ms of work.
"""

from __future__ import annotations

import os
import time
from functools import cache
from typing import NamedTuple

import numpy as np

from marginfold.runtime.threads import one_thread

SIZE, REPEATS = 400, 5
"""Shape of the matrix product that is timed, and how often it is."""

REFERENCE_SECONDS = 3.2e-3
"""The time of this product where the rates of `marginfold.planner.costs` were measured."""

SLOWNESS, WAITING = (0.1, 20.0), (1.0, 20.0)
"""Ranges of the factors: what is outside is more likely to be an accident of the measurement."""


class Machine(NamedTuple):
    """What is known of a machine.

    Attributes
    ----------
    slowness : float
        How many times longer than on the machine of the rates work takes here, in CPU time.
    waiting : float
        How many times longer than its CPU time a process takes by the clock: 1 where it is alone,
        3 where two cores are shared by six.
    """

    slowness: float
    waiting: float


@cache
def machine() -> Machine:
    """Return the machine as it was at the first call.

    Examples
    --------
    >>> from marginfold.planner.machine import machine
    >>> machine().waiting >= 1
    True
    """
    A = np.linspace(0.0, 1.0, SIZE * SIZE).reshape(SIZE, SIZE)
    work, clock = [], []
    with one_thread("blas"):
        A @ A
        for _ in range(REPEATS):
            begun, shown = time.thread_time(), time.perf_counter()
            A @ A
            work.append(time.thread_time() - begun)
            clock.append(time.perf_counter() - shown)
    slowness = np.clip(min(work) / REFERENCE_SECONDS, *SLOWNESS)
    waiting = np.clip(_queue() or sum(clock) / max(sum(work), REFERENCE_SECONDS), *WAITING)
    return Machine(float(slowness), float(waiting))


def _queue() -> float:
    """Return how many processes wanted each core in the last minute, 0 where nobody counts them.

    A few milliseconds of work show less: they mostly wait not at all, and sometimes for very long.
    """
    if not hasattr(os, "getloadavg"):
        return 0.0
    try:
        return os.getloadavg()[0] / (os.cpu_count() or 1)
    except OSError:
        return 0.0
