"""Every failure is one line and an exit code."""

from __future__ import annotations

import os
import sys
import traceback
import warnings
from typing import Any

import typer

from marginfold.cli.output import one_line, show_error, show_notes, show_traceback
from marginfold.errors import ClusterError, MarginfoldError
from marginfold.runtime.extras import EXTRAS, advice

FAILED = 1
"""Results that could not be computed, or a defect of marginfold."""

REFUSED = 2
"""Input, options or files that cannot be used."""

INTERRUPTED = 130
"""Stopped by the user, as shells count it: 128 and the number of the signal."""

MEMORY_RAN_OUT = (
    "the memory ran out; take a part of the rows or columns of the table, or a machine with more "
    "memory (MARGINFOLD_MEMORY_LIMIT has such work refused before it begins)."
)
"""What is said of an allocation that failed although it was allowed."""


def run(app: typer.Typer, arguments: list[str]) -> int:
    """Run the app on the arguments and return the exit code; ``--debug`` may stand anywhere."""
    debug = "--debug" in arguments
    kept = [argument for argument in arguments if argument != "--debug"]
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            code = app(kept, prog_name="marginfold", standalone_mode=False)
        sys.stdout.flush()
    except (KeyboardInterrupt, typer.Abort):
        code = INTERRUPTED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        if debug:
            show_traceback(traceback.format_exc())
        code, line = explain(error)
        show_error(line + _about_dashes(error, kept))
        return code
    if code == INTERRUPTED:
        sys.stderr.write("interrupted\n")
    return code if isinstance(code, int) else 0


def _show_warning(message: Warning | str, *_: object, **__: object) -> None:
    """Say what a library warns of as a note, which is printable whatever a table holds."""
    show_notes([str(message)])


def explain(error: Exception) -> tuple[int, str]:
    """Return the exit code of an error and its one line."""
    if isinstance(error, ClusterError):
        return FAILED, one_line(str(error))
    if isinstance(error, MarginfoldError):
        return REFUSED, one_line(str(error))
    if isinstance(error, ModuleNotFoundError) and error.name in EXTRAS:
        return REFUSED, _missing_package(error, error.name)
    if isinstance(error, OSError):
        return REFUSED, one_line(_system_message(error))
    if isinstance(error, MemoryError):
        return REFUSED, MEMORY_RAN_OUT
    usage = _usage_message(error)
    if usage:
        return REFUSED, one_line(usage)
    message = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    return FAILED, f"unexpected {one_line(message)} (run with --debug for the traceback)"


def _about_dashes(error: Exception, arguments: list[str]) -> str:
    """Return how to name a file that was taken for an option, if there is one."""
    files = [a for a in arguments if a.startswith("-") and os.path.exists(a)]
    if not files or not _usage_message(error):
        return ""
    return f" A file whose name begins with a dash is given as ./{files[0]}."


def _missing_package(error: ModuleNotFoundError, name: str) -> str:
    said = one_line(str(error))
    return said if "pip install" in said else advice([name])


def _system_message(error: OSError) -> str:
    reason = error.strerror or str(error)
    return f"{error.filename}: {reason}" if error.filename else reason


def _usage_message(error: Exception) -> str:
    """Return what click says of a wrong call, wherever typer keeps its click; "" for others."""
    formatted: Any = getattr(error, "format_message", None)
    if formatted is None:
        return ""
    context: Any = getattr(error, "ctx", None)
    command = context.command_path if context is not None else "marginfold"
    return f"{formatted().rstrip('.')}. Try '{command} --help'."
