"""The clients are read by type checkers and never run."""

from __future__ import annotations

collect_ignore = ["bad.py", "good.py"]
