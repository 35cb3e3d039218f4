"""Row blocks on a Dask cluster: one task per block and pass, results gathered in order.

A block is a task of the user's own graph, kept in the memory of the cluster if it fits.  Nothing is
scattered: when a worker dies, the scheduler makes its blocks again, and the tasks that needed them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar
from uuid import uuid4

import dask as dask_package
import distributed as distributed_package
import numpy as np
from dask.delayed import Delayed
from dask.sizeof import sizeof

from marginfold.errors import InvalidInputError, WorkerLostError
from marginfold.executors.cluster import quiet
from marginfold.linalg.tall import Array, Block
from marginfold.runtime.memory import available_memory
from marginfold.runtime.progress import report

T = TypeVar("T")

dask: Any = dask_package
distributed: Any = distributed_package
sizes: Any = sizeof
"""They are typed in part only."""

RETRIES = 3
"""How often a task that failed is tried again before the error reaches the user."""

KEPT_SHARE = 0.5
"""Share of the memory of the cluster that blocks may fill; else they are read again each time."""


@dataclass(frozen=True, eq=False)
class DaskBlocks:
    """Blocks of rows, each of them the result of a task.

    Attributes
    ----------
    parts : sequence of Delayed
        Each gives a `marginfold.linalg.tall.Block`.
    lengths : array of shape (n_blocks,)
        Rows of each block, at least 1.
    n_columns : int
    """

    parts: Sequence[Delayed]
    lengths: Array
    n_columns: int

    @property
    def n_rows(self) -> int:
        """Number of all rows."""
        return int(self.lengths.sum())

    @property
    def starts(self) -> Array:
        """Number of the first row of each block."""
        return np.concatenate([[0], np.cumsum(self.lengths)[:-1]])

    def map(self, work: Callable[..., T], *args: Any) -> list[T]:
        """Return ``work(block, *args)`` for every block, in the order of the rows."""
        return computed(tasks(self.parts, work, *args), stage=shown_name(work))

    def map_with(self, own: Sequence[Delayed], work: Callable[..., T], *args: Any) -> list[T]:
        """Return ``work(block, own, *args)`` for every block and a result that belongs to it."""
        each = [(one,) for one in own]
        return computed(tasks(self.parts, work, *args, each=each), stage=shown_name(work))

    def cut(self, values: Array) -> list[Array]:
        """Return what belongs to the rows of each block."""
        return np.split(values, self.starts[1:])

    def reweighted(self, weights: Array) -> DaskBlocks:
        """Return the same rows with other weights."""
        each = [(own,) for own in self.cut(weights)]
        return DaskBlocks(tasks(self.parts, _reweighted, each=each), self.lengths, self.n_columns)


def tasks(
    parts: Sequence[Any],
    work: Callable[..., Any],
    *args: Any,
    each: Sequence[tuple[Any, ...]] | None = None,
) -> list[Delayed]:
    """Return the tasks ``work(part, *own, *args)``, under a name that the dashboard shows.

    ``each`` has what belongs to every part alone, results of other tasks too.
    """
    call = dask.delayed(partial(_applied, work, args), pure=False, traverse=False)
    name = f"marginfold-{shown_name(work).replace(' ', '-')}-{uuid4().hex}"
    owned = zip(parts, each or [()] * len(parts), strict=True)
    return [call(part, *own, dask_key_name=f"{name}-{i}") for i, (part, own) in enumerate(owned)]


def kept(parts: Sequence[Delayed], n_bytes: float) -> list[Delayed]:
    """Keep the results of tasks in the memory of the cluster if they fit; begin to compute them."""
    client = current_client()
    room = available_memory() if client is None else _cluster_memory(client)
    if room is not None and n_bytes > KEPT_SHARE * room:
        return list(parts)
    if client is None:
        return list(dask.persist(*parts))
    with quiet():
        return list(client.persist(list(parts), retries=RETRIES))


def computed(wanted: Sequence[Delayed], *, stage: str) -> list[Any]:
    """Return the results of tasks, in their order; blocks that are done are reported."""
    client = current_client()
    report(stage, 0, len(wanted))
    if client is None:
        results = list(dask.compute(*wanted))
        report(stage, len(wanted), len(wanted))
        return results
    with quiet():
        futures = client.compute(list(wanted), retries=RETRIES)
    try:
        for done, _ in enumerate(distributed.as_completed(futures), 1):
            report(stage, done, len(futures))
        return list(client.gather(futures))
    except distributed.KilledWorker as killed:
        raise WorkerLostError(
            f"The workers died again and again at {stage!r} (killed, or out of memory: {killed}). "
            "Use smaller chunks, X.rechunk(...), or workers with more memory."
        ) from killed
    finally:
        for future in futures:  # the client keeps an error, whose frames keep the future
            future.release()


def current_client() -> Any:
    """Return the client whose cluster dask would use, None for its scheduler in this process."""
    if dask.config.get("scheduler", None) not in (None, "dask.distributed", "distributed"):
        return None  # the user asked for another scheduler
    try:
        client = distributed.Client.current()
    except ValueError:
        return None
    if client.asynchronous:
        raise InvalidInputError(
            "The current distributed.Client is asynchronous, and fit waits for results; use a "
            "client that was made without asynchronous=True."
        )
    return client


def shown_name(work: Callable[..., Any]) -> str:
    """Return the name of a function as words."""
    return str(getattr(work, "__name__", type(work).__name__)).strip("_").replace("_", " ")


def _applied(work: Callable[..., Any], args: tuple[Any, ...], *part: Any) -> Any:
    return work(*part, *args)


def _reweighted(block: Block, weights: Array) -> Block:
    return Block(block.Z, block.codes, weights, block.start)


def _block_size(block: Block) -> int:
    """Tell dask what a block takes, so that it is not moved as if it were nothing."""
    return int(block.Z.nbytes + block.codes.nbytes + block.weights.nbytes)


sizes.register(Block, _block_size)


def _cluster_memory(client: Any) -> float | None:
    """Return the memory limits of all workers together, None if one has no limit."""
    info = client.scheduler_info(n_workers=-1)
    limits = [worker["memory_limit"] for worker in info["workers"].values()]
    return float(sum(limits)) if limits and all(limits) else None
