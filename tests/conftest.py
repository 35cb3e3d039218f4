"""What holds for every test: one BLAS thread, no display, the same random examples each time."""

from __future__ import annotations

import os

# Read when NumPy is imported, so they stand before every other import.
for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")
os.environ.setdefault("MPLBACKEND", "Agg")

from hypothesis import settings

settings.register_profile("default", deadline=None, derandomize=True, max_examples=25)
settings.register_profile("torture", deadline=None, derandomize=False, max_examples=1000)
settings.load_profile("default")
