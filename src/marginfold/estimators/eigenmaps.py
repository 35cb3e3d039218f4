"""Laplacian eigenmaps: the graph "E" of paper 002, without a map."""

from __future__ import annotations

from marginfold.estimators.direct_embedding import DirectEmbedding
from marginfold.graphs.rule import GraphLike, GraphName


class LaplacianEigenmaps(DirectEmbedding):
    """Coordinates in which neighbors are near: the bottom eigenvectors of ``L y = lambda D y``.

    L = D - W is the Laplacian of a graph on the rows and D the diagonal matrix of its degrees.
    The trivial solution, the constant vector, is left out.

    Parameters
    ----------
    n_components : int, default=2
        Largest number of coordinates.
    graph : str or graph rule, default="knn"
        "knn", a rule such as ``NeighborGraph(5)`` or ``PrecomputedGraph(W)``, a multiple of one,
        or a sum of rules that have the same nodes.  Graphs of whole classes ("within", "total",
        "between") have no sparse matrix and are refused.

    Attributes
    ----------
    embedding_ : array of shape (n_samples, n_components_)
        Coordinates of the training rows.
    residual_ : float
        Largest relative residual of the eigenvectors.
    eigenvalues_ : array of shape (n_components_,)
        Between 0 and 2, smallest first.
    n_components_ : int
        ``n_components``, or one less than the distinct rows.

    Notes
    -----
    *Scale and sign.*  ``sum_i d_i y_i^2 = sum_i d_i`` and ``sum_i d_i y_i = 0``: mean 0 and
    variance 1 when rows count by their degree.  scikit-learn's ``SpectralEmbedding`` has the sum 1
    instead, so it is smaller by ``sqrt(sum_i d_i)``.  The entry of largest size is positive.

    *New rows.*  ``y(x) = sum_j W(x, x_j) y_j / (d(x) max(1 - lambda, 1/2))`` over the
    ``n_neighbors`` nearest training rows (of any class), with the width found in ``fit``
    (Nystroem's formula).  A coordinate with lambda > 1/2 changes from neighbor to neighbor, so the
    formula would amplify noise: the factor is never above 2.  A training row gets exactly its
    ``embedding_``, unless the graph keeps equal rows apart (``merge_duplicates=False``, copies
    with different labels in a graph within classes).

    *Graphs in several parts.*  The eigenvalue 0 then occurs once for each part.  Only one constant
    vector is left out, as in scikit-learn: the first coordinates set the heaviest part against the
    rest, then the second heaviest against the lighter ones, and so on.  They say nothing about the
    shape of a part, and a warning says so.  Rows without any neighbor have no equation; they are
    placed like new rows, or at 0 if the graph has no rule for new rows.

    *Exactness.*  Each pair is verified to a residual of 1e-12; `smallest_pairs` says how the
    method is chosen.

    *Weights.*  Equal rows are one node of summed weight, so weight 2 is the row twice.  Rows of
    weight 0 are placed like new rows.

    References
    ----------
    Belkin, Niyogi: Laplacian Eigenmaps for Dimensionality Reduction and Data Representation,
    Neural Computation 15.  Bengio et al.: Out-of-Sample Extensions for LLE, Isomap, MDS,
    Eigenmaps, and Spectral Clustering, Advances in Neural Information Processing Systems 16.

    Examples
    --------
    >>> import numpy as np
    >>> from marginfold import LaplacianEigenmaps, NeighborGraph
    >>> t = np.linspace(0, 1, 40)
    >>> spiral = np.column_stack([t * np.cos(9 * t), t * np.sin(9 * t)])
    >>> maps = LaplacianEigenmaps(1, graph=NeighborGraph(3)).fit(spiral)
    >>> order = np.argsort(maps.embedding_[:, 0])
    >>> bool((np.diff(order) == 1).all() or (np.diff(order) == -1).all())  # the curve, unrolled
    True
    """

    def __init__(self, n_components: int = 2, *, graph: GraphName | GraphLike = "knn") -> None:
        self.n_components = n_components
        self.graph = graph
