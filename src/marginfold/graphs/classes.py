"""Class graphs: the total, within-class and between-class scatter as graphs.

Their Laplacians are projectors. The quadratic forms come from class means, never from an n x n
array. With sample weights s_i, the total s and the class totals s_c, W_ij is s_i s_j / s (total)
or [y_i = y_j] s_i s_j / s_c (within), so that the quadratic form is the weighted scatter.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from marginfold.graphs.laplacian import ABSENT, FloatArray, IntArray, Laplacian, value_range
from marginfold.graphs.rule import GraphRows, GraphRule
from marginfold.linalg.tall import row_blocks

MOST_BETWEEN = 0.99
"""Share of a column's scatter between classes up to which it is subtracted from the total."""


class TotalGraph(GraphRule):
    """All rows joined alike: Z'LZ is the total scatter, as in PCA.

    Needs no labels; unlabelled rows take part as any other.

    Examples
    --------
    >>> from marginfold.graphs import TotalGraph
    >>> TotalGraph().build([[0.0], [2.0], [4.0]]).scatter([[0.0], [2.0], [4.0]])
    array([[8.]])
    """

    def build_on(self, rows: GraphRows) -> Laplacian:
        n = len(rows.weights)
        return WithinLaplacian(n, np.zeros(n, dtype=np.intp), rows.weights)


class WithinClassGraph(GraphRule):
    """Rows of a class joined alike: Z'LZ is the within-class scatter.

    Unlabelled rows are isolated.

    Examples
    --------
    >>> from marginfold.graphs import WithinClassGraph
    >>> X, y = [[0.0], [2.0], [9.0]], ["a", "a", "b"]
    >>> WithinClassGraph().build(X, y).scatter(X)
    array([[2.]])
    """

    uses_labels = True

    def build_on(self, rows: GraphRows) -> Laplacian:
        return WithinLaplacian(len(rows.weights), rows.classes(self), rows.weights)


class BetweenClassGraph(GraphRule):
    """Total minus within: Z'LZ is the between-class scatter.

    Its weights are positive between classes and negative inside them; L is positive semi-definite
    nevertheless. Unlabelled rows are isolated: both scatters are those of the labelled rows.

    Examples
    --------
    >>> from marginfold.graphs import BetweenClassGraph
    >>> X, y = [[0.0], [2.0], [4.0], [6.0]], ["a", "a", "b", "b"]
    >>> BetweenClassGraph().build(X, y).scatter(X)
    array([[16.]])
    """

    uses_labels = True

    def build_on(self, rows: GraphRows) -> Laplacian:
        return BetweenLaplacian(len(rows.weights), rows.classes(self), rows.weights)


@dataclass(frozen=True, eq=False)
class ClassLaplacian(Laplacian):
    """Class number (``ABSENT`` if unlabelled) and weight of each row."""

    codes: IntArray
    weights: FloatArray

    @property
    def _active(self) -> tuple[IntArray, FloatArray]:
        """Class number and weight of the labelled rows of positive weight."""
        active = (self.codes != ABSENT) & (self.weights > 0)
        return self.codes[active], self.weights[active]

    @property
    def _labelled_weights(self) -> FloatArray:
        return np.where(self.codes == ABSENT, 0.0, self.weights)

    def _means(self, Z: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Weight and weighted mean of each class; a class without weight has mean 0."""
        rows = np.flatnonzero(self.codes != ABSENT)
        shape = (int(self.codes.max()) + 1, self.n_rows)
        member = sp.csr_array((self.weights[rows], (self.codes[rows], rows)), shape=shape)
        totals = member.sum(axis=1)
        return totals, (member @ Z) / np.where(totals > 0, totals, 1.0)[:, None]


@dataclass(frozen=True, eq=False)
class WithinLaplacian(ClassLaplacian):
    """W_ij = s_i s_j / s_c inside a class; the total graph is the case of a single class."""

    @property
    def degrees(self) -> FloatArray:
        return self._labelled_weights

    @property
    def components(self) -> IntArray:
        return _numbered(self.codes, self.codes == ABSENT, self.weights)

    @property
    def n_edges(self) -> int:
        counts = np.bincount(self._active[0])
        return int((counts * (counts - 1) // 2).sum())

    @property
    def weight_range(self) -> tuple[float, float]:
        low, high, totals = _pair_products(*self._active)
        return value_range(np.concatenate([low / totals, high / totals]))

    def scatter_with(self, Z: FloatArray, total: FloatArray) -> FloatArray:
        if (self.codes == ABSENT).any() or not Z.size:
            return self.scatter(Z)
        totals, means = self._means(Z)
        means *= np.sqrt(totals)[:, None]
        between = means.T @ means
        if (between.diagonal() > MOST_BETWEEN * total.diagonal()).any():
            return self.scatter(Z)  # the difference would lose digits
        within = total - between
        return (within + within.T) / 2

    def _quadratic(self, Z: FloatArray) -> FloatArray:
        if not self._active[0].size:
            return np.zeros((Z.shape[1], Z.shape[1]))
        _, means = self._means(Z)
        weights = self._labelled_weights
        same, roots = weights.min() == weights.max(), np.sqrt(weights)[:, None]
        total = np.zeros((Z.shape[1], Z.shape[1]))
        for block in row_blocks(*Z.shape):
            R = Z[block] - means[self.codes[block]]  # unlabelled rows have no weight
            if not same:
                R *= roots[block]
            total += R.T @ R  # sum_c Z_c'Z_c - s_c m_c m_c', without the cancellation
        return weights[0] * total if same else total


@dataclass(frozen=True, eq=False)
class BetweenLaplacian(ClassLaplacian):
    """W_ij = s_i s_j / s - [y_i = y_j] s_i s_j / s_c: row sums, and so the degrees, are 0."""

    @property
    def degrees(self) -> FloatArray:
        return np.zeros(self.n_rows)

    @property
    def components(self) -> IntArray:
        alone = (self.codes == ABSENT) | (self.n_edges == 0)
        return _numbered(np.zeros_like(self.codes), alone, self.weights)

    @property
    def n_edges(self) -> int:
        codes = self._active[0]
        return codes.size * (codes.size - 1) // 2 if np.unique(codes).size > 1 else 0

    @property
    def weight_range(self) -> tuple[float, float]:
        codes, weights = self._active
        total = weights.sum()
        if not self.n_edges:
            return np.nan, np.nan
        _, high, totals = _pair_products(codes, weights)
        classes = [weights[codes == code] for code in np.unique(codes)]
        least = np.sort([w.min() for w in classes])
        most = np.sort([w.max() for w in classes])
        inside = high * (1 / total - 1 / totals)
        across = np.array([least[0] * least[1], most[-1] * most[-2]]) / total
        return value_range(np.concatenate([inside, across]))

    def _quadratic(self, Z: FloatArray) -> FloatArray:
        if not self._active[0].size:
            return np.zeros((Z.shape[1], Z.shape[1]))
        totals, means = self._means(Z)
        means -= totals @ means / totals.sum()
        means *= np.sqrt(totals)[:, None]
        return means.T @ means  # sum_c s_c m_c m_c' - s m m'


def _numbered(parts: IntArray, alone: Any, weights: FloatArray) -> IntArray:
    """Component numbers: the given parts, a number of its own for each row that is alone."""
    components = np.where(alone, parts.max() + 1 + np.arange(parts.size), parts)
    components[weights == 0] = ABSENT
    return components


def _pair_products(
    codes: IntArray, weights: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Smallest and largest product of two weights, and the sum of all, in classes with a pair."""
    order = np.lexsort((weights, codes))
    weights = weights[order]
    _, start, counts = np.unique(codes[order], return_index=True, return_counts=True)
    totals = np.add.reduceat(weights, start) if start.size else weights
    paired = counts > 1
    first, last = start[paired], (start + counts - 1)[paired]
    low, high = weights[first] * weights[first + 1], weights[last] * weights[last - 1]
    return low, high, totals[paired]
