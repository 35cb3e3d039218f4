"""The command ``marginfold``."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from marginfold.runtime.extras import require


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code.

    Parameters
    ----------
    arguments : sequence of str, optional
        Those of the process by default.

    Returns
    -------
    int
        0 for success, 1 for results that are missing or a defect, 2 for input that cannot be
        used, 130 if interrupted.

    Examples
    --------
    >>> from marginfold.cli import main
    >>> main(["--version"])
    marginfold ...
    0
    """
    try:
        require("typer")
    except ModuleNotFoundError as error:
        sys.stderr.write(f"error: {error}\n")
        return 2
    from marginfold.cli.app import app
    from marginfold.cli.errors import run

    return run(app, list(sys.argv[1:] if arguments is None else arguments))
