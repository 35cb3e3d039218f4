"""Large decompositions equal SciPy's and answer Ctrl-C."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import scipy.linalg
from numpy.testing import assert_allclose, assert_array_equal
from scipy.linalg import lapack
from score_card import OPEN

from marginfold.linalg.decompositions import (
    LONG,
    cholesky,
    eigh,
    eigvalsh,
    interruptible,
    product,
    qr,
    solve_lower,
    syevr,
)

try:
    import resource
except ImportError:  # not a Unix system: what needs it is skipped
    resource = None

ANSWER = 2.0
"""Seconds within which Ctrl-C is answered."""


def symmetric(n):
    A = np.random.default_rng(n).standard_normal((n, n))
    return A + A.T


@pytest.mark.parametrize("n", [1, 2, 7, 130])
@pytest.mark.parametrize("part", ["all", "first", "last"])
def test_pairs_are_those_of_scipy(n, part):
    A = symmetric(n)
    subset = {"all": None, "first": (0, n // 2), "last": (n // 2, n - 1)}[part]
    before = A.copy()
    found = syevr(A, subset, vectors=True)
    for ours, theirs in zip(found, scipy.linalg.eigh(A, subset_by_index=subset), strict=True):
        assert_allclose(ours, theirs, rtol=0, atol=1e-12)
    assert_array_equal(A, before)
    assert_allclose(syevr(A, None, vectors=False)[0], scipy.linalg.eigvalsh(A), atol=1e-12)


def test_large_decompositions_have_their_defining_properties():
    n = LONG + 10
    A = symmetric(n)
    values, vectors = eigh(A, (n - 3, n - 1))
    assert_allclose(A @ vectors, vectors * values, atol=1e-9)
    assert_allclose(vectors.T @ vectors, np.eye(3), atol=1e-12)
    assert_allclose(eigvalsh(A)[-3:], values, rtol=1e-12)
    Q, R = qr(A)
    assert_allclose(product(Q, R), A, atol=1e-10)
    assert_array_equal(R, np.triu(R))
    definite = A + 200 * np.eye(n)
    for lower in (True, False):
        factor, failed = cholesky(definite, lower=lower)
        assert not failed
        expected, _ = lapack.dpotrf(definite, lower=lower)
        assert_allclose(np.tril(factor) if lower else np.triu(factor), expected, atol=1e-10)
        assert cholesky(A, lower=lower)[1]
    out = np.empty((n, n))
    assert product(Q, R, out=out) is out
    assert_allclose(out, A, atol=1e-10)
    F = np.tril(A) + 200 * np.eye(n)
    assert_allclose(F @ solve_lower(F, A), A, atol=1e-9)
    assert_allclose(F.T @ solve_lower(F, A, transposed=True), A, atol=1e-9)


def test_an_error_in_the_other_thread_is_raised_in_this_one():
    with pytest.raises(np.linalg.LinAlgError, match="Singular"):
        interruptible(lambda: np.linalg.inv(np.zeros((2, 2))))


@pytest.mark.skipif(not hasattr(signal, "SIGALRM"), reason="needs a timer that sends signals")
@pytest.mark.parametrize("decompose", [eigh, qr])
def test_an_interrupt_is_raised_while_lapack_computes(decompose):
    """Python would raise it after the call, which takes some ten times as long as the timer."""

    def interrupt(*_):
        raise KeyboardInterrupt

    A = symmetric(2500)
    before = signal.signal(signal.SIGALRM, interrupt)
    begin = time.perf_counter()
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        with pytest.raises(KeyboardInterrupt):
            decompose(A)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)
    assert time.perf_counter() - begin < 0.1 + ANSWER


ON_ROWS = """
import numpy as np
from marginfold import {name}
rng = np.random.default_rng(0)
X, y = rng.standard_normal((6000, 20)), rng.integers(0, 2, 6000)
print("ready", flush=True)
{name}(kernel="rbf").fit(X, y)
"""
IN_COORDINATES = """
import numpy as np
from marginfold.svm import {name}
rng = np.random.default_rng(0)
X, y = rng.standard_normal((6000, 5999)), rng.choice([-1.0, 1.0], 6000)
print("ready", flush=True)
{name}().solve(X, y, 1.0)
"""
LONG_FITS = {
    **{name: ON_ROWS.format(name=name) for name in ("KDA", "SVMPCA", "LSVA", "GESVC", "GEPSVC")},
    "InteriorPoint": IN_COORDINATES.format(name="InteriorPoint"),
}


@pytest.mark.torture
@pytest.mark.skipif(sys.platform != "linux", reason="reads the processor time of a child")
@pytest.mark.parametrize("name", LONG_FITS)
@pytest.mark.parametrize("seconds", [2, 8, 20])
def test_ctrl_c_ends_a_fit_of_an_exact_kernel(name, seconds, card):
    """Seconds are those of the processor: other programs may slow this one down."""
    before = children_seconds()
    with subprocess.Popen(
        [sys.executable, "-c", LONG_FITS[name]], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as fit:
        assert fit.stdout.readline() == b"ready\n"
        start = used = own_seconds(fit.pid)
        while used < start + seconds and fit.poll() is None:
            time.sleep(0.05)
            used = own_seconds(fit.pid)
        fit.send_signal(signal.SIGINT)
        try:
            fit.wait(120)
        finally:
            fit.kill()
    answered = children_seconds() - before - used < ANSWER
    card.add("interrupts of long fits", "answered in 2 s" if answered else OPEN)
    assert answered


def children_seconds():
    """Return the processor time of all children that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def own_seconds(pid):
    """Return the processor time of a child, which may have ended but was not waited for."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
