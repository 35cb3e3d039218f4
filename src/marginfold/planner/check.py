"""The refusal of a fit that needs more memory than there is, with what to do instead."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from marginfold.feature_maps import ExactKernel, KernelLike, is_linear, is_pairwise
from marginfold.planner.costs import peak_memory, peaks, step_costs
from marginfold.planner.workload import Workload, neighbors_of, rows_of, workload_of
from marginfold.runtime.memory import ALWAYS_THERE, LIMIT_VARIABLE, has_memory, require_memory

RANKS = (500, 200, 100)
"""Ranks of an approximation that are proposed, the largest that fits."""

CHUNK_BYTES = 1e8
"""Largest size of the blocks of rows that are proposed, in coordinates."""

FEWEST_CHUNKS = 10
"""Blocks that are proposed at least."""

WITHOUT_BLOCKS = ("LaplacianEigenmaps", "LocallyLinearEmbedding", "MRGEPSVC", "NPE", "TwinSVC")
"""Methods that need all rows in one place, as they are by default."""

MOST_ARRAYS = 12
"""Arrays of rows x (rows + columns) that no fit exceeds, beside a few dozen megabytes."""


def check_memory(estimator: Any, X: Any) -> None:
    """Raise `TooLargeError` if a fit on these rows does not fit; nothing is allocated before.

    It costs a microsecond for small rows, and for large ones the reading of a few system files.
    """
    if _is_small(X):
        return
    rows = rows_of(X)
    if rows is None or rows.blocks:
        return
    work = workload_of(estimator, rows)
    if work is None:
        return
    needed = peak_memory(work)
    if not has_memory(needed):
        what = f"{type(estimator).__name__} on {rows.n_rows} x {rows.n_columns} ({work.route})"
        require_memory(needed, what, alternative(estimator, work))


def alternative(estimator: Any, work: Workload) -> str:
    """Return the first way to fit these rows that fits into the memory."""
    for line, other in _candidates(estimator, work):
        if has_memory(peak_memory(other)):
            return line
    return _fewer_rows(work)


def _candidates(estimator: Any, work: Workload) -> Iterator[tuple[str, Workload]]:
    name = type(estimator).__name__
    kernel: Any = getattr(estimator, "kernel", None)
    if work.route in ("exact kernel", "gram"):
        for rank in RANKS:
            yield _low_rank_line(name, kernel, rank), replace(work, route="low rank", rank=rank)
    elif is_linear(kernel) and work.rank > min(RANKS):
        other = replace(work, route="low rank", rank=min(RANKS))
        yield f"{name}(..., kernel=TruncatedSVD({other.rank}))", other
    elif work.route == "low rank":
        yield from _lower_ranks(name, kernel, work)
    searches = any(neighbors_of(rule) for rule in work.graphs)
    shown = f'{name}(..., graph="anchors")' if searches else f"{name}(...)"
    if searches and _worst_step(work) == "graph":
        yield shown, replace(work, graphs=())
    if work.route in ("primal", "low rank") and name not in WITHOUT_BLOCKS:
        widest = max(work.rows.n_columns, work.rank, 1)
        size = max(1, min(int(CHUNK_BYTES // (8 * widest)), work.rows.n_rows // FEWEST_CHUNKS))
        line = f"{shown}.fit(dask.array.from_array(X, chunks=({size}, -1)), y)"
        yield line, replace(work, route="blocks", graphs=())


def _lower_ranks(name: str, kernel: KernelLike, work: Workload) -> Iterator[tuple[str, Workload]]:
    """Yield fewer coordinates of a named kernel, or of a map whose rank is a parameter."""
    if isinstance(kernel, str):
        for rank in (rank for rank in RANKS if rank < work.rank):
            yield _low_rank_line(name, kernel, rank), replace(work, rank=rank)
    for parameter in ("rank", "n_components"):
        if hasattr(kernel, parameter):
            for rank in (rank for rank in RANKS if rank < work.rank):
                line = f"{name}(...).set_params(kernel__{parameter}={rank})"
                yield line, replace(work, rank=rank)


def _low_rank_line(name: str, kernel: KernelLike, rank: int) -> str:
    """Return the estimator with an approximation of the same kernel."""
    if is_pairwise(kernel):
        return (
            f'the rows themselves as X, with {name}(..., kernel=LowRankKernel("rbf", rank={rank}))'
        )
    if not isinstance(kernel, ExactKernel):
        shown = f'"{kernel}"' if isinstance(kernel, str) else getattr(kernel, "__name__", "kernel")
        return f"{name}(..., kernel=LowRankKernel({shown}, rank={rank}))"
    defaults = ExactKernel().get_params()
    given = {
        key: value
        for key, value in kernel.get_params().items()
        if key in ("gamma", "degree", "coef0", "center") and value != defaults[key]
    }
    options = "".join(f"{key}={value!r}, " for key, value in given.items())
    shown = f'"{kernel.kernel}"' if isinstance(kernel.kernel, str) else "kernel"
    return f"{name}(..., kernel=LowRankKernel({shown}, {options}rank={rank}))"


def _worst_step(work: Workload) -> str:
    costs = step_costs(work)
    worst, _ = max(zip(costs, peaks(costs), strict=True), key=lambda pair: pair[1])
    return worst.step


def _fewer_rows(work: Workload) -> str:
    """Return how to leave out rows until the rest fits."""
    rows, step = work.rows, 1
    whole_kernel = work.route == "exact kernel" and work.kernel_rank is None
    grows = whole_kernel or work.rank == rows.n_rows  # the rank, with the rows
    while rows.n_rows // step > 2:
        step *= 2
        part = replace(rows, n_rows=rows.n_rows // step, read_bytes=rows.read_bytes / step)
        rank = min(work.rank // step if grows else work.rank, part.n_rows)
        if has_memory(peak_memory(replace(work, rows=part, rank=rank))):
            break
    return f"fit a part of the rows, for example X[::{step}] and y[::{step}]."


def _is_small(X: Any) -> bool:
    """Return whether no method can need what is not there, whatever it does with these rows."""
    shape: Any = getattr(X, "shape", None)
    if not isinstance(shape, tuple) or len(shape) != 2:  # a dask Delayed has any attribute
        return False
    if not all(type(size) is int for size in shape):
        return False  # dask may not know its rows yet
    n_rows, n_columns = shape
    most = MOST_ARRAYS * 8 * n_rows * (n_rows + n_columns)
    return most <= ALWAYS_THERE / 2 and LIMIT_VARIABLE not in os.environ
