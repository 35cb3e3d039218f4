"""The recipe of a graph: a cloneable object with ``build(X, y) -> Laplacian``; rules add and scale.

`GraphRule.build` validates X, y and the sample weights, so that every rule refuses the same data
with the same words; what a rule does is in ``build_on``, which trusts its rows.  Estimators, whose
rows are valid, begin there (`laplacian_of`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from numbers import Real
from typing import TYPE_CHECKING, Any, Literal, Protocol, Self

import numpy as np
import scipy.sparse as sp

from marginfold.errors import GraphError, InvalidInputError, InvalidParameterError
from marginfold.graphs.laplacian import (
    ABSENT,
    ChangedLaplacian,
    FloatArray,
    GraphDescription,
    IntArray,
    Laplacian,
    NodeGraph,
    joined_parts,
)
from marginfold.runtime.threads import SizedCalls
from marginfold.validation.parameters import FACTOR
from marginfold.validation.rows import (
    LARGEST_ENTRY,
    check_weights,
    gathered,
    is_unlabelled,
    refuse_lazy,
    unique_labels,
)
from marginfold.validation.types import Labels, Rows, Weights

if TYPE_CHECKING:

    class BaseEstimator:
        """With types: mypy would take ``0.5 * NeighborGraph()`` for a float without them."""

        def get_params(self, deep: bool = True) -> dict[str, Any]:
            """Return the parameters by their names."""

        def set_params(self, **params: Any) -> Self:
            """Set parameters by their names."""

else:
    from sklearn.base import BaseEstimator

LAZY_INSTEAD = "give an estimator the graph=AnchorGraph(), which it builds chunk by chunk"
"""What to do with a dask collection."""

SHORTHANDS: dict[str, type[GraphRule]] = {}
"""Rules by the string that is short for one with its defaults; the package enters its own."""

GraphName = Literal["knn", "within", "between", "total", "lle", "anchors"]
"""The names of `SHORTHANDS`, for annotations."""


class GraphLike(Protocol):
    """What an estimator takes as a graph: a `GraphRule`, or an object of the user's."""

    def build(
        self,
        X: Rows,
        y: Labels | None = None,
        *,
        unlabeled: object = None,
        sample_weight: Weights | None = None,
    ) -> Laplacian:
        """Build the graph on the rows of X."""


@dataclass(frozen=True, eq=False)
class GraphRows:
    """Validated rows that a graph is built on.

    Attributes
    ----------
    X : array or canonical CSR matrix of shape (n, d)
    weights : array of shape (n,)
        Sample weights.
    codes : array of shape (n,) or None
        Class numbers, ``ABSENT`` for rows without a label; None without labels.
    """

    X: Any
    weights: FloatArray
    codes: IntArray | None = None

    @classmethod
    def of(cls, X: Any, weights: FloatArray, codes: IntArray | None = None) -> Self:
        """Trust rows, but bring a sparse matrix to the one form in which equal rows are equal."""
        return cls(canonical(X) if sp.issparse(X) else X, weights, codes)

    def classes(self, rule: GraphRule) -> IntArray:
        """Return the class numbers, which the rule needs."""
        if self.codes is None:
            raise GraphError(
                f"{graph_name(rule)} got y=None; it needs labels. Pass y, or use a graph without "
                "classes such as NeighborGraph() or TotalGraph()."
            )
        return self.codes


class GraphRule(SizedCalls, BaseEstimator):
    """Base of all graph rules: parameters in ``__init__``, the work in ``build_on``.

    Rules add and scale: ``0.3 * NeighborGraph() + WithinClassGraph()`` is again a rule.  A rule of
    your own has ``build_on``, or ``build`` if it looks at its rows itself.
    """

    __array_ufunc__ = None  # numpy scalars leave the product to __rmul__

    @property
    def uses_labels(self) -> bool:
        """Whether `build` looks at y."""
        return False

    def build(
        self,
        X: Rows,
        y: Labels | None = None,
        *,
        unlabeled: object = None,
        sample_weight: Weights | None = None,
    ) -> Laplacian:
        """Build the graph on the rows of X.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, d)
            Finite numbers.
        y : array of shape (n,), optional
            Labels of any type. Class graphs need them.
        unlabeled : object, optional
            Rows with this label have none. They are isolated where the graph uses classes and
            ordinary nodes elsewhere.
        sample_weight : array of shape (n,), optional
            Weight 2 is the row twice, weight 0 is the row left out.

        Returns
        -------
        Laplacian
            Its ``scatter(Z)`` is Z'LZ.
        """
        return self.build_on(_read_graph_rows(self, X, y, unlabeled, sample_weight))

    def build_on(self, rows: GraphRows) -> Laplacian:
        """Check the parameters and build the graph on rows that were validated before."""
        raise NotImplementedError(f"{type(self).__name__} needs a method build_on(rows).")

    def describe(
        self,
        X: Rows,
        y: Labels | None = None,
        *,
        unlabeled: object = None,
        sample_weight: Weights | None = None,
    ) -> GraphDescription:
        """Build the graph and count its edges, components, isolated rows and lost weights."""
        laplacian = self.build(X, y, unlabeled=unlabeled, sample_weight=sample_weight)
        return laplacian.describe(graph_name(self))

    def __add__(self, other: object) -> SumGraph:
        return SumGraph(self, other) if isinstance(other, GraphRule) else NotImplemented

    def __mul__(self, factor: object) -> ScaledGraph:
        return ScaledGraph(self, float(factor)) if isinstance(factor, Real) else NotImplemented

    __rmul__ = __mul__

    def __radd__(self, other: object) -> GraphRule:
        return self if other == 0 else NotImplemented  # so that sum(graphs) works

    def __truediv__(self, divisor: object) -> ScaledGraph:
        return (
            ScaledGraph(self, 1.0 / float(divisor)) if isinstance(divisor, Real) else NotImplemented
        )


class SumGraph(GraphRule):
    """The sum of two graphs; usually written ``first + second``.

    Parameters
    ----------
    first, second : GraphRule
        The terms. A grid search reaches ``first__n_neighbors``.

    Examples
    --------
    >>> from marginfold.graphs import TotalGraph, WithinClassGraph
    >>> rule = TotalGraph() + WithinClassGraph()
    >>> rule.build([[0.0], [2.0]], ["a", "b"]).scatter([[0.0], [2.0]])
    array([[2.]])
    """

    def __init__(self, first: Any, second: Any) -> None:
        self.first = first
        self.second = second

    @property
    def uses_labels(self) -> bool:
        return uses_labels(self.first) or uses_labels(self.second)

    def build_on(self, rows: GraphRows) -> Laplacian:
        first, second = (_build_part(self, part, rows) for part in (self.first, self.second))
        if first.n_rows != second.n_rows:
            raise GraphError(
                f"{graph_name(self)} got terms on {first.n_rows} and {second.n_rows} rows; both "
                "need one row for each row of X."
            )
        return SumLaplacian(first.n_rows, first, second)


class ScaledGraph(GraphRule):
    """A graph with all weights multiplied; usually written ``factor * graph``.

    Parameters
    ----------
    graph : GraphRule
        The graph.
    factor : float
        At least 0.

    Examples
    --------
    >>> from marginfold.graphs import TotalGraph
    >>> (0.5 * TotalGraph()).build([[0.0], [2.0]]).scatter([[0.0], [2.0]])
    array([[1.]])
    """

    def __init__(self, graph: Any, factor: float) -> None:
        self.graph = graph
        self.factor = factor

    @property
    def uses_labels(self) -> bool:
        return uses_labels(self.graph)

    def build_on(self, rows: GraphRows) -> Laplacian:
        factor: Any = self.factor
        if not isinstance(factor, Real) or not FACTOR.allows(float(factor)):
            raise InvalidParameterError(
                f"ScaledGraph of {graph_name(self.graph)} got factor={factor!r}; it needs "
                f"{FACTOR}, or L is not positive semi-definite. Use a positive factor."
            )
        graph = _build_part(self, self.graph, rows)
        return ScaledLaplacian(graph.n_rows, graph, float(factor))


def graph_name(graph: object) -> str:
    """Return the graph as it would be written, without its parameters."""
    if isinstance(graph, SumGraph):
        return f"{graph_name(graph.first)} + {graph_name(graph.second)}"
    if isinstance(graph, ScaledGraph):
        inner = graph_name(graph.graph)
        inner = f"({inner})" if isinstance(graph.graph, SumGraph) else inner
        return f"{graph.factor} * {inner}"
    return type(graph).__name__


def uses_labels(rule: object) -> bool:
    """Return whether a rule looks at labels; one that does not say so may."""
    return bool(getattr(rule, "uses_labels", hasattr(rule, "build")))


def laplacian_of(rule: GraphLike, rows: GraphRows) -> Laplacian:
    """Build a graph on valid rows; a rule with a ``build`` of its own checks them again."""
    if isinstance(rule, GraphRule) and type(rule).build is GraphRule.build:
        return rule.build_on(rows)
    return rule.build(rows.X, rows.codes, unlabeled=ABSENT, sample_weight=rows.weights)


def _read_graph_rows(
    rule: GraphRule, X: Any, y: Any, unlabeled: Any, sample_weight: Any
) -> GraphRows:
    """Validate the rows that a user hands to ``build``; labels are read if the rule needs them."""
    name = graph_name(rule)
    refuse_lazy(X, name, LAZY_INSTEAD)
    X = canonical(X) if sp.issparse(X) else np.asarray(X, dtype=np.float64)
    if X.ndim != 2 or 0 in X.shape:
        raise GraphError(f"{name} got X of shape {X.shape}; it needs rows and columns.")
    entries = X.data if sp.issparse(X) else X
    if entries.size and not max(entries.max(), -entries.min()) <= LARGEST_ENTRY:
        raise GraphError(
            f"{name} got X with NaN, infinite or overflowing entries; it needs numbers of at most "
            f"{LARGEST_ENTRY:g} in size. Impute or rescale X first."
        )
    y = gathered(y)
    if y is not None and np.shape(y) != (X.shape[0],):
        raise GraphError(
            f"{name} got y of shape {np.shape(y)} for X of shape {X.shape}; it needs one label "
            "for each row of X."
        )
    try:
        weights = check_weights(gathered(sample_weight), X.shape[0])
    except InvalidInputError as error:
        raise GraphError(f"{name}: {error}") from error
    reads = y is not None and uses_labels(rule)
    codes = _class_numbers(name, np.asarray(y), unlabeled) if reads else None
    return GraphRows(X, weights, codes)


def _class_numbers(name: str, labels: Any, unlabeled: Any) -> IntArray:
    """Return the class number of each row, ``ABSENT`` for unlabelled rows."""
    labelled = ~is_unlabelled(labels, unlabeled)
    codes = np.full(len(labels), ABSENT, dtype=np.intp)
    try:
        classes, codes[labelled] = unique_labels(labels[labelled])
    except InvalidInputError as error:
        raise GraphError(f"{name}: {error}") from error
    if classes.dtype.kind == "f" and np.isnan(classes).any():
        raise GraphError(
            f"{name} got NaN among the labels; it needs a class for each row. Pass "
            "unlabeled=np.nan if these rows are unlabelled."
        )
    return codes


def canonical(X: Any) -> sp.csr_array:
    """Return a copy whose entries are in order, each once and none of them 0."""
    X = sp.csr_array(X, dtype=np.float64, copy=True)
    X.sum_duplicates()
    X.eliminate_zeros()
    return X


def _build_part(whole: GraphRule, part: Any, rows: GraphRows) -> Laplacian:
    if isinstance(part, type) or not hasattr(part, "build"):
        raise InvalidParameterError(
            f"{type(whole).__name__} got {part!r} as a part; it needs a graph rule such as "
            "NeighborGraph()."
        )
    return laplacian_of(part, rows)


@dataclass(frozen=True, eq=False)
class SumLaplacian(Laplacian):
    """L of the first graph plus L of the second."""

    first: Laplacian
    second: Laplacian

    @property
    def degrees(self) -> FloatArray:
        return self.first.degrees + self.second.degrees

    @property
    def components(self) -> IntArray:
        """Parts that are joined by either graph: components linked by the rows they share."""
        a, b = self.first.components, self.second.components
        n_a, n_b = int(a.max()) + 1, int(b.max()) + 1
        weighted = a != ABSENT  # a row without a weight is in neither graph
        labels = joined_parts(a[weighted], b[weighted], n_a, n_b)
        result = np.full(self.n_rows, ABSENT, dtype=np.intp)
        result[weighted] = labels[a[weighted]]
        return result

    @property
    def n_edges(self) -> int:
        return self.first.n_edges + self.second.n_edges

    @property
    def weight_range(self) -> tuple[float, float]:
        (low_a, high_a), (low_b, high_b) = self.first.weight_range, self.second.weight_range
        return float(np.fmin(low_a, low_b)), float(np.fmax(high_a, high_b))

    @property
    def n_underflowed(self) -> int:
        return self.first.n_underflowed + self.second.n_underflowed

    @property
    def recall(self) -> float | None:
        """The lower one of the two."""
        known = [r for r in (self.first.recall, self.second.recall) if r is not None]
        return min(known, default=None)

    def on_nodes(self) -> NodeGraph:
        return self.first.on_nodes() + self.second.on_nodes()

    def _quadratic(self, Z: FloatArray) -> FloatArray:
        return self.first.scatter(Z) + self.second.scatter(Z)


@dataclass(frozen=True, eq=False)
class ScaledLaplacian(ChangedLaplacian):
    """A graph whose weights are all multiplied by a factor >= 0."""

    factor: float

    @property
    def degrees(self) -> FloatArray:
        return self.factor * self.graph.degrees

    @property
    def components(self) -> IntArray:
        return self.graph.components

    @property
    def weight_range(self) -> tuple[float, float]:
        low, high = self.graph.weight_range
        return self.factor * low, self.factor * high

    def on_nodes(self) -> NodeGraph:
        nodes = self.graph.on_nodes()
        return replace(nodes, L=self.factor * nodes.L, degrees=self.factor * nodes.degrees)

    def _quadratic(self, Z: FloatArray) -> FloatArray:
        return self.factor * self.graph.scatter(Z)


def resolve_graph(graph: str | GraphLike, name: str = "graph") -> GraphLike:
    """Return the rule that one of `SHORTHANDS` stands for, or the object with ``build`` itself.

    ``name`` is that of the parameter, for the error.

    Examples
    --------
    >>> from marginfold.graphs import resolve_graph
    >>> resolve_graph("within")
    WithinClassGraph()
    """
    if isinstance(graph, str) and graph in SHORTHANDS:
        return SHORTHANDS[graph]()
    if isinstance(graph, (str, type)) or not callable(getattr(graph, "build", None)):
        names = ", ".join(map(repr, SHORTHANDS))
        raise InvalidParameterError(
            f"got {name}={graph!r}; it needs one of {names}, or a graph rule such as "
            "NeighborGraph(n_neighbors=5). Where there is a graph_weight, 0 is no graph at all."
        )
    return graph
