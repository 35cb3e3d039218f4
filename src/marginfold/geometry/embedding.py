"""Graph embedding: directions in which one quadratic form is large where another is small.

The frame of Yan et al. (paper 002, section 2): maximise ``v'Fv`` for ``v'(N + rho I)v = 1``, F the
scatter of what should be far apart, N of what should stay near.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from marginfold.eigen import pencil_pairs
from marginfold.errors import InvalidInputError
from marginfold.geometry.metric import rank_of
from marginfold.rows import Array

NOTHING = 1e-8
"""Share of its variance, relative to the mean share, below which a direction carries nothing."""

NO_VARIANCE = 1e-13
"""Share of the total variance below which the rows do not vary along a direction."""

SCALINGS = ("penalty", "intrinsic", "unit")
"""Which form is 1 on average over the rows: far, near, or the length of a direction."""


@dataclass(frozen=True)
class Embedding:
    """Directions (columns), the ratio of the two forms along each, and how many carry nothing."""

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
        Fewer are returned if fewer carry something.
    scaling : {"penalty", "intrinsic", "unit"}
        ``v'Fv = size``, ``v'(N + rho I)v = size`` or ``|v| = 1``.
    size : float
        The total weight of the rows.
    """
    definite = np.eye(len(far)) if near is None else _definite(near, total, ridge)
    ratios, V = pencil_pairs(far, definite, n_components)
    spread = np.einsum("ij,ik,kj->j", V, far, V)
    variance = np.einsum("ij,ik,kj->j", V, total, V)
    lengths = np.einsum("ij,ij->j", V, V)
    share = float(np.trace(far)) / max(float(np.trace(total)), np.finfo(float).tiny)
    kept = (variance > NO_VARIANCE * np.trace(total) * lengths) & (
        spread > NOTHING * share * variance
    )
    norms = {"penalty": spread / size, "intrinsic": np.full(len(ratios), 1.0 / size)}
    scale = np.sqrt(norms.get(scaling, lengths)[kept])
    return Embedding(directions=V[:, kept] / scale, ratios=ratios[kept])


def _definite(near: Array, total: Array, ridge: float) -> Array:
    rank = rank_of(total)
    rho = ridge * float(np.trace(near)) / rank if rank else 0.0
    if rho <= 0:
        raise InvalidInputError(
            "The intrinsic graph has no scatter on these rows (no edges, or only between copies "
            "of a row), so that nothing is near: use more neighbors, or PCA (SVMPCA)."
        )
    return np.asarray(near + rho * np.eye(len(near)))
