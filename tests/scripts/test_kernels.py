"""Tests as on other processors: the list names tests that exist, and what is left out is said."""

from __future__ import annotations

import os
from pathlib import Path

import kernels
import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", kernels.TESTS)
def test_every_listed_test_exists(name):
    path, _, function = name.partition("::")
    assert (ROOT / path).exists()
    if function:
        assert f"\ndef {function}(" in (ROOT / path).read_text(encoding="utf-8")


def test_a_kernel_is_left_out_only_for_a_reason():
    assert kernels.why_not("SkylakeX", "Haswell") is None
    assert kernels.why_not("Katmai", None) is None
    assert "cannot run" in kernels.why_not(None, "Haswell")
    assert "all tests" in kernels.why_not("Haswell", "Haswell")
    assert "OpenBLAS" in kernels.why_not("", "")


def test_openblas_is_told_which_kernel_to_take(monkeypatch):
    monkeypatch.setenv("OPENBLAS_CORETYPE", "Nehalem")
    assert "OPENBLAS_CORETYPE" not in kernels.environment(None)
    assert kernels.environment("Haswell")["OPENBLAS_CORETYPE"] == "Haswell"
    assert os.environ["OPENBLAS_CORETYPE"] == "Nehalem"


def test_a_processor_that_refuses_is_no_kernel(monkeypatch):
    monkeypatch.setattr(kernels, "PROBE", "import os; os.abort()")
    assert kernels.architectures("Haswell") is None


def test_every_kernel_is_run_or_named(monkeypatch, capsys):
    calls = []

    class Done:
        returncode = 1

    found = {None: "Haswell", "Haswell": "Haswell", "SkylakeX": None, "Prescott": "Katmai"}
    monkeypatch.setattr(kernels, "architectures", found.get)
    monkeypatch.setattr(
        kernels.subprocess, "run", lambda command, **rest: calls.append((command, rest)) or Done
    )
    assert kernels.main("3") == 1
    (command, rest) = calls[0]
    assert len(calls) == 1
    assert rest["env"]["OPENBLAS_CORETYPE"] == "Prescott"
    assert command[1:6] == ["-m", "pytest", "-q", "-n", "3"]
    said = capsys.readouterr().out
    assert "Haswell: left out, all tests" in said
    assert "SkylakeX: left out, this processor cannot" in said
