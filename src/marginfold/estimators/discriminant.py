"""LDA and KDA: discriminant analysis, linear and in the space of a kernel."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np

from marginfold.estimators.graph_embedding import GraphEmbedding, Recipe
from marginfold.estimators.inputs import Coordinates
from marginfold.feature_maps import KernelLike
from marginfold.geometry.metric import rank_of
from marginfold.geometry.moments import class_means, within_fourth, within_scatter
from marginfold.validation.parameters import Choice, Constraint, Count, Either, Number
from marginfold.validation.types import Reconstruct

LARGEST_SHRINKAGE = 1.0 - 1e-9
"""Shrinkage of 1 would leave nothing of the within-class scatter."""


class LDA(GraphEmbedding):
    """Linear discriminant analysis as a transformer, with shrinkage.

    `GraphEmbedding` of the within-class against the between-class graph: the directions have the
    largest ``v'S_B v / v'(S_W + rho I)v``; there are at most ``n_classes - 1``.  With shrinkage s,
    ``rho = s / (1 - s) mu``, mu the trace of S_W divided by the number of features that vary (with
    a kernel, by the rank of the rows).  The directions are those of ``(1 - s) S_W + s mu I``, which
    is the within-class covariance of scikit-learn's ``LinearDiscriminantAnalysis(solver="lsqr",
    shrinkage=s)`` for a number s (if no feature is constant).

    Parameters
    ----------
    n_components : int or None, default=None
        Largest number of components; None means ``n_classes - 1``.
    shrinkage : float or "auto", default=1e-8
        Between 0 (excluded) and 1; "auto" is the estimate of Ledoit and Wolf for the rows about
        their class means (scikit-learn standardises each class first, which makes a difference for
        features in different units).  The default only makes S_W positive definite.  It has an
        effect if the variances of the features differ by many orders of magnitude: standardise
        them.
    kernel : str, callable, feature map or transformer, default="linear"
        "linear", "rbf", "poly", "sigmoid", "cosine", "laplacian", "precomputed", a function of two
        matrices, an `ExactKernel` with its own parameters, or any scikit-learn transformer such as
        ``Nystroem``.  `KDA` is a better start with kernels.  For more than 5000 rows "rbf",
        "poly", "cosine" and "laplacian" stand for a `LowRankKernel` (see `kernel_error_`); an
        `ExactKernel` is always exact.
    unlabeled : object, default=None
        Rows with this label count as unlabelled and take part in centring only.
    reconstruct : None, "linear", "kernel_ridge", "fixed_point" or regressor, default=None
        How `inverse_transform` goes back from scores to rows.  None takes the point of the affine
        subspace (linear kernel only), "linear" a least-squares map, "kernel_ridge" or any regressor
        of scikit-learn a map learnt from the training rows, and "fixed_point" the pre-image under
        an rbf kernel.

    Attributes
    ----------
    components_ : array of shape (n_components_, n_features)
        Directions, in feature coordinates if the kernel is not linear.  The largest score of each
        on the training rows is positive; its within-class variance is 1 (with the ridge).
    eigenvalues_ : array of shape (n_components_,)
        The ratios, largest first.
    mean_ : array of shape (n_features,)
        Mean of the training rows (linear kernel only).
    n_components_ : int
        Number of components found; directions without any information are left out.
    shrinkage_ : float
        The shrinkage used.
    classes_ : array of shape (n_classes,)
        The classes.
    feature_map_ : object
        The fitted feature map of the kernel.
    kernel_error_ : float
        Share of the kernel's variance that a `LowRankKernel` loses; 0 for all other kernels.
    directions_ : array of shape (n_coordinates, n_components_)
        The directions in the coordinates of the feature map.

    Notes
    -----
    A singular S_W, with more features than rows for example, needs no other solver: for a small
    shrinkage the directions tend to those of null-space discriminant analysis, in which all
    training rows of a class coincide.  That overfits: raise the shrinkage, or use "auto".

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from marginfold import LDA
    >>> X, y = load_wine(return_X_y=True)
    >>> LDA().fit(X, y).transform(X).shape
    (178, 2)
    """

    CONSTRAINTS: ClassVar[dict[str, Constraint]] = {
        "n_components": Either(Choice(None), Count(1)),
        "shrinkage": Either(Choice("auto"), Number(0.0, 1.0, inclusive=False)),
    }

    scaling = "intrinsic"

    def __init__(
        self,
        n_components: int | None = None,
        *,
        shrinkage: float | Literal["auto"] = 1e-8,
        kernel: KernelLike = "linear",
        unlabeled: object = None,
        reconstruct: Reconstruct = None,
    ) -> None:
        self.n_components = n_components
        self.shrinkage = shrinkage
        self.kernel = kernel
        self.unlabeled = unlabeled
        self.reconstruct = reconstruct

    def _recipe(self) -> Recipe:
        return Recipe("within", "between", self._ridge, self.scaling)

    def _ridge(self, c: Coordinates) -> float:
        """Return s / (1 - s): S_W with this ridge has the eigenvectors of the shrunk S_W."""
        rank, size = max(rank_of(c.total), 1), c.n_varying
        automatic = isinstance(self.shrinkage, str)
        s = _ledoit_wolf(c, len(self.classes_), size) if automatic else float(self.shrinkage)
        self.shrinkage_ = s
        return s / (1.0 - s) * rank / size


class KDA(LDA):
    """Kernel discriminant analysis: `LDA` in the space of a kernel.

    Parameters
    ----------
    n_components : int or None, default=None
        Largest number of components; None means ``n_classes - 1``.
    shrinkage : float or "auto", default=1e-3
        In the space of a kernel a small shrinkage overfits.
    kernel : str, callable, feature map or transformer, default="rbf"
        "linear", "rbf", "poly", "sigmoid", "cosine", "laplacian", "precomputed", a function of two
        matrices, an `ExactKernel` with its own parameters, or any scikit-learn transformer such as
        ``Nystroem``.  For more than 5000 rows "rbf", "poly", "cosine" and "laplacian" stand
        for a `LowRankKernel` (see `kernel_error_`); an `ExactKernel` is always exact.
    unlabeled : object, default=None
        Rows with this label count as unlabelled and take part in centring only.
    reconstruct : None, "linear", "kernel_ridge", "fixed_point" or regressor, default=None
        How `inverse_transform` goes back from scores to rows.  None takes the point of the affine
        subspace (linear kernel only), "linear" a least-squares map, "kernel_ridge" or any regressor
        of scikit-learn a map learnt from the training rows, and "fixed_point" the pre-image under
        an rbf kernel.

    Attributes
    ----------
    components_ : array of shape (n_components_, n_features)
        Directions, in feature coordinates if the kernel is not linear.  The largest score of each
        on the training rows is positive; its within-class variance is 1 (with the ridge).
    eigenvalues_ : array of shape (n_components_,)
        The ratios, largest first.
    mean_ : array of shape (n_features,)
        Mean of the training rows (linear kernel only).
    n_components_ : int
        Number of components found; directions without any information are left out.
    shrinkage_ : float
        The shrinkage used.
    classes_ : array of shape (n_classes,)
        The classes.
    feature_map_ : object
        The fitted feature map of the kernel.
    kernel_error_ : float
        Share of the kernel's variance that a `LowRankKernel` loses; 0 for all other kernels.
    directions_ : array of shape (n_coordinates, n_components_)
        The directions in the coordinates of the feature map.

    References
    ----------
    Baudat, Anouar: Generalized Discriminant Analysis Using a Kernel Approach, Neural Computation
    12.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from marginfold import KDA
    >>> X, y = load_iris(return_X_y=True)
    >>> KDA().fit_transform(X, y).shape
    (150, 2)
    """

    def __init__(
        self,
        n_components: int | None = None,
        *,
        shrinkage: float | Literal["auto"] = 1e-3,
        kernel: KernelLike = "rbf",
        unlabeled: object = None,
        reconstruct: Reconstruct = None,
    ) -> None:
        super().__init__(
            n_components,
            shrinkage=shrinkage,
            kernel=kernel,
            unlabeled=unlabeled,
            reconstruct=reconstruct,
        )


def _ledoit_wolf(c: Coordinates, n_classes: int, n_dimensions: int) -> float:
    """Return the shrinkage of Ledoit and Wolf (2004) for the rows about their class means."""
    weights, means = class_means(c.blocks, n_classes)
    n = float(weights.sum())
    S = within_scatter(c.blocks, means) / n
    size = float((S**2).sum())
    delta = size - float(np.trace(S)) ** 2 / n_dimensions
    fourth = within_fourth(c.blocks, means) / n
    smallest = float(np.finfo(float).eps)
    if delta <= smallest * size:  # a multiple of the identity: shrinking would change nothing
        return smallest
    return float(np.clip((fourth - size) / (n * delta), smallest, LARGEST_SHRINKAGE))
