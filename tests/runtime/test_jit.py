"""What is compiled, and when: a stand-in for a module that numba compiles counts its calls."""

from __future__ import annotations

import sys
from pickle import UnpicklingError

import pytest

from marginfold.errors import CancelledError
from marginfold.runtime import jit
from marginfold.runtime.jit import VARIABLE, WORTH, compiled_module, compiling_by_own_work
from marginfold.runtime.progress import watch

pytest.importorskip("numba")
NAME = "a_module_that_is_compiled"


@pytest.fixture(autouse=True)
def module(tmp_path, monkeypatch):
    """Put a module where Python finds it, as if the process had just begun."""
    text = "calls = []\nerror = None\ndef first_call():\n    calls.append(1)\n"
    (tmp_path / f"{NAME}.py").write_text(text + "    if error: raise error\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setattr(jit, "_work", {})
    jit._load.cache_clear()
    yield
    sys.modules.pop(NAME, None)
    jit._load.cache_clear()


def is_loaded():
    return NAME in sys.modules


def test_a_plain_wish_is_followed():
    assert compiled_module(NAME, False, 1e9) is None
    assert not is_loaded()
    assert compiled_module(NAME, True) is sys.modules[NAME]


def test_short_work_is_never_compiled():
    for _ in range(50):
        assert compiled_module(NAME, "auto", 0.019 * WORTH) is None
    assert not is_loaded()


def test_work_is_compiled_once_enough_of_it_was_announced():
    found = [compiled_module(NAME, "auto", 0.3 * WORTH) is not None for _ in range(5)]
    assert found == [False, False, False, True, True]
    assert compiled_module(NAME, "auto", 0.0) is sys.modules[NAME]
    assert sys.modules[NAME].calls == [1]


def test_long_work_is_compiled_at_once():
    assert compiled_module(NAME, "auto", WORTH) is not None


def test_the_work_of_one_module_is_not_that_of_another():
    assert compiled_module("another_module", "auto", 0.9 * WORTH) is None
    assert compiled_module(NAME, "auto", 0.9 * WORTH) is None


def test_what_is_loaded_already_is_used():
    compiled_module(NAME, True)
    assert compiled_module(NAME, "auto", 0.0) is sys.modules[NAME]


@pytest.mark.parametrize("before", ["nothing", "work", "loaded"])
def test_work_that_counts_alone_is_compiled_as_in_a_new_process(before):
    if before != "nothing":
        compiled_module(NAME, before == "loaded" or "auto", 0.9 * WORTH)
    for _ in range(2):
        with compiling_by_own_work():
            found = [compiled_module(NAME, "auto", 0.6 * WORTH) is not None for _ in range(3)]
        assert found == [False, True, True]
    assert compiled_module(NAME, "auto", 0.0) is sys.modules[NAME]


@pytest.mark.parametrize("loaded", [False, True])
def test_the_variable_never_leaves_everything_to_numpy(loaded, monkeypatch):
    if loaded:
        compiled_module(NAME, True)
    monkeypatch.setenv(VARIABLE, "never")
    assert compiled_module(NAME, "auto", 1e9) is None
    assert compiled_module(NAME, True) is sys.modules[NAME]


def test_the_variable_always_compiles_at_once(monkeypatch):
    monkeypatch.setenv(VARIABLE, "always")
    assert compiled_module(NAME, "auto", 0.0) is sys.modules[NAME]
    assert compiled_module(NAME, False) is None


def test_compiling_is_a_stage_that_is_reported_once():
    stages = []
    with watch(lambda event: stages.append((event.stage, event.done, event.total))):
        compiled_module(NAME, "auto", 0.5 * WORTH)
        assert not stages
        compiled_module(NAME, "auto", 0.5 * WORTH)
        compiled_module(NAME, "auto", 0.5 * WORTH)
    assert stages == [("compiling, once", 0, 1), ("compiling, once", 1, 1)]


def test_compiling_can_be_cancelled_and_done_later():
    with watch(lambda event: event.cancel()), pytest.raises(CancelledError, match="compiling"):
        compiled_module(NAME, True)
    assert not is_loaded()
    assert compiled_module(NAME, True) is sys.modules[NAME]


def test_without_numba_nothing_is_compiled(monkeypatch):
    monkeypatch.setitem(sys.modules, "numba", None)
    assert compiled_module(NAME, "auto", 1e9) is None
    assert compiled_module(NAME, True) is None
    assert not is_loaded()


@pytest.mark.parametrize(
    "error", [RuntimeError("no locator"), OSError(28, "full"), EOFError(), UnpicklingError()]
)
def test_where_numba_cannot_keep_its_work_it_is_asked_once(error):
    module = __import__(NAME)
    module.error = error
    for _ in range(3):
        assert compiled_module(NAME, "auto", 1e9) is None
    assert module.calls == [1]


def test_an_error_of_another_kind_is_not_hidden():
    __import__(NAME).error = TypeError("a fault in the module")
    with pytest.raises(TypeError, match="a fault"):
        compiled_module(NAME, True)
