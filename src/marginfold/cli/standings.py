"""The table of a comparison while it is computed: live on a terminal, line by line elsewhere."""

from __future__ import annotations

import contextlib
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from math import isnan
from statistics import fmean
from typing import TYPE_CHECKING, Any

from marginfold.cli.output import show_progress

if TYPE_CHECKING:
    from marginfold.compare.race import Race
    from marginfold.compare.runs import Comparison
    from marginfold.protocols.run import Outcome
    from marginfold.protocols.studies import Task

PER_SECOND = 4
"""How often the table on a terminal is drawn."""


class Standings:
    """What is known of the methods, told as it comes; this one tells nothing.

    Parameters
    ----------
    comparison : Comparison
    n_jobs : int
        Tasks that are computed side by side.
    """

    def __init__(self, comparison: Comparison, n_jobs: int) -> None:
        self.comparison = comparison
        self.n_jobs = n_jobs
        self.errors: dict[str, dict[int, float]] = defaultdict(dict)
        self.seconds: dict[str, list[float]] = defaultdict(list)
        self.stopped: list[str] = []
        self.waiting: list[Task] = []
        self.n_done = 0

    def begin(self, race: Race) -> None:
        """Take up the tasks until the next look, and what was measured before."""
        for method, standing in race.known.items():
            measured = ((fold, float(share)) for fold, share in enumerate(standing.shares))
            self.errors[method] = {fold: share for fold, share in measured if not isnan(share)}
        self.stopped = [m for m in self.comparison.methods if m not in race.going_on]
        self.begin_tasks(race.missing)

    def begin_tasks(self, tasks: Sequence[Task]) -> None:
        """Take up tasks, in their order."""
        self.waiting = list(tasks)

    def move(self, outcome: Outcome | None, done: int, total: int) -> None:
        """Take up what a task came to."""
        if outcome is None:
            return
        task = outcome.task
        self.waiting = [other for other in self.waiting if other.key != task.key]
        self.n_done += 1
        self.seconds[task.method].append(outcome.seconds)
        values = [r.value for r in outcome.results if r.metric == "error" and r.value is not None]
        if values and task.protocol != "picture":
            position = task.seed * self.comparison.n_folds + task.fold
            self.errors[task.method][position] = min(values)

    def ranked(self) -> list[tuple[str, float | None]]:
        """Return methods with their mean errors in percent so far, the least first."""
        means = {m: 100 * fmean(e.values()) for m, e in self.errors.items() if e}
        known = sorted(means.items(), key=lambda pair: pair[1])
        return [*known, *((m, None) for m in self.comparison.methods if m not in means)]

    def running(self) -> str:
        """Return the methods that are computed now."""
        return ", ".join(dict.fromkeys(task.method for task in self.waiting[: self.n_jobs]))

    def seconds_left(self) -> tuple[float, float]:
        """Return about how long it takes to the next look, and to the end if nobody is stopped.

        By the folds so far, and for methods without any by the plan.
        """
        planned = sum(self.comparison.fold_seconds(m) * len(s) for m, s in self.seconds.items())
        taken = sum(sum(seconds) for seconds in self.seconds.values())
        pace = taken / planned if planned else 1.0

        def one_fold(method: str) -> float:
            before = self.seconds.get(method)
            return fmean(before) if before else pace * self.comparison.fold_seconds(method)

        soon = sum(one_fold(task.method) for task in self.waiting)
        whole = self.comparison.n_measurements
        going_on = [m for m in self.comparison.methods if m not in self.stopped]
        rest = sum(one_fold(m) * (whole - len(self.errors[m])) for m in going_on)
        return soon / self.n_jobs, max(soon, rest) / self.n_jobs


class Lines(Standings):
    """One line when a method has its first error, and one at each look."""

    def begin(self, race: Race) -> None:
        """Say which methods are not refined further."""
        before = set(self.stopped)
        super().begin(race)
        new = [method for method in self.stopped if method not in before]
        if new:
            show_progress(
                f"clearly more errors than the best, so not measured further: {', '.join(new)}"
            )

    def move(self, outcome: Outcome | None, done: int, total: int) -> None:
        """Say the first error of a method."""
        method = None if outcome is None else outcome.task.method
        is_first = method is not None and not self.errors[method]
        super().move(outcome, done, total)
        if outcome is not None and method is not None and is_first and self.errors[method]:
            (error,) = self.errors[method].values()
            show_progress(
                f"{method}: {100 * error:.1f} % wrong on the first of "
                f"{self.comparison.n_measurements} folds ({outcome.seconds:.2f} s)"
            )


class LiveTable(Standings):
    """A table that fills, with what is running and an estimate of the time left."""

    live: Any = None

    def begin_tasks(self, tasks: Sequence[Task]) -> None:
        """Show what is taken up."""
        super().begin_tasks(tasks)
        self.live.update(self.table(), refresh=True)

    def move(self, outcome: Outcome | None, done: int, total: int) -> None:
        """Show what has come."""
        super().move(outcome, done, total)
        self.live.update(self.table())

    def table(self) -> Any:
        """Return the table as rich draws it."""
        from rich.table import Table

        whole = self.comparison.n_measurements
        all_tasks = self.n_done + len(self.waiting)
        left = " to ".join(dict.fromkeys(f"{seconds:.0f}" for seconds in self.seconds_left()))
        words = f"{self.running()}  {self.n_done}/{all_tasks}  about {left} s left"
        table = Table("method", caption=words if self.waiting else "", box=None, pad_edge=False)
        for name in ("error %", "folds", "s/fold"):
            table.add_column(name, justify="right")
        table.add_column("")
        running = self.running().split(", ")
        for method, error in self.ranked():
            seconds = self.seconds.get(method)
            state = "running" if method in running else ""
            state = "more errors, stopped" if method in self.stopped else state
            table.add_row(
                method,
                "" if error is None else f"{error:.1f}",
                f"{len(self.errors[method])}/{whole}",
                f"{fmean(seconds):.2f}" if seconds else "",
                state,
            )
        return table


@contextlib.contextmanager
def shown_standings(comparison: Comparison, n_jobs: int, *, quiet: bool) -> Iterator[Standings]:
    """Give what tells the standings: a live table on a terminal, lines elsewhere unless quiet."""
    if not sys.stderr.isatty():
        yield (Standings if quiet else Lines)(comparison, n_jobs)
        return
    from rich.console import Console
    from rich.live import Live

    view = LiveTable(comparison, n_jobs)
    console = Console(stderr=True)
    with Live(
        console=console, transient=True, refresh_per_second=PER_SECOND, vertical_overflow="crop"
    ) as live:
        view.live = live
        yield view
