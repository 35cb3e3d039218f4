"""Where numba is missing or refuses, solvers do without it, and a plain wish is answered."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose
from svm.random_problems import random_batch

from marginfold import LSVA
from marginfold.errors import InvalidParameterError, SolverError
from marginfold.runtime import jit
from marginfold.svm import Automatic, InteriorPoint

SOLVERS = pytest.mark.parametrize("solver", [InteriorPoint, Automatic])
NAMES = "marginfold.svm.kernels", "marginfold.svm.sweeps"


@pytest.fixture
def eager(monkeypatch):
    """Ask anew for what is compiled, at once; everything is back afterwards."""
    monkeypatch.setenv(jit.VARIABLE, "always")
    for name in NAMES:
        monkeypatch.delitem(sys.modules, name, raising=False)
    jit._load.cache_clear()
    yield
    monkeypatch.undo()
    jit._load.cache_clear()


@pytest.fixture
def missing(eager, monkeypatch):
    """An environment without numba."""
    monkeypatch.setitem(sys.modules, "numba", None)


REFUSALS = {
    "numba does not fit": (("numba",), ImportError("Numba needs NumPy 2.3 or less")),
    "nowhere to keep it": (NAMES, RuntimeError("cannot cache function 'start': no locator")),
    "the disk is full": (NAMES, OSError(28, "No space left on device")),
    "what was kept is damaged": (NAMES, EOFError("Ran out of input")),
}


@pytest.fixture(params=REFUSALS)
def refusing(request, eager, monkeypatch):
    """An environment whose numba cannot keep what it compiles, or does not fit NumPy."""
    pytest.importorskip("numba")
    refused, error = REFUSALS[request.param]
    original = jit.import_module

    def importing(name):
        if name in refused:
            raise error
        return original(name)

    monkeypatch.setattr(jit, "import_module", importing)


def check_answers(solver):
    """Compare "auto" with NumPy: the same way gives the same bits, in many dimensions too."""
    for batch in (random_batch(n_deflated=1), random_batch(150, 120, n_problems=1)):
        found = [solver(compiled=compiled).solve_batch(batch) for compiled in ("auto", False)]
        for auto, plain in zip(*found, strict=True):
            assert auto.converged
            assert (auto.coef == plain.coef).all()
            assert auto.intercept == plain.intercept


@SOLVERS
def test_without_numba_auto_is_numpy(solver, missing):
    check_answers(solver)


@SOLVERS
def test_where_numba_refuses_auto_is_numpy(solver, refusing):
    check_answers(solver)


@SOLVERS
def test_without_numba_compiling_is_refused_with_the_line_that_installs_it(solver, missing):
    with pytest.raises(ModuleNotFoundError, match=r'pip install "marginfold\[compiled\]"') as error:
        solver(compiled=True)
    assert error.value.name == "numba"


@SOLVERS
def test_where_numba_refuses_compiling_is_refused_with_what_to_do(solver, refusing):
    with pytest.raises(SolverError, match=r"NUMBA_CACHE_DIR.*compiled=False"):
        solver(compiled=True)


@SOLVERS
@pytest.mark.parametrize("wrong", ["yes", "True", 1, 0, None, 2.0])
def test_a_wrong_choice_is_refused(solver, wrong):
    with pytest.raises(InvalidParameterError, match="compiled"):
        solver(compiled=wrong)


@SOLVERS
def test_numba_is_not_asked_for_where_nobody_wants_it(solver, eager, monkeypatch):
    def refuse(name):
        raise AssertionError(f"{name} was imported")

    monkeypatch.setattr(jit, "import_module", refuse)
    assert solver(compiled=False).solve([[0.0], [1.0]], [-1, 1], C=10.0).converged


def test_the_answer_does_not_depend_on_numba():
    """What a user sees: fits in few and in many dimensions."""
    pytest.importorskip("numba")
    rng = np.random.default_rng(3)
    y = np.arange(120) % 3
    for r in (5, 110):
        X = rng.standard_normal((120, r)) + 1.5 * rng.standard_normal((3, r))[y]
        compiled, plain = (
            LSVA(n_components=3, solver=Automatic(compiled=wish)).fit(X, y)
            for wish in (True, False)
        )
        assert_allclose(plain.components_, compiled.components_, atol=1e-6)
        assert_allclose(plain.transform(X), compiled.transform(X), atol=1e-5)


FIRST_FIT = """
import sys
import numpy as np
from marginfold import LSVA
rng = np.random.default_rng(0)
y = np.arange(1000) % 3
X = rng.standard_normal((1000, 30)) + rng.standard_normal((3, 30))[y]
LSVA(2).fit(X, y)
sys.exit("numba" in sys.modules)
"""


def test_the_first_short_fit_of_a_process_does_not_wait_for_numba():
    own = {key: value for key, value in os.environ.items() if key != jit.VARIABLE}
    assert subprocess.run([sys.executable, "-c", FIRST_FIT], env=own, check=False).returncode == 0


def test_the_fixtures_leave_no_trace():
    """Stands last: what was hidden above is back."""
    pytest.importorskip("numba")
    assert jit.compiled_module(NAMES[0], True) is sys.modules[NAMES[0]]
