"""Runs: killed, interrupted, shared and failing ones lose nothing and do nothing twice."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from protocols import work_functions as w

from marginfold.executors import ATTEMPTS
from marginfold.protocols.records import FILE_NAME, Record, RecordStore
from marginfold.protocols.run import Outcome, Summary, run_tasks

PATIENCE = 60.0
"""Seconds after which a process that should have ended is given up."""

needs_kill = pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX systems")


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "log.txt"
    monkeypatch.setenv(w.LOG, str(path))
    return path


@pytest.fixture
def begin() -> Iterator[Callable]:
    """Start runs in processes; at the end nothing of them is left."""
    started = []

    def start(function: Callable, *arguments: object, log: Path) -> subprocess.Popen:
        started.append(w.start(function, *arguments, log=log))
        return started[-1]

    yield start
    for process in started:
        kill_group(process)


def kill_group(process: subprocess.Popen) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate(timeout=PATIENCE)


def wait_for(condition: Callable[[], bool], patience: float = PATIENCE) -> bool:
    end = time.monotonic() + patience
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.005)
    return True


def alive(pid: int) -> bool:
    """Whether a process still runs; one that only waits to be collected does not."""
    stat = Path(f"/proc/{pid}/stat")
    if Path("/proc/self/stat").exists():
        with contextlib.suppress(OSError):
            return stat.read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def table(store: RecordStore) -> list[Record]:
    return [replace(record, seconds=0.0) for record in store.read()]


def undisturbed(folder: Path, tasks: list) -> list[Record]:
    with RecordStore(folder) as store:
        run_tasks(tasks, store)
        return table(store)


def folds(log: Path) -> list[int]:
    return [fold for fold, _ in w.logged(log)]


def stored_folds(folder: Path) -> set[int]:
    """Folds that need no further attempt; every task that is there must be there as a whole."""
    if not (folder / FILE_NAME).exists():
        return set()
    with RecordStore(folder) as store:
        rows = store.read()
        parts = Counter(r.fold for r in rows)
        assert all(
            n == (1 if fold % 4 == 3 or fold % 7 == 5 else w.N_PARTS) for fold, n in parts.items()
        )
        done = {r.fold for r in rows if r.task in store.finished()}
    return done


@pytest.mark.attack("kills and interrupts")
@needs_kill
@pytest.mark.parametrize(("n_jobs", "most_kills"), [(1, 4), (2, 3)])
def test_killed_at_any_moment_it_ends_as_if_undisturbed(tmp_path, log, begin, n_jobs, most_kills):
    rng, folder = np.random.default_rng(n_jobs), tmp_path / "run"
    n_tasks, pause, kills = 20, 0.02, 0
    while True:
        before, done = len(folds(log)), stored_folds(folder)
        process = begin(w.run_count, folder, n_tasks, pause, n_jobs, log=log)
        enough = before + int(rng.integers(1, 6))
        wait_for(lambda: len(folds(log)) >= enough or process.poll() is not None)  # noqa: B023
        time.sleep(rng.uniform(0.0, 2 * pause))
        if kills == most_kills:
            process.communicate(timeout=PATIENCE)
        kills += process.poll() is None
        kill_group(process)
        assert process.returncode in (0, -signal.SIGKILL)
        assert not done & set(folds(log)[before:])  # what is stored is not computed again
        if process.returncode == 0:
            break
    assert kills >= 2
    with RecordStore(folder, read_only=True) as store:
        assert table(store) == undisturbed(tmp_path / "calm", w.counted_tasks(n_tasks))
        assert {r.status for r in store.read()} == {"done", "skipped", "failed"}


@pytest.mark.attack("kills and interrupts")
@needs_kill
def test_a_kill_while_writing_leaves_no_half_of_a_task(tmp_path, log, begin):
    rng, folder, n_cut = np.random.default_rng(0), tmp_path / "run", 0
    for first in range(0, 4000, 1000):
        process = begin(w.write_much, folder, first, log=log)
        assert wait_for(lambda: first + 1 in folds(log))  # noqa: B023
        time.sleep(rng.uniform(0.0, 0.05))
        kill_group(process)
        with RecordStore(folder) as store:
            parts = Counter(r.fold for r in store.read())
        assert set(parts.values()) == {w.N_PARTS_AT_ONCE}
        begun = [fold for fold in folds(log) if fold >= first]
        n_cut += begun[-1] not in parts
        assert set(begun[:-1]) <= set(parts)  # and what write() returned from is kept
    assert n_cut  # some kill did hit a write


@pytest.mark.attack("kills and interrupts")
@needs_kill
@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("whole_group", [False, True])
def test_an_interrupt_leaves_a_resumable_store_and_no_process(
    tmp_path, log, begin, n_jobs, whole_group
):
    folder = tmp_path / "run"
    process = begin(w.run_count, folder, 12, 0.15, n_jobs, log=log)
    assert wait_for(lambda: len(folds(log)) >= 6)
    send = os.killpg if whole_group else os.kill  # Ctrl-C in a terminal reaches the whole group
    send(process.pid, signal.SIGINT)
    message = process.communicate(timeout=PATIENCE)[1]
    assert process.returncode != 0
    assert "KeyboardInterrupt" in message
    workers = {pid for _, pid in w.logged(log)}
    assert wait_for(lambda: not any(map(alive, workers)))
    done, before = stored_folds(folder), len(folds(log))
    assert 0 < len(done) < 12
    assert before < 12
    tasks = w.counted_tasks(12)
    with RecordStore(folder) as store:
        run_tasks(tasks, store)
        assert not done & set(folds(log)[before:])
        assert table(store) == undisturbed(tmp_path / "calm", tasks)


@pytest.mark.attack("kills and interrupts")
@needs_kill
def test_workers_do_not_outlive_a_killed_parent(tmp_path, log, begin):
    process = begin(w.run_count, tmp_path / "run", 12, 0.05, 2, log=log)
    assert wait_for(lambda: len(folds(log)) >= 4)
    process.kill()
    process.wait(PATIENCE)
    assert wait_for(lambda: not any(alive(pid) for _, pid in w.logged(log)), patience=5.0)


@pytest.mark.attack("kills and interrupts")
@needs_kill
def test_a_task_that_takes_its_process_down_has_failed(tmp_path, log):
    tasks = [*w.counted_tasks(4, w.succeed), w.killer(pause=0.3)]
    with RecordStore(tmp_path / "run") as store:
        assert run_tasks(tasks, store, n_jobs=2) == Summary(found=0, done=4, skipped=0, failed=1)
        (record,) = store.read(status="failed")
    assert (record.method, record.value) == ("kill", None)
    assert f"died {ATTEMPTS} times" in record.reason
    assert Counter(folds(log)) == {0: 1, 1: 1, 2: 1, 3: 1, w.KILLER: ATTEMPTS}


@pytest.mark.attack("kills and interrupts")
@needs_kill
def test_a_task_that_takes_its_process_down_takes_no_other_with_it(tmp_path, log):
    slow = w.counted_tasks(6, w.succeed, pause=0.2)
    tasks = [*slow[:2], w.killer(), *slow[2:]]
    with RecordStore(tmp_path / "run") as store:
        assert run_tasks(tasks, store, n_jobs=2) == Summary(found=0, done=6, skipped=0, failed=1)
        assert {r.fold for r in store.read(status="done")} == set(range(6))
        assert {r.fold for r in store.read(status="failed")} == {w.KILLER}


@pytest.mark.attack("kills and interrupts")
@needs_kill
def test_no_task_is_lost_if_a_process_dies_while_the_results_are_written(tmp_path, log):
    def dawdle(outcome: Outcome | None, finished: int, total: int) -> None:
        if finished == 1:
            time.sleep(1.0)  # the pool breaks meanwhile

    tasks = [
        w.counted_tasks(1, w.succeed)[0],
        w.killer(pause=0.3),
        *w.counted_tasks(8, w.succeed)[1:],
    ]
    with RecordStore(tmp_path / "run") as store:
        summary = run_tasks(tasks, store, n_jobs=2, progress=dawdle)
        assert summary == Summary(found=0, done=8, skipped=0, failed=1)


@pytest.mark.attack("kills and interrupts")
@needs_kill
def test_the_last_task_may_die_too(tmp_path, log, begin):
    process = begin(w.run_killer, tmp_path / "run", 2, log=log)
    process.communicate(timeout=PATIENCE)
    assert process.returncode == 0


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_the_failed_and_the_skipped_are_tried_again(tmp_path, log, n_jobs):
    mended = tmp_path / "mended"
    tasks = [*w.counted_tasks(4), *w.counted_tasks(2, w.fail_until_mended, mended=str(mended))]
    with RecordStore(tmp_path / "run") as store:
        assert run_tasks(tasks, store, n_jobs=n_jobs) == Summary(0, done=3, skipped=1, failed=2)
        assert {r.reason for r in store.read(status="failed")} == {"OSError: Störung Δ"}
        assert [r.reason for r in store.read(status="skipped")] == ["fold 3 is empty"]
        assert {r.metric for r in store.read(status=["skipped", "failed"])} == {"none"}
        assert run_tasks(tasks, store, n_jobs=n_jobs) == Summary(3, done=0, skipped=1, failed=2)
        assert len(store.read(status="failed")) == 2  # in place of the earlier ones
        mended.touch()
        assert run_tasks(tasks, store, n_jobs=n_jobs) == Summary(3, done=2, skipped=1, failed=0)
        assert run_tasks(tasks, store, n_jobs=n_jobs) == Summary(5, done=0, skipped=1, failed=0)
        assert len(store.read(status="failed")) == 0
    assert Counter(folds(log)) == {0: 1 + 3, 1: 1 + 3, 2: 1, 3: 4}


@pytest.mark.parametrize("work", [w.no_result, w.unstorable])
def test_results_that_cannot_be_stored_fail_alone(tmp_path, log, work):
    with RecordStore(tmp_path / "run") as store:
        summary = run_tasks([*w.counted_tasks(1, work), *w.counted_tasks(3, w.succeed)], store)
        assert summary == Summary(found=0, done=3, skipped=0, failed=1)


def test_several_processes_give_the_table_of_one(tmp_path, log):
    tasks = w.counted_tasks(12)
    with RecordStore(tmp_path / "two") as store:
        run_tasks(tasks, store, n_jobs=2)
        assert len({pid for _, pid in w.logged(log)} - {os.getpid()}) >= 1
        assert table(store) == undisturbed(tmp_path / "one", tasks)


@pytest.mark.attack("kills and interrupts")
def test_what_was_finished_at_an_interrupt_is_stored(tmp_path, log):
    """Two processes; when the first outcome is told, those in flight end before the interrupt."""
    tasks, told = w.counted_tasks(12, w.succeed), []

    def interrupt(outcome, done, total):
        if outcome is not None:
            told.append(outcome.task.key)
            assert wait_for(lambda: len(w.logged(log)) >= 2)
            time.sleep(1.0)
            raise KeyboardInterrupt

    with RecordStore(tmp_path / "run") as store:
        with pytest.raises(KeyboardInterrupt):
            run_tasks(tasks, store, n_jobs=2, progress=interrupt)
        begun = {tasks[fold].key for fold in folds(log)}
        assert len(told) == 1 < len(begun)
        assert store.finished() == begun
        run_tasks(tasks, store)
        assert table(store) == undisturbed(tmp_path / "one", tasks)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_task_that_is_refused_is_skipped_with_the_reason_and_tried_again(tmp_path, log, n_jobs):
    tasks = w.counted_tasks(6, w.succeed)
    with RecordStore(tmp_path / "run") as store:
        summary = run_tasks(
            tasks, store, n_jobs=n_jobs, refuse=lambda task: "late" if task.fold > 3 else ""
        )
        assert summary == Summary(found=0, done=4, skipped=2, failed=0)
        assert {r.fold: r.reason for r in store.read(status="skipped")} == {4: "late", 5: "late"}
        assert set(folds(log)) == {0, 1, 2, 3}
        assert run_tasks(tasks, store) == Summary(found=4, done=2, skipped=0, failed=0)
        assert table(store) == undisturbed(tmp_path / "one", tasks)


def test_progress_counts_up_to_all_and_names_every_outcome(tmp_path, log):
    seen = []
    tasks = [*w.counted_tasks(5), *w.counted_tasks(3)]  # three of them twice
    with RecordStore(tmp_path / "run") as store:
        run_tasks(tasks[:2], store)
        summary = run_tasks(tasks, store, progress=lambda *told: seen.append(told))
        assert summary == Summary(found=2, done=2, skipped=1, failed=0)
    assert [told[1:] for told in seen] == [(2, 5), (3, 5), (4, 5), (5, 5)]
    assert seen[0][0] is None
    assert [told[0].task.fold for told in seen[1:]] == [2, 3, 4]
    assert [told[0].status for told in seen[1:]] == ["done", "skipped", "done"]
    assert Counter(folds(log)) == dict.fromkeys(range(5), 1)


def test_a_plan_without_tasks_does_nothing(tmp_path):
    with RecordStore(tmp_path / "run") as store:
        assert run_tasks([], store, n_jobs=2) == Summary(0, 0, 0, 0)
        assert store.read() == []


def test_a_reader_sees_whole_tasks_while_they_are_written(tmp_path, log, begin):
    folder = tmp_path / "run"
    RecordStore(folder).close()
    process = begin(w.write_much, folder, 0, log=log)
    seen = []
    with RecordStore(folder, read_only=True) as reader:
        while len(set(seen)) < 6 and process.poll() is None:
            seen.append(len(reader.read()))
    assert process.poll() is None
    assert len(set(seen)) == 6
    assert seen == sorted(seen)
    assert not any(n % w.N_PARTS_AT_ONCE for n in seen)


def test_two_runs_on_one_folder_do_not_disturb_each_other(tmp_path, log, begin):
    folder = tmp_path / "run"
    both = [begin(w.run_count, folder, 20, 0.01, 1, log=log) for _ in range(2)]
    messages = [process.communicate(timeout=PATIENCE)[1] for process in both]
    assert [process.returncode for process in both] == [0, 0], messages
    with RecordStore(folder, read_only=True) as store:
        assert table(store) == undisturbed(tmp_path / "calm", w.counted_tasks(20))
