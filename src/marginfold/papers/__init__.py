"""The five papers: what is computed for each, and its tables and figures.

Each module has ``study_tasks(size, table) -> list[Task]``, ``tables(store, size) -> list[Table]``
and ``figures(store, size) -> list[Figure]``.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from marginfold.errors import InvalidParameterError

STUDIES = {
    "lsva": "000: Arvanitopoulos, Bouzas, Tefas, Laplacian Support Vector Analysis for Subspace "
    "Discriminative Learning",
    "wsvda": "001: Pitelis, Tefas, Discriminant Subspace Learning Based on Support Vectors "
    "Machines",
    "gesvm": "002: Arvanitidis, Tefas, Exploiting Graph Embedding in Support Vector Machines",
    "mrgepsvm": "003: Liang, Zhang, Xiong, Chen, Chen, Lan, Manifold Regularized Proximal Support "
    "Vector Machine via Generalized Eigenvalue",
    "svmpca": "004: Suykens, Van Gestel, Vandewalle, De Moor, A Support Vector Machine Formulation "
    "to PCA Analysis and its Kernel Version",
}
"""The papers by the name of their study."""

ABSENT_FIGURES = {
    "wsvda": {"1": "a sketch of a plane in space and of a line in that plane, without data"},
    "mrgepsvm": {
        "1": "a sketch of a support vector machine, without data",
        "2": "a sketch of a twin support vector machine, without data",
        "3": "a sketch of a point and its projection on a plane",
        "4": "a sketch of two projections; what it claims of neighbors is tested instead (E35)",
        "6": "error rates on recordings of drivers, which are not published: the paper names no "
        "source and describes neither features nor rows",
    },
    "svmpca": {
        "1": "a diagram of two targets against one",
        "3": "a diagram of the map to the feature space and to the scores (E52)",
    },
}
"""Figures of the papers that are not drawn, and why; 002 has none."""


def absent_figures(name: str) -> str:
    """Return in one sentence which figures of a paper are not drawn and why; nothing if all are.

    Examples
    --------
    >>> from marginfold.papers import absent_figures
    >>> absent_figures("wsvda")
    'Not drawn: Figure 1, a sketch of a plane in space and of a line in that plane, without data.'
    >>> absent_figures("lsva")
    ''
    """
    reasons = [f"Figure {n}, {why}" for n, why in ABSENT_FIGURES.get(name, {}).items()]
    return f"Not drawn: {'; '.join(reasons)}." if reasons else ""


def study(name: str) -> Any:
    """Return the module of a paper.

    Examples
    --------
    >>> from marginfold.papers import study
    >>> study("lsva").STUDY
    'lsva'
    """
    if name not in STUDIES:
        raise InvalidParameterError(f"{name!r} is no study; choose from {', '.join(STUDIES)}.")
    return import_module(f"marginfold.papers.{name}")
