"""Where numba is missing or refuses, "auto" does without it, and a plain wish is answered."""

from __future__ import annotations

import importlib
import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose
from svm.random_problems import random_batch

import marginfold.svm
from marginfold import LSVA
from marginfold.errors import InvalidParameterError, SolverError
from marginfold.runtime import jit as compiling
from marginfold.svm import Automatic, InteriorPoint, iterations

SOLVERS = pytest.mark.parametrize("solver", [InteriorPoint, Automatic])
NAME = "marginfold.svm.kernels"


class Refusal:
    """Stands before all other finders of modules and refuses the compiled one."""

    def __init__(self, error):
        self._error = error

    def find_spec(self, name, path=None, target=None):
        if name == NAME:
            raise self._error


def forget():
    """Ask anew whether there is a compiled iteration."""
    compiling.compiled_module.cache_clear()


@pytest.fixture
def forgotten(monkeypatch):
    """Forget the compiled iteration; everything is back afterwards."""
    monkeypatch.delitem(sys.modules, NAME, raising=False)
    monkeypatch.delattr(marginfold.svm, "compiled", raising=False)
    forget()
    yield
    monkeypatch.undo()
    forget()


@pytest.fixture
def missing(forgotten, monkeypatch):
    """An environment without numba."""
    monkeypatch.setitem(sys.modules, "numba", None)


REFUSALS = {
    "numba does not fit": ("numba", ImportError("Numba needs NumPy 2.3 or less")),
    "nowhere to keep it": (NAME, RuntimeError("cannot cache function 'start': no locator")),
    "the disk is full": (NAME, OSError(28, "No space left on device")),
}


@pytest.fixture(params=REFUSALS)
def refusing(request, forgotten, monkeypatch):
    """An environment whose numba cannot keep what it compiles, or does not fit NumPy."""
    pytest.importorskip("numba")
    refused, error = REFUSALS[request.param]
    original = compiling.import_module

    def importing(name):
        if name == refused:
            raise error
        return original(name)

    monkeypatch.setattr(compiling, "import_module", importing)


def check_answers(solver):
    """Compare "auto" with NumPy: the same route gives the same bits."""
    batch = random_batch(n_deflated=1)
    assert not InteriorPoint(compiled="auto").is_compiled
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
def test_numba_is_not_asked_for_where_nobody_wants_it(solver, forgotten, monkeypatch):
    refusal = Refusal(AssertionError("it was imported"))
    monkeypatch.setattr(sys, "meta_path", [refusal, *sys.meta_path])
    assert solver(compiled=False).solve([[0.0], [1.0]], [-1, 1], C=10.0).converged


def test_the_answer_does_not_depend_on_numba(request):
    """What a user sees: a fit with the default solver."""
    rng = np.random.default_rng(3)
    y = np.arange(120) % 3
    X = rng.standard_normal((120, 5)) + 1.5 * rng.standard_normal((3, 5))[y]
    before = LSVA(n_components=3).fit(X, y)
    request.getfixturevalue("missing")
    without = LSVA(n_components=3).fit(X, y)
    assert_allclose(without.components_, before.components_, atol=1e-6)
    assert_allclose(without.transform(X), before.transform(X), atol=1e-5)


def test_the_fixtures_leave_no_trace():
    """Stands last: what was hidden above is back."""
    try:
        importlib.import_module("numba")
    except ImportError:
        assert iterations.compiled_iteration() is None
    else:
        assert iterations.compiled_iteration() is importlib.import_module(NAME)
        assert InteriorPoint().is_compiled
