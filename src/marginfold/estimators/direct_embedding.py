"""Coordinates of the nodes of a graph themselves, without a map: bottom eigenvectors of (L, D)."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin

from marginfold.errors import (
    ExhaustedWarning,
    GraphError,
    InvalidInputError,
    MarginfoldWarning,
    warn,
)
from marginfold.graphs import (
    GraphLike,
    GraphRows,
    Laplacian,
    laplacian_of,
    resolve_graph,
    uses_labels,
)
from marginfold.graphs.laplacian import ABSENT, Link, NodeGraph
from marginfold.graphs.neighbor_search import matching_rows
from marginfold.graphs.reconstruction import FactoredLaplacian
from marginfold.graphs.rule import canonical
from marginfold.linalg import felt_nodes, smallest_pairs
from marginfold.linalg.tall import Array, column_signs, dense
from marginfold.planner.check import check_memory
from marginfold.runtime.callbacks import FollowedFits
from marginfold.validation.parameters import Count, atomic_fit, check_parameters, shown
from marginfold.validation.rows import read_new_rows, read_rows, refuse_lazy


class DirectEmbedding(
    FollowedFits, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator
):
    """Bottom eigenvectors of a graph, carried over to new rows by the link of the graph."""

    n_components: int
    graph: str | GraphLike

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Embed the rows.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
        y : array of shape (n_samples,), optional
            Class labels, read only if the graph uses them.
        sample_weight : array of shape (n_samples,), optional
            Weight 2 is the row twice, weight 0 the row absent.

        Returns
        -------
        self
        """
        with atomic_fit(self):
            check_parameters(self, {"n_components": Count(1)})
            refuse_lazy(X, self, "use LPP(graph=AnchorGraph())")
            check_memory(self, X)
            X, weights = read_rows(self, X, sample_weight)
            rule = resolve_graph(self.graph)
            if uses_labels(rule):
                laplacian = rule.build(X, y, sample_weight=weights)
            else:
                laplacian = laplacian_of(rule, GraphRows.of(X, weights))
            self._embed(canonical(X) if sp.issparse(X) else X, weights, laplacian)
        return self

    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None) -> Array:
        """Embed the rows and return their coordinates, ``embedding_``."""
        return self.fit(X, y, sample_weight).embedding_.copy()

    def transform(self, X: Any) -> Array:
        """Return the coordinates of rows, shape (n_samples, n_components_).

        A row that equals a training row gets its coordinates; others are placed by the training
        rows nearest to them.  A row's image depends on that row alone.
        """
        X = read_new_rows(self, X, "go chunk by chunk with X.map_blocks(model.transform)")
        if sp.issparse(self._points):
            X = canonical(X)
        return self._place(dense(X) if not sp.issparse(self._points) else X)

    def _check_graph(self, laplacian: Laplacian) -> None:
        """Refuse graphs that the method does not stand for."""

    def _embed(self, X: Any, weights: Array, laplacian: Laplacian) -> None:
        """Solve the eigenvalue problem on the nodes that have a neighbor; place the other rows."""
        self._check_graph(laplacian)
        graph = laplacian.on_nodes()
        joined = self._joined_nodes(graph)
        pairs = smallest_pairs(
            graph.L[joined][:, joined],
            graph.degrees[joined],
            int(self.n_components),
            squared=isinstance(laplacian, FactoredLaplacian),
        )
        n_parts = pairs.n_parts
        if isinstance(laplacian, FactoredLaplacian):
            n_parts = max(n_parts, laplacian.n_closed)
        vectors = pairs.vectors * np.sqrt(graph.degrees[joined].sum())
        self.eigenvalues_ = pairs.values
        self.residual_ = float(pairs.residual)
        self.n_components_ = len(pairs.values)
        self._coordinates = vectors * column_signs(vectors)
        self._points = X[graph.rows[joined]]
        link = laplacian.link
        self._link: Link | None = None if link is None else link.restricted(joined)
        self.embedding_ = self._embedding(X, graph, joined)
        n_unknown = len(graph.rows) - len(joined)
        if link is None:
            n_unknown += int(np.count_nonzero(weights == 0))
        self._warn(len(joined), n_parts, n_unknown)

    def _joined_nodes(self, graph: NodeGraph) -> Array:
        """Return the nodes with an edge that is felt; refuse graphs without any."""
        joined = felt_nodes(graph.L)
        if len(joined) < 2:
            raise GraphError(
                f"{type(self).__name__} got a graph without edges on {len(graph.rows)} distinct "
                "rows; it needs at least two rows that differ and are neighbors."
            )
        return joined

    def _embedding(self, X: Any, graph: NodeGraph, joined: Array) -> Array:
        """Return the coordinates of all rows: of their node, or as of new rows."""
        place = np.full(len(graph.rows) + 1, ABSENT)
        place[joined] = np.arange(len(joined))
        place = place[graph.members]  # a member number of -1 is the last entry, ABSENT
        known = place != ABSENT
        embedding = np.zeros((len(place), self.n_components_))
        embedding[known] = self._coordinates[place[known]]
        if self._link is not None and not known.all():
            embedding[~known] = self._place(X[~known])
        if self._link is None:  # transform has nothing but the table to look up
            self._points, self._coordinates = X.copy(), embedding.copy()
        return embedding

    def _place(self, X: Any) -> Array:
        place = matching_rows(self._points, X)
        new = place == ABSENT
        images = self._coordinates[place]
        if new.any():
            images[new] = self._extend(X[new])
        return np.asarray(images)

    def _extend(self, X: Any) -> Array:
        """Return the coordinates of rows that are no training rows."""
        if self._link is None:
            raise InvalidInputError(
                f"{type(self).__name__} got {X.shape[0]} rows that equal no training row, or "
                f"several of them; graph={shown(self.graph)} does not say how they are joined. Use "
                "NeighborGraph() or ReconstructionGraph() to transform new rows."
            )
        means = self._link.weights(self._points, X) @ self._coordinates
        return np.asarray(means * self._link.gain(self.eigenvalues_))

    def _warn(self, n_joined: int, n_parts: int, n_unknown: int) -> None:
        name = type(self).__name__
        if self.n_components_ < self.n_components:
            warn(
                f"{name} found {self.n_components_} of {self.n_components} components: the graph "
                f"has only {n_joined} nodes.",
                ExhaustedWarning,
            )
        if n_parts > 1:
            blind = min(n_parts - 1, self.n_components_)
            warn(
                f"{name}: the graph falls into {n_parts} separate parts, so {blind} of "
                f"{self.n_components_} coordinates have the eigenvalue 0: they tell parts from "
                "each other and say nothing of their shape. Use more neighbors, or fit the parts "
                "one by one.",
                MarginfoldWarning,
            )
        if n_unknown:
            where = "at 0, the mean" if self._link is None else "like new rows, by the nearest ones"
            warn(
                f"{name}: {n_unknown} distinct rows have no neighbor in the graph; they are placed "
                f"{where}. Use more neighbors.",
                MarginfoldWarning,
            )

    @property
    def _n_features_out(self) -> int:
        return self.n_components_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64"]
        return tags
