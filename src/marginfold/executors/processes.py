"""A process pool for calls: no worker outlives the parent, and a crash fails one call only."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from itertools import islice
from typing import Any, Self

from marginfold.errors import WorkerLostError
from marginfold.executors.serialization import ATTEMPTS, Shared, dumps, run_packed

WAITING_PER_PROCESS = 2
"""Calls handed to the pool ahead of time, per process: a stop does not wait for more."""

THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS")
"""Variables that limit libraries which a call loads while it runs; those there are limited too."""

_SERVING: list[str] = []
"""The modules that the server of processes has imported; none if there is no server."""


def serve_processes(modules: Sequence[str]) -> None:
    """Import modules in a process of its own, from which those of pools are forked from now on.

    The imports of numerical packages take seconds: this way they are made once for all processes,
    and beside those of this one if it has not made them yet.  Only on Linux, where a process of one
    thread is forked safely; elsewhere nothing happens, and every process makes its own imports.
    """
    if _SERVING or sys.platform != "linux":
        return
    from multiprocessing import forkserver

    before = dict(os.environ)
    os.environ.update(dict.fromkeys(THREADS, "1"))  # with threads a process must not be forked
    try:
        multiprocessing.set_forkserver_preload(list(modules))
        forkserver.ensure_running()
    finally:
        for name in THREADS:
            os.environ.pop(name)
        os.environ.update(before)
    _SERVING.extend(modules)


class ProcessPool:
    """Processes that are kept from one `run_calls` to the next if the function is the same.

    Starting a process and its imports takes a second or two: whoever makes calls in several rounds
    starts them once.  Leaving the block ends them, and so does an interrupt; the next calls start
    others.

    Parameters
    ----------
    n_jobs : int

    Attributes
    ----------
    unclaimed : list of (int, bytes)
        After the calls were ended by an interrupt or an error: positions and pickled results of
        calls that were finished, those that the caller has not seen among them.

    Examples
    --------
    >>> from marginfold.executors import ProcessPool, run_calls
    >>> with ProcessPool(2) as pool:
    ...     rounds = [dict(run_calls(abs, items, pool=pool)) for items in ([-1, 2], [-3])]
    >>> rounds == [{0: 1, 1: 2}, {0: 3}]  # in the order in which calls end
    True
    """

    def __init__(self, n_jobs: int) -> None:
        self.n_jobs = n_jobs
        self.unclaimed: list[tuple[int, bytes]] = []
        self._content = b""
        self._executor: ProcessPoolExecutor | None = None
        self._children: set[Any] = set()
        self._begun: Any = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def begin(self, function: Callable[[Any], Any]) -> None:
        """Start the processes for this function, and do not wait for them."""
        self._start(dumps(function))

    def close(self) -> None:
        """End the processes, and the calls that run in them."""
        if self._executor is not None:
            self._executor.shutdown(wait=False, cancel_futures=True)
            for child in self._children:
                child.terminate()
        self._executor, self._children = None, set()

    def calls(
        self, function: Callable[[Any], Any], items: Iterable[Any]
    ) -> Iterator[tuple[int, bytes | WorkerLostError]]:
        """Yield positions and pickled results as they come; take items as there is room for them.

        When a worker dies, it is unknown which call was the cause: those in flight are retried one
        at a time, each in a process of its own.
        """
        content, waiting = dumps(function), _Waiting(enumerate(items))
        suspects = deque[tuple[int, Any]]()
        self.unclaimed = []
        while waiting or suspects:
            if suspects:
                position, item = suspects.popleft()
                yield position, _alone(content, item)
            else:
                yield from self._together(content, waiting, suspects)

    def _together(
        self, content: bytes, waiting: _Waiting, suspects: deque[tuple[int, Any]]
    ) -> Iterator[tuple[int, bytes]]:
        """Make the calls that wait until all is done or a process dies, which makes suspects."""
        running: dict[Future[bytes], tuple[int, Any]] = {}
        self._start(content)
        try:
            while waiting or running:
                while waiting and len(running) < WAITING_PER_PROCESS * self.n_jobs:
                    position, item = waiting.first
                    running[self._submit(_run, dumps(item))] = position, item
                    waiting.step()
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    yield running[future][0], future.result()
                    del running[future]  # only now: a result is unclaimed until more are wanted
        except BrokenProcessPool:
            self.close()
            _check_begun(self._begun)
            for future, (position, item) in running.items():
                if _is_finished(future):
                    yield position, future.result()
                else:
                    suspects.append((position, item))
        except BaseException:
            self.unclaimed = [
                (position, future.result())
                for future, (position, _) in running.items()
                if _is_finished(future)
            ]
            self.close()
            raise

    def _start(self, content: bytes) -> None:
        """Start processes that have this function, unless they are there."""
        if self._executor is not None and self._content == content:
            return
        self.close()
        context = multiprocessing.get_context("forkserver" if _SERVING else "spawn")
        self._begun = context.RawValue("b", 0)
        self._content = content
        self._executor = ProcessPoolExecutor(
            self.n_jobs,
            mp_context=context,
            initializer=_begin,
            initargs=(content, self._begun, dict(os.environ)),
        )
        with suppress(BrokenProcessPool):  # the first call will say so
            for _ in range(self.n_jobs):
                self._submit(os.getpid)  # which starts a process

    def _submit(self, work: Callable[..., Any], *args: Any) -> Future[Any]:
        """Hand out a call; if that starts a process, note it: to end it later is left to us."""
        assert self._executor is not None
        others = set(multiprocessing.active_children())
        future = self._executor.submit(work, *args)
        self._children |= set(multiprocessing.active_children()) - others
        return future


class _Waiting:
    """Items that are taken one by one, the first of them known before it is taken."""

    def __init__(self, items: Iterator[tuple[int, Any]]) -> None:
        self._items = items
        self._next: deque[tuple[int, Any]] = deque()

    def __bool__(self) -> bool:
        if not self._next:
            self._next.extend(islice(self._items, 1))
        return bool(self._next)

    @property
    def first(self) -> tuple[int, Any]:
        """The position and the item that come next."""
        return self._next[0]

    def step(self) -> None:
        """Take the first."""
        self._next.popleft()


def _is_finished(future: Future[bytes]) -> bool:
    return future.done() and not future.cancelled() and future.exception() is None


def _alone(content: bytes, item: Any) -> bytes | WorkerLostError:
    """Make a call whose process died again, in processes of its own."""
    for _ in range(ATTEMPTS - 1):  # the first death may be another call's fault
        with ProcessPool(1) as pool:
            try:
                pool._start(content)
                found: bytes = pool._submit(_run, dumps(item)).result()
                return found
            except BrokenProcessPool:
                _check_begun(pool._begun)
    return WorkerLostError(f"its process died {ATTEMPTS} times (killed, or out of memory)")


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


def _begin(content: bytes, begun: Any, environment: Mapping[str, str]) -> None:
    """Initialize a worker: keep the function, ignore Ctrl-C, and exit when the parent exits.

    The environment is that of the parent now: a server of processes has that of its beginning.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    os.environ.update({**environment, **dict.fromkeys(THREADS, "1")})
    _RECEIVED.append(Shared(content))
    begun.value = 1


def _run(content: bytes) -> bytes:
    return run_packed(_RECEIVED[0], content)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
