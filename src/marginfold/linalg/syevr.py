"""LAPACK's symmetric eigenvalue problem, called so that other Python threads run meanwhile.

SciPy's own wrapper of the same routine holds Python's lock while it computes, so that not even
Ctrl-C is noticed.  `ctypes` gives the lock up.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

import numpy as np
from scipy import LowLevelCallable
from scipy.linalg import LinAlgError, cython_lapack

from marginfold.linalg.tall import Array

QUERY = -1
"""Length of a workspace that asks for the best length."""


def syevr(A: Array, subset: tuple[int, int] | None, *, vectors: bool) -> tuple[Array, Array]:
    """Return eigenvalues, smallest first, and eigenvectors (an empty array without ``vectors``).

    The lower triangle of A is read, and A is not written to.  The results are those of
    `scipy.linalg.eigh`, to the last bit.
    """
    n = len(A)
    first, last = (0, n - 1) if subset is None else subset
    a = np.array(A, dtype=np.float64, order="F")
    m = last - first + 1
    z = np.empty((n, m) if vectors else (1, 1), order="F")
    values, support = np.empty(n), np.empty(2 * max(1, m), dtype=np.intc)
    found, info = ctypes.c_int(), ctypes.c_int()

    def call(work: Array, lwork: int, iwork: Array, liwork: int) -> None:
        _dsyevr()(
            b"V" if vectors else b"N",
            b"A" if subset is None else b"I",
            b"L",
            _int(n),
            a.ctypes,
            _int(n),
            _float(0.0),
            _float(1.0),
            _int(first + 1),
            _int(last + 1),
            _float(0.0),
            ctypes.byref(found),
            values.ctypes,
            z.ctypes,
            _int(len(z)),
            support.ctypes,
            work.ctypes,
            _int(lwork),
            iwork.ctypes,
            _int(liwork),
            ctypes.byref(info),
        )

    work, iwork = np.empty(1), np.empty(1, dtype=np.intc)
    call(work, QUERY, iwork, QUERY)
    lwork, liwork = int(work[0]), int(iwork[0])
    call(np.empty(lwork), lwork, np.empty(liwork, dtype=np.intc), liwork)
    if info.value:
        raise LinAlgError(f"LAPACK's dsyevr failed on a matrix of {n} rows (info {info.value}).")
    return values[: found.value], z[:, : found.value] if vectors else z[:0, :0]


@cache
def _dsyevr() -> Any:
    """Return the routine that SciPy offers to compiled code."""
    capsule = LowLevelCallable.from_cython(cython_lapack, "dsyevr").function
    python = ctypes.pythonapi
    python.PyCapsule_GetName.restype = ctypes.c_char_p
    python.PyCapsule_GetName.argtypes = [ctypes.py_object]
    python.PyCapsule_GetPointer.restype = ctypes.c_void_p
    python.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    address = python.PyCapsule_GetPointer(capsule, python.PyCapsule_GetName(capsule))
    letters, pointers = [ctypes.c_char_p] * 3, [ctypes.c_void_p] * 18
    return ctypes.CFUNCTYPE(None, *letters, *pointers)(address)


def _int(value: int) -> Any:
    return ctypes.byref(ctypes.c_int(value))


def _float(value: float) -> Any:
    return ctypes.byref(ctypes.c_double(value))
