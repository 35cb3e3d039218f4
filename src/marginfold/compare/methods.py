"""The methods that a comparison runs on data of a given size, with untuned defaults."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from sklearn.dummy import DummyClassifier
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
from marginfold.feature_maps import ExactKernel, LowRankKernel
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

KERNEL_COST = 10.0
"""C of kernel embeddings."""

TASKS = "one_vs_rest"
"""The papers' tasks, whatever the number of components: the first k are those of k components."""

EXACT_ROWS = 500
"""Up to this many training rows the coordinates are the leading ones of the exact kernel."""

LEAST_RANK, MOST_RANK, ROWS_PER_RANK = 150, 300, 8
"""Coordinates of a kernel; between the two a low-rank kernel has one for so many training rows.
Against 150 of the exact kernel, 300 have less error (KDA on 4500 rows 18.6 % for 20.6 %) in a
fortieth of the time.  Successive margins take the least: their time grows with the square."""

SLOW_ROWS = 2_000
"""Training rows above which methods whose time grows with the square are left out."""

MANY_CLASSES = 100
"""Classes above which methods of pairs of classes are left out: at 100 a fold of all of them takes
about 50 s, however few the rows."""

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
    seconds : float
        CPU time of one fold with all its choices, on 4500 rows, 13 columns and 5 classes.
    pair_seconds : float
        What each pair of classes adds if there are many, measured with 60 classes of 5 rows; 0 for
        methods that know no pairs.
    """

    words: str
    make: Callable[[Size], EmbeddingMethod | Candidates]
    slow: bool = False
    control: bool = False
    fit: str = ""
    seconds: float = 1.0
    pair_seconds: float = 0.0


def _rbf(size: Size, most: int = MOST_RANK) -> Any:
    if size.n_rows <= EXACT_ROWS:
        return ExactKernel("rbf", rank=min(LEAST_RANK, size.n_rows - 1))
    rank = min(max(LEAST_RANK, size.n_rows // ROWS_PER_RANK), most)
    return LowRankKernel("rbf", rank=rank)


def _twin(size: Size, C1: float) -> Any:
    return TwinSVC(C1=C1, kernel=_rbf(size))


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
        "nearest neighbors on all scaled features",
        lambda size: EmbeddingMethod(None, nested=False),
        seconds=0.07,
    ),
    "PCA": Compared(
        "directions of largest variance",
        _embedding(lambda s: SVMPCA(s.n_components)),
        fit="svmpca",
        seconds=0.5,
    ),
    "LDA": Compared("linear discriminants", _embedding(lambda s: LDA()), fit="lda", seconds=0.15),
    "LPP": Compared(
        "linear map that keeps neighbors",
        _embedding(lambda s: LPP(s.n_components)),
        fit="lpp",
        seconds=0.6,
    ),
    "MMDA": Compared(
        "successive margins",
        _embedding(lambda s: MMDA(s.n_components, tasks=TASKS)),
        fit="mmda",
        seconds=0.55,
    ),
    "LSVA": Compared(
        "successive margins with a neighbor graph",
        _embedding(lambda s: LSVA(s.n_components, tasks=TASKS), WEIGHTS),
        fit="lsva",
        seconds=1.6,
    ),
    PERMUTED_GRAPH: Compared(
        "control: the same with the graph on other rows",
        _embedding(
            lambda s: LSVA(
                s.n_components,
                graph=PermutedGraph(NeighborGraph(), s.draw),
                tasks=TASKS,
            ),
            WEIGHTS,
        ),
        control=True,
        seconds=1.6,
    ),
    "WSVDA": Compared(
        "successive margins, within-class scatter",
        _embedding(lambda s: WSVDA(s.n_components, tasks=TASKS)),
        fit="wsvda",
        seconds=0.5,
    ),
    "KPCA": Compared(
        "kernel PCA, rbf",
        _embedding(lambda s: SVMPCA(s.n_components, kernel=_rbf(s))),
        fit="svmpca --kernel rbf",
        seconds=0.6,
    ),
    "KDA": Compared(
        "kernel discriminants, rbf",
        _embedding(lambda s: LDA(shrinkage=1e-3, kernel=_rbf(s))),
        fit="kda",
        seconds=0.5,
    ),
    "KLSVA": Compared(
        "LSVA with the rbf kernel",
        _embedding(
            lambda s: LSVA(s.n_components, C=KERNEL_COST, kernel=_rbf(s, LEAST_RANK), tasks=TASKS),
            WEIGHTS,
        ),
        fit="lsva --kernel rbf -C 10",
        seconds=5.0,
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
        seconds=6.0,
    ),
    "MarginMap": Compared(
        "two-dimensional map of margins, then 5 nearest neighbors",
        _choice(
            lambda s: make_pipeline(
                MarginMap(SVC(C=KERNEL_COST), cv=3), KNeighborsClassifier(min(5, s.n_rows))
            )
        ),
        seconds=1.1,
    ),
    "SVC linear": Compared(
        "support vector machine, linear",
        _choice(lambda s, C: GESVC(C=C, graph_weight=0.0), C=COSTS),
        fit="gesvc --graph-weight 0",
        seconds=0.4,
        pair_seconds=2e-3,
    ),
    "SVC rbf": Compared(
        "support vector machine, rbf",
        _choice(lambda s, C: SVC(C=C), C=COSTS),
        fit="gesvc --kernel rbf --graph-weight 0",
        seconds=1.2,
    ),
    "GESVC": Compared(
        "support vector machine with a neighbor graph, linear",
        _choice(
            lambda s, **p: GESVC(**p),
            C=COSTS[:2],
            graph_weight=WEIGHTS,
        ),
        fit="gesvc",
        seconds=0.6,
        pair_seconds=2e-3,
    ),
    "GEPSVC": Compared(
        "nonparallel planes, linear",
        _choice(lambda s, ridge: GEPSVC(ridge=ridge), ridge=RIDGES),
        fit="gepsvc",
        seconds=0.03,
        pair_seconds=9e-4,
    ),
    "MRGEPSVC": Compared(
        "nonparallel planes with a graph, linear",
        _choice(lambda s, **p: MRGEPSVC(**p), graph_weight=WEIGHTS, ridge=RIDGES),
        fit="mrgepsvc",
        seconds=0.35,
        pair_seconds=4e-3,
    ),
    "TwinSVC": Compared(
        "twin planes by least squares, rbf",
        _choice(_twin, C1=(1.0, 10.0)),
        fit="twinsvc --kernel rbf",
        seconds=0.5,
        pair_seconds=1e-3,
    ),
    LARGEST_CLASS: Compared(
        "control: the answer is always the largest class",
        _choice(lambda s: DummyClassifier(strategy="most_frequent")),
        control=True,
        seconds=0.01,
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
    reasons = {name: _too_slow(METHODS[name], size) for name in names}
    left_out = {name: reason for name, reason in reasons.items() if reason}
    return [name for name in names if name not in left_out], left_out


def _too_slow(method: Compared, size: Size) -> str:
    """Return why a method would take too long, or nothing."""
    if method.slow and size.n_rows > SLOW_ROWS:
        return (
            f"more than {SLOW_ROWS} training rows ({size.n_rows}): its time grows with the square"
        )
    if method.pair_seconds and size.n_classes > MANY_CLASSES:
        return f"more than {MANY_CLASSES} classes ({size.n_classes}): it solves each pair of them"
    return ""


def _named(wanted: Sequence[str]) -> list[str]:
    known = {name.lower(): name for name in METHODS}
    unknown = [name for name in wanted if name.lower() not in known]
    if unknown:
        raise InvalidParameterError(
            f"Unknown methods: {', '.join(map(repr, unknown))}; choose from {', '.join(METHODS)}."
        )
    return [name for key, name in known.items() if key in {w.lower() for w in wanted}]
