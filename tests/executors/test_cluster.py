"""Calls on a real cluster whose workers are killed: nothing is lost and nothing comes twice."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from typing import Any

import numpy as np
import pytest
from clusters import ALLOWED_FAILURES, PATIENCE, Killer, complete, local_cluster, wait_for
from executors import call_functions as f

from marginfold.errors import (
    ClusterError,
    InvalidParameterError,
    MarginfoldWarning,
    WorkerLostError,
)
from marginfold.executors import cluster as on_cluster
from marginfold.executors import run_calls
from marginfold.executors.serialization import REMOTE

distributed = pytest.importorskip("distributed", reason="clusters need the extra dask")

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX systems")


@pytest.fixture
def client(cluster: Any) -> Any:
    """Give the cluster with all its workers, none of which has died for the task at hand."""
    complete(cluster)
    return cluster


def squares(n: int) -> dict[int, int]:
    return {item: item * item for item in range(n)}


def test_a_cluster_gives_what_this_process_gives(client, tmp_path):
    work = partial(f.logged_square, folder=str(tmp_path))
    found = list(run_calls(work, range(20), client=client))
    assert sorted(found) == list(squares(20).items())
    assert f.logged(tmp_path) == list(range(20))
    assert list(run_calls(f.square, [], client=client)) == []
    assert os.getpid() not in dict(run_calls(f.process, range(4), client=client)).values()
    assert wait_for(lambda: not client.futures)  # and nothing is left there


def test_an_address_is_enough_and_its_client_is_closed(client):
    address, before = client.scheduler.address, connected(client)
    assert dict(run_calls(f.square, range(5), client=address)) == squares(5)
    assert wait_for(lambda: connected(client) == before)


def connected(client: Any) -> int:
    return client.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.clients))


@pytest.mark.attack("kills and interrupts")
def test_killed_workers_lose_nothing(client):
    with Killer(client, 0, most=2) as killer:
        found = Counter(run_calls(partial(f.square, pause=0.1), range(60), client=client))
    assert killer.kills == 2
    assert found == Counter(squares(60).items())


@pytest.mark.attack("kills and interrupts")
def test_a_call_that_takes_its_worker_down_is_given_up_alone(client):
    items, found = range(f.KILLER - 3, f.KILLER + 3), {}
    calls = run_calls(partial(f.killer, pause=0.05), items, client=client)
    with pytest.raises(WorkerLostError, match=f"1 of 6 .* number 3: its worker died {deaths()} t"):
        found.update(calls)
    expected = {place: item**2 for place, item in enumerate(items) if item != f.KILLER}
    assert found == expected


def deaths() -> int:
    """With others in flight, and then alone."""
    return 2 * (ALLOWED_FAILURES + 1)


def test_what_a_call_raises_is_raised_and_the_rest_is_taken_back(client):
    with pytest.raises(ZeroDivisionError, match=f"item {f.KILLER}") as raised:
        list(run_calls(f.fail, range(1000), client=client))
    assert REMOTE in raised.value.__notes__[0]
    assert wait_for(lambda: not client.futures)
    with pytest.raises(RuntimeError, match="OddError: 0 and 2"):
        list(run_calls(f.fail_oddly, range(1), client=client))


def test_few_calls_are_in_flight(client, tmp_path):
    calls = run_calls(partial(f.logged_square, folder=str(tmp_path)), range(1000), client=client)
    next(calls)
    time.sleep(0.2)
    assert len(f.logged(tmp_path)) <= 1 + 2 * on_cluster.WAITING_PER_THREAD
    calls.close()
    assert wait_for(lambda: not client.futures)


def test_what_all_calls_share_travels_once_and_without_a_warning(client, recwarn):
    rows = f.Rows(np.random.default_rng(0).normal(size=(6, 300_000)))  # 10 MB are a large graph
    found = dict(run_calls(partial(f.sum_of_rows, rows=rows), range(6), client=client))
    assert found == {item: float(rows.values[item].sum()) for item in range(6)}
    assert rows.journeys == 1
    assert not recwarn.list


def test_threads_of_linear_algebra_are_limited_on_workers(client):
    for _, found in run_calls(f.threads, range(3), client=client):
        assert set(found) == {1}


def take(calls: Iterator[tuple[int, int]], found: dict[int, int], then: Callable) -> None:
    """Take all results, and do something when three are there."""
    for position, result in calls:
        assert position not in found
        found[position] = result
        if len(found) == 3:
            then()


@pytest.mark.attack("kills and interrupts")
def test_a_closed_client_keeps_what_was_returned(client):
    own, found = distributed.Client(client.scheduler.address, set_as_default=False), {}
    calls = run_calls(partial(f.square, pause=0.05), range(50), client=own)
    with pytest.raises(
        ClusterError, match="The connection to the cluster was lost after 3 of 50 calls"
    ):
        take(calls, found, own.close)
    assert len(found) == 3
    assert found.items() <= squares(50).items()
    assert dict(run_calls(f.square, range(3), client=client)) == squares(3)


@pytest.mark.attack("kills and interrupts")
def test_a_killed_scheduler_keeps_what_was_returned(tmp_path):
    file, found, started = tmp_path / "scheduler.json", {}, []
    try:
        started.append(start("dask_scheduler", "--scheduler-file", str(file), "--port", "0"))
        assert wait_for(lambda: file.exists() and file.read_text().endswith("}"))
        started.append(start("dask_worker", "--scheduler-file", str(file), "--no-nanny"))
        address = json.loads(file.read_text())["address"]
        calls = run_calls(partial(f.square, pause=0.05), range(50), client=address)
        with pytest.raises(ClusterError, match="start the others again when the scheduler is back"):
            take(calls, found, started[0].kill)
    finally:
        for process in started:
            process.kill()
            process.wait(PATIENCE)
    assert 3 <= len(found) < 50
    assert found.items() <= squares(50).items()


def start(module: str, *arguments: str) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "-m", f"distributed.cli.{module}", *arguments, "--no-dashboard"],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


@pytest.mark.attack("kills and interrupts")
def test_an_interrupt_takes_the_calls_back(client):
    calls = run_calls(partial(f.square, pause=0.05), range(1000), client=client)
    with pytest.raises(KeyboardInterrupt), closing(calls):
        take(calls, {}, lambda: signal.raise_signal(signal.SIGINT))
    assert wait_for(lambda: not client.futures)
    assert dict(run_calls(f.square, range(3), client=client)) == squares(3)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (3, "such as 'tcp://host:8786'; got int"),
        ("tcp://127.0.0.1:1", "No scheduler answers at 'tcp://127.0.0.1:1'"),
        ("host", "No scheduler answers at 'host'"),
    ],
)
def test_what_is_no_cluster_is_refused(wrong, message, monkeypatch):
    monkeypatch.setattr(on_cluster, "CONNECT_SECONDS", 0.5)
    with pytest.raises(InvalidParameterError, match=re.escape(message)):
        list(run_calls(f.square, range(3), client=wrong))


def test_a_client_that_cannot_wait_is_refused(client):
    async def use() -> None:
        address = client.scheduler.address
        async with distributed.Client(address, asynchronous=True, set_as_default=False) as own:
            with pytest.raises(InvalidParameterError, match="asynchronous"):
                run_calls(f.square, range(3), client=own)

    client.sync(use)


def test_workers_without_the_package_are_told_of(client):
    client.run(hide_package)
    try:
        with pytest.raises(ClusterError, match=r"install marginfold .* on all of them"):
            list(run_calls(f.square, range(3), client=client))
    finally:
        client.run(show_package)
    assert dict(run_calls(f.square, range(3), client=client)) == squares(3)


def hide_package() -> None:
    """Make this worker one on which the package is not installed."""
    import sys

    for name in [name for name in sys.modules if name.split(".")[0] == "marginfold"]:
        sys.modules["hidden " + name] = sys.modules.pop(name)
    sys.modules["marginfold"] = None


def show_package() -> None:
    import sys

    del sys.modules["marginfold"]
    for name in [name for name in sys.modules if name.startswith("hidden ")]:
        sys.modules[name.removeprefix("hidden ")] = sys.modules.pop(name)


def test_another_version_on_the_workers_is_refused(client, monkeypatch):
    monkeypatch.setattr(on_cluster, "__version__", "0.0.1")
    with pytest.raises(ClusterError, match=r"the calls come from marginfold 0\.0\.1; install the"):
        list(run_calls(f.square, range(3), client=client))


def test_a_cluster_without_workers_is_told_of_and_waited_for(monkeypatch):
    monkeypatch.setattr(on_cluster, "LOOK_SECONDS", 0.1)
    monkeypatch.setattr(on_cluster, "IDLE_SECONDS", 0.2)
    with local_cluster(n_workers=0) as client:
        calls = run_calls(f.square, range(3), client=client)
        client.cluster.loop.call_later(0.6, client.cluster.scale, 1)
        with pytest.warns(MarginfoldWarning, match="has had no worker for"):
            assert dict(calls) == squares(3)
