"""A process pool for calls: no worker outlives the parent, and a crash fails one call only."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from typing import Any

from marginfold.errors import WorkerLostError
from marginfold.executors.serialization import ATTEMPTS, Shared, dumps, run_packed

WAITING_PER_PROCESS = 2
"""Calls handed to the pool ahead of time, per process: a stop does not wait for more."""

THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS")
"""Variables that limit libraries which a call loads while it runs; those there are limited too."""


def in_processes(
    function: Callable[[Any], Any], items: Sequence[Any], n_jobs: int
) -> Iterator[tuple[int, bytes | WorkerLostError]]:
    """Yield positions and pickled results as they come.

    When a worker dies, it is unknown which call was the cause: those in flight are retried one at
    a time, each in a process of its own.
    """
    content = dumps(function)
    waiting, suspects = deque(range(len(items))), deque[int]()
    while waiting or suspects:
        if suspects:
            position = suspects.popleft()
            yield position, _alone(content, items[position])
        else:
            yield from _together(content, items, waiting, suspects, n_jobs)


def _together(
    content: bytes, items: Sequence[Any], waiting: deque[int], suspects: deque[int], n_jobs: int
) -> Iterator[tuple[int, bytes]]:
    """Make the calls that wait until all is done or a process dies, which makes suspects."""
    running: dict[Future[bytes], int] = {}
    with _pool(n_jobs, content) as (pool, begun):
        try:
            while waiting or running:
                while waiting and len(running) < WAITING_PER_PROCESS * n_jobs:
                    running[pool.submit(_run, dumps(items[waiting[0]]))] = waiting[0]
                    waiting.popleft()
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    found = future.result()
                    yield running.pop(future), found
        except BrokenProcessPool:
            _check_begun(begun)
            for future, position in running.items():
                if future.done() and future.exception() is None:
                    yield position, future.result()
                else:
                    suspects.append(position)


def _alone(content: bytes, item: Any) -> bytes | WorkerLostError:
    """Make a call whose process died again, in processes of its own."""
    for _ in range(ATTEMPTS - 1):  # the first death may be another call's fault
        with _pool(1, content) as (pool, begun):
            try:
                return pool.submit(_run, dumps(item)).result()
            except BrokenProcessPool:
                _check_begun(begun)
    return WorkerLostError(f"its process died {ATTEMPTS} times (killed, or out of memory)")


@contextmanager
def _pool(n_jobs: int, content: bytes) -> Iterator[tuple[ProcessPoolExecutor, Any]]:
    """Give fresh processes, and a flag that the first of them raises; the block's end ends them."""
    others = set(multiprocessing.active_children())
    context = multiprocessing.get_context("spawn")
    begun = context.RawValue("b", 0)
    pool = ProcessPoolExecutor(
        n_jobs, mp_context=context, initializer=_begin, initargs=(content, begun)
    )
    try:
        yield pool, begun
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        for child in set(multiprocessing.active_children()) - others:
            child.terminate()


def _check_begun(begun: Any) -> None:
    """Distinguish workers that crashed in a call from those that could not start."""
    if not begun.value:
        raise WorkerLostError(
            "No process could be started: new processes import the script that starts them, so "
            "its work must stand below the line 'if __name__ == \"__main__\":', and it must be "
            "a file. Change that, or compute in this process (n_jobs=1)."
        )


_RECEIVED: list[Shared] = []
"""In a process of the pool: the function of its calls."""


def _begin(content: bytes, begun: Any) -> None:
    """Initialize a worker: keep the function, ignore Ctrl-C, and exit when the parent exits."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    os.environ.update(dict.fromkeys(THREADS, "1"))
    _RECEIVED.append(Shared(content))
    begun.value = 1


def _run(content: bytes) -> bytes:
    return run_packed(_RECEIVED[0], content)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
