"""What a fit will have to do, read off an estimator and the shape of its rows before any work."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any, cast

import numpy as np
import scipy.sparse

from marginfold.errors import InvalidParameterError
from marginfold.feature_maps import (
    ExactKernel,
    KernelLike,
    Linear,
    LowRankKernel,
    affordable_kernel,
    resolve_feature_map,
)
from marginfold.feature_maps.kernel_values import KERNELS
from marginfold.graphs import SHORTHANDS
from marginfold.graphs.anchor_graph import MOST_ANCHORS, ROWS_PER_ANCHOR, AnchorGraph
from marginfold.linalg.leading import LARGE_SHARE, SMALL
from marginfold.validation.rows import is_lazy

N_CLASSES = 2
"""Classes that are assumed where labels are not given."""

N_NEIGHBORS = 10
"""Neighbors that are assumed where a graph does not say."""

CLASS_GRAPHS = ("TotalGraph", "WithinClassGraph", "BetweenClassGraph")
"""Graphs that need class means only."""

KERNEL_SHARE = 0.9
"""Share of the rows that the rank of an exact kernel reaches, where it is not limited."""


FOLDS = 10
"""Parts of the rows that ``n_components="cv"`` holds out in turn."""


@dataclass(frozen=True)
class Rows:
    """The shape of the rows and what reading them costs.

    Attributes
    ----------
    n_rows, n_columns : int
    read_bytes : float
        Memory of the copy that is made if the rows are not 64-bit floats (or a CSR matrix of them).
    density : float
        Stored share of the entries: 1 for arrays.
    blocks : bool
        Whether the rows are a collection of dask.
    """

    n_rows: int
    n_columns: int
    read_bytes: float = 0.0
    density: float = 1.0
    blocks: bool = False

    @property
    def is_sparse(self) -> bool:
        """Whether the rows are a sparse matrix."""
        return self.density < 1.0


@dataclass(frozen=True)
class Workload:
    """A fit in figures.

    Attributes
    ----------
    rows : Rows
    route : str
        "primal" (as many coordinates as columns), "dual" (as many as rows), "exact kernel",
        "low rank" (fewer, by a map), "gram" (a kernel matrix and no coordinates), "graph" (no
        coordinates) or "blocks" (dask).
    rank : int
        Coordinates of each row.
    kernel_rank : int or None
        Leading coordinates asked of an exact kernel, None for all.
    graphs : tuple of graph rules
    n_classes, n_components : int
    solves : int
        Support vector problems one after the other.
    batch : int
        Problems that are solved side by side.
    planes : bool
        Whether the fit is one of a plane for each class.
    folds : int
        Parts of the rows that are held out to choose the number of components.
    """

    rows: Rows
    route: str
    rank: int
    kernel_rank: int | None = None
    graphs: tuple[Any, ...] = ()
    n_classes: int = N_CLASSES
    n_components: int = 1
    solves: int = 0
    batch: int = 1
    planes: bool = False
    folds: int = 0

    @property
    def leads(self) -> bool:
        """Whether the kernel is not decomposed: few leading coordinates are found by products."""
        few = self.kernel_rank is not None and self.kernel_rank <= LARGE_SHARE * self.rows.n_rows
        return few and self.rows.n_rows > SMALL

    def searched_rows(self, rule: Any) -> float:
        """Return the rows among which neighbors are searched at a time: all, or one class."""
        alone = self.planes or bool(getattr(rule, "within_class", False))
        return self.rows.n_rows / self.n_classes if alone else self.rows.n_rows


def rows_of(X: Any) -> Rows | None:
    """Return what is known of rows without touching them, None if they have no shape."""
    if isinstance(X, tuple) and len(X) == 2 and all(isinstance(size, Integral) for size in X):
        return Rows(int(X[0]), int(X[1]))
    shape = getattr(X, "shape", None)
    if not isinstance(shape, tuple) or len(shape) != 2:
        return None
    if is_lazy(X):
        return Rows(_count(shape[0]), _count(shape[1]), blocks=True)
    n, d = (int(size) for size in shape)
    if scipy.sparse.issparse(X):
        kept = X.format == "csr" and X.dtype == np.float64
        density = min(X.nnz / max(n * d, 1), 1.0 - np.finfo(float).eps)
        return Rows(n, d, 0.0 if kept else 12.0 * X.nnz + 8.0 * n, density)
    kept = isinstance(X, np.ndarray) and X.dtype == np.float64
    return Rows(n, d, 0.0 if kept else 8.0 * n * d)


def workload_of(estimator: Any, rows: Rows, n_classes: int = N_CLASSES) -> Workload | None:
    """Return the work of a fit, None for an estimator or kernel that is not known."""
    if not hasattr(estimator, "kernel"):
        if not hasattr(estimator, "graph"):
            return None
        return _with_parts(Workload(rows, "graph", 0), estimator, n_classes)
    leading = _components_of(estimator) if hasattr(estimator, "_map_options") else None
    kernel, exact = estimator.kernel, False
    if not hasattr(estimator, "_map_options"):  # all coordinates are needed
        kernel = _named_kernel(kernel, rows)
    if hasattr(estimator, "normalize_graph") and hasattr(estimator, "multiclass"):
        kernel, exact = _machine_kernel(estimator, rows)
    mapped = Workload(rows, "gram", 0) if exact else _mapped(kernel, rows, leading)
    return None if mapped is None else _with_parts(mapped, estimator, n_classes)


def _named_kernel(kernel: Any, rows: Rows) -> KernelLike:
    """Return what the name of a kernel stands for on so many rows, the kernel if it is no name."""
    if not isinstance(kernel, str) or kernel not in KERNELS or rows.blocks:
        return kernel
    found = resolve_feature_map(cast(KernelLike, kernel), rows.n_rows)
    return found if isinstance(found, LowRankKernel) else cast(KernelLike, kernel)


def _machine_kernel(estimator: Any, rows: Rows) -> tuple[KernelLike, bool]:
    """Return the kernel that a classifier fits, and whether it does so without coordinates."""
    weight = estimator.graph_weight
    graph = not isinstance(weight, Real) or float(weight) > 0
    try:
        kernel = affordable_kernel(estimator.kernel, rows.n_rows, graph=graph)
    except InvalidParameterError:  # the fit will say so
        return estimator.kernel, False
    relative = graph and estimator.penalty_graph is not None  # needs the coordinates
    return kernel, isinstance(kernel, ExactKernel) and not relative and not rows.blocks


def _with_parts(workload: Workload, estimator: Any, n_classes: int) -> Workload:
    components = _components_of(estimator) or max(workload.rank, 1)
    one_by_one = hasattr(estimator, "tasks")
    hinge = hasattr(estimator, "solver") and hasattr(estimator, "C")
    solves, batch = 0, 1
    if one_by_one:
        solves = min(components, max(workload.rank, 1))
    elif hinge:
        solves, batch = 1, 1 if n_classes == 2 else n_classes
    elif hasattr(estimator, "C1"):
        solves = n_classes
    return replace(
        workload,
        route="blocks" if workload.rows.blocks else workload.route,
        graphs=tuple(_graphs_of(estimator)),
        n_classes=n_classes,
        n_components=components,
        solves=solves,
        batch=batch,
        planes=hasattr(estimator, "tikhonov"),
        folds=FOLDS if getattr(estimator, "n_components", None) == "cv" else 0,
    )


def _mapped(kernel: KernelLike, rows: Rows, leading: int | None) -> Workload | None:
    """Return the work with the route and rank that a kernel means; ``leading`` limits the rank."""
    n, d = rows.n_rows, rows.n_columns
    if isinstance(kernel, Linear) or (isinstance(kernel, str) and kernel == "linear"):
        return Workload(rows, "dual", n) if n < d else Workload(rows, "primal", d)
    named = isinstance(kernel, str) and kernel in KERNELS
    transforms = hasattr(kernel, "transform")
    is_function = callable(kernel) and not isinstance(kernel, type) and not transforms
    if named or isinstance(kernel, ExactKernel) or is_function:
        limits = [
            rank for rank in (getattr(kernel, "rank", None), leading) if isinstance(rank, int)
        ]
        if limits and min(limits) < n:
            return Workload(rows, "exact kernel", min(limits), min(limits))
        return Workload(rows, "exact kernel", max(1, int(KERNEL_SHARE * n)))
    if transforms and not isinstance(kernel, type):
        return Workload(rows, "low rank", min(output_columns(kernel, d), n))
    return None


def _components_of(estimator: Any) -> int | None:
    count = getattr(estimator, "n_components", None)
    return count if isinstance(count, int) else None


def _graphs_of(estimator: Any) -> Iterator[Any]:
    """Yield the rules of the graphs that a fit builds, terms of sums one by one."""
    if hasattr(estimator, "_recipe"):
        for rule in estimator._recipe().graphs:
            yield from _terms(rule)
    elif getattr(estimator, "graph_weight", 1.0) != 0 or hasattr(estimator, "tasks"):
        rule = getattr(estimator, "graph", None)
        if rule is None and hasattr(estimator, "manifold"):
            rule = "knn"
        yield from _terms(rule)
        yield from _terms(getattr(estimator, "penalty_graph", None))


def _terms(rule: Any) -> Iterator[Any]:
    if isinstance(rule, str):
        if rule in SHORTHANDS:
            yield SHORTHANDS[rule]()
    elif hasattr(rule, "build"):
        parts = [
            getattr(rule, name)
            for name in ("first", "second", "rule", "graph")
            if hasattr(getattr(rule, name, None), "build")
        ]
        if not parts:
            yield rule
        for part in parts:
            yield from _terms(part)


def output_columns(transformer: Any, n_columns: int) -> int:
    """Return the columns of a transformer's output, by the names they usually have."""
    if hasattr(transformer, "steps"):
        for _, step in transformer.steps:
            n_columns = output_columns(step, n_columns)
        return n_columns
    for name in ("rank", "n_components", "max_rank"):
        count = getattr(transformer, name, None)
        if isinstance(count, int):
            return count
    return n_columns


def anchors_of(rule: Any, n_rows: int) -> int:
    """Return the anchors of a graph through anchors, 0 for other graphs."""
    if not isinstance(rule, AnchorGraph):
        return 0
    automatic = min(MOST_ANCHORS, max(1, n_rows // ROWS_PER_ANCHOR))
    return rule.n_anchors if isinstance(rule.n_anchors, int) else automatic


def neighbors_of(rule: Any) -> int:
    """Return the neighbors of each node, 0 for graphs of whole classes."""
    if type(rule).__name__ in CLASS_GRAPHS:
        return 0
    count = getattr(rule, "n_neighbors", N_NEIGHBORS)
    return count if isinstance(count, int) else N_NEIGHBORS


def _count(size: Any) -> int:
    """Return a number of rows or columns, 0 where dask does not know it yet."""
    return int(size) if isinstance(size, int | np.integer) else 0
