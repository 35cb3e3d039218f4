"""The catalogue of methods: each is one classifier that chooses its parameters by itself.

`procedure` returns it unfitted.  A comparison fits it to the training rows of a fold and predicts
the others; ``compare --save`` and ``fit`` fit the same object to all rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from importlib import import_module
from typing import Any

from sklearn.base import is_classifier
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import NeighborhoodComponentsAnalysis
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC

from marginfold.compare.table import MOST_COMPONENTS, Size
from marginfold.errors import InvalidParameterError
from marginfold.estimators.discriminant import LDA
from marginfold.estimators.eigenmaps import LaplacianEigenmaps
from marginfold.estimators.gesvm import GESVC, LapSVC
from marginfold.estimators.graph_embedding import GraphEmbedding
from marginfold.estimators.locally_linear import LocallyLinearEmbedding
from marginfold.estimators.lpp import LPP, NPE
from marginfold.estimators.lsva import LSVA
from marginfold.estimators.margin_map import MarginMap
from marginfold.estimators.mmda import MMDA
from marginfold.estimators.mrgepsvm import GEPSVC, MRGEPSVC
from marginfold.estimators.paths import MarginEstimator
from marginfold.estimators.svm_pca import SVMPCA
from marginfold.estimators.twinsvm import TwinSVC
from marginfold.estimators.wsvda import WSVDA
from marginfold.feature_maps import ExactKernel, LowRankKernel
from marginfold.feature_maps.feature_map import KernelName
from marginfold.graphs import NeighborGraph, PermutedGraph
from marginfold.model_selection.neighbors_classifier import NeighborsClassifier
from marginfold.model_selection.path_search import PathSearchCV
from marginfold.model_selection.subspace_search import SubspaceSearchCV

FURTHER_COMPONENTS = (15, 20, 30, 50, 100)
"""Numbers of discriminants that are tried above that, and all there are."""

NEIGHBORS = (1, 5, 15)
"""Numbers of neighbors to choose from, on embeddings and on all features."""

WEIGHTS = (0.1, 1.0, 10.0)
"""Graph weights to choose from, in units of the data."""

COSTS = (1.0, 10.0, 100.0)
"""Costs of a margin violation to choose from."""

LOGISTIC_COSTS = (0.01, 0.1, 1.0, 10.0, 100.0)
"""Costs of logistic regression to choose from."""

RIDGES = (1e-2, 1.0)
"""Ridges of planes to choose from."""

KERNEL_COST = 10.0
"""C of kernel embeddings."""

EXACT_ROWS = 500
"""Below so many rows the coordinates are the leading ones of the exact kernel."""

LEAST_RANK, MOST_RANK, ROWS_PER_RANK = 150, 300, 8
"""Coordinates of a kernel; between the two a low-rank kernel has one for so many rows.
Against 150 of the exact kernel, 300 have less error (KDA on 4500 rows 18.6 % for 20.6 %) in a
fortieth of the time.  Successive margins take the least: their time grows with the square."""

NCA_STEPS = 50
"""Iterations of NCA: its time is without bound otherwise."""

NCA_COMPONENTS = (2, 10)
"""Numbers of components of NCA to choose from: unlike those of ours each is a fit by itself."""

LOGISTIC_STEPS = 1_000
"""Iterations of logistic regression, at most."""

STOPPED_ROWS, STOPPED_CLASS = 500, 5
"""Boosting stops early, by a tenth of the rows, from so many rows on and if the smallest class has
so many: otherwise that tenth says little, or lacks a class."""


@dataclass(frozen=True)
class Compared:
    """One method of the catalogue.

    Attributes
    ----------
    words : str
        What it is.
    make : callable
        From a `Size` to the estimator with its untuned parameters: a transformer, after which the
        nearest neighbors answer, or a classifier.
    complexity : int
        How much there is to understand in its answer, one of `COMPLEXITY`: of methods that are not
        told apart the one of least complexity is the plainest, then the faster one.
    grid : mapping
        Values to choose from, by the name of the parameter.
    slow : bool
        Whether it is left out above ``plan.SLOW_ROWS``.
    control : bool
        Whether it is there to judge others by, and never recommended.
    by_default : bool
        Whether a comparison runs it without being told its name.
    needs : str
        A package that has to be installed for it.
    seconds : float
        CPU time of one fold with all its choices, on 4500 rows, 13 columns and 5 classes.
    pair_seconds : float
        What each pair of classes adds if there are many, measured with 60 and 26 classes; 0 for
        methods that know no pairs.
    """

    words: str
    make: Callable[[Size], Any]
    complexity: int
    grid: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    slow: bool = False
    control: bool = False
    by_default: bool = True
    needs: str = ""
    seconds: float = 1.0
    pair_seconds: float = 0.0


COMPLEXITY = {
    0: "the same answer for every row",
    1: "one weight for each column and class",
    2: "the most similar rows",
    3: "a linear map of the columns, then the most similar rows",
    4: "a linear map or planes of margins or graphs",
    5: "a kernel: similarities to rows take the place of the columns",
    6: "hundreds of trees",
}
"""The order of complexity, from plain to involved."""


def procedure(name: str, size: Size, fixed: Mapping[str, Any] | None = None) -> Any:
    """Return a method of the catalogue as an unfitted classifier, choices included.

    Its ``fit`` chooses parameters by folds of the rows it is given and fits the best to all of
    them.  What a comparison measures on a fold, and what is kept in the end, is this object.

    Parameters
    ----------
    name : str
        A key of `METHODS`, in any case, with blanks or hyphens.
    size : Size
        The whole table; folds of it are given the same procedure.
    fixed : mapping, optional
        Parameters of the estimator (and ``n_neighbors``, where neighbors answer) that are given and
        not chosen.

    Returns
    -------
    classifier
        `SubspaceSearchCV`, `PathSearchCV`, ``GridSearchCV`` or, without a choice, the classifier.

    Examples
    --------
    >>> from marginfold.compare.methods import procedure
    >>> from marginfold.compare.table import Size
    >>> procedure("lda", Size(150, 4, 3), {"n_neighbors": 5})
    SubspaceSearchCV(cv=StratifiedKFold(n_splits=3, random_state=0, shuffle=True),
                     error_score='raise', estimator=LDA(n_components=2),
                     n_components=[1, 2], n_neighbors=5)
    """
    found = method_named(name)
    method, given = METHODS[found], dict(fixed or {})
    estimator = method.make(size)
    by_neighbors = not is_classifier(estimator)
    neighbors = given.pop("n_neighbors", NEIGHBORS) if by_neighbors else ()
    known = estimator.get_params(deep=True)
    unknown = [parameter for parameter in given if parameter not in known]
    if unknown:
        raise InvalidParameterError(
            f"{found} has no parameter {unknown[0]}; it has {', '.join(sorted(known))}."
        )
    estimator.set_params(**given)
    grid: dict[str, Any] = {
        name: list(values) for name, values in method.grid.items() if name not in given
    }
    if by_neighbors:
        most = estimator.n_components
        dimensions = grid.pop("n_components", None) or _dimensions(most, given)
        return SubspaceSearchCV(
            estimator,
            **grid,
            n_components=sorted({min(k, most) for k in dimensions}),
            n_neighbors=neighbors,
            cv=size.folds,
            error_score="raise",
        )
    if not grid:
        return estimator
    if isinstance(estimator, MarginEstimator):
        return PathSearchCV(estimator, **grid, cv=size.folds, error_score="raise")
    return GridSearchCV(estimator, grid, cv=size.folds, error_score="raise")


def _dimensions(most: int, given: Mapping[str, Any]) -> list[int]:
    """Return the numbers of components to choose from."""
    if "n_components" in given:
        return [most]
    few = range(1, min(most, MOST_COMPONENTS) + 1)
    return sorted({*few, *(k for k in FURTHER_COMPONENTS if k < most), most})


def kernel_map(name: KernelName, size: Size, most: int = MOST_RANK) -> Any:
    """Return a kernel that is as exact as the size of the table allows."""
    if size.n_rows < EXACT_ROWS:
        return ExactKernel(name, rank=min(LEAST_RANK, size.n_rows - 1))
    rank = min(max(LEAST_RANK, size.n_rows // ROWS_PER_RANK), most)
    return LowRankKernel(name, rank=rank)


def _rbf(size: Size, most: int = MOST_RANK) -> Any:
    return kernel_map("rbf", size, most)


def _nca(size: Size) -> Any:
    return NeighborhoodComponentsAnalysis(
        size.n_components, init="pca", max_iter=NCA_STEPS, random_state=size.seed
    )


def _boosting(size: Size) -> Any:
    stops = size.n_rows >= STOPPED_ROWS and size.n_smallest >= STOPPED_CLASS
    return HistGradientBoostingClassifier(early_stopping=stops, random_state=size.seed)


def _lightgbm(size: Size) -> Any:
    boosting = import_module("lightgbm")
    return boosting.LGBMClassifier(random_state=size.seed, n_jobs=1, verbose=-1)


LARGEST_CLASS = "largest class"
"""The baseline of all methods: one that does no better has learnt nothing."""

PERMUTED_GRAPH = "LSVA permuted graph"
"""The control of LSVA."""

METHODS: dict[str, Compared] = {
    "all features": Compared(
        "nearest neighbors on all scaled features",
        lambda s: NeighborsClassifier(),
        complexity=2,
        grid={"n_neighbors": NEIGHBORS},
        seconds=0.17,
    ),
    "logistic regression": Compared(
        "logistic regression, linear",
        lambda s: LogisticRegression(max_iter=LOGISTIC_STEPS),
        complexity=1,
        grid={"C": LOGISTIC_COSTS},
        seconds=0.1,
    ),
    "PCA": Compared(
        "directions of largest variance",
        lambda s: SVMPCA(s.n_components),
        complexity=3,
        seconds=0.5,
    ),
    "LDA": Compared(
        "linear discriminants",
        lambda s: LDA(min(s.n_classes - 1, s.n_columns)),
        complexity=3,
        seconds=0.15,
    ),
    "LPP": Compared(
        "linear map that keeps neighbors",
        lambda s: LPP(s.n_components),
        complexity=4,
        seconds=0.6,
    ),
    "NPE": Compared(
        "linear map that keeps how neighbors make up a row",
        lambda s: NPE(s.n_components),
        complexity=4,
        by_default=False,
        seconds=0.6,
    ),
    "GraphEmbedding": Compared(
        "linear map of two graphs, by default that of LPP",
        lambda s: GraphEmbedding(s.n_components),
        complexity=4,
        by_default=False,
        seconds=0.6,
    ),
    "MMDA": Compared(
        "successive margins",
        lambda s: MMDA(s.n_components),
        complexity=4,
        seconds=0.55,
    ),
    "LSVA": Compared(
        "successive margins with a neighbor graph",
        lambda s: LSVA(s.n_components),
        complexity=4,
        grid={"graph_weight": WEIGHTS},
        seconds=1.6,
    ),
    PERMUTED_GRAPH: Compared(
        "control: the same with the graph on other rows",
        lambda s: LSVA(s.n_components, graph=PermutedGraph(NeighborGraph(), s.seed)),
        complexity=4,
        grid={"graph_weight": WEIGHTS},
        control=True,
        seconds=1.6,
    ),
    "WSVDA": Compared(
        "successive margins, within-class scatter",
        lambda s: WSVDA(s.n_components),
        complexity=4,
        seconds=0.5,
    ),
    "LaplacianEigenmaps": Compared(
        "coordinates of a neighbor graph",
        lambda s: LaplacianEigenmaps(s.n_components),
        complexity=5,
        by_default=False,
        seconds=2.0,
    ),
    "LocallyLinearEmbedding": Compared(
        "coordinates that keep how neighbors make up a row",
        lambda s: LocallyLinearEmbedding(s.n_components),
        complexity=5,
        by_default=False,
        seconds=3.0,
    ),
    "KPCA": Compared(
        "kernel PCA, rbf",
        lambda s: SVMPCA(s.n_components, kernel=_rbf(s)),
        complexity=5,
        seconds=0.6,
    ),
    "KDA": Compared(
        "kernel discriminants, rbf",
        lambda s: LDA(s.n_classes - 1, shrinkage=1e-3, kernel=_rbf(s)),
        complexity=5,
        seconds=0.5,
    ),
    "KLSVA": Compared(
        "LSVA with the rbf kernel",
        lambda s: LSVA(s.n_components, C=KERNEL_COST, kernel=_rbf(s, LEAST_RANK)),
        complexity=5,
        grid={"graph_weight": WEIGHTS},
        seconds=5.0,
    ),
    "NCA": Compared(
        "neighborhood components analysis, then nearest neighbors",
        _nca,
        complexity=4,
        grid={"n_components": NCA_COMPONENTS},
        slow=True,
        seconds=65.0,
    ),
    "MarginMap": Compared(
        "two-dimensional map of margins, then 5 nearest neighbors",
        lambda s: make_pipeline(MarginMap(SVC(C=KERNEL_COST), cv=3), NeighborsClassifier()),
        complexity=5,
        seconds=1.1,
    ),
    "SVC linear": Compared(
        "support vector machine, linear",
        lambda s: GESVC(graph_weight=0.0),
        complexity=1,
        grid={"C": COSTS},
        seconds=0.4,
        pair_seconds=9e-3,
    ),
    "SVC rbf": Compared(
        "support vector machine, rbf",
        lambda s: SVC(),
        complexity=5,
        grid={"C": COSTS},
        seconds=1.2,
    ),
    "GESVC": Compared(
        "support vector machine with a neighbor graph, linear",
        lambda s: GESVC(),
        complexity=4,
        grid={"C": COSTS[:2], "graph_weight": WEIGHTS},
        seconds=0.6,
        pair_seconds=1.2e-2,
    ),
    "LapSVC": Compared(
        "Laplacian support vector machine, linear",
        lambda s: LapSVC(unlabeled=None),
        complexity=4,
        grid={"C": COSTS[:2], "graph_weight": WEIGHTS},
        by_default=False,
        seconds=0.6,
        pair_seconds=1.2e-2,
    ),
    "GEPSVC": Compared(
        "nonparallel planes, linear",
        lambda s: GEPSVC(),
        complexity=4,
        grid={"ridge": RIDGES},
        seconds=0.03,
        pair_seconds=9e-4,
    ),
    "MRGEPSVC": Compared(
        "nonparallel planes with a graph, linear",
        lambda s: MRGEPSVC(),
        complexity=4,
        grid={"graph_weight": WEIGHTS, "ridge": RIDGES},
        seconds=0.35,
        pair_seconds=4e-3,
    ),
    "TwinSVC": Compared(
        "twin planes by least squares, rbf",
        lambda s: TwinSVC(kernel=_rbf(s)),
        complexity=5,
        grid={"C1": COSTS[:2]},
        seconds=0.5,
        pair_seconds=2e-3,
    ),
    "HistGradientBoosting": Compared(
        "boosted trees",
        _boosting,
        complexity=6,
        seconds=0.6,
    ),
    "LightGBM": Compared(
        "boosted trees of LightGBM",
        _lightgbm,
        complexity=6,
        needs="lightgbm",
        seconds=1.5,
    ),
    LARGEST_CLASS: Compared(
        "control: the answer is always the largest class",
        lambda s: DummyClassifier(strategy="prior"),
        complexity=0,
        control=True,
        seconds=0.01,
    ),
}
"""All methods by name, those that are alike side by side."""

ALIASES = {"svmpca": "PCA"}
"""Further names that are understood."""


def plainness(name: str) -> tuple[int, float]:
    """Return what methods are ordered by, from plain to involved: complexity, then time."""
    return METHODS[name].complexity, METHODS[name].seconds


def command_name(name: str) -> str:
    """Return the spelling of a method in commands: lower case, hyphens for blanks.

    Examples
    --------
    >>> from marginfold.compare.methods import command_name, method_named
    >>> command_name("SVC rbf"), method_named("svc-rbf")
    ('svc-rbf', 'SVC rbf')
    """
    return name.lower().replace(" ", "-")


def method_named(name: str) -> str:
    """Return the key of a method in the catalogue, for its name in any spelling."""
    known = {command_name(key): key for key in METHODS} | ALIASES
    wanted = command_name(name.strip())
    if wanted not in known:
        close = get_close_matches(wanted, known, n=1)
        meant = f"did you mean {close[0]}? " if close else ""
        names = ", ".join(map(command_name, METHODS))
        raise InvalidParameterError(f"Unknown methods: {name!r}; {meant}choose from {names}.")
    return known[wanted]
