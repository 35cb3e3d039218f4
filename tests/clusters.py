"""Real clusters on this machine: a scheduler in this process and workers that can be killed."""

from __future__ import annotations

import contextlib
import logging
import os
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

ALLOWED_FAILURES = 1
"""Deaths of its worker that the scheduler of these clusters forgives a task."""

SETTLED = 1.0
"""Seconds that a worker is there before it is killed: a nanny gives up on one that never began."""

PATIENCE = 60.0
"""Seconds after which a worker that should be there is given up."""


@contextlib.contextmanager
def local_cluster(n_workers: int = 2, threads_per_worker: int = 1) -> Iterator[Any]:
    """Give the client of a cluster of worker processes with free ports.

    The fixture `cluster` is one of two workers that all tests share.
    """
    pytest.importorskip("distributed", reason="clusters need the extra dask")
    import dask
    from distributed import Client, LocalCluster

    settings = {
        "distributed.scheduler.allowed-failures": ALLOWED_FAILURES,
        "distributed.deploy.lost-worker-timeout": "10 minutes",  # a nanny may lose two
        "distributed.worker.memory.terminate": False,
        "distributed.worker.profile.enabled": False,
        "distributed.comm.timeouts.connect": "30s",
    }
    with (
        dask.config.set(settings),
        LocalCluster(
            n_workers=n_workers,
            threads_per_worker=threads_per_worker,
            processes=True,
            dashboard_address=":0",
            scheduler_port=0,
            memory_limit=0,
            silence_logs=logging.CRITICAL,
        ) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        yield client


def worker_pids(client: Any) -> list[int]:
    """Return the processes of the workers that are there now."""
    return sorted(client.run(os.getpid, on_error="ignore").values())


def complete(client: Any, n_workers: int = 2) -> None:
    """Wait until workers that were killed have been replaced."""
    client.wait_for_workers(n_workers, timeout=PATIENCE)


class Killer(threading.Thread):
    """Kill random workers at random moments while the block runs.

    Parameters
    ----------
    client : distributed.Client
    seed : int
    pause : float
        Longest time between two looks for a worker to kill, in seconds.
    most : int
        Number of kills after which it stops.

    Attributes
    ----------
    kills : int
        How many workers it has killed.
    """

    def __init__(self, client: Any, seed: int, *, pause: float = 0.5, most: int = 3) -> None:
        super().__init__(daemon=True)
        self._client, self._random = client, random.Random(seed)
        self._pause, self._most = pause, most
        self._end = threading.Event()
        self.kills = 0

    def __enter__(self) -> Killer:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self.join(PATIENCE)

    def run(self) -> None:
        first_seen: dict[int, float] = {}
        while self.kills < self._most and not self._end.wait(self._random.uniform(0, self._pause)):
            with contextlib.suppress(OSError):
                now = time.monotonic()
                pids = worker_pids(self._client)
                old = [p for p in pids if now - first_seen.setdefault(p, now) > SETTLED]
                if old:
                    os.kill(self._random.choice(old), signal.SIGKILL)
                    self.kills += 1


def wait_for(condition: Callable[[], bool], patience: float = PATIENCE) -> bool:
    """Wait until a condition holds; return whether it does."""
    end = time.monotonic() + patience
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True
