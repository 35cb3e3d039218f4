from __future__ import annotations

import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
import slow_calls

from marginfold.errors import CancelledError, InvalidInputError, WorkerLostError
from marginfold.explorer import Session, Table, open_table
from marginfold.explorer.fits import fit_map, fit_path
from marginfold.explorer.jobs import Job, UnexpectedError, Workers
from marginfold.explorer.methods import estimator_of
from marginfold.explorer.session import WEIGHTS

PATIENCE = 1.0
"""Seconds within which a cancelled call must have ended."""


@pytest.fixture(scope="module", autouse=True)
def begun(workers):
    """No test waits for a process to begin."""
    workers.run(Job(), slow_calls.process)


def seconds_to_cancel(workers, *call, after: float = 0.2) -> float:
    job, ended = Job(), []

    def run() -> None:
        with pytest.raises(CancelledError):
            workers.run(job, *call)
        ended.append(time.perf_counter())

    thread = threading.Thread(target=run)
    thread.start()
    time.sleep(after)
    begun = time.perf_counter()
    job.cancel()
    thread.join(30)
    assert ended, "the call came back with something else, or never"
    return ended[0] - begun


def test_work_that_reports_is_cancelled_and_its_worker_stays(workers):
    before = workers.run(Job(), slow_calls.process)
    assert seconds_to_cancel(workers, slow_calls.count_to, 10_000) <= PATIENCE
    assert workers.run(Job(), slow_calls.process) == before


def test_work_that_never_reports_is_ended_within_a_second(workers):
    assert seconds_to_cancel(workers, slow_calls.deaf, 60.0) <= PATIENCE
    assert workers.run(Job(), slow_calls.count_to, 3) == 3


def test_work_that_waits_for_a_worker_is_cancelled_too(workers):
    with Workers(1) as one:
        first = Job()
        busy = threading.Thread(target=lambda: _quietly(one, first, slow_calls.deaf, 60.0))
        busy.start()
        time.sleep(0.1)
        assert seconds_to_cancel(one, slow_calls.count_to, 3) <= PATIENCE
        first.cancel()
        busy.join(10)
        assert not busy.is_alive()


def _quietly(workers, job, *call) -> None:
    with pytest.raises(CancelledError):
        workers.run(job, *call)


@pytest.mark.parametrize("after", [0.05, 0.6])
@pytest.mark.parametrize("method", ["LSVA", "KLSVA", "MarginMap", "LPP", "path"])
def test_a_fit_is_cancelled_within_a_second_at_every_stage(workers, large_rows, method, after):
    if method == "path":
        call = fit_path, estimator_of("LSVA", large_rows[1], {}), large_rows[0], WEIGHTS
    else:
        call = fit_map, estimator_of(method, large_rows[1], {}), large_rows[0]
    workers.run(Job(), slow_calls.process)  # a worker that has begun
    assert seconds_to_cancel(workers, *call, after=after) <= PATIENCE


@pytest.fixture(scope="module")
def large_rows(tmp_path_factory):
    """Rows on which every fit takes some seconds."""
    import numpy as np
    import pandas as pd
    from sklearn.datasets import make_classification

    from marginfold.explorer import Opened

    X, y = make_classification(
        20_000, 60, n_informative=20, n_classes=6, class_sep=0.4, random_state=0
    )
    frame = pd.DataFrame(X).rename(columns=lambda name: f"x{name}").assign(label=y)
    table = Table.of(Opened("large", frame, "large"))
    session = Session(table)
    assert np.isfinite(table.encoded).all()
    return session.rows, table.size


def test_progress_is_told_while_the_work_goes_on(workers):
    told = []
    workers.run(Job(lambda *event: told.append(event)), slow_calls.count_to, 30)
    assert told[0] == ("counting", 0, 30)
    assert len(told) >= 3
    assert [done for _, done, _ in told] == sorted(done for _, done, _ in told)


def test_a_short_fit_compiles_nothing_even_where_compiling_would_pay(monkeypatch):
    monkeypatch.setenv("MARGINFOLD_COMPILE", "always")
    with Session(Table.of(open_table("iris"))) as session:
        session.handle("fit", {"method": "LSVA"})
        session.handle("path", {"method": "LSVA"})
        loaded = "'numba' in __import__('sys').modules"
        assert not session.workers.run(Job(), eval, loaded)


def test_errors_of_the_library_come_back_as_they_are_and_defects_by_name(workers):
    with pytest.raises(InvalidInputError, match="not this way"):
        workers.run(Job(), slow_calls.refuse)
    with pytest.raises(UnexpectedError, match=r"KeyError.*defect"):
        workers.run(Job(), slow_calls.fail)
    assert workers.run(Job(), sum, [1, 2]) == 3


def test_a_process_that_dies_fails_its_call_and_no_other(workers):
    with pytest.raises(WorkerLostError, match="died"):
        workers.run(Job(), slow_calls.die)
    assert workers.run(Job(), sum, [1, 2]) == 3


def test_workers_end_with_their_parent_however_it_ends():
    source = (
        "import os, time\n"
        "from marginfold.explorer.jobs import Job, Workers\n"
        "workers = Workers(1)\n"
        "print(workers.run(Job(), os.getpid), flush=True)\n"
        "os.kill(os.getpid(), 9)\n"
    )
    ended = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True)
    pid = int(ended.stdout)
    end = time.monotonic() + 5
    while _runs(pid) and time.monotonic() < end:
        time.sleep(0.02)
    assert not _runs(pid)


def _runs(pid: int) -> bool:
    status = Path(f"/proc/{pid}/stat")
    return status.exists() and status.read_text().rpartition(")")[2].split()[0] != "Z"


def test_a_session_that_is_closed_ends_its_workers():
    session = Session(Table.of(open_table("iris")))
    session.handle("fit", {"method": "PCA"})
    session.close()
    with pytest.raises(CancelledError):
        session.handle("fit", {"method": "PCA"})
