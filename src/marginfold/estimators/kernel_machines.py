"""Machines of an exact kernel with one graph: Gram matrices and no eigendecomposition.

With the kernel K of the rows and the Laplacian L the values of ``min 1/2 w'(I + lam Z'LZ)w + loss``
are those of a support vector machine with the kernel ``G = Z (I + lam Z'LZ)^-1 Z'``, where
``Z Z' = K``.  Z is a Cholesky factor of K and a second one whitens it.  A machine with multipliers
a has the values ``f = G y a``, and its expansion over the rows is ``y a - lam L f``: from
``w = Z' u`` and the stationarity ``(I + lam Z'LZ) w = Z' y a`` follows ``u = y a - lam L Z w``.
Neither the free bias nor L, whose rows have sum 0, notices whether the kernel is centred: a kernel
matrix that is there is centred first, because rows far from the origin would cost digits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import repeat
from typing import Any

import numpy as np
import scipy.sparse as sp

from marginfold.errors import GraphError
from marginfold.estimators.inputs import kernel_points, labelled_rows
from marginfold.estimators.machines import (
    PART,
    Machine,
    Machines,
    gram_machine,
    pair_machines,
)
from marginfold.estimators.multiclass import class_pairs
from marginfold.feature_maps import ExactKernel
from marginfold.feature_maps.factor_rows import kernel_diagonal
from marginfold.feature_maps.kernel_expansion import KernelExpansion
from marginfold.feature_maps.kernel_values import TRANSLATION_FREE, finite_peak
from marginfold.geometry.metric import NEGATIVE_RESOLUTION, Penalty
from marginfold.geometry.one_vs_rest import LabelledRows, Task, one_vs_rest_tasks
from marginfold.graphs import GraphRows, laplacian_of
from marginfold.graphs.laplacian import Laplacian
from marginfold.linalg.decompositions import (
    blocks_of,
    factorise,
    form_of,
    quotient,
    reverse_factorise,
    square_of,
)
from marginfold.linalg.tall import Array
from marginfold.runtime.memory import require_memory
from marginfold.runtime.progress import report
from marginfold.svm import Automatic, SVMSolver
from marginfold.svm.gram import LIBSVM_KERNELS, GivenGram, Gram, RowGram
from marginfold.svm.pairs import PairMultipliers, libsvm_pairs
from marginfold.svm.problem import EPS, TINY
from marginfold.validation.rows import UNLABELLED, LabelledInput

SHIFT = 1e-11
"""Share of its mean diagonal that is added to a kernel's diagonal, so that copies of a row do not
make it singular; rounding can make 1e-12 too little from some thousand rows on.  It is the error of
``Z Z' = K``, which `_certified` takes into account."""

LOST = 1e-6
"""Rounding of a kernel, in margins if all multipliers are at the cost, above which machines of few
rows get coordinates.  The gap of a Gram matrix is a twentieth of it and libsvm takes a thousand
iterations a row or does not end; from 500 on machines fit the rounding, which has full rank (degree
3, rows 10 to 10,000 standard deviations from 0, costs 1 to 1e4)."""

SQUARES = 4.0
"""Matrices of rows by rows that are held at the peak."""

DEFINITE = ("rbf", "laplacian", "cosine", "linear")
"""Kernels that are positive semi-definite whatever the rows."""

WHOLE_ROWS = 4000
"""Dense rows up to which their kernel matrix is evaluated, not the columns that libsvm needs: up to
3200 rows in 0.4 to 0.9 of the time, of 4500 with few support vectors in 1.6 times."""

WIDE, CLASS_ROWS = 128, 150
"""Columns from which, and rows of a class up to which, that holds for pairs of many classes: most
rows of a small class are support vectors of some pair.  Whole to columns, in seconds: letters (3000
x 16, 26 classes) 0.142 to 0.159, digits 0.025 to 0.031, 3000 rows of mnist 0.27 to 0.61, but
segment (1617 x 19, 7 classes) 0.023 to 0.018, texture (3850 x 40, 11) 0.103 to 0.059."""

FEW_ROWS = 2000
"""Rows of a pair, on average, up to which libsvm solves all pairs in one call."""

MOST_EXPANDED = 64 << 20
"""Bytes of the values of all machines that are computed at a time."""


@dataclass
class KernelPrepared:
    """What machines of an exact kernel share: everything but the cost and the graph weight.

    Attributes
    ----------
    X, weights, classes
        As in `Prepared`.
    feature_map : KernelExpansion
        Its training rows are those of positive weight, class by class, those without one first:
        rows of one class have weights in the same machines, and `KernelExpansion` skips the others.
    labelled : LabelledRows
    numbers : array of shape (n,)
        Numbers of the training rows in X.
    known : array
        Numbers of the labelled rows among the training rows.
    metric : KernelMetric or None
        None without a graph.
    K : array of shape (n, n) or None
        The kernel of the training rows, where libsvm does not evaluate it itself.
    means : array of shape (n,) or None
        Means of the columns of the kernel, if it was centred.
    """

    X: Any
    weights: Array
    classes: Array
    feature_map: KernelExpansion
    labelled: LabelledRows
    numbers: Array
    known: Array
    metric: KernelMetric | None
    K: Array | None
    means: Array | None

    @property
    def n_columns(self) -> int:
        """The number of training rows."""
        return len(self.feature_map.share_)

    def scales(self, penalties: Sequence[Penalty]) -> list[float]:
        """Return the raw weight of the graph for each penalty."""
        return [0.0 if self.metric is None else self.metric.weight(p) for p in penalties]


@dataclass
class KernelMetric:
    """A Cholesky factor of the kernel and the form of the graph in its coordinates.

    Attributes
    ----------
    factor : array of shape (n, n)
        The lower triangle Z with ``Z Z' = K``.
    form : array of shape (n, n)
        ``Z'LZ``.
    L : sparse or dense matrix of shape (n, n)
    unit : float
        As in `Metric`.
    shift : float
        What the diagonal of ``Z Z'`` has more than that of K.
    """

    factor: Array
    form: Array
    L: Any
    unit: float
    shift: float
    graph: object

    def weight(self, penalty: Penalty) -> float:
        """Return the raw weight lam of a penalty."""
        if not penalty.normalize:
            return penalty.weight
        return penalty.weight / self.unit if self.unit > 0 else 0.0

    def gram(self, weight: float, *, last: bool) -> Array:
        """Return ``Z (I + weight Z'LZ)^-1 Z'``; the last one may use up the factor and the form."""
        if weight == 0.0:
            return square_of(self.factor, "kernel")
        A = self.form if last else self.form.copy()
        A *= weight
        A.flat[:: len(A) + 1] += 1.0
        if not reverse_factorise(A, "metric"):
            raise _indefinite(self.graph)
        U = self.factor if last else self.factor.copy()
        quotient(U, A, "whitening")
        return square_of(U, "kernel in the metric")


def prepare_kernel(
    estimator: Any, read: LabelledInput, penalty: Penalty, exact: ExactKernel, *, graph: bool
) -> KernelPrepared | None:
    """Return what the machines share, None if they need coordinates.

    So they do if the kernel is not positive semi-definite, or so large that its rounding counts:
    coordinates leave small eigenvalues out.  Without ``graph`` all machines have the graph weight
    0.
    """
    labelled = labelled_rows(estimator, read).sorted()
    expansion = KernelExpansion.of(exact)
    kept = expansion.fit_rows(read.X, read.weights)
    order = np.argsort(read.codes[kept], kind="stable")
    expansion.keep(order)
    kept = kept[order]
    n, k = len(kept), len(read.classes)
    apart = estimator.multiclass == "one_vs_one" and exact.kernel in TRANSLATION_FREE
    n_classes = k if apart else 2  # other kernels are centred, which takes all of K
    by_columns = not graph and _is_evaluated(exact) and not _is_short(read.X, n, n_classes)
    _require_memory(n, SQUARES if graph else 2.0 * (not by_columns))
    K, means = None, None
    if by_columns:
        peak = finite_peak(kernel_diagonal(expansion.function, expansion.training_rows_))
    else:
        K = expansion.kernel_of(read.X)
        peak = float(K.diagonal().max())
    if EPS * peak * n * estimator.C > LOST and n <= WHOLE_ROWS:
        return None
    if K is not None and exact.center and exact.kernel not in TRANSLATION_FREE:
        means = _centre(K)
    metric = _metric(read, kept, K, penalty, exact) if K is not None and graph else None
    if graph:
        if metric is None:
            return None
        K = None
    elif K is not None and not (_is_evaluated(exact) or _is_definite(exact, K)):
        return None
    known = np.flatnonzero(read.codes[kept] != UNLABELLED)
    shared = read.X, read.weights, read.classes, expansion, labelled
    return KernelPrepared(*shared, kept, known, metric, K, means)


def solve_kernel_machines(
    prepared: KernelPrepared,
    lams: Sequence[float],
    costs: Sequence[float],
    solver: SVMSolver,
    *,
    one_vs_one: bool,
) -> list[Machines]:
    """Solve the machines of all classes for every graph weight and cost."""
    found: dict[int, Machines] = {}
    distinct = sorted(set(lams))
    for lam in distinct:
        members = [m for m, own in enumerate(lams) if own == lam]
        G = prepared.K
        if prepared.metric is not None:
            G = prepared.metric.gram(lam, last=lam == distinct[-1])
        for m in members:
            found[m] = _machines(prepared, G, lam, costs[m], solver, one_vs_one=one_vs_one)
    return _trimmed(prepared, [found[m] for m in range(len(lams))])


def _machines(
    prepared: KernelPrepared,
    G: Array | None,
    lam: float,
    C: float,
    solver: SVMSolver,
    *,
    one_vs_one: bool,
) -> Machines:
    """Solve the machines of one graph weight and cost, and expand them over the training rows."""
    parts = _parts(prepared, one_vs_one=one_vs_one)
    n = prepared.n_columns
    directions, machines = np.zeros((n, len(parts)), order="F"), []
    starts: PairMultipliers | None = None
    together: list[Machine | None] = [None] * len(parts)
    if parts[0][0] and isinstance(solver, Automatic) and _are_small(prepared.labelled):
        starts, together = _pairs_together(prepared, G, C)
    for column, (pair, task) in enumerate(parts):
        report("machines", column, len(parts))
        rows, machine = _rows_of(prepared, pair), together[column]
        if machine is None:
            labelled = _labels_of(prepared, pair)
            start = starts.of_pair(*pair) if starts and pair else None
            machine = gram_machine(_gram(prepared, G, rows), labelled, task, C, solver, start)
        directions[rows, column] = machine.weights
        machines.append(machine)
    report("machines", len(parts), len(parts))
    if prepared.metric is not None and G is not None:
        tol = float(getattr(solver, "tol", np.inf))
        machines = _expanded(prepared, G, lam, C, parts, directions, machines, tol)
    if prepared.means is not None:
        moved = prepared.means @ directions
        machines = [
            replace(m, intercept=m.intercept - by) for m, by in zip(machines, moved, strict=True)
        ]
    voting = one_vs_one and len(prepared.classes) > 2
    return Machines.of(directions, machines, prepared.labelled if voting else None)


def _pairs_together(
    prepared: KernelPrepared, G: Array | None, C: float
) -> tuple[PairMultipliers | None, list[Machine | None]]:
    """Return what one call of libsvm finds for all pairs, and the machines that follow from it."""
    labelled, n_pairs = prepared.labelled, len(class_pairs(len(prepared.classes)))
    whole = _gram(prepared, G, prepared.known)
    starts = libsvm_pairs(whole, labelled.codes, labelled.costs(PART, C))
    if starts is None:
        return None, [None] * n_pairs
    return starts, pair_machines(whole, labelled, C, starts)


def _rows_of(prepared: KernelPrepared, pair: tuple[int, int] | None) -> Array:
    """Return the training rows of a pair of classes, or all with a label."""
    if pair is None:
        return prepared.known
    return prepared.known[prepared.labelled.rows_of(*pair)]


def _labels_of(prepared: KernelPrepared, pair: tuple[int, int] | None) -> LabelledRows:
    """Return the labels of these rows."""
    return prepared.labelled.pair(*pair)[1] if pair else prepared.labelled


def _expanded(
    prepared: KernelPrepared,
    G: Array,
    lam: float,
    C: float,
    parts: Sequence[tuple[tuple[int, int] | None, Task]],
    directions: Array,
    machines: Sequence[Machine],
    tol: float,
) -> list[Machine]:
    """Expand the machines over all training rows, in place, and certify them for K itself.

    G belongs to ``K + shift I``, which has a coordinate of its own for every row.  Without these
    coordinates a machine is one of K, and its objective is evaluated as such.  The dual bound holds
    as it is: every machine of K is one of the larger problem, with the same objective.
    """
    metric = prepared.metric
    assert metric is not None
    certified = []
    for block in _column_blocks(len(directions), len(parts)):
        report("expansions", block.start, len(parts))
        coefs = directions[:, block].copy()
        values = G @ coefs
        directions[:, block] -= lam * (metric.L @ values)
        own = values - metric.shift * directions[:, block]
        sizes = np.einsum("ij,ij->j", coefs, values)
        own_sizes = np.einsum("ij,ij->j", directions[:, block], own)
        own_sizes += lam * np.einsum("ij,ij->j", own, metric.L @ own)
        for j, (machine, (pair, task)) in enumerate(
            zip(machines[block], parts[block], strict=True)
        ):
            rows = _rows_of(prepared, pair)
            labelled = _labels_of(prepared, pair)
            y, c = labelled.signs(task), labelled.costs(task, C)
            hinges = [
                float(c @ np.maximum(1.0 - y * (f[rows, j] + machine.intercept), 0.0))
                for f in (values, own)
            ]
            bound = (0.5 * sizes[j] + hinges[0]) * (1.0 - machine.gap)
            objective = 0.5 * own_sizes[j] + hinges[1]
            gap = float(max(objective - bound, 0.0) / max(objective, TINY))
            converged = machine.converged and gap <= tol
            certified.append(replace(machine, gap=gap, converged=converged))
    return certified


def _parts(
    prepared: KernelPrepared, *, one_vs_one: bool
) -> list[tuple[tuple[int, int] | None, Task]]:
    """Return for each machine the pair whose rows it has, None for all rows, and its task."""
    n_classes = len(prepared.classes)
    if one_vs_one and n_classes > 2:
        return list(zip(class_pairs(n_classes), repeat(PART)))
    return [(None, task) for task in one_vs_rest_tasks(n_classes)]


def _are_small(labelled: LabelledRows) -> bool:
    """Return whether one call of libsvm for all pairs is short, and saves that of each of them.

    Balanced costs differ from pair to pair.
    """
    mean_rows = 2 * len(labelled.codes) / labelled.n_classes
    return not labelled.balanced and mean_rows <= FEW_ROWS


def _gram(prepared: KernelPrepared, G: Array | None, rows: Array) -> Gram:
    """Return the kernel matrix of some training rows, or the rows for libsvm to evaluate it."""
    if G is not None:
        return GivenGram(G if len(rows) == len(G) else G[np.ix_(rows, rows)])
    expansion = prepared.feature_map
    X = expansion.training_rows_[rows]
    return RowGram(kernel_diagonal(expansion.function, X), expansion.function, X)


def _column_blocks(n: int, columns: int) -> list[slice]:
    size = max(1, MOST_EXPANDED // (8 * n))
    return [slice(start, start + size) for start in range(0, columns, size)]


def _trimmed(prepared: KernelPrepared, found: list[Machines]) -> list[Machines]:
    """Forget training rows that no machine has a weight for.

    With a graph all have one, and they come in the order of X.
    """
    used = np.zeros(prepared.n_columns, dtype=bool)
    for machines in found:
        used |= machines.directions.any(axis=1)
    used[0] |= not used.any()
    rows = np.arange(len(used)) if prepared.metric is None else np.argsort(prepared.numbers)
    rows = rows[used[rows]]
    prepared.feature_map.keep(rows)
    return [replace(machines, directions=machines.directions[rows]) for machines in found]


def _metric(
    read: LabelledInput, kept: Array, K: Array, penalty: Penalty, exact: ExactKernel
) -> KernelMetric | None:
    """Factorise K, in its place, and return the metric; None if K is indefinite."""
    factor, points, shift = K, read.X, _shift(K)
    if exact.kernel == "precomputed":
        factor = K.copy()
        if not factorise(_shifted(factor, shift), "kernel"):
            return None
        Z = np.zeros((len(read.weights), len(K)))
        Z[kept] = factor
        points = kernel_points(read.X, Z)
    assert penalty.graph is not None
    rows = GraphRows.of(points, read.weights, read.codes)
    L = _matrix(laplacian_of(penalty.graph, rows), kept)
    unit = _unit(K, L, read.weights[kept], center=exact.center)
    if factor is K and not factorise(_shifted(factor, shift), "kernel"):
        return None
    form = form_of(factor, _product(L, factor), "form of the graph")
    peak = float(np.abs(form.diagonal()).max(initial=0.0))
    if form.diagonal().min(initial=0.0) < -NEGATIVE_RESOLUTION * peak:
        raise _indefinite(penalty.graph)
    return KernelMetric(factor, form, L, unit, shift, penalty.graph)


def _centre(K: Array) -> Array:
    """Centre a kernel matrix, in place and exactly symmetric; return the means of its columns."""
    means = K.mean(axis=0)
    whole = float(means.mean())
    for block in blocks_of(len(K)):
        report("centring", block.start, len(K))
        K[block] -= np.add.outer(means[block], means) - whole
    return np.asarray(means)


def _matrix(laplacian: Laplacian, kept: Array) -> Any:
    """Return L among the rows of positive weight, sparse if the graph has such a matrix."""
    n = laplacian.n_rows
    try:
        nodes = laplacian.on_nodes()
    except GraphError:
        return laplacian.scatter(np.eye(n))[np.ix_(kept, kept)]
    L = sp.coo_array(nodes.L)
    L = sp.csr_array((L.data, (nodes.rows[L.row], nodes.rows[L.col])), shape=(n, n))
    return L[kept][:, kept]


def _unit(K: Array, L: Any, weights: Array, *, center: bool) -> float:
    """Return ``tr(Z'LZ Z'WZ) / tr(Z'WZ)`` for the weights W, as `Metric.unit` is."""
    total = float(weights @ K.diagonal())
    mixed = 0.0
    for block in blocks_of(len(K)):
        report("unit of the graph", block.start, len(K))
        columns = K[:, block]
        mixed += float(np.einsum("ij,ij,j->", columns, L @ columns, weights[block]))
    if center:
        mean = K @ weights / weights.sum()
        total -= float(weights @ mean)
        mixed -= float(weights.sum()) * float(mean @ (L @ mean))
    return max(mixed / total, 0.0) if total > 0 else 0.0


def _product(L: Any, Z: Array) -> Array:
    out = np.empty_like(Z)
    for block in blocks_of(len(Z)):
        report("graph", block.start, len(Z))
        out[:, block] = L @ Z[:, block]
    return out


def _shift(K: Array) -> float:
    return SHIFT * float(np.trace(K)) / len(K)


def _shifted(K: Array, shift: float) -> Array:
    """Add a little to the diagonal of K, in place."""
    K.flat[:: len(K) + 1] += shift
    return K


def _is_short(X: Any, n: int, n_classes: int) -> bool:
    """Return whether the kernel matrix of rows takes less time than libsvm for its columns."""
    likely = X.shape[1] >= WIDE or n_classes == 2 or n <= CLASS_ROWS * n_classes
    return n <= WHOLE_ROWS and not sp.issparse(X) and likely


def _is_evaluated(exact: ExactKernel) -> bool:
    """Return whether libsvm evaluates the kernel, and it is positive semi-definite."""
    if exact.kernel == "poly":
        return bool(exact.coef0 >= 0)
    return exact.kernel in DEFINITE and exact.kernel in LIBSVM_KERNELS


def _is_definite(exact: ExactKernel, K: Array) -> bool:
    """Return whether a kernel is positive semi-definite, by its name or on the rows."""
    return exact.kernel in DEFINITE or factorise(_shifted(K.copy(), _shift(K)), "kernel")


def _require_memory(n: int, squares: float) -> None:
    require_memory(
        8.0 * squares * n * n,
        f"An exact kernel of {n} rows",
        "kernel=LowRankKernel(...), whose memory grows with rows times rank.",
    )


def _indefinite(graph: object) -> GraphError:
    return GraphError(
        f"The graph {graph!r} is not positive semi-definite on these rows; its penalty would "
        "reward instead."
    )
