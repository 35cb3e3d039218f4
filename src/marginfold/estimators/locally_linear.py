"""Locally linear embedding: the graph "L" of paper 002, without a map."""

from __future__ import annotations

from marginfold.errors import GraphError
from marginfold.estimators.direct_embedding import DirectEmbedding
from marginfold.graphs import Laplacian
from marginfold.graphs.reconstruction import FactoredLaplacian
from marginfold.graphs.rule import GraphLike, GraphName


class LocallyLinearEmbedding(DirectEmbedding):
    """Coordinates that are rebuilt from neighbors with the same weights as the rows are.

    Row i of M holds the weights, with sum 1, that best rebuild row i from its nearest rows.  The
    coordinates are the bottom eigenvectors of ``(I - M)' (I - M) y = lambda y`` without the
    constant one (weighted rows: ``(I - M)' diag(m) (I - M) y = lambda diag(m) y``).

    Parameters
    ----------
    n_components : int, default=2
        Largest number of coordinates.
    graph : "lle" or ReconstructionGraph, default="lle"
        Number of neighbors and ridge of the local problems.

    Attributes
    ----------
    embedding_ : array of shape (n_samples, n_components_)
        Coordinates of the training rows.
    residual_ : float
        Largest relative residual of the eigenvectors.
    eigenvalues_ : array of shape (n_components_,)
        Mean squared error of rebuilding each coordinate, smallest first.
    n_components_ : int
        ``n_components``, or one less than the distinct rows.

    Notes
    -----
    *Scale and sign.*  ``sum_i m_i y_i^2 = sum_i m_i`` and ``sum_i m_i y_i = 0``: mean 0 and
    variance 1.  scikit-learn's columns have norm 1, smaller by ``sqrt(n_samples)``; its
    ``reconstruction_error_`` is the sum of ``eigenvalues_``.  The entry of largest size is
    positive.

    *New rows* are rebuilt from their ``n_neighbors`` nearest training rows, and their coordinates
    with the same weights.  A training row gets exactly its ``embedding_``.

    *Graphs in several parts.*  The eigenvalue 0 occurs once for each group of rows that are rebuilt
    from each other alone, and the first coordinates tell these groups apart, as for
    `LaplacianEigenmaps`.  A warning says so, even if rows in between are rebuilt from several
    groups.

    *Large problems.*  The eigenvalues of rows with little noise are tiny (1e-11 on 20,000 rows of a
    roll), so a factorisation is needed.  It is cheap for curves and surfaces; up to 10,000 rows it
    is possible for any data, up to 20,000 rows for four dimensions.  Rows with noise in many
    dimensions need none.  For cases in between there is a `SolverError` that says what to change.

    *Weights.*  Equal rows are one node of summed weight, so weight 2 is the row twice.  Rows of
    weight 0 are placed like new rows.

    References
    ----------
    Roweis, Saul: Nonlinear Dimensionality Reduction by Locally Linear Embedding, Science 290.
    Saul, Roweis: Think Globally, Fit Locally, Journal of Machine Learning Research 4 (new rows).

    Examples
    --------
    >>> import numpy as np
    >>> from marginfold import LocallyLinearEmbedding, ReconstructionGraph
    >>> t = np.linspace(0, 1, 100)
    >>> spiral = np.column_stack([t * np.cos(9 * t), t * np.sin(9 * t)])
    >>> lle = LocallyLinearEmbedding(1, graph=ReconstructionGraph(4)).fit(spiral)
    >>> bool(abs(np.corrcoef(lle.embedding_[:, 0], t)[0, 1]) > 0.9)  # the curve, unrolled
    True
    """

    def __init__(self, n_components: int = 2, *, graph: GraphName | GraphLike = "lle") -> None:
        self.n_components = n_components
        self.graph = graph

    def _check_graph(self, laplacian: Laplacian) -> None:
        if not isinstance(laplacian, FactoredLaplacian):
            raise GraphError(
                "LocallyLinearEmbedding needs graph='lle' or a ReconstructionGraph; got a "
                f"{type(laplacian).__name__}. For other graphs use LaplacianEigenmaps."
            )
