"""Independent calls: here, on processes of this machine, or on a cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, nullcontext
from numbers import Integral
from typing import TYPE_CHECKING, Any

from marginfold.errors import InvalidParameterError, WorkerLostError
from marginfold.executors.serialization import loads
from marginfold.runtime.threads import one_thread

if TYPE_CHECKING:
    from marginfold.executors.processes import ProcessPool

Lost = Callable[[Any, WorkerLostError], Any]
"""Fallback for the result of an item whose process died too often."""


def run_calls(
    function: Callable[[Any], Any],
    items: Iterable[Any],
    *,
    n_jobs: int | None = 1,
    client: Any = None,
    pool: ProcessPool | None = None,
    on_lost: Lost | None = None,
) -> Iterator[tuple[int, Any]]:
    """Call a function with each item, and yield positions and results as they are completed.

    A process that dies (killed, out of memory) loses nothing: its calls are made again, elsewhere.
    A call whose process died `ATTEMPTS` times is given up; on a cluster the scheduler counts too,
    and gives up no earlier than its setting ``distributed.scheduler.allowed-failures`` has it.
    Each call is limited to one thread of linear algebra.  The calls are made while the results are
    taken; closing the iterator, an error or Ctrl-C ends those that were not yet taken.

    Parameters
    ----------
    function : callable
        It takes one item.  It is sent once to each process, so what all calls share belongs to it:
        ``functools.partial(function, X=X, y=y)``.
    items : iterable
        They are sent with their calls.  In processes of this machine an item is taken when there is
        room for its call.
    n_jobs : int, default=1
        Processes of this machine.  1 and None compute in this process; -1 means one for each core,
        -2 one less.
    client : distributed.Client or str, optional
        A Dask cluster, or the address of its scheduler (``"tcp://host:8786"``).  Its workers need
        the same packages.  A call that is running there cannot be stopped, only forgotten.
    pool : ProcessPool, optional
        Processes of this machine that are kept between calls, in place of ``n_jobs``.
    on_lost : callable, optional
        Called with the item and the `WorkerLostError` of a call that was given up; what it returns
        is taken as the result.  Without it the error is raised, after all other results.

    Raises
    ------
    ClusterError
        If the cluster was lost or its workers cannot make the calls.  What was yielded is valid.
    Exception
        Whatever a call raises is raised in place of its result and ends the iteration; from another
        process it brings its traceback as a note.

    Examples
    --------
    >>> from marginfold.executors import run_calls
    >>> dict(run_calls(abs, [-1, 2, -3]))
    {0: 1, 1: 2, 2: 3}
    """
    n_jobs = n_processes(n_jobs, client) if pool is None else pool.n_jobs
    if client is not None:
        from marginfold.executors.cluster import check_client, on_cluster

        check_client(client)
        calls = list(items)
        return _results(on_cluster(function, calls, client), calls, on_lost)
    if n_jobs == 1 and pool is None:
        return _here(function, items)
    taken: list[Any] = []
    return _results(_in_processes(function, _noted(items, taken), n_jobs, pool), taken, on_lost)


def _noted(items: Iterable[Any], taken: list[Any]) -> Iterator[Any]:
    """Yield items, and keep them for what comes back."""
    for item in items:
        taken.append(item)
        yield item


def _in_processes(
    function: Callable[[Any], Any], items: Iterable[Any], n_jobs: int, pool: ProcessPool | None
) -> Iterator[tuple[int, bytes | WorkerLostError]]:
    """Make the calls in processes that are kept, or in some that end with the calls."""
    from marginfold.executors.processes import ProcessPool

    with (
        ProcessPool(n_jobs) if pool is None else nullcontext(pool) as processes,
        closing(processes.calls(function, items)) as found,  # type: ignore[type-var]
    ):
        yield from found


def n_processes(n_jobs: Any, client: Any = None) -> int:
    """Return the number of processes that ``n_jobs`` means."""
    whole = isinstance(n_jobs, Integral) and not isinstance(n_jobs, bool)
    if n_jobs is not None and (not whole or n_jobs == 0):
        raise InvalidParameterError(
            f"n_jobs is a number of processes, or -1 for all cores; got {n_jobs!r}."
        )
    if client is not None and n_jobs not in (None, 1):
        raise InvalidParameterError(
            f"n_jobs={n_jobs!r} and client cannot be used together: the cluster has its own "
            "workers. Leave one of them out."
        )
    if n_jobs is None or n_jobs > 0:
        return int(n_jobs or 1)
    from joblib import cpu_count

    return max(1, int(cpu_count()) + 1 + n_jobs)


def _here(function: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[tuple[int, Any]]:
    for position, item in enumerate(items):
        with one_thread():
            result = function(item)
        yield position, result


def _results(
    pickled: Iterator[tuple[int, bytes | WorkerLostError]],
    items: Sequence[Any],
    on_lost: Lost | None,
) -> Iterator[tuple[int, Any]]:
    """Unpickle the results; calls that were given up come last unless `on_lost` replaces them."""
    lost: list[tuple[int, WorkerLostError]] = []
    with closing(pickled):  # type: ignore[type-var]
        for position, found in pickled:
            if isinstance(found, bytes):
                yield position, loads(found)
            elif on_lost is None:
                lost.append((position, found))
            else:
                yield position, on_lost(items[position], found)
    if lost:
        position, error = lost[0]
        raise WorkerLostError(
            f"{len(lost)} of {len(items)} calls have no result; the first is number {position}: "
            f"{error}. Give each process more memory, or take fewer processes."
        )
