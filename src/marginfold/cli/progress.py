"""Bars for tasks and for the stages of a fit on a terminal; nothing elsewhere."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from marginfold.cli.output import show_notes
from marginfold.errors import ClusterError

Follow = Callable[[Any, int, int], None]


@contextlib.contextmanager
def kept_in(folder: Path | None) -> Iterator[None]:
    """Say after an interruption, or the loss of a cluster, whether what was computed is kept."""
    try:
        yield
    except (KeyboardInterrupt, ClusterError):
        kept = (
            "nothing is kept: with --run DIR a comparison goes on where it was"
            if folder is None
            else f"what was computed is kept in {folder}: the same command goes on from there"
        )
        show_notes([kept])
        raise


@contextlib.contextmanager
def follow(label: str) -> Iterator[Follow | None]:
    """Give a callback for `run_tasks` that moves a bar on standard error, with the time left."""
    if not sys.stderr.isatty():
        yield None
        return
    with _bars() as bars:
        shown = bars.add_task(label, total=None)

        def move(outcome: Any, done: int, total: int) -> None:
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

        def move(event: Any) -> None:
            if event.stage not in shown:
                shown[event.stage] = bars.add_task(event.stage)
            bars.update(shown[event.stage], completed=event.done, total=event.total)

        with watch(move):
            yield


def _bars() -> Any:
    """Return bars on standard error that are gone afterwards."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        *(BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn()),
    )
    return Progress(*columns, console=Console(stderr=True), transient=True)
