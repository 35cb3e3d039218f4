"""The methods of paper 000 with its settings, and our readings of what it leaves open."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from marginfold.estimators.discriminant import KDA, LDA
from marginfold.estimators.eigenmaps import LaplacianEigenmaps
from marginfold.estimators.lpp import LPP
from marginfold.estimators.lsva import LSVA
from marginfold.estimators.mmda import MMDA
from marginfold.estimators.svm_pca import SVMPCA
from marginfold.feature_maps import ExactKernel
from marginfold.graphs import NeighborGraph, PermutedGraph
from marginfold.protocols.embeddings import Embedding
from marginfold.protocols.study_size import Scale
from marginfold.svm import LibSVM

COST = 100.0
"""C of 000 section IV."""

NEIGHBORS, WIDTH = 10, 2.0
"""K and 2 sigma^2 of 000 section IV."""

WEIGHTS = (0.1, 100.0)
"""The range of lambda in 000 section IV; it has 30 values, and does not say how they are spread."""

LIBSVM_GAP = 1e-3
"""Duality gap that is asked of libsvm with kernels, whose rank is n; its own criterion is 1e-6."""

Make = Callable[[Scale, int], Embedding]


@dataclass(frozen=True)
class Method:
    """A column: how it is made, which printed column it stands beside, and if as a variant."""

    make: Make
    printed: str
    variant: bool = False


def _graph() -> NeighborGraph:
    return NeighborGraph(NEIGHBORS, width=WIDTH)


def _llsva(**options: Any) -> Make:
    def make(scale: Scale, n_columns: int) -> Embedding:
        settings: dict[str, Any] = {"graph": _graph(), "class_weight": None} | options
        estimator = LSVA(n_columns, C=COST, normalize_graph=False, **settings)
        return Embedding(estimator, scale.weights(*WEIGHTS))

    return make


def _mmda(**options: Any) -> Make:
    return lambda scale, n_columns: Embedding(
        MMDA(n_columns, **({"C": COST, "class_weight": None} | options))
    )


def _rbf() -> ExactKernel:
    return ExactKernel("rbf", gamma="auto")


def _klsva(**options: Any) -> Make:
    def make(scale: Scale, n_columns: int) -> Embedding:
        settings: dict[str, Any] = {"graph": _graph(), "class_weight": None} | options
        estimator = LSVA(
            scale.n_kernel_components,
            C=COST,
            kernel=_rbf(),
            normalize_graph=False,
            solver=LibSVM(tol=LIBSVM_GAP),
            **settings,
        )
        return Embedding(estimator, scale.weights(*WEIGHTS, kernel=True))

    return make


def _kmmda(scale: Scale, n_columns: int) -> Embedding:
    solver = LibSVM(tol=LIBSVM_GAP)
    return _mmda(kernel=_rbf(), solver=solver)(scale, scale.n_kernel_components)


LINEAR: dict[str, Method] = {
    "1-NN": Method(lambda scale, d: Embedding(None, nested=False), "1-NN"),
    "LLSVA": Method(_llsva(), "LLSVA"),
    "PCA": Method(lambda scale, d: Embedding(SVMPCA(d)), "PCA"),
    "LDA": Method(lambda scale, d: Embedding(LDA()), "LDA"),
    "LPP": Method(lambda scale, d: Embedding(LPP(d, graph=_graph())), "LPP"),
    "MMDA": Method(_mmda(), "MMDA"),
    "LLSVA balanced": Method(_llsva(class_weight="balanced"), "LLSVA", variant=True),
    "MMDA balanced": Method(_mmda(class_weight="balanced"), "MMDA", variant=True),
}
"""Columns of Tables I and III, the printed ones first."""

KERNEL: dict[str, Method] = {
    "1-NN": LINEAR["1-NN"],
    "KLSVA": Method(_klsva(), "KLSVA"),
    "KPCA": Method(lambda scale, d: Embedding(SVMPCA(d, kernel=_rbf())), "KPCA"),
    "KDA": Method(lambda scale, d: Embedding(KDA(kernel=_rbf())), "KDA"),
    "LE": Method(lambda scale, d: Embedding(LaplacianEigenmaps(d, graph=_graph())), "LE"),
    "KMMDA": Method(_kmmda, "KMMDA"),
    "KLSVA balanced": Method(_klsva(class_weight="balanced"), "KLSVA", variant=True),
    "kernel LPP": Method(
        lambda scale, d: Embedding(LPP(d, graph=_graph(), kernel=_rbf())), "LE", True
    ),
}
"""Columns of Tables II and IV."""

NESTED: tuple[str, ...] = ("LLSVA", "LLSVA balanced", "MMDA", "MMDA balanced", "PCA", "LDA", "LPP")
"""Linear methods whose weight and dimension are also chosen inside the training rows."""

PERMUTED = "LLSVA permuted graph"
"""The control: the same graph on other rows."""


def permuted(scale: Scale, n_columns: int, seed: int) -> Embedding:
    """Return LLSVA with the nodes of its graph permuted: the spectrum is kept, geometry is not."""
    return _llsva(graph=PermutedGraph(_graph(), random_state=seed))(scale, n_columns)


def method(name: str) -> Method:
    """Return a method by its name."""
    return (LINEAR | KERNEL)[name]
