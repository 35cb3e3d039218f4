"""Run tasks on a few processes and store what they return, so that a stop loses nothing."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass

from threadpoolctl import threadpool_limits

from marginfold.errors import MarginfoldWarning
from marginfold.protocols.records import RecordStore, Result, as_row
from marginfold.protocols.tasks import Skip, Task

ATTEMPTS = 3
"""How often the process of a task may die (killed, out of memory) until the task has failed."""

WAITING_PER_PROCESS = 2
"""Tasks handed to the pool ahead of time, per process: a stop does not wait for more."""


CUT_SHORT = "Solver terminated early"
"""How scikit-learn's warning of a libsvm that was cut short begins: the papers' costs do that."""


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
        A failed or skipped task is stored with its reason and tried again by the next run.
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
    return map(compute, tasks) if n_jobs == 1 else _in_processes(tasks, n_jobs)


def compute(task: Task) -> Outcome:
    """Do the work of a task; an error becomes an outcome, so that the others go on."""
    start = time.process_time()
    try:
        with warnings.catch_warnings(), threadpool_limits(1):
            warnings.simplefilter("ignore", MarginfoldWarning)  # exhaustion is in the records
            warnings.filterwarnings("ignore", message=CUT_SHORT)
            results, status = _checked(task.work(task)), "done"
    except Skip as skip:
        results, status = [Result("none", None, reason=str(skip))], "skipped"
    except Exception as error:
        reason = f"{type(error).__name__}: {error}".encode(errors="replace").decode()
        results, status = [Result("none", None, reason=reason)], "failed"
    return Outcome(task, results, time.process_time() - start, status)


def _checked(results: Iterable[Result]) -> list[Result]:
    """Return results that can be stored; what cannot is the fault of the task, not of the run."""
    found = list(results)
    if not found:
        raise ValueError("the task returned no result; one without any says why by Skip")
    for result in found:
        as_row(result)
    return found


def _in_processes(tasks: Sequence[Task], n_jobs: int) -> Iterator[Outcome]:
    """Yield outcomes as they come.

    When a process dies, nobody knows which task took it down: those in flight are then computed
    one at a time, each in a process of its own.
    """
    waiting, suspects = deque(tasks), deque[Task]()
    while waiting or suspects:
        if suspects:
            yield _alone(suspects.popleft())
        else:
            yield from _together(waiting, suspects, n_jobs)


def _together(waiting: deque[Task], suspects: deque[Task], n_jobs: int) -> Iterator[Outcome]:
    """Compute what waits until all is done or a process dies, which makes suspects."""
    running: dict[Future[Outcome], Task] = {}
    with _pool(n_jobs) as pool:
        try:
            while waiting or running:
                while waiting and len(running) < WAITING_PER_PROCESS * n_jobs:
                    running[pool.submit(compute, waiting[0])] = waiting[0]
                    waiting.popleft()
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    outcome = future.result()
                    del running[future]
                    yield outcome
        except BrokenProcessPool:
            for future, task in running.items():
                if future.done() and future.exception() is None:
                    yield future.result()
                else:
                    suspects.append(task)


def _alone(task: Task) -> Outcome:
    """Compute a task whose process died again, in processes of its own."""
    for _ in range(ATTEMPTS - 1):
        with _pool(1) as pool, contextlib.suppress(BrokenProcessPool):
            return pool.submit(compute, task).result()
    reason = f"its process died {ATTEMPTS} times (killed, or out of memory)"
    return Outcome(task, [Result("none", None, reason=reason)], 0.0, "failed")


@contextlib.contextmanager
def _pool(n_jobs: int) -> Iterator[ProcessPoolExecutor]:
    """Give fresh processes; whatever ends the block ends them too."""
    others = set(multiprocessing.active_children())
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(n_jobs, mp_context=context, initializer=_obey_parent)
    try:
        yield pool
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        for child in set(multiprocessing.active_children()) - others:
            child.terminate()


def _obey_parent() -> None:
    """Leave Ctrl-C to the parent, and end when the parent is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
