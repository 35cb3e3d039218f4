"""A graph that the user supplies as a matrix of edge weights."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import eigsh

from marginfold.errors import GraphError
from marginfold.graphs.laplacian import EdgeLaplacian, Laplacian
from marginfold.graphs.rule import GraphRows, GraphRule, graph_name
from marginfold.validation.parameters import LARGEST_FACTOR
from marginfold.validation.types import Rows

SYMMETRY_TOLERANCE = 1e-10
"""Largest |W - W'| that counts as rounding, relative to the largest weight."""

PSD_TOLERANCE = 1e-10
"""Most negative eigenvalue that counts as rounding, relative to the largest |L| row sum."""

DENSE_EIGEN_MAX_NODES = 2000
"""Up to this size the smallest eigenvalue comes from a dense solver."""

LANCZOS_TOLERANCE = 1e-6
"""Residual at which the sparse solver stops, relative to the largest |L| row sum."""


class PrecomputedGraph(GraphRule):
    """Edge weights from the user, one row and column for each row of X.

    Parameters
    ----------
    adjacency : array or sparse matrix of shape (n, n)
        Symmetric weights. The diagonal is ignored: it cancels in L = D - W. Negative weights are
        allowed as long as L is positive semi-definite.

    Notes
    -----
    The matrix belongs to one set of rows, so the graph cannot be used in a cross-validation that
    takes subsets of them. With sample weights s the edge (i, j) weighs s_i s_j W_ij.

    With negative weights, L is checked by its smallest eigenvalue. Above 2000 nodes that comes
    from an iterative solver, which may miss a negative eigenvalue of less than 1e-6 of the norm.

    Examples
    --------
    >>> import numpy as np
    >>> from marginfold.graphs import PrecomputedGraph
    >>> graph = PrecomputedGraph(np.array([[0.0, 2.0], [2.0, 0.0]]))
    >>> graph.build([[0.0], [1.0]]).scatter([[0.0], [1.0]])
    array([[2.]])
    """

    def __init__(self, adjacency: Rows) -> None:
        self.adjacency = adjacency

    def build_on(self, rows: GraphRows) -> Laplacian:
        weights = rows.weights
        W = self._read(len(weights))
        present = np.flatnonzero(weights)
        scale = sp.diags_array(weights[present])
        W = sp.csr_array(scale @ W[present][:, present] @ scale)
        if W.nnz and W.data.min() < 0:
            self._check_positive_semidefinite(W)
        return EdgeLaplacian(len(weights), W, present)

    def _read(self, n_rows: int) -> sp.csr_array:
        """Return the weights as a finite, exactly symmetric CSR matrix without a diagonal."""
        W: Any = self.adjacency if sp.issparse(self.adjacency) else np.asarray(self.adjacency)
        if W.dtype.kind not in "biuf" or W.ndim != 2:
            raise GraphError(
                f"{graph_name(self)} got an adjacency of {W.dtype} values in {W.ndim} dimensions; "
                "it needs a matrix of real numbers."
            )
        W = sp.csr_array(W, dtype=np.float64, copy=True)
        if W.shape != (n_rows, n_rows):
            raise GraphError(
                f"{graph_name(self)} got an adjacency of shape {W.shape} for {n_rows} rows of X; "
                "it needs one row and column for each. It cannot be used inside cross-validation "
                "that takes subsets of the rows: use a rule such as NeighborGraph() there."
            )
        if not np.isfinite(W.data).all():
            raise GraphError(
                f"{graph_name(self)} got NaN or infinite weights; it needs finite ones. Set the "
                "weight of a missing edge to 0."
            )
        largest = float(abs(W).max()) if W.nnz else 0.0
        if largest and not 1 / LARGEST_FACTOR < largest < LARGEST_FACTOR:
            raise GraphError(
                f"{graph_name(self)} got weights of size {largest:.3g}; it needs the largest one "
                f"between {1 / LARGEST_FACTOR:g} and {LARGEST_FACTOR:g}. Multiply all of them by "
                "a constant."
            )
        gap = float(abs(W - W.T).max())
        if gap > SYMMETRY_TOLERANCE * float(abs(W).max()):
            raise GraphError(
                f"{graph_name(self)} got an adjacency W that is not symmetric: W and W.T differ "
                f"by up to {gap:.3g}. Pass (W + W.T) / 2."
            )
        W = sp.coo_array((W + W.T) / 2)
        off = (W.row != W.col) & (W.data != 0)
        return sp.csr_array((W.data[off], (W.row[off], W.col[off])), shape=W.shape)

    def _check_positive_semidefinite(self, W: sp.csr_array) -> None:
        L = sp.csr_array(sp.diags_array(W.sum(axis=1)) - W)
        norm = float(abs(L).sum(axis=1).max())
        smallest = _smallest_eigenvalue(L, norm)
        if smallest < -PSD_TOLERANCE * norm:
            raise GraphError(
                f"{graph_name(self)} got weights whose Laplacian is not positive semi-definite: "
                f"its smallest eigenvalue is {smallest:.3g}. Remove or shrink negative weights."
            )


def _smallest_eigenvalue(L: sp.csr_array, norm: float) -> float:
    n = L.shape[0]
    if n <= DENSE_EIGEN_MAX_NODES:
        return float(np.linalg.eigvalsh(L.toarray())[0])
    shifted = L + norm * sp.eye_array(n, format="csr")  # away from 0: a relative stopping rule
    start = np.random.default_rng(0).standard_normal(n)
    values = eigsh(
        shifted, k=1, which="SA", tol=LANCZOS_TOLERANCE, v0=start, return_eigenvectors=False
    )
    return float(values[0]) - norm
