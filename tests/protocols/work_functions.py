"""Work of tasks that reaches other processes, and runs of it that can be killed from outside."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import marginfold
from marginfold.protocols.records import RecordStore, Result
from marginfold.protocols.run import run_tasks
from marginfold.protocols.studies import Skip, Task

LOG = "MARGINFOLD_TEST_LOG"
"""Environment variable with the file that names every piece of work when it begins."""

PAUSE = "MARGINFOLD_TEST_PAUSE"
"""Environment variable with the seconds that a counted task takes."""

N_PARTS = 40
"""Rows of a counted task."""

N_PARTS_AT_ONCE = 2000
"""Rows of a task of `write_much`: writing them is what a kill is to hit."""

N_TASKS_AT_ONCE = 900
"""Most tasks of `write_much`, so that it ends by itself if nobody kills it."""

KILLER = 99
"""Fold of the task that takes its process down."""


def log(task: Task) -> None:
    """Add the task's fold and this process to the log, in one write."""
    line = f"{task.fold} {os.getpid()}\n".encode()
    file = os.open(os.environ[LOG], os.O_APPEND | os.O_CREAT | os.O_WRONLY)
    os.write(file, line)
    os.close(file)


def logged(path: Path) -> list[tuple[int, int]]:
    """Return fold and process of all work in the order in which it began."""
    if not path.exists():
        return []
    lines = [line.split() for line in path.read_text().splitlines()]
    return [(int(fold), int(process)) for fold, process in lines]


def count_up(task: Task) -> list[Result]:
    """Return numbers that follow from the task alone, or skip, or fail."""
    log(task)
    time.sleep(float(os.environ.get(PAUSE, "0")))
    if task.fold % 4 == 3:
        raise Skip(f"fold {task.fold} is empty")
    if task.fold % 7 == 5:
        raise ZeroDivisionError(f"fold {task.fold}")
    return [
        Result("error", (task.fold + 1) / (part + 3), {"part": part}, dimension=part)
        for part in range(N_PARTS)
    ]


def succeed(task: Task) -> list[Result]:
    """Return one value after a pause."""
    log(task)
    time.sleep(task.options.get("pause", 0.0))
    return [Result("error", float(task.fold))]


def fail_until_mended(task: Task) -> list[Result]:
    """Fail as long as a file is absent."""
    log(task)
    if not Path(task.options["mended"]).exists():
        raise OSError("Störung Δ")
    return [Result("error", 0.5)]


def kill_itself(task: Task) -> list[Result]:
    """End this process at once, as the system does when memory runs out."""
    log(task)
    time.sleep(task.options.get("pause", 0.0))
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("unreachable")


def no_result(task: Task) -> list[Result]:
    """Return nothing at all."""
    return []


def unstorable(task: Task) -> list[Result]:
    """Return parameters that JSON does not know."""
    return [Result("error", 0.5, {"rows": {1, 2}})]


def set_environment(environment: dict[str, str]) -> None:
    """Set variables of the process that this is called in."""
    os.environ.update(environment)


def counted_tasks(n_tasks: int, work: Callable = count_up, **options) -> list[Task]:
    """Return tasks that differ in their fold."""
    return [
        Task("demo", "none", work.__name__, fold=fold, options=options, work=work)
        for fold in range(n_tasks)
    ]


def killer(pause: float = 0.0) -> Task:
    """Return a task that takes its process down."""
    options = {"pause": pause}
    return Task("demo", "none", "kill", fold=KILLER, options=options, work=kill_itself)


def run_count(folder: str, n_tasks: str, pause: str, n_jobs: str) -> None:
    """Run a plan of counted tasks that take their time."""
    os.environ[PAUSE] = pause
    with RecordStore(folder) as store:
        run_tasks(counted_tasks(int(n_tasks)), store, n_jobs=int(n_jobs))


def run_on_cluster(folder: str, n_tasks: str, address: str) -> None:
    """Run a plan of counted tasks on a cluster, whose workers know how long each takes."""
    with RecordStore(folder) as store:
        run_tasks(counted_tasks(int(n_tasks)), store, client=address)


def run_killer(folder: str, n_jobs: str) -> None:
    """Run nothing but the task that takes its process down."""
    with RecordStore(folder) as store:
        run_tasks([killer()], store, n_jobs=int(n_jobs))


def write_much(folder: str, first: str) -> None:
    """Write tasks of many rows, more of them than there is time for."""
    results = [Result("error", part / 7.0, {"part": part}) for part in range(N_PARTS_AT_ONCE)]
    with RecordStore(folder) as store:
        for fold in range(int(first), int(first) + N_TASKS_AT_ONCE):
            task = Task("demo", "none", "write", fold=fold, work=succeed)
            log(task)
            store.write(task, results, seconds=0.0)


def start(function: Callable, *arguments: object, log: Path) -> subprocess.Popen:
    """Start one of the runs above as a process of its own, the first of a new group."""
    folders = [str(Path(__file__).parents[1]), str(Path(marginfold.__file__).parents[1])]
    path = os.pathsep.join([*folders, os.environ.get("PYTHONPATH", "")])
    code = f"import sys, protocols.work_functions as w; w.{function.__name__}(*sys.argv[1:])"
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, arguments)],
        env=os.environ | {LOG: str(log), "PYTHONPATH": path},
        start_new_session=True,
        stderr=subprocess.PIPE,
        text=True,
    )
