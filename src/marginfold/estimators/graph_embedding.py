"""GraphEmbedding: two graphs, one eigenvalue problem (the frame of paper 002, after Yan et al.).

Directions in which one quadratic form is large where another is small: maximise ``v'Fv`` for
``v'(N + rho I)v = 1``, F the scatter of what should be far apart, N of what should stay near
(paper 002, section 2).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Literal, Self

import numpy as np

from marginfold.errors import (
    ExhaustedWarning,
    GraphError,
    InvalidInputError,
    NoDirectionError,
    warn,
)
from marginfold.estimators.inputs import Coordinates, GraphForm, coordinates
from marginfold.estimators.projection import Projection
from marginfold.feature_maps import KernelLike
from marginfold.geometry.metric import has_no_scatter, span_of
from marginfold.geometry.moments import score_signs
from marginfold.graphs import SHORTHANDS, resolve_graph, uses_labels
from marginfold.graphs.classes import BetweenClassGraph, TotalGraph, WithinClassGraph
from marginfold.graphs.rule import GraphLike, GraphName, ScaledGraph, SumGraph
from marginfold.linalg import pencil_pairs
from marginfold.linalg.decompositions import product
from marginfold.linalg.tall import Array
from marginfold.planner.check import check_memory
from marginfold.runtime.threads import threads_for
from marginfold.validation.parameters import (
    POSITIVE_FACTOR,
    Choice,
    Constraint,
    Count,
    Either,
    atomic_fit,
    check_parameters,
)
from marginfold.validation.rows import read_labelled, read_rows
from marginfold.validation.types import Labels, Reconstruct, Rows, Weights

DEGREES: Final = "degrees"
"""The penalty that is the degree-weighted scatter of the intrinsic graph."""

NOTHING = 1e-8
"""Share of its variance, relative to the mean share, below which a direction carries nothing.

A form that cannot exceed the total scatter (class graphs) is judged beside the total scatter: equal
class means leave a mean share that is rounding itself, and up to 1e-9 in the space of a kernel.
"""

ROUNDING = 1e-15
"""Share of its degree-weighted variance that the form of any other graph has by rounding."""

SCALINGS = ("penalty", "intrinsic", "unit")
"""Which form is 1 on average over the rows: far, near, or the length of a direction."""


@dataclass(frozen=True)
class Recipe:
    """What makes a method: the two graphs, the ridge and the length of a direction.

    A ridge that depends on the rows is a function of their coordinates.
    """

    intrinsic: Any
    penalty: Any
    ridge: Any | Callable[[Coordinates], float]
    scaling: str

    @property
    def graphs(self) -> list[Any]:
        """The rules that have to be built."""
        both = (self.intrinsic, self.penalty)
        return [g for g in both if g is not None and not is_degrees(g)]

    @property
    def uses_labels(self) -> bool:
        """Whether one of the graphs needs classes."""
        rules = [
            SHORTHANDS[g]() if isinstance(g, str) and g in SHORTHANDS else g for g in self.graphs
        ]
        return any(uses_labels(rule) for rule in rules)


class GraphEmbedding(Projection):
    """Directions in which rows of one graph stay together and those of another move apart.

    With Z the coordinates of the rows, ``N = Z'L Z`` of the intrinsic graph and ``F = Z'Lp Z``
    of the penalty graph, the directions have the largest

    ``v'Fv / v'(N + rho I)v``,    ``rho = ridge tr(N) / rank(Z)``

    (002 eqs. (5) to (8) and Table 1).  PCA, discriminant analysis, locality preserving projections
    and neighborhood preserving embedding are pairs of graphs, see the examples; with a kernel they
    are the kernel versions.

    Parameters
    ----------
    n_components : int or None, default=2
        Largest number of components; None returns all that have any information.
    intrinsic : str, graph rule or None, default="knn"
        What should stay near: "knn", "within", "lle", "total", "anchors", a rule or a sum of rules.
        None is the identity, as in PCA.
    penalty : str or graph rule, default="degrees"
        What should be far apart: "total", "between", a rule, or "degrees": the scatter of all
        rows weighted by their degrees in the intrinsic graph, about their weighted mean (which
        removes the trivial, constant solution).
    kernel : str, callable, feature map or transformer, default="linear"
        "linear", "rbf", "poly", "sigmoid", "cosine", "laplacian", "precomputed", a function of two
        matrices, an `ExactKernel` with its own parameters, or any scikit-learn transformer such as
        ``Nystroem``.  For more than 5000 rows "rbf", "poly", "cosine" and "laplacian" stand
        for a `LowRankKernel` (see `kernel_error_`); an `ExactKernel` is always exact.
    ridge : float, default=1e-3
        Relative ridge.  It matters with kernels: 1e-6 overfits.  Without an intrinsic graph there
        is none.
    scaling : {"penalty", "intrinsic", "unit"}, default="penalty"
        Length of the directions: the mean over the rows of the penalty form (weighted by the
        degrees, for "degrees") or of the intrinsic form (with the ridge) is 1, or ``|v| = 1``.
    unlabeled : object, default=None
        Rows with this label count as unlabelled: graphs of classes do not join them with any row.
    reconstruct : None, "linear", "kernel_ridge", "fixed_point" or regressor, default=None
        How `inverse_transform` goes back from scores to rows.  None takes the point of the affine
        subspace (linear kernel only), "linear" a least-squares map, "kernel_ridge" or any regressor
        of scikit-learn a map learnt from the training rows, and "fixed_point" the pre-image under
        an rbf kernel.

    Attributes
    ----------
    components_ : array of shape (n_components_, n_features)
        Directions, in feature coordinates if the kernel is not linear.  The largest score of each
        on the training rows is positive.
    eigenvalues_ : array of shape (n_components_,)
        The ratios, largest first.
    mean_ : array of shape (n_features,)
        Mean of the training rows (linear kernel only).
    n_components_ : int
        Number of components found; directions without any information are left out.
    classes_ : array of shape (n_classes,)
        The classes, if one of the graphs has them.
    feature_map_ : object
        The fitted feature map of the kernel.
    kernel_error_ : float
        Share of the kernel's variance that a `LowRankKernel` loses; 0 for all other kernels.
    directions_ : array of shape (n_coordinates, n_components_)
        The directions in the coordinates of the feature map.

    Notes
    -----
    Labels are read only if a graph uses them, so that in a pipeline with a classifier an
    unsupervised embedding stays unsupervised.

    References
    ----------
    Yan, Xu, Zhang, Zhang, Yang, Lin: Graph Embedding and Extensions, IEEE Transactions on Pattern
    Analysis and Machine Intelligence 29.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import scale
    >>> from marginfold import GraphEmbedding
    >>> X, y = load_wine(return_X_y=True)
    >>> pca = GraphEmbedding(2, intrinsic=None, penalty="total", scaling="unit")
    >>> pca.fit_transform(scale(X)).shape
    (178, 2)
    >>> lda = GraphEmbedding(2, intrinsic="within", penalty="between", scaling="intrinsic")
    >>> lda.fit(scale(X), y).n_components_
    2
    """

    CONSTRAINTS: ClassVar[dict[str, Constraint]] = {
        "n_components": Either(Choice(None), Count(1)),
        "ridge": POSITIVE_FACTOR,
        "scaling": Choice(*SCALINGS),
    }

    def __init__(
        self,
        n_components: int | None = 2,
        *,
        intrinsic: GraphName | GraphLike | None = "knn",
        penalty: Literal["degrees"] | GraphName | GraphLike | None = DEGREES,
        kernel: KernelLike = "linear",
        ridge: float = 1e-3,
        scaling: Literal["penalty", "intrinsic", "unit"] = "penalty",
        unlabeled: object = None,
        reconstruct: Reconstruct = None,
    ) -> None:
        self.n_components = n_components
        self.intrinsic = intrinsic
        self.penalty = penalty
        self.kernel = kernel
        self.ridge = ridge
        self.scaling = scaling
        self.unlabeled = unlabeled
        self.reconstruct = reconstruct

    def _recipe(self) -> Recipe:
        """Return what makes the method."""
        return Recipe(self.intrinsic, self.penalty, self.ridge, self.scaling)

    def fit(self, X: Rows, y: Labels | None = None, sample_weight: Weights | None = None) -> Self:
        """Find the directions.

        Parameters
        ----------
        X : array, sparse matrix, data frame, dask array or dask data frame
            Rows and features, (n_samples, n_features).  A dask collection is fitted on the current
            client of ``distributed``, without gathering it.
        y : array of shape (n_samples,), optional
            Class labels, needed only by graphs of classes and ignored otherwise.
        sample_weight : array of shape (n_samples,), optional
            A weight of 2 counts like the row given twice, a weight of 0 like no row.

        Returns
        -------
        self
        """
        check_parameters(self, self.CONSTRAINTS)
        self._check_reconstruct()
        with atomic_fit(self):
            recipe, codes = self._recipe(), None
            check_memory(self, X)
            rules = [resolve_graph(graph) for graph in recipe.graphs]
            if recipe.uses_labels:
                read = read_labelled(self, X, y, sample_weight, self.unlabeled, rules)
                X, weights, codes, self.classes_ = read.X, read.weights, read.codes, read.classes
            else:
                X, weights = read_rows(self, X, sample_weight, rules)
            c = coordinates(self.kernel, X, weights, codes)
            with threads_for(len(weights), len(c.total)):
                self._store(c, self._embed(recipe, c))
                self._learn_reconstruction(X, weights)
        return self

    def _embed(self, recipe: Recipe, c: Coordinates) -> Embedding:
        near = None if recipe.intrinsic is None else c.form(resolve_graph(recipe.intrinsic))
        limit, size = len(c.total), float(c.weights.sum())
        far_size = size
        if is_degrees(recipe.penalty):
            degrees = _degrees(near)
            far, far_size = c.spread(degrees), float(degrees.sum())
            least = ROUNDING * far_size / size
        else:
            rule = resolve_graph(recipe.penalty)
            form = c.form(rule)
            far, least = form.scatter, _least_share(rule, form, size)
            if isinstance(rule, BetweenClassGraph):
                limit = min(limit, len(self.classes_) - 1)
        wanted = limit if self.n_components is None else min(int(self.n_components), limit)
        ridge = recipe.ridge
        return graph_embedding(
            far,
            None if near is None else near.scatter,
            c.total,
            ridge=ridge(c) if callable(ridge) else float(ridge),
            n_components=wanted,
            scaling=recipe.scaling,
            size=size,
            far_size=far_size,
            least=least,
        )

    def _store(self, c: Coordinates, embedding: Embedding) -> None:
        found = embedding.directions.shape[1]
        name = type(self).__name__
        if not found:
            raise NoDirectionError(
                f"{name}: there is no direction to return: the penalty graph has no scatter on "
                "these rows. All rows, or the means of all classes, may be equal."
            )
        if self.n_components is not None and found < self.n_components:
            warn(
                f"{name} found {found} of {self.n_components} components: no other direction "
                "separates rows that the penalty graph joins (the means of c classes differ in c "
                "- 1 directions at most).",
                ExhaustedWarning,
            )
        signs = score_signs(c.blocks, embedding.directions)
        self.eigenvalues_ = embedding.ratios
        self._store_directions(c.feature_map, embedding.directions * signs)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = self._recipe().uses_labels
        return tags


def is_degrees(graph: Any) -> bool:
    """Return whether a penalty is that of the degrees."""
    return isinstance(graph, str) and graph == DEGREES


def _least_share(rule: Any, form: GraphForm, size: float) -> float:
    """Return the share of its variance below which the form of a graph is rounding."""
    bound = _class_bound(rule)
    if bound is not None:
        return NOTHING * bound
    return ROUNDING * float(form.degrees.sum()) / size


def _class_bound(rule: Any) -> float | None:
    """Return b with ``Z'LZ <= b Z'Z`` for all rows; None if the graph is not one of classes."""
    if isinstance(rule, (BetweenClassGraph, TotalGraph, WithinClassGraph)):
        return 1.0  # their Laplacians are projectors
    if isinstance(rule, ScaledGraph):
        bound = _class_bound(rule.graph)
        return None if bound is None else rule.factor * bound
    if isinstance(rule, SumGraph):
        first, second = _class_bound(rule.first), _class_bound(rule.second)
        return None if first is None or second is None else first + second
    return None


def _degrees(intrinsic: GraphForm | None) -> Array:
    """Return the weights of the rows in the penalty of the degrees."""
    if intrinsic is None or not intrinsic.degrees.any():
        raise GraphError(
            "The penalty 'degrees' needs an intrinsic graph with edges of positive weight on these "
            "rows; use one that joins different rows (in GraphEmbedding also penalty='total')."
        )
    return intrinsic.degrees


@dataclass(frozen=True)
class Embedding:
    """Directions (columns) and the ratio of the two forms along each."""

    directions: Array
    ratios: Array


def graph_embedding(
    far: Array,
    near: Array | None,
    total: Array,
    *,
    ridge: float,
    n_components: int,
    scaling: str,
    size: float,
    far_size: float | None = None,
    least: float = 0.0,
) -> Embedding:
    """Find the directions with the largest ratio ``v'Fv / v'(N + rho I)v``.

    Parameters
    ----------
    far, near : arrays of shape (r, r)
        The forms F and N; ``near=None`` is the identity without a ridge (PCA).
    total : array of shape (r, r)
        The total scatter of the rows.
    ridge : float
        rho in units of the mean eigenvalue of N over the dimensions in which rows vary.
    n_components : int
        Fewer are returned if fewer directions have any information.
    scaling : {"penalty", "intrinsic", "unit"}
        ``v'Fv = far_size``, ``v'(N + rho I)v = size`` or ``|v| = 1``.
    size, far_size : float
        The total weight of the rows, as they are and, if not None, as they count in F.
    least : float
        Share of its variance that F must have along a direction to be more than rounding, whatever
        F is elsewhere; see `NOTHING` and `ROUNDING`.
    """
    span = span_of(total)
    if span is not None:  # elsewhere both forms are rounding, and so is their ratio
        far, total = _along(span, far), _along(span, total)
        near = None if near is None else _along(span, near)
    definite = np.eye(len(far)) if near is None else _definite(near, total, ridge)
    ratios, V = pencil_pairs(far, definite, n_components)
    spread = np.einsum("ij,ik,kj->j", V, far, V, optimize=True)
    variance = np.einsum("ij,ik,kj->j", V, total, V, optimize=True)
    share = float(np.trace(far)) / max(float(np.trace(total)), np.finfo(float).tiny)
    kept = spread > max(NOTHING * share, least) * variance
    norms = {
        "penalty": spread / (size if far_size is None else far_size),
        "intrinsic": np.full(len(ratios), 1.0 / size),
    }
    lengths = norms.get(scaling, np.einsum("ij,ij->j", V, V))[kept]
    directions = V[:, kept] / np.sqrt(lengths)
    return Embedding(directions if span is None else span @ directions, ratios[kept])


def _along(span: Array, form: Array) -> Array:
    return product(product(span.T, form), span)


def _definite(near: Array, total: Array, ridge: float) -> Array:
    if has_no_scatter(float(np.trace(near)), total):
        raise InvalidInputError(
            "The intrinsic graph has no scatter on these rows: it has no edges, or only between "
            "copies of a row (each class of LDA may have only one distinct row, or a kernel may be "
            "constant). Use a graph that joins different rows, scale the features, or use SVMPCA."
        )
    rho = ridge * float(np.trace(near)) / len(near)  # all dimensions of the span
    return np.asarray(near + rho * np.eye(len(near)))
