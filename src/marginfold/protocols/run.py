"""Run tasks on a few processes and store what they return, so that a stop loses nothing."""

from __future__ import annotations

import multiprocessing
import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass

from threadpoolctl import threadpool_limits

from marginfold.errors import MarginfoldWarning
from marginfold.protocols.records import RecordStore, Result
from marginfold.protocols.tasks import Skip, Task

ATTEMPTS = 3
"""How often a task may take its process down (out of memory, killed) before it counts as failed."""

WAITING_PER_PROCESS = 2
"""Tasks handed to the pool ahead of time, per process: a stop does not wait for more."""


@dataclass(frozen=True)
class Outcome:
    """What one task came to."""

    task: Task
    results: list[Result]
    seconds: float
    status: str


@dataclass(frozen=True)
class Summary:
    """What a run did: tasks found finished, and tasks done, skipped and failed now."""

    found: int
    done: int
    skipped: int
    failed: int


def run_tasks(
    tasks: Iterable[Task],
    store: RecordStore,
    *,
    n_jobs: int = 1,
    progress: Callable[[Outcome | None, int, int], None] | None = None,
) -> Summary:
    """Compute the tasks that the store lacks; each is stored as a whole as soon as it is done.

    Parameters
    ----------
    tasks : iterable of Task
    store : RecordStore
        Open for writing.
    n_jobs : int, default=1
        Processes; 1 computes in this one.
    progress : callable, optional
        Called with the last outcome (None at the start), the number of finished tasks and the
        number of all.

    Returns
    -------
    Summary
        A failed task is stored with its reason and tried again by the next run.
    """
    unique = list({task.key: task for task in tasks}.values())
    finished = store.finished()
    missing = [task for task in unique if task.key not in finished]
    found = len(unique) - len(missing)
    counts = {"done": 0, "skipped": 0, "failed": 0}
    tell = progress or (lambda outcome, done, total: None)
    tell(None, found, len(unique))
    for outcome in _outcomes(missing, n_jobs):
        store.write(outcome.task, outcome.results, seconds=outcome.seconds, status=outcome.status)
        counts[outcome.status] += 1
        tell(outcome, found + sum(counts.values()), len(unique))
    return Summary(found, **counts)


def _outcomes(tasks: Sequence[Task], n_jobs: int) -> Iterable[Outcome]:
    if n_jobs == 1 or len(tasks) < 2:
        return map(compute, tasks)
    return _in_processes(tasks, n_jobs)


def compute(task: Task) -> Outcome:
    """Do the work of a task; an error becomes an outcome, so that the others go on."""
    start = time.process_time()
    try:
        with warnings.catch_warnings(), threadpool_limits(1):
            warnings.simplefilter("ignore", MarginfoldWarning)  # exhaustion is in the records
            results, status = list(task.work(task)), "done"
    except Skip as skip:
        results, status = [Result("none", None, reason=str(skip))], "skipped"
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
        results, status = [Result("none", None, reason=reason)], "failed"
    return Outcome(task, results, time.process_time() - start, status)


def _in_processes(tasks: Sequence[Task], n_jobs: int) -> Iterable[Outcome]:
    """Yield outcomes as they come; a process that dies takes no other task with it."""
    waiting = list(reversed(tasks))
    deaths: dict[str, int] = {}
    while waiting:
        pool = ProcessPoolExecutor(n_jobs, mp_context=multiprocessing.get_context("spawn"))
        running: dict[Future[Outcome], Task] = {}
        try:
            while waiting or running:
                while waiting and len(running) < WAITING_PER_PROCESS * n_jobs:
                    task = waiting.pop()
                    running[pool.submit(compute, task)] = task
                ready, _ = wait(running, return_when=FIRST_COMPLETED)
                for future in ready:
                    outcome = future.result()
                    del running[future]
                    yield outcome
        except BrokenProcessPool:
            yield from _after_death(list(running.values()), waiting, deaths)
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _after_death(lost: list[Task], waiting: list[Task], deaths: dict[str, int]) -> list[Outcome]:
    """Put lost tasks back; one that was lost too often has failed."""
    failed = []
    for task in lost:
        deaths[task.key] = deaths.get(task.key, 0) + 1
        if deaths[task.key] < ATTEMPTS:
            waiting.append(task)
        else:
            reason = f"its process died {ATTEMPTS} times (killed, or out of memory)"
            failed.append(Outcome(task, [Result("none", None, reason=reason)], 0.0, "failed"))
    return failed
