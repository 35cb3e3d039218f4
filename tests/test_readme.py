"""The code in README.md runs as it stands, from top to bottom, in one namespace."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

README = Path(__file__).parents[1] / "README.md"
PYTHON_BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_readme_code_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {"__name__": "__main__"}
    for block in python_blocks():
        exec(compile(block, str(README), "exec"), namespace)


def python_blocks() -> list[str]:
    """The Python blocks, each pushed down to its own line so that a traceback names that line."""
    assert README.is_file(), f"README.md is missing: expected it at {README}"
    text = README.read_text(encoding="utf-8")
    blocks = [
        "\n" * text.count("\n", 0, match.start(1)) + match.group(1)
        for match in PYTHON_BLOCK.finditer(text)
    ]
    assert blocks, "README.md has no ```python block: show how the package is used"
    return blocks
