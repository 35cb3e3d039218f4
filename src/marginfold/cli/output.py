"""Results go to standard output; notes, errors and progress bars to standard error."""

from __future__ import annotations

import contextlib
import json
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from marginfold.errors import ClusterError

if TYPE_CHECKING:
    from marginfold.protocols.run import Outcome
    from marginfold.runtime.progress import Progress

Follow = Callable[["Outcome | None", int, int], None]


def show_json(result: Mapping[str, Any]) -> None:
    """Print one JSON object; a number that JSON does not have becomes null."""
    typer.echo(json.dumps(_plain(result), ensure_ascii=False, allow_nan=False))


def show_rows(rows: Iterable[tuple[str, str]]) -> None:
    """Print names and values in two aligned columns."""
    rows = list(rows)
    width = max(len(name) for name, _ in rows)
    for name, value in rows:
        typer.echo(f"{name:<{width}}  {value}")


def show_table(names: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table: names in the first column, numbers aligned to the right in the others."""
    first, *widths = (
        max(len(cell) for cell in column) for column in zip(names, *rows, strict=True)
    )
    for name, *cells in [names, *rows]:
        numbers = [cell.rjust(width) for cell, width in zip(cells, widths, strict=True)]
        typer.echo("  ".join([name.ljust(first), *numbers]).rstrip())


def show_notes(notes: Iterable[str]) -> None:
    """Print notes on standard error, a line for each."""
    for note in notes:
        typer.echo(f"note: {one_line(note)}", err=True)


def show_progress(text: str) -> None:
    """Print a line on standard error that says how far the work is."""
    typer.echo(one_line(text), err=True)


def show_error(text: str) -> None:
    """Print what went wrong as one line on standard error."""
    typer.echo(f"error: {one_line(text)}", err=True)


def one_line(text: str) -> str:
    """Return the words of a text with single spaces between."""
    return " ".join(text.split())


def show_words(text: str, *, indent: str = "") -> None:
    """Print a sentence in lines that fit a terminal, all but the first indented."""
    typer.echo(textwrap.fill(text, width=100, subsequent_indent=indent))


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
            words = label if outcome is None else str(outcome.task)
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
        *(rich.TextColumn("{task.description}"), rich.BarColumn(), rich.MofNCompleteColumn()),
        *(rich.TimeElapsedColumn(), rich.TimeRemainingColumn()),
    )
    return rich.Progress(*columns, console=Console(stderr=True), transient=True)
