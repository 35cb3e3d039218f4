"""Calls here and on processes: the same results, and nothing is lost when a process dies."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import threading
import time
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from clusters import wait_for
from executors import call_functions as f
from threadpoolctl import threadpool_limits

from marginfold.errors import InvalidInputError, InvalidParameterError, WorkerLostError
from marginfold.executors import ProcessPool, run_calls
from marginfold.executors.serialization import REMOTE, loads

SOURCE = Path(__file__).parents[2] / "src"

needs_kill = pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX systems")


@pytest.mark.parametrize("n_jobs", [None, 1, 3])
def test_every_call_is_made_once_and_keeps_its_position(tmp_path, n_jobs):
    work = partial(f.logged_square, folder=str(tmp_path))
    found = list(run_calls(work, iter(range(10)), n_jobs=n_jobs))
    assert sorted(found) == [(item, item * item) for item in range(10)]
    assert f.logged(tmp_path) == list(range(10))


def test_nothing_to_do_is_done():
    assert list(run_calls(f.square, [], n_jobs=2)) == []


def test_calls_are_made_as_results_are_taken(tmp_path):
    calls = run_calls(partial(f.logged_square, folder=str(tmp_path)), range(10))
    assert next(calls) == (0, 0)
    calls.close()
    assert f.logged(tmp_path) == [0]


def test_few_calls_are_in_flight_and_closing_ends_the_processes(tmp_path):
    before = set(multiprocessing.active_children())
    work = partial(f.logged_square, folder=str(tmp_path), pause=0.02)
    calls = run_calls(work, range(1000), n_jobs=2)
    next(calls)
    calls.close()
    assert wait_for(lambda: set(multiprocessing.active_children()) <= before)
    assert len(f.logged(tmp_path)) <= 10


def test_processes_are_others_than_this_one():
    assert os.getpid() not in dict(run_calls(f.process, range(4), n_jobs=2)).values()
    assert set(dict(run_calls(f.process, range(2))).values()) == {os.getpid()}


def test_all_cores_are_minus_one():
    assert dict(run_calls(f.square, range(3), n_jobs=-1)) == {0: 0, 1: 1, 2: 4}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_jobs": 0}, "n_jobs is a number of processes"),
        ({"n_jobs": "two"}, "n_jobs is a number of processes"),
        ({"n_jobs": 1.5}, "n_jobs is a number of processes"),
        ({"n_jobs": True}, "n_jobs is a number of processes"),
        ({"n_jobs": 2, "client": "tcp://host:1"}, "cannot be used together"),
    ],
)
def test_bad_options_are_refused_before_the_first_call(options, message):
    with pytest.raises(InvalidParameterError, match=message):
        run_calls(f.fail_oddly, range(3), **options)


@pytest.mark.attack("kills and interrupts")
@needs_kill
def test_a_call_that_takes_its_process_down_is_given_up_alone():
    found = run_calls(
        partial(f.killer, pause=0.05),
        range(9),
        n_jobs=2,
        on_lost=lambda item, error: (item, str(error)),
    )
    why = "its process died 3 times (killed, or out of memory)"
    expected = {item: item * item for item in range(9)} | {f.KILLER: (f.KILLER, why)}
    assert dict(found) == expected


@needs_kill
def test_without_a_stand_in_the_others_come_first():
    calls, found = run_calls(f.killer, range(7), n_jobs=2), {}
    with pytest.raises(WorkerLostError, match=r"1 of 7 calls have no result; .* number 5: its"):
        found.update(calls)
    assert found == {item: item * item for item in range(7) if item != f.KILLER}


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_what_a_call_raises_is_raised(n_jobs):
    calls = run_calls(f.fail, range(f.KILLER, f.KILLER + 1), n_jobs=n_jobs)
    with pytest.raises(ZeroDivisionError, match=f"item {f.KILLER}") as raised:
        list(calls)
    notes = getattr(raised.value, "__notes__", [])
    assert any(REMOTE in note and "in fail" in note for note in notes) == (n_jobs == 2)


def test_an_error_that_cannot_travel_arrives_in_words():
    with pytest.raises(RuntimeError, match=r"OddError: \d and 2"):
        list(run_calls(f.fail_oddly, range(3), n_jobs=2))


def test_what_cannot_travel_is_refused_in_words():
    with pytest.raises(InvalidInputError, match="tuple cannot be sent to another process"):
        list(run_calls(f.return_a_lock, range(3), n_jobs=2))
    with pytest.raises(InvalidInputError, match="lock cannot be sent to another process"):
        list(run_calls(f.square, [threading.Lock()], n_jobs=2))


def test_functions_without_a_module_travel():
    assert dict(run_calls(lambda item: item + 1, range(3), n_jobs=2)) == {0: 1, 1: 2, 2: 3}


def test_what_all_calls_share_travels_with_the_function():
    rows = f.Rows(np.random.default_rng(0).normal(size=(6, 50_000)))
    found = dict(run_calls(partial(f.sum_of_rows, rows=rows), range(6), n_jobs=2))
    assert found == {item: float(rows.values[item].sum()) for item in range(6)}
    assert rows.journeys == 1


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_linear_algebra_has_one_thread(n_jobs, monkeypatch):
    for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        monkeypatch.setenv(variable, "2")  # the other processes would take them
    with threadpool_limits(2):
        for _, found in run_calls(f.threads, range(2), n_jobs=n_jobs):
            assert found
            assert set(found) == {1}
        assert set(f.thread_limits()) == {2}


def test_a_script_that_does_not_protect_its_work_is_told(tmp_path):
    script = tmp_path / "script.py"
    script.write_text("from executors import call_functions as f\nf.main()\n")
    folders = [str(Path(__file__).parents[1]), str(SOURCE), os.environ.get("PYTHONPATH", "")]
    done = subprocess.run(
        [sys.executable, str(script)],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(folders)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 1
    assert done.stderr.count("No process could be started") == 1


def test_processes_are_kept_between_rounds_and_end_with_the_block():
    before = set(multiprocessing.active_children())
    with ProcessPool(2) as pool:
        first, second = (
            set(dict(run_calls(f.process, range(20), pool=pool)).values()) for _ in range(2)
        )
        assert len(first | second) <= 2
        assert dict(run_calls(f.square, range(4), pool=pool)) == {0: 0, 1: 1, 2: 4, 3: 9}
    assert wait_for(lambda: set(multiprocessing.active_children()) <= before)


def test_processes_that_were_begun_early_make_the_calls():
    with ProcessPool(1) as pool:
        pool.begin(f.process)
        begun = {child.pid for child in multiprocessing.active_children()}
        assert set(dict(run_calls(f.process, range(3), pool=pool)).values()) <= begun


@pytest.mark.attack("kills and interrupts")
@needs_kill
def test_kept_processes_that_die_are_replaced():
    with ProcessPool(2) as pool:
        for _ in range(2):
            found = dict(
                run_calls(f.killer, range(7), pool=pool, on_lost=lambda item, error: "lost")
            )
            assert found == {item: "lost" if item == f.KILLER else item * item for item in range(7)}


@pytest.mark.attack("kills and interrupts")
def test_what_was_finished_at_an_interrupt_can_be_had():
    """The caller stops at its first result; others were finished by then."""
    with ProcessPool(2) as pool:
        calls = run_calls(f.square, range(100), pool=pool)
        taken = [next(calls)]
        time.sleep(1.0)  # those in flight are done
        with pytest.raises(KeyboardInterrupt):
            calls.throw(KeyboardInterrupt)
        kept = {position: loads(content) for position, content in pool.unclaimed}
    assert len(kept) > 1
    assert dict(taken).items() <= kept.items()
    assert all(square == position * position for position, square in kept.items())


def test_items_are_taken_when_there_is_room_for_their_calls():
    taken = []

    def items():
        for item in range(50):
            taken.append(item)
            yield item

    calls = run_calls(f.square, items(), n_jobs=2)
    next(calls)
    assert len(taken) <= 6
    assert len(list(calls)) == 49
