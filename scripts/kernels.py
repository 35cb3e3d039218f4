"""Run the numerically sensitive tests as if on other processors.

    python scripts/kernels.py [JOBS]

OpenBLAS picks its routines by the processor, and they round differently.  What holds with the
routines of one machine must hold with those of every other, so a part of the tests is run with the
routines of several.  One that this processor cannot run is left out, and so is the one that it
picks by itself: all tests run with that.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]

KERNELS = ("Haswell", "SkylakeX", "Prescott")
"""AVX2, AVX-512 and SSE: the widths of a vector, which decide the order of a sum."""

TESTS = (
    "tests/test_degeneracy.py",
    "tests/test_degeneracy_eigen.py",
    "tests/test_units_and_far_rows.py",
    "tests/test_invariants.py::test_rotation_and_translation",
    "tests/test_invariants.py::test_order_of_rows",
    "tests/test_invariants.py::test_a_distant_origin",
    "tests/test_invariants.py::test_components_are_orthonormal_and_certified",
    "tests/test_invariants_eigen.py::test_rotation_and_translation",
    "tests/test_invariants_eigen.py::test_order_of_rows",
    "tests/test_invariants_eigen.py::test_a_distant_origin",
    "tests/test_invariants_eigen.py::test_constant_columns_count_for_nothing",
    "tests/test_equivalences.py::test_linear_kernel_is_the_linear_method",
    "tests/test_equivalences.py::test_rotation_into_more_columns_than_rows_changes_nothing",
    "tests/test_equivalences_deflation.py",
    "tests/test_equivalences_subspaces.py::test_llsva",
    "tests/test_equivalences_subspaces.py::test_wsvda",
    "tests/estimators/test_discriminant.py",
    "tests/geometry",
    "tests/linalg/test_leading.py",
    "tests/linalg/test_sparse.py",
    "tests/svm/test_certificate.py::test_any_point_becomes_a_valid_certificate",
    "tests/svm/test_certificate.py::test_extreme_problems_are_certified",
    "tests/svm/test_exactness.py",
    "tests/svm/test_gram.py",
    "tests/svm/test_pairs.py",
    "tests/linalg/test_blocked.py",
    "tests/estimators/test_one_vs_one.py",
)

LARGE = "two_hundred_classes"
"""A test that is about the number of classes, and takes a fifth of the time of all the others."""

PROBE = """
import numpy, scipy.linalg
from threadpoolctl import threadpool_info
A = numpy.arange(10_000.0).reshape(100, 100) % 7.0
scipy.linalg.eigh(A @ A.T)
pools = [pool for pool in threadpool_info() if pool["internal_api"] == "openblas"]
print(*sorted({pool["architecture"] for pool in pools}))
"""


def main(jobs: str = "2") -> int:
    """Run the tests with every kernel that can be run; return the number of kernels that failed."""
    own = architectures(None)
    failed = 0
    for kernel in KERNELS:
        reason = why_not(architectures(kernel), own)
        if reason is not None:
            print(f"kernel {kernel}: left out, {reason}", flush=True)
            continue
        print(f"kernel {kernel}:", flush=True)
        command = [sys.executable, "-m", "pytest", "-q", "-n", jobs, "-k", f"not {LARGE}", *TESTS]
        failed += subprocess.run(command, cwd=ROOT, env=environment(kernel)).returncode != 0
    return failed


def why_not(found: str | None, own: str | None) -> str | None:
    """Return why a kernel is left out, given what OpenBLAS uses when asked for it and when not."""
    if found is None:
        return "this processor cannot run it"
    if not found:
        return "NumPy and SciPy do not use OpenBLAS here"
    if found == own:
        return "all tests run with it on this processor"
    return None


def architectures(kernel: str | None) -> str | None:
    """Return the names of the kernels in use, or None if the processor refused an instruction."""
    command = [sys.executable, "-c", PROBE]
    done = subprocess.run(command, env=environment(kernel), capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else None


def environment(kernel: str | None) -> dict[str, str]:
    """Return this environment, with OpenBLAS told which kernel to take."""
    rest = {name: value for name, value in os.environ.items() if name != "OPENBLAS_CORETYPE"}
    return rest if kernel is None else rest | {"OPENBLAS_CORETYPE": kernel}


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
