"""``python -m marginfold``: the command line."""

from __future__ import annotations

from marginfold.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
