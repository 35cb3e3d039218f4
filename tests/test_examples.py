"""The gallery: every script runs as it stands, asks a question and ends with the answer."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"
SCRIPTS = sorted(EXAMPLES.glob("plot_*.py"))
CELL = "# %%\n"

pytestmark = pytest.mark.skipif(not SCRIPTS, reason="the examples are not part of this copy")

each_script = pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)


def answer(script: Path) -> str:
    """Return the words of the last cell, which has no code."""
    lines = script.read_text(encoding="utf-8").split(CELL)[-1].splitlines()
    assert all(line.startswith("# ") for line in lines), "the last cell is not a text"
    return " ".join(line.removeprefix("# ") for line in lines)


@each_script
def test_a_script_runs_without_a_warning_and_writes_nothing(script, tmp_path):
    environment = os.environ | {"MPLBACKEND": "Agg", "OPENBLAS_NUM_THREADS": "1"}
    environment.pop("PYTHONWARNINGS", None)  # what reaches a user
    run = subprocess.run(
        [sys.executable, "-B", str(script)],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        encoding="utf-8",
        timeout=600,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    assert not run.stderr
    assert not list(tmp_path.iterdir())


@each_script
def test_the_title_is_a_question(script):
    title, line = ast.get_docstring(ast.parse(script.read_text(encoding="utf-8"))).splitlines()[:2]
    assert title.endswith("?")
    assert line == "=" * len(title)


@each_script
def test_the_last_cell_is_one_sentence_and_asserts_stand_before_it(script):
    assert re.fullmatch(r"[A-Z][^?!]+\.", answer(script))
    assert not re.search(r"[.?!]\s+[A-Z]", answer(script))
    cells = script.read_text(encoding="utf-8").split(CELL)
    assert any(isinstance(node, ast.Assert) for node in ast.walk(ast.parse(cells[-2])))


def test_the_gallery_has_twelve_scripts_and_nothing_else_to_run():
    assert len(SCRIPTS) == 12
    assert sorted(EXAMPLES.glob("*.py")) == SCRIPTS
    assert (EXAMPLES / "GALLERY_HEADER.rst").is_file()
