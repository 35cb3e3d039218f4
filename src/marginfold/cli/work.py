"""What a comparison computes, in processes or on a cluster, against the clock, and its table.

The table is shown while it is computed: live on a terminal, line by line elsewhere.
"""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import accumulate
from math import inf, isnan
from statistics import fmean
from typing import TYPE_CHECKING, Any

from marginfold.cli.options import JOBS
from marginfold.cli.output import show_progress

if TYPE_CHECKING:
    from marginfold.compare.race import Race
    from marginfold.compare.runs import Comparison
    from marginfold.executors import ProcessPool
    from marginfold.protocols.records import RecordStore
    from marginfold.protocols.run import Outcome, Summary
    from marginfold.protocols.studies import Task

BEGINNING, CLOCK = 2.0, 3.0
"""Budgets after which no further method is begun, and after which the clock stops a comparison: the
plan was far too low, or the machine is busy with something else.  Half the speed that is planned
for still gives the same answer."""

LEAST_CLOCK = 60.0
"""Seconds that the clock allows, however small the budget."""

LEAST_BEGUN = 10.0
"""Seconds in which methods are begun, however small the budget."""

OPENING = 0.5
"""Seconds of planned work that this process does before others have started, to have a first row
soon."""

PER_SECOND = 4
"""How often the table on a terminal is drawn."""


def begin_imports(jobs: int | None, scheduler: str | None) -> None:
    """Have the imports of the processes made once, while this one makes its own."""
    if scheduler is None and (jobs or JOBS) > 1:
        from marginfold.executors import serve_processes

        serve_processes(["marginfold.compare.runs"])


class Work:
    """What is computed: round by round of the race, then the pictures of a report."""

    def __init__(
        self,
        comparison: Comparison,
        store: RecordStore,
        jobs: int | None,
        scheduler: str | None,
        with_pictures: bool,
        quiet: bool,
    ) -> None:
        self.comparison = comparison.sent()  # the table is read once, and not by every process
        self.store = store
        self.n_jobs = 1 if scheduler else jobs or JOBS
        self.scheduler = scheduler
        self.with_pictures = with_pictures
        self.quiet = quiet
        self.summaries: list[Summary] = []
        self.begun: set[str] = set()
        self.deadline = inf

    def run(self, seconds: float | None) -> float | None:
        """Compute what the records lack; return the seconds after which the clock stopped it."""
        from marginfold.compare.race import rounds

        begun = time.monotonic()
        self.deadline = begun + max(BEGINNING * (self.comparison.budget or inf), LEAST_BEGUN)
        try:
            with (
                _clock(seconds),
                self._processes() as pool,
                shown_standings(self.comparison, self.n_jobs, quiet=self.quiet) as view,
            ):
                for race in rounds(self.comparison, self.store):
                    view.begin(race)
                    self.begun |= {m for m, known in race.known.items() if known.n_measured}
                    self._compute(race.missing, view, pool)
                if self.with_pictures:
                    drawn = self._report_tasks()
                    view.begin_tasks(drawn)
                    self._compute(drawn, view, pool)
        except _OutOfTime:
            return time.monotonic() - begun
        return None

    def _report_tasks(self) -> list[Task]:
        """Return what a report needs beside the errors: pictures, and the best method's columns."""
        from marginfold.compare.race import final_standings, leader

        best = leader(final_standings(self.comparison, self.store))
        weighed = self.comparison.importance_tasks(best) if best else []
        return self.comparison.picture_tasks() + weighed

    def _processes(self) -> contextlib.AbstractContextManager[ProcessPool | None]:
        """Return processes that are kept over all rounds; None on a cluster, or for one process."""
        from marginfold.executors import ProcessPool

        alone = self.scheduler is not None or self.n_jobs == 1
        return contextlib.nullcontext() if alone else ProcessPool(self.n_jobs)

    def _compute(self, tasks: Sequence[Task], view: Standings, pool: ProcessPool | None) -> None:
        """Compute tasks in their order; the first cheap ones here, while the others start."""
        from marginfold.protocols.run import begin_processes, run_tasks

        n_here = 0 if pool is None else self._n_opening(tasks)
        if pool is not None and n_here < len(tasks):
            begin_processes(tasks, pool)
        for some, where in ((tasks[:n_here], None), (tasks[n_here:], pool)):
            if some:
                self.summaries.append(
                    run_tasks(
                        some,
                        self.store,
                        client=self.scheduler,
                        pool=where,
                        refuse=self._refusal,
                        progress=view.move,
                    )
                )

    def _refusal(self, task: Task) -> str:
        """Return why a task is not begun: its method is a new one, and the budget is spent."""
        if task.method not in self.begun and time.monotonic() > self.deadline:
            return (
                f"not begun within twice the budget of {self.comparison.budget:g} s; the same "
                "command takes it up"
            )
        self.begun.add(task.method)
        return ""

    def _n_opening(self, tasks: Sequence[Task]) -> int:
        planned = accumulate(self.comparison.fold_seconds(task.method) for task in tasks)
        return sum(
            task.seed == task.fold == 0 and seconds <= OPENING
            for task, seconds in zip(tasks, planned, strict=True)
        )

    def counts(self) -> dict[str, int]:
        """Return how many tasks were found in the records, done, skipped and failed."""
        from marginfold.compare.race import final_standings

        counts = {
            name: sum(getattr(summary, name) for summary in self.summaries)
            for name in ("found", "done", "skipped", "failed")
        }
        pictures = len(self._report_tasks()) if self.with_pictures else 0
        known = final_standings(self.comparison, self.store)
        measured = sum(standing.n_measured for standing in known.values())
        tried = counts["done"] + counts["skipped"] + counts["failed"]
        counts["found"] = max(counts["found"], measured + pictures - tried)
        return counts


class _OutOfTime(BaseException):
    """The clock has run out; like Ctrl-C, it is no error of the work that it ends."""


@contextlib.contextmanager
def _clock(seconds: float | None) -> Iterator[None]:
    """End the work inside after so many seconds, where the system can wake this process."""
    in_main = threading.current_thread() is threading.main_thread()
    if seconds is None or not in_main or not hasattr(signal, "setitimer"):
        yield
        return

    def ring(*_: object) -> None:
        raise _OutOfTime

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


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

        By the folds so far, and for methods without any by the plan: at the pace of those folds,
        or of this machine as it was measured.
        """
        from marginfold.planner.costs import machine

        planned = sum(self.comparison.fold_seconds(m) * len(s) for m, s in self.seconds.items())
        taken = sum(sum(seconds) for seconds in self.seconds.values())
        here = machine()
        pace = taken / planned if planned else here.slowness * here.waiting

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
            show_progress(f"clearly more errors than the best so far, set aside: {', '.join(new)}")

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
            state = "more errors, set aside" if method in self.stopped else state
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
