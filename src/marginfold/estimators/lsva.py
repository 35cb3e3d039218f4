"""LSVA: Laplacian support vector analysis (paper 000)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, Self

from marginfold.estimators.inputs import SolverLike
from marginfold.estimators.margin_subspace import (
    DeflationName,
    MarginScaling,
    MarginSubspace,
    OnExhausted,
    Tasks,
)
from marginfold.estimators.paths import path
from marginfold.feature_maps import KernelLike
from marginfold.geometry.metric import Penalty
from marginfold.graphs import resolve_graph
from marginfold.graphs.rule import GraphLike, GraphName
from marginfold.validation.parameters import (
    FACTOR,
    Constraint,
    Flag,
)
from marginfold.validation.types import ClassWeight, Labels, Reconstruct, Rows, Weights


class LSVA(MarginSubspace):
    """Laplacian support vector analysis: successive Laplacian SVMs in deflated subspaces.

    Component k solves (000 eq. (1), in coordinates Z of the rows)

    ``min 1/2 w'(I + lam Z'LZ)w + sum_i C_i max(0, 1 - y_i (w'z_i + b))``

    over all w whose scores are uncorrelated with those of the earlier components (the paper's
    ``deflation="orthogonal"``: over all w orthogonal to them); L is the Laplacian of a graph on the
    rows, so the margin is wide where neighbors stay together.  Linear LLSVA and kernel KLSVA are
    one method in other coordinates.

    Parameters
    ----------
    n_components : int, default=2
        Largest number of components.
    C : float or "auto", default="auto"
        Cost of a margin violation.  "auto" is ``3 / mean (z - mean)'A^(-1) (z - mean)`` over the
        labelled rows with their weights, ``A = I + lam Z'LZ``: the units and the number of features
        do not matter, and each graph weight has its own cost.
    kernel : str, callable, feature map or transformer, default="linear"
        "linear", "rbf", "poly", "sigmoid", "cosine", "laplacian", "precomputed", a function of two
        matrices, an `ExactKernel` with its own parameters, or any scikit-learn transformer such as
        ``Nystroem``.  For more than 5000 rows "rbf", "poly", "cosine" and "laplacian" stand
        for a `LowRankKernel` (see `kernel_error_`); an `ExactKernel` is always exact.
    graph : str or graph rule, default="knn"
        "knn", "within", "between", "total", "lle", "anchors" (for very many rows), a rule such as
        ``NeighborGraph(5)`` or a sum like ``0.3 * NeighborGraph() + WithinClassGraph()``.  The
        graph is built on the input rows (on the kernel's coordinates if it is precomputed).
    graph_weight : float, default=1.0
        Weight lam of the graph.
    normalize_graph : bool, default=True
        Whether lam is in units of the data: 1 then gives the graph and ``|w|^2`` the same mean
        weight, ``lam = graph_weight tr(ZZ') / tr(Z (Z'LZ) Z')``.  False is the paper's raw lam.
    class_weight : "balanced", dict or None, default="balanced"
        "balanced" gives both sides of each task the same total cost; then a task is finished only
        when the means of its sides coincide.
    tasks : {"auto", "one_vs_rest", "by_size", "random", "greedy", "splits"}, default="auto"
        How classes become two-sided tasks: "one_vs_rest" is the papers' round robin over the
        classes, "by_size" the same with the heaviest class first, "random" each class once and then
        any of them by ``random_state`` (000 section III names both), "greedy" takes the class with
        the largest gain next, and "splits" are bipartitions of the classes that part the pairs
        which the components so far confuse.
        "auto" is "splits" if there are more than two classes and ``n_components`` is smaller than
        their number, else "one_vs_rest".  The first k of m components are those of a fit with
        ``n_components=k`` if both numbers mean the same tasks.
    deflation : {"orthogonal", "uncorrelated"}, default="uncorrelated"
        How each component must differ from all earlier ones.  "uncorrelated" is ``w'S w_j = 0``, S
        the scatter of all training rows about their mean (with weights, unlabelled ones included):
        the scores of different components are uncorrelated.  "orthogonal" (the paper's) is
        ``w'w_j = 0``: orthonormal components, whose scores may correlate up to .99, so that later
        ones repeat the first (see ``new_gain_``).  Over 19 real tables (MMDA, LSVA and LSVA with an
        rbf kernel, 2 and 5 components) "uncorrelated" has 0.3 points more accuracy by five
        neighbors and 0.7 by one; with fewer rows than columns and five components (3 tables, no
        kernel) it has 4 points less.
    scaling : {"unit", "margin"}, default="unit"
        "unit" projects on directions of length 1 (orthogonal ones are an orthogonal projection);
        "margin" multiplies each component by the norm of its weight vector, so that weak
        components shrink.
    on_exhausted : {"stop", "pca"}, default="stop"
        What to do when no task has anything left to separate: return fewer components, or add
        directions of largest variance.
    reconstruct : None, "linear", "kernel_ridge", "fixed_point" or regressor, default=None
        How `inverse_transform` goes back from scores to rows.  None takes the point of the affine
        subspace (linear kernel only), "linear" a least-squares map, "kernel_ridge" or any regressor
        of scikit-learn a map learnt from the training rows, and "fixed_point" the pre-image under
        an rbf kernel.
    unlabeled : object, default=None
        Rows with this label count as unlabelled: they take part in the graph, in centring and in
        the scatter that decides what is uncorrelated.
    solver : {"auto", "interior_point", "libsvm"} or object, default="auto"
        "auto" chooses the fastest method for the shape of the problem; every solution is certified
        by its duality gap.
    tol : float, default=1e-8
        Relative duality gap of each component.
    random_state : int, default=0
        Seed of ``tasks="random"``.

    Attributes
    ----------
    components_ : array of shape (n_components_, n_features)
        Directions of length 1, orthonormal if ``deflation`` says so; in feature coordinates if the
        kernel is not linear.
    mean_ : array of shape (n_features,)
        Mean of the training rows (linear kernel only).
    intercepts_, norms_ : arrays of shape (n_components_,)
        ``decision_function = transform * norms_ + intercepts_`` (with unit scaling).
    gain_ : array of shape (n_components_,)
        How much better each component is than a constant answer: ``1 - P(w, b) / P(0)`` with P the
        objective above, between 0 and 1.
    new_gain_ : array of shape (n_components_,)
        The gain that no earlier component has.  For component k it is
        ``1 - min_(a, b) P(a u, b) / P(0)``, with ``u = w_k - sum_(j < k) c_j w_j`` the part of w_k
        whose scores on the training rows are uncorrelated with those of all components before it.
        It equals ``gain_`` if the scores are uncorrelated, and is far below it where components
        repeat each other.
    exhausted_ : dict
        For each task with nothing left to separate, the gain at which it was given up.
    tasks_ : list
        The class (or tuple of classes) on the positive side of each component; None for a direction
        of largest variance.
    gap_ : array of shape (n_components_,)
        Certified relative duality gaps.
    n_iter_ : int
        Iterations of the solver, all components together.
    n_iter_per_component_ : array of shape (n_components_,)
        Iterations of the solver for each component.
    n_components_ : int
        Number of components found, each of which separates classes.
    C_ : float
        The cost that was used.
    classes_ : array of shape (n_classes,)
        Class labels, sorted.
    feature_map_ : object
        The fitted feature map of the kernel.
    kernel_error_ : float
        Share of the kernel's variance that a `LowRankKernel` loses; 0 for all other kernels.
    directions_ : array of shape (n_coordinates, n_components_)
        The components in the coordinates of the feature map.

    Notes
    -----
    What differs from the printed paper: components are uncorrelated by default; deflation
    re-orthogonalises (the printed recursions lose orthogonality by the sixth component), the kernel
    recursion (9) is corrected, degenerate components are not returned, and the graph weight and
    width are free of units by default.

    ``sample_weight`` with a neighbor graph: equal rows are one node whose weight is the sum, so
    weight 2 is the row twice; with ``merge_duplicates=False`` or random feature maps it is not.

    References
    ----------
    Arvanitopoulos, Bouzas, Tefas: Laplacian Support Vector Analysis for Subspace Discriminative
    Learning.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from marginfold import LSVA
    >>> X, y = load_iris(return_X_y=True)
    >>> lsva = LSVA(n_components=2, graph_weight=0.5).fit(X, y)
    >>> lsva.transform(X).shape
    (150, 2)
    >>> bool(lsva.gap_.max() < 1e-8)
    True
    """

    def __init__(
        self,
        n_components: int = 2,
        *,
        C: float | Literal["auto"] = "auto",
        kernel: KernelLike = "linear",
        graph: GraphName | GraphLike = "knn",
        graph_weight: float = 1.0,
        normalize_graph: bool = True,
        class_weight: ClassWeight = "balanced",
        tasks: Tasks = "auto",
        deflation: DeflationName = "uncorrelated",
        scaling: MarginScaling = "unit",
        on_exhausted: OnExhausted = "stop",
        reconstruct: Reconstruct = None,
        unlabeled: object = None,
        solver: SolverLike = "auto",
        tol: float = 1e-8,
        random_state: int = 0,
    ) -> None:
        self.n_components = n_components
        self.C = C
        self.kernel = kernel
        self.graph = graph
        self.graph_weight = graph_weight
        self.normalize_graph = normalize_graph
        self.class_weight = class_weight
        self.tasks = tasks
        self.deflation = deflation
        self.scaling = scaling
        self.on_exhausted = on_exhausted
        self.reconstruct = reconstruct
        self.unlabeled = unlabeled
        self.solver = solver
        self.tol = tol
        self.random_state = random_state

    def _penalty(self) -> Penalty:
        graph = resolve_graph(self.graph)
        return Penalty(graph, float(self.graph_weight), bool(self.normalize_graph))

    def _constraints(self) -> dict[str, Constraint]:
        return super()._constraints() | {"graph_weight": FACTOR, "normalize_graph": Flag()}

    def fit_path(
        self,
        X: Rows,
        y: Labels,
        graph_weight: Iterable[float] | float,
        sample_weight: Weights | None = None,
    ) -> list[Self]:
        """Fit one clone for each graph weight; graph, coordinates and solver passes are shared.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`.
        graph_weight : float or iterable of float
            The weights; this estimator's own is not used.

        Returns
        -------
        list of LSVA
            Fitted estimators, equal to separate fits.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from marginfold import LSVA
        >>> X, y = load_iris(return_X_y=True)
        >>> path = LSVA().fit_path(X, y, graph_weight=[0.1, 1, 10])
        >>> [fitted.graph_weight for fitted in path]
        [0.1, 1, 10]
        """
        return path(self, X, y, graph_weight=graph_weight, sample_weight=sample_weight)
