"""The methods that a comparison runs on data of a given size, with untuned defaults."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from sklearn.dummy import DummyClassifier
from sklearn.kernel_approximation import Nystroem
from sklearn.neighbors import KNeighborsClassifier, NeighborhoodComponentsAnalysis
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC

from marginfold.errors import InvalidParameterError
from marginfold.estimators.discriminant import LDA
from marginfold.estimators.gesvm import GESVC
from marginfold.estimators.lpp import LPP
from marginfold.estimators.lsva import LSVA
from marginfold.estimators.margin_map import MarginMap
from marginfold.estimators.mmda import MMDA
from marginfold.estimators.mrgepsvm import GEPSVC, MRGEPSVC
from marginfold.estimators.svm_pca import SVMPCA
from marginfold.estimators.twinsvm import TwinSVC
from marginfold.estimators.wsvda import WSVDA
from marginfold.feature_maps import ExactKernel
from marginfold.graphs import NeighborGraph, PermutedGraph
from marginfold.protocols.embeddings import EmbeddingMethod

MOST_COMPONENTS = 10
"""Components of an embedding, at most."""

WEIGHTS = (0.1, 1.0, 10.0)
"""Graph weights to choose from, in units of the data."""

COSTS = (1.0, 10.0, 100.0)
"""Costs of a margin violation to choose from."""

RIDGES = (1e-2, 1.0)
"""Ridges of planes to choose from."""

PLANES = "one_vs_rest"
"""Planes of several classes: one for each class."""

LINEAR_COST = 1.0
"""C of linear embeddings."""

KERNEL_COST = 10.0
"""C of kernel embeddings."""

TASKS = "one_vs_rest"
"""The papers' tasks, whatever the number of components: the first k are those of k components."""

KERNEL_RANK = 150
"""Coordinates of a kernel."""

EXACT_ROWS = 2_000
"""Up to this many training rows the coordinates are the leading ones of the exact kernel."""

SLOW_ROWS = 2_000
"""Training rows above which methods whose time grows with the square are left out."""

NCA_STEPS = 50
"""Iterations of NCA: its time is without bound otherwise."""


@dataclass(frozen=True)
class Size:
    """What methods are made for: training rows, columns, classes, and a number for draws."""

    n_rows: int
    n_columns: int
    n_classes: int
    draw: int = 0

    @property
    def n_components(self) -> int:
        """Components to ask for."""
        return min(self.n_columns, MOST_COMPONENTS)


@dataclass(frozen=True)
class Candidates:
    """Classifiers that differ in their parameters: one is chosen inside the training rows."""

    estimators: Sequence[Any]
    params: Sequence[dict[str, Any]]


@dataclass(frozen=True)
class Compared:
    """One method of a comparison.

    Attributes
    ----------
    words : str
        What it is.
    make : callable
        From a `Size` to an `EmbeddingMethod` or `Candidates`.
    slow : bool
        Whether it is left out above `SLOW_ROWS`.
    fit : str
        Options of `marginfold fit` for the method with its defaults; empty if it has none.
    control : bool
        Whether it is there to judge others by, and never recommended.
    """

    words: str
    make: Callable[[Size], EmbeddingMethod | Candidates]
    slow: bool = False
    control: bool = False
    fit: str = ""


def _rbf(size: Size) -> Any:
    rank = min(KERNEL_RANK, size.n_rows - 1)
    if size.n_rows <= EXACT_ROWS:
        return ExactKernel("rbf", rank=rank)
    return Nystroem(n_components=rank, random_state=0)


def _twin(size: Size, C1: float) -> Any:
    return TwinSVC(C1=C1, ridge=1e-2, multiclass=PLANES, kernel=_rbf(size))


def _embedding(make: Callable[[Size], Any], weights: Sequence[float] = ()) -> Any:
    return lambda size: EmbeddingMethod(make(size), weights)


def _choice(make: Callable[..., Any], **grid: Sequence[Any]) -> Any:
    """Return candidates over the product of one or two parameters."""
    params: list[dict[str, Any]] = [{}]
    for name, values in grid.items():
        params = [p | {name: value} for p in params for value in values]
    return lambda size: Candidates([make(size, **p) for p in params], params)


LARGEST_CLASS = "largest class"
"""The baseline of all methods: one that does no better has learnt nothing."""

PERMUTED_GRAPH = "LSVA permuted graph"
"""The control of LSVA."""

METHODS: dict[str, Compared] = {
    "all features": Compared(
        "nearest neighbors on all scaled features", lambda size: EmbeddingMethod(None, nested=False)
    ),
    "PCA": Compared(
        "directions of largest variance", _embedding(lambda s: SVMPCA(s.n_components)), fit="svmpca"
    ),
    "LDA": Compared("linear discriminants", _embedding(lambda s: LDA()), fit="lda"),
    "LPP": Compared(
        "linear map that keeps neighbors", _embedding(lambda s: LPP(s.n_components)), fit="lpp"
    ),
    "MMDA": Compared(
        "successive margins",
        _embedding(lambda s: MMDA(s.n_components, C=LINEAR_COST, tasks=TASKS)),
        fit="mmda -C 1",
    ),
    "LSVA": Compared(
        "successive margins with a neighbor graph",
        _embedding(lambda s: LSVA(s.n_components, C=LINEAR_COST, tasks=TASKS), WEIGHTS),
        fit="lsva -C 1",
    ),
    PERMUTED_GRAPH: Compared(
        "control: the same with the graph on other rows",
        _embedding(
            lambda s: LSVA(
                s.n_components,
                C=LINEAR_COST,
                graph=PermutedGraph(NeighborGraph(), s.draw),
                tasks=TASKS,
            ),
            WEIGHTS,
        ),
        control=True,
    ),
    "WSVDA": Compared(
        "successive margins, within-class scatter",
        _embedding(lambda s: WSVDA(s.n_components, C=LINEAR_COST, tasks=TASKS)),
        fit="wsvda",
    ),
    "KPCA": Compared(
        "kernel PCA, rbf",
        _embedding(lambda s: SVMPCA(s.n_components, kernel=_rbf(s))),
        fit="svmpca --kernel rbf",
    ),
    "KDA": Compared(
        "kernel discriminants, rbf",
        _embedding(lambda s: LDA(shrinkage=1e-3, kernel=_rbf(s))),
        fit="kda",
    ),
    "KLSVA": Compared(
        "LSVA with the rbf kernel",
        _embedding(
            lambda s: LSVA(s.n_components, C=KERNEL_COST, kernel=_rbf(s), tasks=TASKS), WEIGHTS
        ),
        fit="lsva --kernel rbf -C 10",
    ),
    "NCA": Compared(
        "neighborhood components analysis, then the nearest neighbor",
        _choice(
            lambda s: make_pipeline(
                NeighborhoodComponentsAnalysis(s.n_components, max_iter=NCA_STEPS, random_state=0),
                KNeighborsClassifier(1),
            )
        ),
        slow=True,
    ),
    "MarginMap": Compared(
        "two-dimensional map of margins, then 5 nearest neighbors",
        _choice(
            lambda s: make_pipeline(
                MarginMap(SVC(C=KERNEL_COST), cv=3), KNeighborsClassifier(min(5, s.n_rows))
            )
        ),
    ),
    "SVC linear": Compared(
        "support vector machine, linear",
        _choice(lambda s, C: GESVC(C=C, graph_weight=0.0), C=COSTS),
        fit="gesvc --graph-weight 0",
    ),
    "SVC rbf": Compared(
        "support vector machine, rbf",
        _choice(lambda s, C: SVC(C=C), C=COSTS),
        fit="gesvc --kernel rbf --graph-weight 0",
    ),
    "GESVC": Compared(
        "support vector machine with a neighbor graph, linear",
        _choice(lambda s, **p: GESVC(**p), C=COSTS[:2], graph_weight=WEIGHTS),
        fit="gesvc",
    ),
    "GEPSVC": Compared(
        "nonparallel planes, linear",
        _choice(lambda s, ridge: GEPSVC(ridge=ridge, multiclass=PLANES), ridge=RIDGES),
        fit="gepsvc",
    ),
    "MRGEPSVC": Compared(
        "nonparallel planes with a graph, linear",
        _choice(
            lambda s, **p: MRGEPSVC(multiclass=PLANES, **p), graph_weight=WEIGHTS, ridge=RIDGES
        ),
        fit="mrgepsvc",
    ),
    "TwinSVC": Compared(
        "twin planes by least squares, rbf",
        _choice(_twin, C1=(1.0, 10.0)),
        fit="twinsvc --kernel rbf",
    ),
    LARGEST_CLASS: Compared(
        "control: the answer is always the largest class",
        _choice(lambda s: DummyClassifier(strategy="most_frequent")),
        control=True,
    ),
}
"""All methods by name, plain ones first."""


def suitable(size: Size, wanted: Sequence[str] | None = None) -> tuple[list[str], dict[str, str]]:
    """Return the methods to run, and those left out with the reason.

    Parameters
    ----------
    size : Size
    wanted : sequence of str, optional
        Names in any case; all suitable ones by default. The largest class is always there.
    """
    names = _named([*wanted, LARGEST_CLASS]) if wanted else list(METHODS)
    left_out = {
        name: f"more than {SLOW_ROWS} training rows ({size.n_rows}): its time grows with the square"
        for name in names
        if METHODS[name].slow and size.n_rows > SLOW_ROWS
    }
    return [name for name in names if name not in left_out], left_out


def _named(wanted: Sequence[str]) -> list[str]:
    known = {name.lower(): name for name in METHODS}
    unknown = [name for name in wanted if name.lower() not in known]
    if unknown:
        raise InvalidParameterError(
            f"Unknown methods: {', '.join(map(repr, unknown))}; choose from {', '.join(METHODS)}."
        )
    return [name for key, name in known.items() if key in {w.lower() for w in wanted}]
