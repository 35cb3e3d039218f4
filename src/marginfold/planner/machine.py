"""How fast this machine is, compared with the one on which the rates were measured."""

from __future__ import annotations

import time
from functools import cache

import numpy as np

from marginfold.linalg.tall import one_blas_thread

SIZE, REPEATS = 400, 3
"""Shape of the matrix product that is timed, and how often it is."""

REFERENCE_SECONDS = 3.2e-3
"""The time of this product where the rates of `marginfold.planner.costs` were measured."""

PLAUSIBLE = (0.1, 20.0)
"""Range of the factor: a machine outside is more likely to have been busy."""


@cache
def slowness() -> float:
    """Return how many times longer than on the machine of the rates work takes here.

    One small matrix product is timed at the first call, about 10 ms.
    """
    A = np.linspace(0.0, 1.0, SIZE * SIZE).reshape(SIZE, SIZE)
    times = []
    with one_blas_thread():
        A @ A
        for _ in range(REPEATS):
            begun = time.thread_time()
            A @ A
            times.append(time.thread_time() - begun)
    return float(np.clip(min(times) / REFERENCE_SECONDS, *PLAUSIBLE))
