"""What holds for every test: one BLAS thread, no display, the same random examples each time.

`make torture` takes fresh ones instead: the profile "torture" of hypothesis and ``--seed fresh``.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from pathlib import Path

# Read when NumPy is imported, so they stand before every other import.
for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")
os.environ.setdefault("MPLBACKEND", "Agg")

# Whether a solver is compiled by itself depends on what the process did before: no test may.
os.environ.setdefault("MARGINFOLD_COMPILE", "never")

# Many tests start processes. Where no bytecode may be written, each run would compile the whole of
# SciPy and scikit-learn again: it is kept beside pytest's own cache.
if sys.dont_write_bytecode:
    sys.dont_write_bytecode = False
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    if sys.pycache_prefix is None:
        sys.pycache_prefix = str(Path(__file__).parents[1] / ".pytest_cache" / "bytecode")
        os.environ["PYTHONPYCACHEPREFIX"] = sys.pycache_prefix

# A shell starts background jobs with Ctrl-C ignored, and every child would inherit that: tests of
# interrupts would wait for one that never comes.
if (
    threading.current_thread() is threading.main_thread()
    and signal.getsignal(signal.SIGINT) is signal.SIG_IGN
):
    signal.signal(signal.SIGINT, signal.default_int_handler)

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import settings

settings.register_profile("default", deadline=None, derandomize=True, max_examples=25)
settings.register_profile("torture", deadline=None, derandomize=False, max_examples=200)
settings.load_profile("default")

pytest_plugins = ["score_card", "fresh_seeds"]  # the fixtures `card` and `first_seed`


@pytest.fixture(scope="session")
def cluster() -> Iterator[Any]:
    """Give the client of one cluster of two worker processes for all tests."""
    from clusters import local_cluster

    with local_cluster() as client:
        yield client
