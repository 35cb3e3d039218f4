"""The real command in a folder of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("typer", reason="the command line needs the extra cli")

SOURCE = Path(__file__).parents[2] / "src"


class Command:
    """Runs ``marginfold`` in a folder."""

    def __init__(self, folder):
        self.folder = folder

    def __call__(self, *arguments, **options):
        path = os.pathsep.join(filter(None, [str(SOURCE), os.environ.get("PYTHONPATH")]))
        return subprocess.run(
            [sys.executable, "-m", "marginfold.cli", *map(str, arguments)],
            cwd=self.folder,
            env={**os.environ, "PYTHONPATH": path, "NO_COLOR": "1"},
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=120,
            **options,
        )

    def listing(self):
        """Every file of the folder with its content."""
        return {
            path.relative_to(self.folder): path.read_bytes()
            for path in sorted(self.folder.rglob("*"))
            if path.is_file()
        }


@pytest.fixture
def command(tmp_path):
    return Command(tmp_path)
