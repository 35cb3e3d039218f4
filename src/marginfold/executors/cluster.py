"""Calls on a Dask cluster: a bounded number in flight, retried when a worker dies.

The function is one task of the cluster on which all calls depend.  The scheduler keeps it, so that
it is there again when the worker that holds it is lost.
"""

from __future__ import annotations

import time
import warnings
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any
from uuid import uuid4

from marginfold._version import __version__
from marginfold.errors import (
    ClusterError,
    InvalidParameterError,
    MarginfoldError,
    MarginfoldWarning,
    WorkerLostError,
    warn,
)
from marginfold.executors.serialization import ATTEMPTS, Shared, dumps, run_packed
from marginfold.runtime.extras import require

WAITING_PER_THREAD = 2
"""Calls handed to the cluster ahead of time, per thread of its workers."""

CONNECT_SECONDS = 10
"""How long a scheduler may take to answer."""

LOOK_SECONDS = 1.0
"""Interval at which the state of the connection is polled."""

IDLE_SECONDS = 30.0
"""Time without any worker after which the user is warned."""


def check_client(client: Any) -> None:
    """Refuse what is neither a client that can wait nor an address."""
    require("distributed")
    from distributed import Client

    if isinstance(client, str):
        return
    if not isinstance(client, Client):
        raise InvalidParameterError(
            "client is a distributed.Client or the address of a scheduler such as "
            f"'tcp://host:8786'; got {type(client).__name__}."
        )
    if client.asynchronous:
        raise InvalidParameterError(
            "client is an asynchronous distributed.Client, which cannot be waited for here; give "
            "one that was made without asynchronous=True, or the address of the scheduler."
        )


def on_cluster(
    function: Callable[[Any], Any], items: Sequence[Any], client: Any
) -> Iterator[tuple[int, bytes | WorkerLostError]]:
    """Yield positions and pickled results as they come.

    The scheduler blames every call of a worker that dies.  One that it gives up is therefore made
    again when all others are done, with nothing else in flight.
    """
    from distributed import KilledWorker

    deaths = Counter[int]()
    suspects = deque[int]()
    with _connected(client) as link:
        queue = _CallQueue(link, function, items)
        for position, found in queue.calls(range(len(items))):
            if isinstance(found, KilledWorker):
                suspects.append(position)
                deaths[position] += found.allowed_failures + 1
            else:
                yield position, found
        while suspects:
            position = suspects.popleft()
            ((_, found),) = queue.calls([position])
            if not isinstance(found, KilledWorker):
                yield position, found
                continue
            deaths[position] += found.allowed_failures + 1
            if deaths[position] < ATTEMPTS:
                suspects.append(position)
            else:
                why = f"its worker died {deaths[position]} times (killed, or out of memory)"
                yield position, WorkerLostError(why)


@contextmanager
def _connected(client: Any) -> Iterator[Any]:
    """Give the client, or one that lasts as long as the block."""
    if not isinstance(client, str):
        yield client
        return
    import distributed

    connect: Any = distributed.Client
    try:
        made = connect(client, set_as_default=False, timeout=CONNECT_SECONDS)
    except (OSError, ValueError) as error:
        raise InvalidParameterError(
            f"No scheduler answers at {client!r} ({error}); start one with 'dask scheduler', and "
            "give its address as it prints it, such as 'tcp://host:8786'."
        ) from error
    try:
        yield made
    finally:
        made.close()


class _CallQueue:
    """The calls of one function on the cluster that a client is connected to."""

    def __init__(self, link: Any, function: Callable[[Any], Any], items: Sequence[Any]) -> None:
        self._link = link
        self._items = items
        self._content = dumps(function)
        self._name = _name(function)
        self._n_done = 0

    def calls(self, positions: Sequence[int]) -> Iterator[tuple[int, Any]]:
        """Make some of the calls; one that the scheduler gives up comes as its KilledWorker."""
        waiting, work = deque(positions), _work_by_name()
        running: dict[str, tuple[int, Any]] = {}
        finished = SimpleQueue[Any]()
        with self._explained():
            shared = self._submit(bytes, self._content, name=f"{self._name}-function")
            try:
                while waiting or running:
                    for _ in range(min(len(waiting), self._capacity() - len(running))):
                        position = waiting.popleft()
                        item = dumps(self._items[position])
                        future = self._submit(work, shared, __version__, item, name=self._name)
                        running[future.key] = position, future
                        future.add_done_callback(finished.put)
                    position, future = running.pop(self._wait(finished).key)
                    found = _result(future)
                    self._n_done += 1
                    yield position, found
            finally:
                self._cancel([shared, *(future for _, future in running.values())])

    def _submit(self, work: Callable[..., Any], *args: Any, name: str) -> Any:
        with quiet():
            return self._link.submit(
                work, *args, key=f"{name}-{uuid4().hex}", pure=False, retries=ATTEMPTS
            )

    def _capacity(self) -> int:
        """Return how many calls may be in flight, by the workers that are there now."""
        return WAITING_PER_THREAD * max(1, sum(self._link.nthreads().values()))

    def _wait(self, finished: SimpleQueue[Any]) -> Any:
        """Wait for a future to finish; warn if there is no worker to run it."""
        since, told = time.monotonic(), False
        while True:
            with suppress(Empty):
                return finished.get(timeout=LOOK_SECONDS)
            if self._link.status not in ("running", "connecting"):
                raise ConnectionError("the client is closed")
            if not told and time.monotonic() - since > IDLE_SECONDS and not self._link.nthreads():
                told = True
                warn(
                    f"The cluster {self._address()} has had no worker for {IDLE_SECONDS:g} s; the "
                    "calls wait until one is there ('dask worker ADDRESS').",
                    MarginfoldWarning,
                )

    def _cancel(self, futures: list[Any]) -> None:
        """Cancel futures that are no longer needed, if the client is still connected."""
        if self._link.status == "running":
            with suppress(Exception):
                self._link.cancel(futures)

    def _address(self) -> str:
        scheduler = self._link.scheduler
        return "that was there" if scheduler is None else f"at {scheduler.address}"

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Raise `ClusterError` for whatever the client raises when its cluster is lost."""
        try:
            yield
        except MarginfoldError:
            raise
        except Exception as error:
            why = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
            raise ClusterError(
                f"The connection to the cluster was lost after {self._n_done} of "
                f"{len(self._items)} calls ({why}). Results that were returned are kept; start the "
                "others again when the scheduler is back."
            ) from error


def run_on_worker(function: bytes, version: str, item: bytes) -> bytes:
    """Make one call on a worker; the function is read anew, so that nothing stays behind."""
    return run_packed(Shared(function, version), item)


def _work_by_name() -> Callable[[bytes, str, bytes], bytes]:
    """Return `run_on_worker` in a form that reaches workers without this package.

    A function inside a function is sent as code.  One that is sent by its name ends the workers on
    which it cannot be imported.
    """

    def import_and_run(function: bytes, version: str, item: bytes) -> bytes:
        from marginfold.executors.cluster import run_on_worker

        return run_on_worker(function, version, item)

    return import_and_run


def _result(future: Any) -> Any:
    """Return the pickled result of a call, or the scheduler's reason to give it up."""
    from distributed import KilledWorker

    try:
        return future.result()
    except KilledWorker as killed:
        return killed
    except ImportError as error:
        raise ClusterError(
            f"The workers of the cluster cannot import what the calls need ({error}); install "
            f"marginfold {__version__} and the packages it uses on all of them."
        ) from error
    finally:
        future.release()  # an error and its traceback would hold it


def _name(function: Callable[..., Any]) -> str:
    """Return the name by which the dashboard shows the calls."""
    while isinstance(function, partial):
        function = function.func
    return str(getattr(function, "__name__", type(function).__name__)).strip("<>")


@contextmanager
def quiet() -> Iterator[None]:
    """Silence the advice to split a large graph: what is large is sent once, as it is."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sending large graph")
        yield
