"""The command fit shows the stages of its work on a terminal, and nothing elsewhere."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from marginfold.cli import main
from marginfold.cli.work import Lines

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


def test_components_are_counted_on_a_terminal(table, terminal):
    """The real command, with a terminal as standard error."""
    path = os.pathsep.join(filter(None, [str(SOURCE), os.environ.get("PYTHONPATH")]))
    arguments = ("fit", str(table), "-t", "kind", "-m", "mmda", "-d", "2")
    done = subprocess.run(
        [sys.executable, "-m", "marginfold", *arguments],
        env={**os.environ, "PYTHONPATH": path},
        stdout=subprocess.PIPE,
        stderr=terminal.fd,
        timeout=100,
    )
    seen = terminal.shown()
    assert done.returncode == 0, seen
    assert re.search(r"components .* 2/2", seen)
    assert b"\x1b" not in done.stdout


def test_fits_of_the_folds_are_counted_on_a_terminal(table, terminal):
    with terminal.as_standard_error():
        assert main(["fit", str(table), "-t", "kind", "-m", "gesvc"]) == 0
    seen = terminal.shown()
    assert re.search(r"fits .* 5/6", seen)
    assert "classes" in seen


def test_there_is_no_bar_without_a_terminal(table, capsys):
    assert main(["fit", str(table), "-t", "kind", "-m", "mmda"]) == 0
    assert capsys.readouterr().err == ""


def test_a_method_that_is_set_aside_may_come_back(capsys):
    """The race looks again at methods it had stopped, so no line says that it will not."""
    comparison = SimpleNamespace(methods=("LDA", "PCA"))
    lines = Lines(comparison, n_jobs=1)
    for going_on in (["LDA"], ["LDA", "PCA"]):
        lines.begin(SimpleNamespace(known={}, going_on=going_on, missing=[]))
    said = "clearly more errors than the best so far, set aside: PCA\n"
    assert capsys.readouterr().err == said
