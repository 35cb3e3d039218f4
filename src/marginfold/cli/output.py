"""Results go to standard output, progress and notes to standard error."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import typer

LINE = 100
"""Characters of a line of words."""


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


def show_error(text: str) -> None:
    """Print what went wrong as one line on standard error."""
    typer.echo(f"error: {one_line(text)}", err=True)


def one_line(text: str) -> str:
    """Return the words of a text with single spaces between."""
    return " ".join(text.split())


def show_words(text: str, *, indent: str = "") -> None:
    """Print a sentence in lines that fit a terminal, all but the first indented."""
    typer.echo(textwrap.fill(text, LINE, subsequent_indent=indent))


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
