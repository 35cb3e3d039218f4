"""What mypy and pyright tell a user of the package: nothing of good.py, every mistake of bad.py.

Both find the types by ``py.typed``, as in any project that has the package installed.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

HERE = Path(__file__).parent
WRONG = re.compile(r"  # wrong(?: \((?P<only>\w+)\))?$")
"""The mark of a mistake.  scikit-learn ships no types: for mypy an estimator could be anything, and
what only its class would tell is found by pyright alone, which reads scikit-learn's sources."""


@cache
def mypy():
    """Return (file, line, kind, message) of everything that mypy says of the clients."""
    pytest.importorskip("mypy")
    command = [sys.executable, "-m", "mypy", "--config-file=", "--strict", "--allow-untyped-calls"]
    command += ["--ignore-missing-imports", "--cache-dir", os.devnull, "--no-error-summary"]
    said = run([*command, "good.py", "bad.py"])
    return [
        (found["file"], int(found["line"]), found["kind"], found["message"])
        for found in re.finditer(
            r"(?m)^(?P<file>\w+\.py):(?P<line>\d+): (?P<kind>\w+): (?P<message>.*)", said
        )
    ]


@cache
def pyright():
    """Return the same of pyright."""
    program = Path(sys.executable).with_name("pyright")
    if not program.exists() or shutil.which("node") is None:
        if os.environ.get("CI") == "true":
            pytest.fail("pyright needs `make install` and Node, which CI has")
        pytest.skip("pyright needs `make install` and Node")
    said = run([str(program), "--outputjson", "--pythonpath", sys.executable, "good.py", "bad.py"])
    return [
        (
            Path(found["file"]).name,
            found["range"]["start"]["line"] + 1,
            found["severity"],
            found["message"],
        )
        for found in json.loads(said)["generalDiagnostics"]
    ]


def run(command):
    environment = dict(os.environ, PYRIGHT_PYTHON_IGNORE_WARNINGS="1")
    done = subprocess.run(command, cwd=HERE, env=environment, capture_output=True, text=True)
    assert done.returncode in (0, 1), done.stdout + done.stderr  # 1: there are errors
    return done.stdout


CHECKERS = pytest.mark.parametrize("checker", [mypy, pyright])


@CHECKERS
def test_a_right_client_is_accepted(checker):
    assert [found for found in checker() if found[0] == "good.py" and found[2] == "error"] == []


@CHECKERS
def test_every_mistake_is_underlined_and_nothing_else(checker):
    marks = [WRONG.search(line) for line in (HERE / "bad.py").read_text("utf-8").splitlines()]
    name = checker.__wrapped__.__name__
    wanted = {
        number for number, mark in enumerate(marks, 1) if mark and mark["only"] in (None, name)
    }
    found = {line for file, line, kind, _ in checker() if (file, kind) == ("bad.py", "error")}
    assert len(wanted) > 50
    assert found == wanted


@CHECKERS
def test_results_have_the_types_that_the_client_expects(checker):
    lines = (HERE / "good.py").read_text("utf-8").splitlines()
    wanted = {
        number: line.rpartition("# ")[2]
        for number, line in enumerate(lines, 1)
        if line.startswith("reveal_type(")
    }
    said = {line: message for file, line, _, message in checker() if file == "good.py"}
    assert len(wanted) > 10
    for number, name in wanted.items():
        revealed = re.findall(r'is "(?:\w+\.)*(\w+)', said[number])
        assert revealed == [name], lines[number - 1]
