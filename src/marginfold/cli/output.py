"""Results go to standard output; notes, errors and progress bars to standard error."""

from __future__ import annotations

import contextlib
import json
import sys
import textwrap
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from marginfold.errors import ClusterError

if TYPE_CHECKING:
    from marginfold.protocols.run import Outcome
    from marginfold.runtime.progress import Progress

HIDDEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Categories of characters that act on a terminal, or on how others are read."""

JOINERS = "\u200c\u200d"
"""Characters of these that writing needs: Persian, Indic scripts, emoji of several parts."""

Follow = Callable[["Outcome | None", int, int], None]


def show_json(result: Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> None:
    """Print one JSON object, or a list of them; a number that JSON does not have becomes null."""
    _say(json.dumps(_plain(result), ensure_ascii=False, allow_nan=False))


def show_line(text: str = "") -> None:
    """Print a line."""
    _say(text)


def show_rows(rows: Iterable[tuple[str, str]]) -> None:
    """Print names and values in two aligned columns."""
    rows = [(printable(name), value) for name, value in rows]
    width = max(len(name) for name, _ in rows)
    for name, value in rows:
        _say(f"{name:<{width}}  {value}")


def show_table(names: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table: names in the first column, numbers aligned to the right in the others."""
    lines = [[printable(cell) for cell in line] for line in [names, *rows]]
    first, *widths = (max(len(cell) for cell in column) for column in zip(*lines, strict=True))
    for name, *cells in lines:
        numbers = [cell.rjust(width) for cell, width in zip(cells, widths, strict=True)]
        _say("  ".join([name.ljust(first), *numbers]).rstrip())


def show_csv(text: str) -> None:
    """Print a CSV table: exactly into a file or a pipe, only what is printable on a terminal."""
    if not sys.stdout.isatty():
        typer.echo(text, nl=False)
        return
    for line in text.splitlines():
        _say(line)


def show_notes(notes: Iterable[str]) -> None:
    """Print notes on standard error, a line for each."""
    for note in notes:
        _say(f"note: {one_line(note)}", err=True)


def show_progress(text: str) -> None:
    """Print a line on standard error that says how far the work is."""
    _say(one_line(text), err=True)


def show_error(text: str) -> None:
    """Print what went wrong as one line on standard error."""
    _say(f"error: {one_line(text)}", err=True)


def show_traceback(text: str) -> None:
    """Print a traceback on standard error."""
    for line in text.splitlines():
        _say(line, err=True)


def one_line(text: str) -> str:
    """Return the words of a text with single spaces between."""
    return " ".join(text.split())


def show_words(text: str, *, indent: str = "") -> None:
    """Print a sentence in lines that fit a terminal, all but the first indented."""
    for line in textwrap.wrap(printable(one_line(text)), width=100, subsequent_indent=indent):
        _say(line)


def printable(text: str) -> str:
    r"""Return a text as it may be sent to a terminal: what is not to be seen is spelled out.

    Control characters, line ends, marks that turn the direction of writing and halves of
    characters become the escapes of JSON, so that JSON stays what it is.

    Examples
    --------
    >>> from marginfold.cli.output import printable
    >>> print(printable("\x1b]0;title\x07 猫"))
    \u001b]0;title\u0007 猫
    """
    return "".join(json.dumps(c)[1:-1] if _is_hidden(c) else c for c in text)


def _is_hidden(character: str) -> bool:
    return unicodedata.category(character) in HIDDEN and character not in JOINERS


def _say(line: str, *, err: bool = False) -> None:
    """Print a line; everything that commands say goes through here."""
    typer.echo(printable(line), err=err)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    if isinstance(value, float) and (value != value or value in (float("inf"), -float("inf"))):
        return None
    return value if isinstance(value, (str, int, float, bool, type(None))) else str(value)


@contextlib.contextmanager
def kept_in(folder: Path) -> Iterator[None]:
    """Say after an interruption, or the loss of a cluster, that what was computed is kept."""
    try:
        yield
    except (KeyboardInterrupt, ClusterError):
        show_notes([f"what was computed is kept in {folder}: the same command goes on from there"])
        raise


@contextlib.contextmanager
def follow(label: str) -> Iterator[Follow | None]:
    """Give a callback for `run_tasks` that moves a bar on standard error, with the time left."""
    if not sys.stderr.isatty():
        yield None
        return
    with _bars() as bars:
        shown = bars.add_task(label, total=None)

        def move(outcome: Outcome | None, done: int, total: int) -> None:
            words = label if outcome is None else printable(str(outcome.task))
            bars.update(shown, description=words, completed=done, total=total)

        yield move


@contextlib.contextmanager
def watched() -> Iterator[None]:
    """Show a bar for each stage of the work inside on standard error, if that is a terminal."""
    if not sys.stderr.isatty():
        yield
        return
    from marginfold.runtime.progress import watch

    with _bars() as bars:
        shown: dict[str, Any] = {}

        def move(event: Progress) -> None:
            if event.stage not in shown:
                shown[event.stage] = bars.add_task(event.stage)
            bars.update(shown[event.stage], completed=event.done, total=event.total)

        with watch(move):
            yield


def _bars() -> Any:
    """Return bars on standard error that are gone afterwards."""
    from rich import progress as rich
    from rich.console import Console

    columns = (
        *(
            rich.TextColumn("{task.description}", markup=False),
            rich.BarColumn(),
            rich.MofNCompleteColumn(),
        ),
        *(rich.TimeElapsedColumn(), rich.TimeRemainingColumn()),
    )
    return rich.Progress(*columns, console=Console(stderr=True), transient=True)
