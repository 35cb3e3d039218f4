"""The time of a fit, counted in a few kinds of operations.

The rates were measured on one core of a cloud machine (40 GFlop/s in matrix products) against
whole fits; `slowness` carries them over to other machines.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

from marginfold.graphs.exact_search import TREE_MAX_COLUMNS
from marginfold.graphs.neighbor_search import EXACT_MAX_ROWS
from marginfold.planner.costs import has_dense_factor, is_squared
from marginfold.planner.workload import Workload, anchors_of, neighbors_of
from marginfold.svm.policy import MANY_DIMENSIONS

PRODUCT = 1 / 3e10
"""Seconds of a floating-point operation in a matrix product."""

DECOMPOSITION = 1 / 2e10
"""Seconds of one in an eigenvalue problem or another factorisation."""

PASS = 1 / 4e8
"""Seconds of one number in an operation on whole arrays."""

KERNEL_VALUE = 1 / 6e7
"""Seconds of a kernel value, besides the inner product."""

OVERHEAD = 2e-3
"""Seconds of the calls of a step, whatever its size."""

EIGENVALUES = 9.0
"""Operations of an eigenvalue problem of size r, in units of r cubed."""

ITERATIONS = 18.0
"""Iterations of a support vector problem, with its certificate."""

DESCENT = 1 / 6
"""Share of this time that coordinate descent takes, in many dimensions and with numba."""

STATE_PASSES = 60.0
"""Numbers touched per row in an iteration, besides the products."""

LANCZOS_COLUMNS = 40.0
"""Products with the kernel for each leading coordinate, if there are few."""

PART_EIGENVALUES = 3.5
"""Operations of an eigenvalue problem of which some pairs are wanted, in units of r cubed."""

PAIR = 1 / 2.5e8
"""Seconds of a pair of rows in an exact search for neighbors, besides the inner product."""

TREE_NODE, FAISS_NODE = 6e-5, 2e-4
"""Seconds of a row in a search in a tree, and in an approximate one."""

ANCHOR_PASSES = 6.0
"""How often rows are compared with anchors, to choose and to use them."""

EDGE = 4e-6
"""Seconds of an edge, from the search to the Laplacian."""

BLOCKS = 2.5
"""How much longer blocks of dask take than one array, over all workers."""

NODE = 8e-5
"""Seconds of a node in the sparse eigenvalue problem of a graph."""


def step_seconds(work: Workload, step: str, rule: Any = None) -> float:
    """Return the time of a step on the machine of the rates."""
    seconds = _step_seconds(work, step, rule)
    return BLOCKS * seconds if work.route == "blocks" else seconds


def _step_seconds(work: Workload, step: str, rule: Any) -> float:
    n, d, r = work.rows.n_rows, work.rows.n_columns * work.rows.density, work.rank
    if step == "read rows":
        return OVERHEAD + 8 * PASS * n * d
    if step == "coordinates":
        return OVERHEAD + _coordinates(work)
    if step == "graph":
        return OVERHEAD + _graph(work, rule)
    if step == "components":
        dense = is_squared(work) and has_dense_factor(work)
        factor = DECOMPOSITION * n**3 / 3 if dense else 0.0
        return OVERHEAD + NODE * n * work.n_components + factor
    if step == "planes":
        return OVERHEAD + work.n_classes * (4 * PRODUCT * n * r * r + 10 * PASS * n * r)
    if step == "metric":
        return OVERHEAD + 2 * EIGENVALUES * DECOMPOSITION * r**3 + 4 * PRODUCT * n * r * r
    return _solver(work)


def _coordinates(work: Workload) -> float:
    n, d, r = work.rows.n_rows, work.rows.n_columns * work.rows.density, work.rank
    products = 2 * PRODUCT * n * r * r  # their scatter
    if work.route in ("primal", "blocks"):
        return products + 4 * PASS * n * r
    if work.route == "dual":
        return (
            products + 8 * DECOMPOSITION * n * n * work.rows.n_columns + 20 * DECOMPOSITION * n**3
        )
    if work.route == "low rank":
        return products + (2 * PRODUCT * d + KERNEL_VALUE) * n * r + 2 * PRODUCT * n * r * r
    values = (2 * PRODUCT * d + KERNEL_VALUE) * n * n
    if work.leads:
        return products + values + 2 * LANCZOS_COLUMNS * PRODUCT * n * n * r
    if work.kernel_rank is not None:
        return products + values + PART_EIGENVALUES * DECOMPOSITION * n**3
    return products + 2 * values + EIGENVALUES * DECOMPOSITION * n**3 + 4 * PRODUCT * n**3


def _graph(work: Workload, rule: Any) -> float:
    n, r, k = work.rows.n_rows, work.rank, neighbors_of(rule)
    scatter = 2 * PRODUCT * n * r * r + 4 * PASS * n * r
    if k == 0:
        return scatter
    d = max(1.0, work.rows.n_columns * work.rows.density)
    return scatter + _search(work, rule, d) + (EDGE + 4 * PASS * d) * n * k


def _search(work: Workload, rule: Any, d: float) -> float:
    """Return the time to find the neighbors: in a tree, approximately, or among all pairs."""
    n, at_once = work.rows.n_rows, work.searched_rows(rule)
    anchors = anchors_of(rule, n)
    if anchors:
        return ANCHOR_PASSES * (PAIR + 2 * PRODUCT * d) * n * anchors
    if work.rows.n_columns <= TREE_MAX_COLUMNS:
        return TREE_NODE * n
    if at_once > EXACT_MAX_ROWS and not work.rows.is_sparse and find_spec("faiss") is not None:
        return FAISS_NODE * n
    return (PAIR + 2 * PRODUCT * d) * n * at_once


def _solver(work: Workload) -> float:
    n, r = work.rows.n_rows, work.rank
    iteration = 2 * PRODUCT * n * (r + 1) ** 2 + (STATE_PASSES + 4 * r) * PASS * n
    iteration += DECOMPOSITION * r**3 / 3
    descends = r > MANY_DIMENSIONS and work.route != "blocks" and find_spec("numba") is not None
    iterations = ITERATIONS * (DESCENT if descends else 1.0)
    return work.solves * (OVERHEAD + work.batch * iterations * iteration)
