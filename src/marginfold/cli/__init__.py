"""The command ``marginfold``."""

from __future__ import annotations

import sys
from collections.abc import Sequence

INSTALL_LINE = 'pip install "marginfold[cli]"'
"""What installs everything that the commands need."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code.

    Parameters
    ----------
    arguments : sequence of str, optional
        Those of the process by default.

    Returns
    -------
    int
        0 for success, 2 for input that cannot be used, 1 for a defect, 130 if interrupted.

    Examples
    --------
    >>> from marginfold.cli import main
    >>> main(["--version"])
    marginfold ...
    0
    """
    try:
        import typer  # noqa: F401
    except ModuleNotFoundError:
        sys.stderr.write(f"error: the command line needs typer: {INSTALL_LINE}\n")
        return 2
    from marginfold.cli.app import app
    from marginfold.cli.errors import run

    return run(app, list(sys.argv[1:] if arguments is None else arguments))
