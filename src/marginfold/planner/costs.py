"""The memory of a fit, known before it begins.

Each step is counted in arrays of a few kinds: tall ones of rows x coordinates, square ones, chunks
of a fixed size.  The counts are those of the arrays that are alive at once at the worst moment of
the step; ``benchmarks/planner.py`` compares the sums with the measured memory of whole fits.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from marginfold.graphs import ReconstructionGraph
from marginfold.planner.workload import Workload, anchors_of, neighbors_of

FLOAT = 8.0
"""Bytes of a number."""

BASE = 8e6
"""Bytes that any fit takes: small arrays, and pages that the allocator keeps."""

KERNEL_SQUARES = 8.5
"""Arrays of rows x rows at once in the decomposition of an exact kernel, besides its result."""

PART_SQUARES, LEADING_SQUARES = 5.0, 1.5
"""The same if only leading coordinates are wanted: many of them, and few."""

WIDE_COPIES = 6.0
"""Copies of the rows in the factorisation of wide rows, without the basis that stays."""

MAP_COPIES = 1.0
"""Arrays of rows x rank alive at once while a transformer maps the rows, without its result."""

SEARCH_COPIES = 5.0
"""Copies of the rows that a search for neighbors holds: merged, centred, sorted."""

SEARCH_CHUNK = 1.2 * 2.0**24
"""Largest chunk of differences between neighbors."""

EDGE_ARRAYS = 6.0
"""Numbers held for each edge of a neighbor graph while it is built."""

STATE_ARRAYS, BATCH_BYTES = 25.0, 2.0**27
"""Numbers per row of one support vector problem, and the memory that a batch of them may use."""

METRIC_SQUARES = 4.0
"""Arrays of rank x rank while a scatter matrix is decomposed."""

FACTOR_NUMBERS, SQUARED_NUMBERS = 350.0, 1700.0
"""Numbers per node that the eigenvalue problem of a graph holds; of one that is a square."""

FLAT_COLUMNS, DENSE_SQUARES = 4, 1.15
"""Columns up to which a square has a sparse factor, and the arrays of the size of a dense one."""

DENSE_NODES = 10_000
"""Nodes up to which a square without a sparse factor has a dense one."""

PLANE_COPIES = 1.1
"""Arrays of rows x rank besides coordinates and bordered rows while planes are fitted."""

PLANE_SOLVER_COPIES = 3.0
"""The same while a plane is a support vector problem."""


@dataclass(frozen=True)
class Need:
    """The memory of one step: at its worst moment, and what stays of it until the end."""

    step: str
    temporary: float
    kept: float


def memory_needs(work: Workload) -> list[Need]:
    """Return what the steps of a fit need, in their order."""
    if work.route == "blocks":
        return [_read(work), *_small(work)]
    needs = [_read(work)]
    if work.rank:
        needs.append(_coordinates(work))
    needs += [_graph(work, rule) for rule in work.graphs]
    if work.route == "graph":
        return [*needs, _components(work)]
    needs.append(_planes(work) if work.planes else _metric(work))
    return [*needs, _solver(work)] if work.solves else needs


def peaks(needs: list[Need]) -> list[float]:
    """Return the memory in use at the worst moment of each step."""
    held, found = BASE, []
    for need in needs:
        found.append(held + need.temporary + need.kept)
        held += need.kept
    return found


def peak_memory(work: Workload) -> float:
    """Return the largest memory in use at one time, beyond the rows that are given."""
    return max(peaks(memory_needs(work)))


def _read(work: Workload) -> Need:
    labels = 4 * FLOAT * work.rows.n_rows
    return Need("read rows", 0.0, work.rows.read_bytes + labels)


def _coordinates(work: Workload) -> Need:
    n, d, r = work.rows.n_rows, work.rows.n_columns, work.rank
    tall, whole = FLOAT * n * r, FLOAT * n * d
    if work.route == "primal":
        return Need("coordinates", whole if work.rows.is_sparse else 0.0, tall)
    if work.route == "dual":
        return Need("coordinates", WIDE_COPIES * whole, tall + whole)
    if work.route == "low rank":
        return Need("coordinates", MAP_COPIES * tall, tall)
    squares = LEADING_SQUARES if work.leads else PART_SQUARES
    if work.kernel_rank is None:
        squares = KERNEL_SQUARES
    copied = whole * work.rows.density
    return Need("coordinates", squares * FLOAT * n * n + copied, 2.0 * tall + copied)


def _graph(work: Workload, rule: Any) -> Need:
    n, tall = work.searched_rows(rule), FLOAT * work.rows.n_rows * work.rank
    k = neighbors_of(rule)
    if k == 0:
        return Need("graph", tall, 0.0)
    stored = max(1.0, work.rows.n_columns * work.rows.density)
    points, edges = FLOAT * n * stored, FLOAT * n * k
    chunk = min(SEARCH_CHUNK, points * (k + 5))
    copies = 1.0 if anchors_of(rule, work.rows.n_rows) else SEARCH_COPIES
    search = copies * points + chunk + EDGE_ARRAYS * edges
    return Need("graph", max(search, 2.0 * tall + 4.0 * edges), 4.0 * edges)


def _metric(work: Workload) -> Need:
    tall, square = FLOAT * work.rows.n_rows * work.rank, FLOAT * work.rank**2
    copies = 0.0 if not work.solves else 1.0 + bool(work.graphs)
    return Need("metric", METRIC_SQUARES * square + copies * tall, 2.0 * square)


def _planes(work: Workload) -> Need:
    tall, square = FLOAT * work.rows.n_rows * work.rank, FLOAT * work.rank**2
    return Need("planes", METRIC_SQUARES * square + PLANE_COPIES * tall, tall)


def _solver(work: Workload) -> Need:
    state = FLOAT * STATE_ARRAYS * work.rows.n_rows
    copies = PLANE_SOLVER_COPIES if work.planes else 0.0
    held = copies * FLOAT * work.rows.n_rows * work.rank
    return Need("solver", held + max(state, min(work.batch * state, BATCH_BYTES)), 0.0)


def _components(work: Workload) -> Need:
    """Return the need of the eigenvalue problem on the nodes of a graph."""
    n = work.rows.n_rows
    if not is_squared(work):
        return Need("components", FLOAT * FACTOR_NUMBERS * n, 0.0)
    if has_dense_factor(work):
        return Need("components", FLOAT * DENSE_SQUARES * n * n, 0.0)
    return Need("components", FLOAT * SQUARED_NUMBERS * n, 0.0)


def is_squared(work: Workload) -> bool:
    """Return whether the matrix of the nodes is a square, as in locally linear embedding."""
    return any(isinstance(rule, ReconstructionGraph) for rule in work.graphs)


def has_dense_factor(work: Workload) -> bool:
    """Return whether such a matrix is factorised as a dense one."""
    return work.rows.n_columns > FLAT_COLUMNS and work.rows.n_rows <= DENSE_NODES


def _small(work: Workload) -> Iterator[Need]:
    """Yield what stays on this machine when the rows live on others."""
    square = FLOAT * work.rank**2
    yield Need("metric", METRIC_SQUARES * square, 2.0 * square)
    if work.solves:
        yield Need("solver", 2.0 * FLOAT * work.rows.n_rows, 0.0)
