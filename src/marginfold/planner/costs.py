"""The cost model: what each step of a fit takes, in bytes and in seconds, known before it begins.

Memory is counted in arrays that are alive at once at the worst moment of a step: tall ones of rows
x coordinates, square ones, chunks of a fixed size.  Time is counted in a few kinds of operations,
at rates measured on one core of a cloud machine (40 GFlop/s in matrix products); `machine` carries
them over to this one, from 20 ms of work at the first plan of a process.
``benchmarks/planner.py`` compares both with whole fits.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np

from marginfold.graphs import ReconstructionGraph
from marginfold.graphs.neighbor_search import EXACT_MAX_ROWS, TREE_MAX_COLUMNS
from marginfold.planner.workload import Workload, anchors_of, neighbors_of
from marginfold.runtime.threads import one_thread
from marginfold.svm.interior_point import MANY_DIMENSIONS

FLOAT, BASE = 8.0, 8e6
"""Bytes of a number, and of any fit: small arrays, and pages that the allocator keeps."""

PRODUCT, DECOMPOSITION = 1 / 3e10, 1 / 2e10
"""Seconds of a floating-point operation in a matrix product, and in a factorisation."""

PASS, KERNEL_VALUE = 1 / 4e8, 1 / 6e7
"""Seconds of a number in an operation on whole arrays, and of a kernel value beside its product."""

OVERHEAD, BLOCKS = 2e-3, 2.5
"""Seconds of the calls of a step, and how much longer all workers of dask take than one array."""

KERNEL_SQUARES, PART_SQUARES, LEADING_SQUARES = 8.5, 5.0, 1.5
"""Arrays of rows x rows while an exact kernel is decomposed: whole, in part, few coordinates."""

EIGENVALUES, PART_EIGENVALUES, LANCZOS_COLUMNS = 9.0, 3.5, 40.0
"""Operations of the same: in units of n cubed, for some pairs, products for each of a few."""

GRAM_SQUARES, GRAM_OPERATIONS, LIBSVM_BYTES = 4.0, 2.5, 9e8
"""Arrays of rows x rows of a kernel with a graph, operations in units of n cubed; bytes of
the columns that libsvm and the certificate keep, at most, without a graph."""

WIDE_COPIES, MAP_COPIES, SEARCH_COPIES = 6.0, 1.0, 5.0
"""Copies of the rows while wide ones are factorised, mapped, and searched for neighbors."""

SEARCH_CHUNK, EDGE_ARRAYS = 1.2 * 2.0**24, 6.0
"""Bytes of the differences between neighbors at a time, and numbers held for each edge."""

PAIR, TREE_NODE, FAISS_NODE, EDGE = 1 / 2.5e8, 6e-5, 2e-4, 4e-6
"""Seconds of a pair of rows in an exact search, of a row in a tree and in an approximate search,
and of an edge from the search to the Laplacian."""

ANCHOR_PASSES = 6.0
"""How often rows are compared with anchors, to choose and to use them."""

METRIC_SQUARES, PLANE_COPIES, PLANE_SOLVER_COPIES = 4.0, 1.1, 3.0
"""Arrays of rank x rank while a scatter matrix is decomposed, and of rows x rank while planes are
fitted, directly and as support vector problems."""

STATE_ARRAYS, BATCH_BYTES = 25.0, 2.0**27
"""Numbers per row of one support vector problem, and the memory that a batch of them may use."""

ITERATIONS, STATE_PASSES, DESCENT = 18.0, 60.0, 1 / 6
"""Iterations of such a problem, numbers touched per row in each, and the share of this time that
coordinate descent takes in many dimensions, compiled."""

FACTOR_NUMBERS, SQUARED_NUMBERS, NODE = 350.0, 1700.0, 8e-5
"""Numbers per node in the eigenvalue problem of a graph, of one that is a square, and seconds."""

FLAT_COLUMNS, DENSE_NODES, DENSE_SQUARES = 4, 10_000, 1.15
"""Columns up to which a square has a sparse factor, nodes up to which it has a dense one else, and
arrays of the size of that."""


HELD_OUT = 5e-10
"""Seconds for each row, column and singular value of a fold (4.8e-10 to 6.4e-10 in four shapes
from 300 x 600 to 6000 x 200)."""

FOLD_COPIES = 4.0
"""Copies of the rows during a fold: distinct rows, those of the fold, their vectors."""


@dataclass(frozen=True)
class Cost:
    """The cost of one step.

    Attributes
    ----------
    step : str
    temporary, kept : float
        Bytes at the worst moment of the step, and those that stay of it until the end.
    seconds : float
        On the machine of the rates.
    """

    step: str
    temporary: float
    kept: float
    seconds: float


def step_costs(work: Workload) -> list[Cost]:
    """Return what the steps of a fit take, in their order."""
    if work.route == "blocks":
        return [replace(cost, seconds=BLOCKS * cost.seconds) for cost in _blocks(work)]
    return list(_steps(work))


def peaks(costs: list[Cost]) -> list[float]:
    """Return the memory in use at the worst moment of each step."""
    held, found = BASE, []
    for cost in costs:
        found.append(held + cost.temporary + cost.kept)
        held += cost.kept
    return found


def peak_memory(work: Workload) -> float:
    """Return the largest memory in use at one time, beyond the rows that are given."""
    return max(peaks(step_costs(work)))


def solver_seconds(n_rows: int, rank: int, *, n_problems: int = 1, descends: bool = False) -> float:
    """Return the time of support vector problems of one shape, solved side by side.

    Examples
    --------
    >>> solver_seconds(1000, 20) < 0.02 < solver_seconds(1_000_000, 20)
    True
    """
    iteration = 2 * PRODUCT * n_rows * (rank + 1) ** 2 + (STATE_PASSES + 4 * rank) * PASS * n_rows
    iteration += DECOMPOSITION * rank**3 / 3
    return OVERHEAD + n_problems * ITERATIONS * (DESCENT if descends else 1.0) * iteration


def _steps(work: Workload) -> Iterator[Cost]:
    yield _read(work)
    if work.rank:
        yield _coordinates(work)
    for rule in work.graphs:
        yield _graph(work, rule)
    if work.route == "gram":
        yield _gram(work)
    if work.route == "graph":
        yield _components(work)
        return
    if work.folds:
        yield _folds(work)
    yield _planes(work) if work.planes else _metric(work)
    if work.solves:
        yield _solver(work)


def _folds(work: Workload) -> Cost:
    """Return what singular values of the other rows take, for each part that is held out."""
    n, d = work.rows.n_rows, work.rows.n_columns
    seconds = OVERHEAD + work.folds * HELD_OUT * n * d * min(n, d)
    return Cost("folds", FOLD_COPIES * FLOAT * n * d, 0.0, seconds)


def _blocks(work: Workload) -> Iterator[Cost]:
    """Yield what stays on this machine when the rows live on others."""
    yield _read(work)
    yield replace(_metric(work), temporary=METRIC_SQUARES * FLOAT * work.rank**2)
    if work.solves:
        yield replace(_solver(work), temporary=2.0 * FLOAT * work.rows.n_rows)


def _read(work: Workload) -> Cost:
    n, stored = work.rows.n_rows, work.rows.n_columns * work.rows.density
    kept = work.rows.read_bytes + 4 * FLOAT * n
    return Cost("read rows", 0.0, kept, OVERHEAD + 8 * PASS * n * stored)


def _coordinates(work: Workload) -> Cost:
    n, d, r = work.rows.n_rows, work.rows.n_columns, work.rank
    stored = d * work.rows.density
    tall, whole, scatter = FLOAT * n * r, FLOAT * n * d, 2 * PRODUCT * n * r * r
    value = 2 * PRODUCT * stored + KERNEL_VALUE
    if work.route == "primal":
        temporary, kept = whole if work.rows.is_sparse else 0.0, tall
        seconds = 4 * PASS * n * r
    elif work.route == "dual":
        temporary, kept = WIDE_COPIES * whole, tall + whole
        seconds = 8 * DECOMPOSITION * n * n * d + 20 * DECOMPOSITION * n**3
    elif work.route == "low rank":
        temporary, kept = MAP_COPIES * tall, tall
        seconds = value * n * r + 2 * PRODUCT * n * r * r
    else:
        if work.leads:
            squares = LEADING_SQUARES
            seconds = value * n * n + 2 * LANCZOS_COLUMNS * PRODUCT * n * n * r
        elif work.kernel_rank is not None:
            squares = PART_SQUARES
            seconds = value * n * n + PART_EIGENVALUES * DECOMPOSITION * n**3
        else:
            squares = KERNEL_SQUARES
            seconds = 2 * value * n * n + EIGENVALUES * DECOMPOSITION * n**3 + 4 * PRODUCT * n**3
        copied = whole * work.rows.density
        temporary, kept = squares * FLOAT * n * n + copied, 2.0 * tall + copied
    return Cost("coordinates", temporary, kept, OVERHEAD + scatter + seconds)


def _gram(work: Workload) -> Cost:
    """Return the cost of kernel matrices in the metric of a graph; without one few are formed."""
    n, stored = work.rows.n_rows, work.rows.n_columns * work.rows.density
    seconds = (2 * PRODUCT * stored + KERNEL_VALUE) * n * n
    if not work.graphs:
        kept = min(LIBSVM_BYTES, 1.5 * FLOAT * n * n)
        return Cost("kernel", kept, 0.0, OVERHEAD + seconds)
    seconds += GRAM_OPERATIONS * PRODUCT * n**3
    return Cost("kernel", GRAM_SQUARES * FLOAT * n * n, 0.0, OVERHEAD + seconds)


def _graph(work: Workload, rule: Any) -> Cost:
    n, r, k = work.rows.n_rows, work.rank, neighbors_of(rule)
    tall = FLOAT * n * r
    scatter = OVERHEAD + 2 * PRODUCT * n * r * r + 4 * PASS * n * r
    if k == 0:
        return Cost("graph", tall, 0.0, scatter)
    stored = max(1.0, work.rows.n_columns * work.rows.density)
    at_once, anchors = work.searched_rows(rule), anchors_of(rule, n)
    points, edges = FLOAT * at_once * stored, FLOAT * at_once * k
    search = (1.0 if anchors else SEARCH_COPIES) * points
    search += min(SEARCH_CHUNK, points * (k + 5)) + EDGE_ARRAYS * edges
    temporary = max(search, 2.0 * tall + 4.0 * edges)
    pair = PAIR + 2 * PRODUCT * stored
    if anchors:
        seconds = ANCHOR_PASSES * pair * n * anchors
    elif work.rows.n_columns <= TREE_MAX_COLUMNS:
        seconds = TREE_NODE * n
    elif at_once > EXACT_MAX_ROWS and not work.rows.is_sparse and _is_installed("faiss"):
        seconds = FAISS_NODE * n
    else:
        seconds = pair * n * at_once
    seconds += (EDGE + 4 * PASS * stored) * n * k
    return Cost("graph", temporary, 4.0 * edges, scatter + seconds)


def _metric(work: Workload) -> Cost:
    n, r = work.rows.n_rows, work.rank
    tall, square = FLOAT * n * r, FLOAT * r**2
    copies = 1.0 + bool(work.graphs) if work.solves else 0.0
    seconds = 2 * EIGENVALUES * DECOMPOSITION * r**3 + 4 * PRODUCT * n * r * r
    temporary = METRIC_SQUARES * square + copies * tall
    return Cost("metric", temporary, 2.0 * square, OVERHEAD + seconds)


def _planes(work: Workload) -> Cost:
    n, r = work.rows.n_rows, work.rank
    tall, square = FLOAT * n * r, FLOAT * r**2
    seconds = work.n_classes * (4 * PRODUCT * n * r * r + 10 * PASS * n * r)
    return Cost("planes", METRIC_SQUARES * square + PLANE_COPIES * tall, tall, OVERHEAD + seconds)


def _solver(work: Workload) -> Cost:
    n, r = work.rows.n_rows, work.rank
    state = FLOAT * STATE_ARRAYS * n
    copies = PLANE_SOLVER_COPIES * FLOAT * n * r if work.planes else 0.0
    temporary = copies + max(state, min(work.batch * state, BATCH_BYTES))
    descends = r > MANY_DIMENSIONS and work.route != "blocks" and _is_installed("numba")
    seconds = solver_seconds(n, r, n_problems=work.batch, descends=descends)
    return Cost("solver", temporary, 0.0, work.solves * seconds)


def _components(work: Workload) -> Cost:
    """Return the cost of the eigenvalue problem on the nodes of a graph.

    In locally linear embedding its matrix is a square.
    """
    n = work.rows.n_rows
    seconds = OVERHEAD + NODE * n * work.n_components
    if not any(isinstance(rule, ReconstructionGraph) for rule in work.graphs):
        return Cost("components", FLOAT * FACTOR_NUMBERS * n, 0.0, seconds)
    if work.rows.n_columns > FLAT_COLUMNS and n <= DENSE_NODES:
        seconds += DECOMPOSITION * n**3 / 3
        return Cost("components", FLOAT * DENSE_SQUARES * n * n, 0.0, seconds)
    return Cost("components", FLOAT * SQUARED_NUMBERS * n, 0.0, seconds)


@cache
def _is_installed(name: str) -> bool:
    return find_spec(name) is not None


SIZE, REPEATS = 400, 5
"""Shape of the matrix product that is timed, and how often it is."""

REFERENCE_SECONDS = 3.2e-3
"""The time of this product where the rates of `step_costs` were measured."""

SLOWNESS, WAITING = (0.1, 20.0), (1.0, 20.0)
"""Ranges of the factors: what is outside is more likely to be an accident of the measurement."""


class Machine(NamedTuple):
    """What is known of a machine.

    Attributes
    ----------
    slowness : float
        How many times longer than on the machine of the rates work takes here, in CPU time.
    waiting : float
        How many times longer than its CPU time a process takes by the clock: 1 where it is alone,
        3 where two cores are shared by six.
    """

    slowness: float
    waiting: float


@cache
def machine() -> Machine:
    """Return the machine as it was at the first call.

    Examples
    --------
    >>> from marginfold.planner.costs import machine
    >>> machine().waiting >= 1
    True
    """
    A = np.linspace(0.0, 1.0, SIZE * SIZE).reshape(SIZE, SIZE)
    work, clock = [], []
    with one_thread("blas"):
        A @ A
        for _ in range(REPEATS):
            begun, shown = time.thread_time(), time.perf_counter()
            A @ A
            work.append(time.thread_time() - begun)
            clock.append(time.perf_counter() - shown)
    slowness = np.clip(min(work) / REFERENCE_SECONDS, *SLOWNESS)
    waiting = np.clip(_queue() or sum(clock) / max(sum(work), REFERENCE_SECONDS), *WAITING)
    return Machine(float(slowness), float(waiting))


def _queue() -> float:
    """Return how many processes wanted each core in the last minute, 0 where nobody counts them.

    A few milliseconds of work show less: they mostly wait not at all, and sometimes for very long.
    """
    if not hasattr(os, "getloadavg"):
        return 0.0
    try:
        return os.getloadavg()[0] / (os.cpu_count() or 1)
    except OSError:
        return 0.0
