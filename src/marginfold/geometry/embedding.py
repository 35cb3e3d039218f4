"""Graph embedding: directions in which one quadratic form is large where another is small.

The frame of Yan et al. (paper 002, section 2): maximise ``v'Fv`` for ``v'(N + rho I)v = 1``, F the
scatter of what should be far apart, N of what should stay near.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from marginfold.errors import InvalidInputError
from marginfold.geometry.metric import has_no_scatter, span_of
from marginfold.linalg import pencil_pairs
from marginfold.linalg.decompositions import product
from marginfold.linalg.tall import Array

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
        Fewer are returned if fewer carry something.
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
