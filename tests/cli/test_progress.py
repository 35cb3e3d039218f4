"""The command fit shows the stages of its work on a terminal, and nothing elsewhere."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pty = pytest.importorskip("pty", reason="this system has no pseudo-terminals")
pytest.importorskip("pandas", reason="tables need the extra tables")

SOURCE = Path(__file__).parents[2] / "src"


@pytest.fixture
def table(tmp_path):
    rng = np.random.default_rng(0)
    lines = ["a,b,c,d,kind"]
    for row, kind in zip(rng.normal(size=(90, 4)), "xyz" * 30, strict=True):
        lines.append(",".join([*(f"{value:.3f}" for value in row + "xyz".index(kind)), kind]))
    path = tmp_path / "t.csv"
    path.write_text("\n".join(lines))
    return path


def on_a_terminal(table, *arguments):
    """Run the command with a terminal as standard error; return its output and what is shown."""
    parent, child = pty.openpty()
    path = os.pathsep.join(filter(None, [str(SOURCE), os.environ.get("PYTHONPATH")]))
    try:
        done = subprocess.run(
            [sys.executable, "-m", "marginfold.cli", "fit", str(table), "-t", "kind", *arguments],
            env={**os.environ, "PYTHONPATH": path, "NO_COLOR": "1", "TERM": "xterm"},
            stdout=subprocess.PIPE,
            stderr=child,
            timeout=100,
        )
        seen = os.read(parent, 1_000_000).decode()
    finally:
        os.close(parent)
        os.close(child)
    assert done.returncode == 0, seen
    return done.stdout.decode(), seen


def test_components_are_counted_on_a_terminal(table):
    out, seen = on_a_terminal(table, "-m", "mmda", "-d", "2")
    assert re.search(r"components .* 2/2", seen)
    assert "\x1b" not in out


def test_fits_of_the_folds_are_counted_on_a_terminal(table):
    _, seen = on_a_terminal(table, "-m", "gesvc")
    assert re.search(r"fits .* 5/6", seen)
    assert "classes" in seen


def test_there_is_no_bar_without_a_terminal(command, table):
    done = command("fit", table, "-t", "kind", "-m", "mmda")
    assert done.returncode == 0
    assert done.stderr == ""
