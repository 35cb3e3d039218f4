"""MMDA: margin maximising discriminant analysis, the plain ancestor of LSVA and WSVDA."""

from __future__ import annotations

from typing import Any

from marginfold.estimators.margin_subspace import MarginSubspace
from marginfold.feature_maps import KernelLike
from marginfold.geometry.metric import Penalty
from marginfold.svm import SVMSolver


class MMDA(MarginSubspace):
    """Margin maximising discriminant analysis: successive SVMs in deflated subspaces.

    Component k is the normal of the support vector machine

    ``min 1/2 |w|^2 + sum_i C_i max(0, 1 - y_i (w'z_i + b))`` over w orthogonal to the earlier ones.

    (Two methods carry this acronym; this is margin *maximising* discriminant analysis, MMDA and
    with a kernel KMMDA.)

    Parameters
    ----------
    n_components : int, default=2
        Largest number of components.
    C : float or "auto", default="auto"
        Cost of a margin violation.  "auto" is ``3 / mean |z - mean|^2`` over the labelled rows with
        their weights, so that the units and the number of features do not matter.
    kernel : str, callable, feature map or transformer, default="linear"
        "linear", "rbf", "poly", "sigmoid", "cosine", "laplacian", "precomputed", a function of two
        matrices, an `ExactKernel` with its own parameters, or any scikit-learn transformer such as
        ``Nystroem``.
    class_weight : "balanced", dict or None, default="balanced"
        "balanced" gives both sides of each task the same total cost; then a task is exhausted only
        when the means of its sides coincide.
    tasks : {"auto", "one_vs_rest", "greedy", "splits"}, default="auto"
        How classes become two-sided tasks: "one_vs_rest" is the papers' round robin over the
        classes, "greedy" takes the class with the largest gain next, and "splits" are bipartitions
        of the classes that part the pairs which the components so far confuse.  "auto" is "splits"
        if there are more than two classes and ``n_components`` is smaller than their number, else
        "one_vs_rest".  The first k of m components are those of a fit with ``n_components=k`` if
        both numbers mean the same tasks.
    scaling : {"unit", "margin"}, default="unit"
        "unit" is an orthogonal projection; "margin" multiplies each component by the norm of its
        weight vector, so that weak components shrink.
    on_exhausted : {"stop", "pca"}, default="stop"
        When no task has anything left to separate: return fewer components, or fill up with the
        directions of largest variance.
    reconstruct : None, "linear", "kernel_ridge", "fixed_point" or regressor, default=None
        How `inverse_transform` finds rows for images: None is the affine subspace of the linear
        kernel; "linear" least squares, "kernel_ridge" or any regressor of scikit-learn a map
        learned on the training rows; "fixed_point" the pre-image in the space of an rbf kernel.
    unlabeled : object, default=None
        Rows whose label equals this have none: they take part in centring (and in the graph) only.
    solver : {"auto", "interior_point", "libsvm"} or object, default="auto"
        "auto" takes what is quickest for the shape of the problem; every solution is certified.
    tol : float, default=1e-8
        Relative duality gap of each component.

    Attributes
    ----------
    components_ : array of shape (n_components_, n_features)
        Orthonormal directions; in feature coordinates if the kernel is not linear.
    mean_ : array of shape (n_features,)
        Mean of the training rows (linear kernel only).
    intercepts_, norms_ : arrays of shape (n_components_,)
        ``decision_function = transform * norms_ + intercepts_`` (with unit scaling).
    gain_ : array of shape (n_components_,)
        Relative gain of each component over a constant, between 0 and 1.
    exhausted_ : dict
        The gain at which each exhausted task was dropped.
    tasks_ : list
        The class (or tuple of classes) on the positive side of each component, None for variance.
    gap_ : array of shape (n_components_,)
        Certified relative duality gaps.
    n_iter_ : int
        Iterations of the solver, all components together.
    n_iter_per_component_ : array of shape (n_components_,)
        Iterations of the solver for each component.
    n_components_ : int
        Number of components that separate something.
    C_ : float
        The cost that was used.
    classes_ : array of shape (n_classes,)
        Class labels, sorted.
    feature_map_ : object
        The fitted feature map of the kernel.
    directions_ : array of shape (n_coordinates, n_components_)
        The components in the coordinates of the feature map.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import scale
    >>> from marginfold import MMDA
    >>> X, y = load_wine(return_X_y=True)
    >>> mmda = MMDA(n_components=2).fit(scale(X), y)
    >>> mmda.transform(scale(X)).shape
    (178, 2)
    >>> mmda.tasks_
    [2, (1, 2)]
    """

    def __init__(
        self,
        n_components: int = 2,
        *,
        C: float | str = "auto",
        kernel: KernelLike = "linear",
        class_weight: Any = "balanced",
        tasks: str = "auto",
        deflation: str = "orthogonal",
        scaling: str = "unit",
        on_exhausted: str = "stop",
        reconstruct: Any = None,
        unlabeled: Any = None,
        solver: str | SVMSolver = "auto",
        tol: float = 1e-8,
    ) -> None:
        self.n_components = n_components
        self.C = C
        self.kernel = kernel
        self.class_weight = class_weight
        self.tasks = tasks
        self.deflation = deflation
        self.scaling = scaling
        self.on_exhausted = on_exhausted
        self.reconstruct = reconstruct
        self.unlabeled = unlabeled
        self.solver = solver
        self.tol = tol

    def _penalty(self) -> Penalty:
        return Penalty(graph=None)
