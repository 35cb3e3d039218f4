"""What a comparison computes, in processes of this machine or on a cluster, against the clock."""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from itertools import accumulate
from math import inf
from typing import TYPE_CHECKING

from marginfold.cli.options import JOBS
from marginfold.cli.standings import Standings, shown_standings

if TYPE_CHECKING:
    from marginfold.compare.runs import Comparison
    from marginfold.executors import ProcessPool
    from marginfold.protocols.records import RecordStore
    from marginfold.protocols.run import Summary
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
