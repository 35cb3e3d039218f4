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
