"""Results go to standard output, progress and notes to standard error."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import typer


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
    """Print notes on standard error."""
    for note in notes:
        typer.echo(f"note: {note}", err=True)


def progress(label: str, items: Sequence[Any]) -> Iterator[Any]:
    """Give the items one by one; a terminal shows a bar that is gone afterwards."""
    if not sys.stderr.isatty():
        yield from items
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        yield from bar.track(items, description=label)


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
