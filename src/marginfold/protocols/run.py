"""Run tasks on a few processes and store what they return, so that a stop loses nothing."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from marginfold.errors import MarginfoldWarning, WorkerLostError
from marginfold.executors import ProcessPool, run_calls
from marginfold.executors.calls import n_processes
from marginfold.executors.serialization import loads
from marginfold.protocols.records import RecordStore, Result, as_row
from marginfold.protocols.studies import Skip, Task
from marginfold.runtime.jit import compiling_by_own_work, without_compiling

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
    client: Any = None,
    pool: ProcessPool | None = None,
    refuse: Callable[[Task], str] | None = None,
    progress: Callable[[Outcome | None, int, int], None] | None = None,
) -> Summary:
    """Compute the tasks that the store lacks; each is stored as a whole as soon as it is done.

    A failed or skipped task is stored with its reason and tried again by the next run, which also
    goes on where a run ended whose cluster was lost.  An interrupt ends the tasks that are being
    computed; all that were finished are stored, also those that wait to be.

    Parameters
    ----------
    tasks : iterable of Task
    store : RecordStore
        Open for writing; it is written by this process only.
    n_jobs, client, pool
        As in `run_calls`.
    refuse : callable, optional
        Called with a task that is about to be handed out; a reason that it returns skips the task.
    progress : callable, optional
        Called with the last outcome (None at the start), the number of finished tasks and the
        number of all.
    """
    unique = list({task.key: task for task in tasks}.values())
    finished = store.finished()
    missing = [task for task in unique if task.key not in finished]
    found = len(unique) - len(missing)
    counts = {"done": 0, "skipped": 0, "failed": 0}
    tell = progress or (lambda outcome, done, total: None)

    def take(outcome: Outcome) -> None:
        _write(outcome, store)
        counts[outcome.status] += 1
        tell(outcome, found + sum(counts.values()), len(unique))

    def wanted() -> Iterator[Task]:
        for task in missing:
            reason = refuse(task) if refuse else ""
            if reason:
                take(Outcome(task, [Result("none", None, reason=reason)], 0.0, "skipped"))
            else:
                yield task

    tell(None, found, len(unique))
    if pool is None and n_jobs != 1 and client is None:
        with ProcessPool(n_processes(n_jobs)) as own:
            _take_all(_Calls(missing, own, client), wanted(), take, store)
    else:
        _take_all(_Calls(missing, pool, client), wanted(), take, store)
    return Summary(found, **counts)


def begin_processes(tasks: Sequence[Task], pool: ProcessPool) -> None:
    """Start the processes that will compute these tasks, and do not wait for them."""
    pool.begin(_Calls(tasks, pool).function)


def _take_all(
    calls: _Calls, tasks: Iterable[Task], take: Callable[[Outcome], None], store: RecordStore
) -> None:
    """Take what tasks came to; if that is interrupted, store what is finished."""
    outcome = None
    try:
        with closing(calls.outcomes(tasks)) as outcomes:
            for outcome in outcomes:
                take(outcome)
    except BaseException as stop:
        if not isinstance(stop, Exception):
            for finished in (*([] if outcome is None else [outcome]), *calls.unclaimed()):
                _write(finished, store)
        raise


def _write(outcome: Outcome, store: RecordStore) -> None:
    store.write(outcome.task, outcome.results, seconds=outcome.seconds, status=outcome.status)


class _Calls:
    """The calls that compute tasks: here, in kept processes or on a cluster.

    The work of tasks may carry data, and many tasks have the same: it is sent once.
    """

    def __init__(self, tasks: Sequence[Task], pool: ProcessPool | None, client: Any = None) -> None:
        works = list({id(task.work): task.work for task in tasks}.values())
        self.function = partial(_compute_one, works=works)
        self._number = {id(work): i for i, work in enumerate(works)}
        self._pool = pool
        self._client = client
        self._handed_out: list[Task] = []

    def outcomes(self, tasks: Iterable[Task]) -> Generator[Outcome, None, None]:
        """Compute tasks and yield what they came to, in the order in which they are done."""
        for position, outcome in run_calls(
            self.function,
            self._items(tasks),
            client=self._client,
            pool=self._pool,
            on_lost=_lost,
        ):
            yield replace(outcome, task=self._handed_out[position])

    def unclaimed(self) -> Iterator[Outcome]:
        """Yield what was finished when the calls were ended, perhaps what was taken before."""
        for position, content in [] if self._pool is None else self._pool.unclaimed:
            yield replace(loads(content), task=self._handed_out[position])

    def _items(self, tasks: Iterable[Task]) -> Iterator[tuple[Task, int]]:
        for task in tasks:
            self._handed_out.append(task)
            yield replace(task, work=_elsewhere), self._number[id(task.work)]


def _compute_one(item: tuple[Task, int], *, works: Sequence[Callable[[Task], Any]]) -> Outcome:
    task, number = item
    outcome = compute(replace(task, work=works[number]))
    return replace(outcome, task=task)


def _lost(item: tuple[Task, int], error: WorkerLostError) -> Outcome:
    return Outcome(item[0], [Result("none", None, reason=str(error))], 0.0, "failed")


def _elsewhere(task: Task) -> Any:
    raise AssertionError(f"the work of {task} is sent apart from it")


def compute(task: Task) -> Outcome:
    """Do the work of a task; an error becomes an outcome, so that the others go on."""
    start = time.thread_time()  # a worker of a cluster may have other tasks in other threads
    alone = compiling_by_own_work if task.may_compile else without_compiling
    try:
        with alone(), warnings.catch_warnings():
            warnings.simplefilter("ignore", MarginfoldWarning)  # exhaustion is in the records
            warnings.filterwarnings("ignore", message=CUT_SHORT)
            results, status = _checked(task.work(task)), "done"
    except Skip as skip:
        results, status = [Result("none", None, reason=str(skip))], "skipped"
    except Exception as error:
        reason = f"{type(error).__name__}: {error}".encode(errors="replace").decode()
        results, status = [Result("none", None, reason=reason)], "failed"
    return Outcome(task, results, time.thread_time() - start, status)


def _checked(results: Iterable[Result]) -> list[Result]:
    """Return results that can be stored; what cannot is the fault of the task, not of the run."""
    found = list(results)
    if not found:
        raise ValueError("the task returned no result; one without any says why by Skip")
    for result in found:
        as_row(result)
    return found
