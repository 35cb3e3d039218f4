"""Work that can be watched and ended: every fit runs in a worker, a process of its own.

A thread can be cancelled where the library reports progress, and nowhere else: the eigenvectors of
a large matrix, a fit of scikit-learn or the reading of a file take as long as they take (measured:
1.7 s of CPU time without a report in a fit of `MarginMap` on 3500 rows x 30).  So a worker is a
process.  It is asked to stop first, and stays; one that has not stopped after `GRACE` is ended, and
another is begun.  Nor does a page wait for Python's lock while a fit runs.

Parent and worker exchange pickles through pipes that nobody else can reach.  A worker ends when its
pipe is closed, whatever happens to the parent.
"""

from __future__ import annotations

import gc
import os
import pickle
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from typing import Any, BinaryIO

from marginfold import errors
from marginfold.errors import CancelledError, MarginfoldError, WorkerLostError
from marginfold.runtime.progress import Progress, Watch, watch

Tell = Callable[[str, int, "int | None"], object]
"""Is told of a stage, finished parts, and all parts if that is known."""

GRACE = 0.4
"""Seconds that a worker has to stop by itself."""

TICK = 0.02
"""Seconds between two looks at whether a job was cancelled."""

QUIET = 0.05
"""Seconds between two reports of progress of the same stage."""

SOURCE = "from marginfold.explorer.jobs import serve; serve()"
"""What a worker runs."""


READY = "ready"
"""What a worker says first."""


class UnexpectedError(RuntimeError):
    """A defect: an error that marginfold did not raise on purpose."""


class Job:
    """One call in progress.

    Parameters
    ----------
    tell : callable, optional
        Called with stage, done and total, from the thread of the call.

    Examples
    --------
    >>> from marginfold.explorer.jobs import Job, Workers
    >>> job = Job()
    >>> job.cancel()
    >>> with Workers(1) as workers:
    ...     workers.run(job, abs, -1)
    Traceback (most recent call last):
    marginfold.errors.CancelledError: cancelled before it began.
    """

    def __init__(self, tell: Tell | None = None) -> None:
        self._tell = tell
        self._cancelled = threading.Event()

    def tell(self, stage: str, done: int, total: int | None) -> None:
        """Pass progress on."""
        if self._tell is not None:
            self._tell(stage, done, total)

    def cancel(self) -> None:
        """End the work, from any thread."""
        self._cancelled.set()

    @property
    def cancelled(self) -> bool:
        """Whether the work is to end."""
        return self._cancelled.is_set()


class Workers:
    """Processes that compute, as many at once as are allowed; the others wait.

    Parameters
    ----------
    most : int
        Processes at once.

    Examples
    --------
    >>> from marginfold.explorer.jobs import Job, Workers
    >>> with Workers(1) as workers:
    ...     workers.run(Job(), sum, [1, 2])
    3
    """

    def __init__(self, most: int = 2) -> None:
        self._free: list[_Worker] = []
        self._places = threading.Semaphore(most)
        self._lock = threading.Lock()
        self._all: set[_Worker] = set()
        self._closed = False

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def warm(self) -> None:
        """Begin a worker, and do not wait until it is there."""
        worker = self._begin()
        with self._lock:
            self._free.append(worker)

    def run(self, job: Job, function: Callable[..., Any], *args: Any) -> Any:
        """Return what a function of another module gives; both must be picklable.

        Raises
        ------
        CancelledError
            Within about half a second after ``job.cancel()``.
        WorkerLostError
            If the process died, for want of memory perhaps.
        UnexpectedError
            If the function raised what is no error of marginfold.
        """
        while not self._places.acquire(timeout=TICK):
            if job.cancelled:
                raise CancelledError("cancelled before it began.")
        try:
            if job.cancelled:
                raise CancelledError("cancelled before it began.")
            worker = self._taken(job)
            try:
                return worker.run(job, function, args)
            finally:
                self._give_back(worker)
        finally:
            self._places.release()

    def close(self) -> None:
        """End all workers and whatever they do."""
        with self._lock:
            self._closed = True
            ended, self._all, self._free = self._all, set(), []
        for worker in ended:
            worker.end()

    def _taken(self, job: Job) -> _Worker:
        """Return a worker that is ready: a new one, or one that ends its work before that is."""
        while not job.cancelled:
            with self._lock:
                for worker in self._free:
                    if worker.ready or not worker.alive:
                        self._free.remove(worker)
                        break
                else:
                    worker = None
                coming = len(self._free) > 0
            if worker is not None and (worker.alive or not worker.ready):
                return worker  # one that died as it began tells so when it is given work
            if worker is None:
                if not coming:
                    self.warm()
                time.sleep(TICK)
        raise CancelledError("cancelled before it began.")

    def _begin(self) -> _Worker:
        worker = _Worker()
        with self._lock:
            if not self._closed:
                self._all.add(worker)
                return worker
        worker.end()
        raise CancelledError("the session is closed.")

    def _give_back(self, worker: _Worker) -> None:
        with self._lock:
            self._all = {other for other in self._all if other.alive}
            if worker.alive and not self._closed:
                self._free.append(worker)
                return
            closed = self._closed
        if not closed:  # it was ended: the next call shall not wait for another
            with suppress(CancelledError):
                self.warm()


class _Worker:
    """The parent's side of one process."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", SOURCE],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            start_new_session=True,  # Ctrl-C is for the parent, which then closes the pipe
        )
        self._numbers = count()
        self._inbox: queue.SimpleQueue[tuple[Any, ...]] = queue.SimpleQueue()
        self._outbox: queue.SimpleQueue[tuple[Any, ...] | None] = queue.SimpleQueue()
        self.ready = self._ended = False
        for side in (self._read, self._write):
            threading.Thread(target=side, daemon=True).start()

    @property
    def alive(self) -> bool:
        """Whether it can be given work."""
        return not self._ended and self._process.poll() is None

    def run(self, job: Job, function: Callable[..., Any], args: tuple[Any, ...]) -> Any:
        """Have a function called and pass on what comes of it."""
        number = next(self._numbers)
        self._outbox.put(("run", number, function, args))
        asked: float | None = None
        while True:
            if job.cancelled and asked is None:
                asked = time.monotonic()
                self._outbox.put(("cancel", number))
            if asked is not None and time.monotonic() > asked + GRACE:
                self.end()
                raise CancelledError("cancelled; nothing of this work is kept.")
            try:
                kind, *content = self._inbox.get(timeout=TICK)
            except queue.Empty:
                continue
            if kind == "progress":
                job.tell(*content)
            elif kind == "result":
                return content[0]
            elif kind == "error":
                raise _error(*content)
            else:
                self._ended = True
                raise WorkerLostError(
                    "the process of this work died (killed, or out of memory); take fewer rows or "
                    "another method."
                )

    def end(self) -> None:
        """End the process now."""
        self._ended = True
        self._outbox.put(None)
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            with suppress(OSError):
                assert pipe is not None
                pipe.close()

    def _write(self) -> None:
        """Send what is to be sent: a process that does not read yet keeps nobody waiting."""
        assert self._process.stdin is not None
        with suppress(OSError, ValueError):  # one that is gone tells so by its other pipe
            while (message := self._outbox.get()) is not None:
                pickle.dump(message, self._process.stdin, pickle.HIGHEST_PROTOCOL)
                self._process.stdin.flush()

    def _read(self) -> None:
        """Put what the process says into the inbox, until it says no more."""
        assert self._process.stdout is not None
        with suppress(Exception):
            self.ready = pickle.load(self._process.stdout) == READY
            while True:
                self._inbox.put(pickle.load(self._process.stdout))
        self._inbox.put(("gone",))


def _error(name: str, message: str) -> Exception:
    """Return the error that a worker had."""
    kind = getattr(errors, name, None)
    if isinstance(kind, type) and issubclass(kind, MarginfoldError):
        return kind(message)
    return UnexpectedError(f"{name}: {message}")


def serve() -> None:
    """Do what the parent sends, one call after the other; end when it is gone."""
    outbox = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what libraries print is no answer
    child = _Child(sys.stdin.buffer, outbox)
    threading.Thread(target=child.read, daemon=True).start()
    gc.disable()  # until all is imported: that stays
    from marginfold.explorer import fits  # noqa: F401  (so that the first call does not wait)

    gc.freeze()
    gc.enable()
    child.work()


class _Child:
    """The worker's side."""

    def __init__(self, inbox: BinaryIO, outbox: BinaryIO) -> None:
        self._inbox, self._outbox = inbox, outbox
        self._calls: queue.SimpleQueue[tuple[int, Callable[..., Any], tuple[Any, ...]]] = (
            queue.SimpleQueue()
        )
        self._lock = threading.Lock()
        self._current: tuple[int, Watch] | None = None
        self._told = ("", 0.0)

    def read(self) -> None:
        """Take messages until the parent closes the pipe, which ends this process at once."""
        try:
            while True:
                kind, number, *content = pickle.load(self._inbox)
                if kind == "run":
                    self._calls.put((number, content[0], content[1]))
                    continue
                with self._lock:
                    if self._current is not None and self._current[0] == number:
                        self._current[1].cancel()
        finally:
            os._exit(0)

    def work(self) -> None:
        """Make calls for ever."""
        self._say(pickle.dumps(READY))
        while True:
            number, function, args = self._calls.get()
            try:
                with watch(self._report) as watcher:
                    self._set((number, watcher))
                    message: tuple[Any, ...] = ("result", function(*args))
                content = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
            except BaseException as error:
                content = pickle.dumps(("error", type(error).__name__, str(error)))
            self._set(None)
            self._say(content)

    def _set(self, current: tuple[int, Watch] | None) -> None:
        with self._lock:
            self._current = current

    def _report(self, event: Progress) -> None:
        stage, then = self._told
        now = time.monotonic()
        if event.stage != stage or now > then + QUIET:
            self._told = event.stage, now
            self._say(pickle.dumps(("progress", event.stage, event.done, event.total)))

    def _say(self, content: bytes) -> None:
        try:
            self._outbox.write(content)
            self._outbox.flush()
        except BrokenPipeError:  # the parent has ended
            os._exit(0)
