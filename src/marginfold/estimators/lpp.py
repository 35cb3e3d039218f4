"""LPP and NPE: linear and kernel maps that keep neighbors together."""

from __future__ import annotations

from typing import ClassVar

from marginfold.estimators.graph_embedding import DEGREES, GraphEmbedding, Recipe
from marginfold.feature_maps import KernelLike
from marginfold.graphs import GraphLike
from marginfold.graphs.rule import GraphName
from marginfold.validation.parameters import Constraint
from marginfold.validation.types import Reconstruct


class NeighborPreset(GraphEmbedding):
    """`GraphEmbedding` of one graph against a fixed penalty."""

    CONSTRAINTS: ClassVar[dict[str, Constraint]] = {
        name: GraphEmbedding.CONSTRAINTS[name] for name in ("n_components", "ridge")
    }

    far: ClassVar[str]
    scaling = "penalty"
    unlabeled = None

    def __init__(
        self,
        n_components: int | None = 2,
        *,
        graph: GraphName | GraphLike = "knn",
        kernel: KernelLike = "linear",
        ridge: float = 1e-3,
        reconstruct: Reconstruct = None,
    ) -> None:
        self.n_components = n_components
        self.graph = graph
        self.kernel = kernel
        self.ridge = ridge
        self.reconstruct = reconstruct

    def _recipe(self) -> Recipe:
        return Recipe(self.graph, self.far, self.ridge, self.scaling)


class LPP(NeighborPreset):
    """Locality preserving projections: neighbors stay together, linear or in a kernel's space.

    `GraphEmbedding` of a neighbor graph against its degrees: the directions have the largest
    ``v'Z_D'D Z_D v / v'(Z'LZ + rho I)v``, with Z_D the rows about their degree-weighted mean, which
    removes the trivial solution (the inverse of 003 eq. (20)).  It is Laplacian eigenmaps
    restricted to (kernel) linear functions, and so embeds new rows.

    Parameters
    ----------
    n_components : int or None, default=2
        Largest number of components.
    graph : str or graph rule, default="knn"
        The graph; with ``NeighborGraph(within_class=True)`` supervised.
    kernel : str, callable, feature map or transformer, default="linear"
        "linear", "rbf", "poly", "sigmoid", "cosine", "laplacian", "precomputed", a function of two
        matrices, an `ExactKernel` with its own parameters, or any scikit-learn transformer such as
        ``Nystroem``.  For more than 5000 rows "rbf", "poly", "cosine" and "laplacian" stand
        for a `LowRankKernel` (see `kernel_error_`); an `ExactKernel` is always exact.
    ridge : float, default=1e-3
        Relative ridge, rho = ridge tr(Z'LZ) / rank(Z).  It matters with kernels: 1e-6 overfits.
    reconstruct : None, "linear", "kernel_ridge", "fixed_point" or regressor, default=None
        How `inverse_transform` goes back from scores to rows.  None takes the point of the affine
        subspace (linear kernel only), "linear" a least-squares map, "kernel_ridge" or any regressor
        of scikit-learn a map learnt from the training rows, and "fixed_point" the pre-image under
        an rbf kernel.

    Attributes
    ----------
    components_ : array of shape (n_components_, n_features)
        Directions, in feature coordinates if the kernel is not linear.  The largest score of each
        on the training rows is positive; its degree-weighted variance is 1.
    eigenvalues_ : array of shape (n_components_,)
        The ratios, largest first.
    mean_ : array of shape (n_features,)
        Mean of the training rows (linear kernel only).
    n_components_ : int
        Number of components found; directions without any information are left out.
    feature_map_ : object
        The fitted feature map of the kernel.
    kernel_error_ : float
        Share of the kernel's variance that a `LowRankKernel` loses; 0 for all other kernels.
    directions_ : array of shape (n_coordinates, n_components_)
        The directions in the coordinates of the feature map.

    References
    ----------
    He, Niyogi: Locality Preserving Projections, Advances in Neural Information Processing Systems
    16.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from marginfold import LPP
    >>> X, y = load_iris(return_X_y=True)
    >>> LPP(2).fit_transform(X).shape
    (150, 2)
    """

    far = DEGREES


class NPE(NeighborPreset):
    """Neighborhood preserving embedding: a row stays the same weighted mean of its neighbors.

    `GraphEmbedding` of the graph of locally linear embedding against the total scatter: the
    directions have the largest ``v'Z'Zv / v'(Z'(I - M)'(I - M)Z + rho I)v``.  It is locally linear
    embedding restricted to (kernel) linear functions, and so embeds new rows.

    Parameters
    ----------
    n_components : int or None, default=2
        Largest number of components.
    graph : str or graph rule, default="lle"
        The graph of reconstruction weights, ``ReconstructionGraph(n_neighbors=5)`` for example.
    kernel : str, callable, feature map or transformer, default="linear"
        "linear", "rbf", "poly", "sigmoid", "cosine", "laplacian", "precomputed", a function of two
        matrices, an `ExactKernel` with its own parameters, or any scikit-learn transformer such as
        ``Nystroem``.  For more than 5000 rows "rbf", "poly", "cosine" and "laplacian" stand
        for a `LowRankKernel` (see `kernel_error_`); an `ExactKernel` is always exact.
    ridge : float, default=1e-3
        Relative ridge, rho = ridge tr(Z'LZ) / rank(Z).  It matters with kernels: 1e-6 overfits.
    reconstruct : None, "linear", "kernel_ridge", "fixed_point" or regressor, default=None
        How `inverse_transform` goes back from scores to rows.  None takes the point of the affine
        subspace (linear kernel only), "linear" a least-squares map, "kernel_ridge" or any regressor
        of scikit-learn a map learnt from the training rows, and "fixed_point" the pre-image under
        an rbf kernel.

    Attributes
    ----------
    components_ : array of shape (n_components_, n_features)
        Directions, in feature coordinates if the kernel is not linear.  The largest score of each
        on the training rows is positive; its variance is 1.
    eigenvalues_ : array of shape (n_components_,)
        The ratios, largest first.
    mean_ : array of shape (n_features,)
        Mean of the training rows (linear kernel only).
    n_components_ : int
        Number of components found; directions without any information are left out.
    feature_map_ : object
        The fitted feature map of the kernel.
    kernel_error_ : float
        Share of the kernel's variance that a `LowRankKernel` loses; 0 for all other kernels.
    directions_ : array of shape (n_coordinates, n_components_)
        The directions in the coordinates of the feature map.

    References
    ----------
    He, Cai, Yan, Zhang: Neighborhood Preserving Embedding, International Conference on Computer
    Vision 2005.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from marginfold import NPE
    >>> X, y = load_iris(return_X_y=True)
    >>> Z = NPE(2).fit_transform(X)
    >>> bool(abs((Z**2).mean(axis=0) - 1).max() < 1e-9)
    True
    """

    far = "total"

    def __init__(
        self,
        n_components: int | None = 2,
        *,
        graph: GraphName | GraphLike = "lle",
        kernel: KernelLike = "linear",
        ridge: float = 1e-3,
        reconstruct: Reconstruct = None,
    ) -> None:
        super().__init__(
            n_components, graph=graph, kernel=kernel, ridge=ridge, reconstruct=reconstruct
        )
