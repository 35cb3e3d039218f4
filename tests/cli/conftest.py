"""The real command in a folder of its own."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
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
            [sys.executable, "-m", "marginfold", *map(str, arguments)],
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


class Terminal:
    """A terminal to write to; a thread reads what it is sent, so that no writer has to wait."""

    def __init__(self):
        pty = pytest.importorskip("pty", reason="this system has no pseudo-terminals")
        self._parent, self.fd = pty.openpty()
        self._seen = bytearray()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        with contextlib.suppress(OSError):  # all writers are gone
            while part := os.read(self._parent, 65536):
                self._seen.extend(part)

    @contextlib.contextmanager
    def as_standard_error(self):
        """Make it the standard error of this process."""
        with (
            open(self.fd, "w", encoding="utf-8", closefd=False) as file,
            contextlib.redirect_stderr(file),
        ):
            yield

    def shown(self):
        """Close the terminal and return all that it was sent."""
        os.close(self.fd)
        self._reader.join(60)
        os.close(self._parent)
        return self._seen.decode()


@pytest.fixture
def terminal(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", "1")
    return Terminal()
