"""Run tasks on a few processes and store what they return, so that a stop loses nothing."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from marginfold.errors import MarginfoldWarning, WorkerLostError
from marginfold.executors import run_calls
from marginfold.protocols.records import RecordStore, Result, as_row
from marginfold.protocols.studies import Skip, Task
from marginfold.runtime.jit import without_compiling

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
    progress: Callable[[Outcome | None, int, int], None] | None = None,
) -> Summary:
    """Compute the tasks that the store lacks; each is stored as a whole as soon as it is done.

    A failed or skipped task is stored with its reason and tried again by the next run, which also
    goes on where a run ended whose cluster was lost.

    Parameters
    ----------
    tasks : iterable of Task
    store : RecordStore
        Open for writing; it is written by this process only.
    n_jobs, client
        As in `run_calls`.
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
    tell(None, found, len(unique))
    with closing(_outcomes(missing, n_jobs, client)) as outcomes:
        for outcome in outcomes:
            store.write(
                outcome.task, outcome.results, seconds=outcome.seconds, status=outcome.status
            )
            counts[outcome.status] += 1
            tell(outcome, found + sum(counts.values()), len(unique))
    return Summary(found, **counts)


def _outcomes(tasks: Sequence[Task], n_jobs: int, client: Any) -> Generator[Outcome, None, None]:
    """Compute tasks and yield what they came to, in the order in which they are done.

    The work of tasks may carry data, and many tasks have the same: it is sent once.
    """
    works = list({id(task.work): task.work for task in tasks}.values())
    number = {id(work): i for i, work in enumerate(works)}
    items = [(replace(task, work=_elsewhere), number[id(task.work)]) for task in tasks]
    for position, outcome in run_calls(
        partial(_compute_one, works=works), items, n_jobs=n_jobs, client=client, on_lost=_lost
    ):
        yield replace(outcome, task=tasks[position])


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
    try:
        with without_compiling(), warnings.catch_warnings():
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
