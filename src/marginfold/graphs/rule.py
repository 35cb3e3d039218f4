"""The recipe of a graph: a cloneable object with ``build(X, y) -> Laplacian``; rules add and scale.

The reading of X, y and sample weights is here too, so that every rule refuses the same data with
the same words.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from numbers import Real
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator

from marginfold.errors import GraphError, InvalidInputError, InvalidParameterError
from marginfold.graphs.combined import ScaledLaplacian, SumLaplacian
from marginfold.graphs.laplacian import ABSENT, FloatArray, GraphDescription, IntArray, Laplacian
from marginfold.validation.labels import is_unlabelled, unique_labels
from marginfold.validation.row_types import gathered, refuse_lazy
from marginfold.validation.rows import LARGEST_ENTRY
from marginfold.validation.weights import check_weights

LAZY_INSTEAD = "give an estimator the graph=AnchorGraph(), which it builds chunk by chunk"
"""What to do with a dask collection."""


class GraphRule(BaseEstimator, ABC):
    """Base of all graph rules: parameters in ``__init__``, all checks and work in ``build``.

    Rules add and scale: ``0.3 * NeighborGraph() + WithinClassGraph()`` is again a rule.
    """

    __array_ufunc__ = None  # numpy scalars leave the product to __rmul__

    @property
    def uses_labels(self) -> bool:
        """Whether `build` looks at y."""
        return False

    @abstractmethod
    def build(
        self,
        X: Any,
        y: ArrayLike | None = None,
        *,
        unlabeled: Any = None,
        sample_weight: ArrayLike | None = None,
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

    def describe(
        self,
        X: Any,
        y: ArrayLike | None = None,
        *,
        unlabeled: Any = None,
        sample_weight: ArrayLike | None = None,
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
        return bool(self.first.uses_labels or self.second.uses_labels)

    def build(
        self,
        X: Any,
        y: ArrayLike | None = None,
        *,
        unlabeled: Any = None,
        sample_weight: ArrayLike | None = None,
    ) -> Laplacian:
        first, second = (
            _build_part(self, part, X, y, unlabeled, sample_weight)
            for part in (self.first, self.second)
        )
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
        return bool(self.graph.uses_labels)

    def build(
        self,
        X: Any,
        y: ArrayLike | None = None,
        *,
        unlabeled: Any = None,
        sample_weight: ArrayLike | None = None,
    ) -> Laplacian:
        factor: Any = self.factor
        if not isinstance(factor, Real) or not 0 <= float(factor) < np.inf:
            raise InvalidParameterError(
                f"ScaledGraph of {graph_name(self.graph)} got factor={factor!r}; it needs a "
                "finite number >= 0, or L is not positive semi-definite. Use a positive factor."
            )
        graph = _build_part(self, self.graph, X, y, unlabeled, sample_weight)
        return ScaledLaplacian(graph.n_rows, graph, float(factor))


def graph_name(graph: object) -> str:
    """The graph as it would be written, without its parameters."""
    if isinstance(graph, SumGraph):
        return f"{graph_name(graph.first)} + {graph_name(graph.second)}"
    if isinstance(graph, ScaledGraph):
        inner = graph_name(graph.graph)
        inner = f"({inner})" if isinstance(graph.graph, SumGraph) else inner
        return f"{graph.factor} * {inner}"
    return type(graph).__name__


def read_rows(
    graph: GraphRule, X: Any, y: ArrayLike | None, sample_weight: ArrayLike | None
) -> tuple[Any, FloatArray]:
    """Return X as float64 (ndarray or canonical CSR) and one weight for each row."""
    name = graph_name(graph)
    refuse_lazy(X, name, LAZY_INSTEAD)
    if sp.issparse(X):
        X = sp.csr_array(X, dtype=np.float64, copy=True)
        X.sum_duplicates()
        X.eliminate_zeros()
    else:
        X = np.asarray(X, dtype=np.float64)
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
        return X, check_weights(gathered(sample_weight), X.shape[0])
    except InvalidInputError as error:
        raise GraphError(f"{name}: {error}") from error


def read_codes(graph: GraphRule, y: ArrayLike | None, unlabeled: Any) -> IntArray:
    """Return the class number of each row, ``ABSENT`` for unlabelled rows."""
    if y is None:
        raise GraphError(
            f"{graph_name(graph)} got y=None; it needs labels. Pass y, or use a graph without "
            "classes such as NeighborGraph() or TotalGraph()."
        )
    labels = np.asarray(gathered(y))
    labelled = ~is_unlabelled(labels, unlabeled)
    codes = np.full(len(labels), ABSENT, dtype=np.intp)
    try:
        classes, codes[labelled] = unique_labels(labels[labelled])
    except InvalidInputError as error:
        raise GraphError(f"{graph_name(graph)}: {error}") from error
    if classes.dtype.kind == "f" and np.isnan(classes).any():
        raise GraphError(
            f"{graph_name(graph)} got NaN among the labels; it needs a class for each row. Pass "
            "unlabeled=np.nan if these rows are unlabelled."
        )
    return codes


def _build_part(
    whole: GraphRule, part: Any, X: Any, y: Any, unlabeled: Any, sample_weight: Any
) -> Laplacian:
    if isinstance(part, type) or not hasattr(part, "build"):
        raise InvalidParameterError(
            f"{type(whole).__name__} got {part!r} as a part; it needs a graph rule such as "
            "NeighborGraph()."
        )
    laplacian: Laplacian = part.build(X, y, unlabeled=unlabeled, sample_weight=sample_weight)
    return laplacian
