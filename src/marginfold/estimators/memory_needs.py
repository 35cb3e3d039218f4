"""The memory of a fit, known before it begins.

Each step is counted in arrays of a few kinds: tall ones of rows x coordinates, square ones, chunks
of a fixed size.  The counts are those of the arrays that are alive at once at the worst moment of
the step; ``benchmarks/planner.py`` compares the sums with the measured memory of whole fits.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from marginfold.estimators.workload import Workload, anchors_of, neighbors_of

FLOAT = 8.0
"""Bytes of a number."""

BASE = 8e6
"""Bytes that any fit takes: small arrays, and pages that the allocator keeps."""

KERNEL_SQUARES = 8.5
"""Arrays of rows x rows at once in the decomposition of an exact kernel, besides its result."""

LEADING_SQUARES = 1.2
"""The same if only leading coordinates are wanted."""

WIDE_COPIES = 6.0
"""Copies of the rows in the factorisation of wide rows, without the basis that stays."""

MAP_COPIES = 2.0
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

FACTOR_NUMBERS = 300.0
"""Numbers per node that the sparse eigenvalue problem of a graph holds."""


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
        needs.append(Need("components", FLOAT * FACTOR_NUMBERS * work.rows.n_rows, 0.0))
        return needs
    return [*needs, _metric(work), *([_solver(work)] if work.solves else [])]


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
    squares = KERNEL_SQUARES if work.kernel_rank is None else LEADING_SQUARES
    copied = whole * work.rows.density
    return Need("coordinates", squares * FLOAT * n * n + copied, 2.0 * tall + copied)


def _graph(work: Workload, rule: Any) -> Need:
    n, tall = work.rows.n_rows, FLOAT * work.rows.n_rows * work.rank
    k = neighbors_of(rule)
    if k == 0:
        return Need("graph", tall, 0.0)
    stored = max(1.0, work.rows.n_columns * work.rows.density)
    points, edges = FLOAT * n * stored, FLOAT * n * k
    chunk = min(SEARCH_CHUNK, points * (k + 5))
    copies = 1.0 if anchors_of(rule, n) else SEARCH_COPIES
    search = copies * points + chunk + EDGE_ARRAYS * edges
    return Need("graph", max(search, 2.0 * tall + 4.0 * edges), 4.0 * edges)


def _metric(work: Workload) -> Need:
    tall, square = FLOAT * work.rows.n_rows * work.rank, FLOAT * work.rank**2
    copies = 0.0 if not work.solves else 1.0 + bool(work.graphs)
    return Need("metric", METRIC_SQUARES * square + copies * tall, 2.0 * square)


def _solver(work: Workload) -> Need:
    state = FLOAT * STATE_ARRAYS * work.rows.n_rows
    return Need("solver", max(state, min(work.batch * state, BATCH_BYTES)), 0.0)


def _small(work: Workload) -> Iterator[Need]:
    """Yield what stays on this machine when the rows live on others."""
    square = FLOAT * work.rank**2
    yield Need("metric", METRIC_SQUARES * square, 2.0 * square)
    if work.solves:
        yield Need("solver", 2.0 * FLOAT * work.rows.n_rows, 0.0)
