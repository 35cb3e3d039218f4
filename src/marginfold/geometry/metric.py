"""Whitening by the metric ``A = a I + lam Z'LZ``: one eigendecomposition for all a and lam.

A plane has a Tikhonov term besides: `TikhonovBasis` are coordinates in which it is the identity.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from marginfold.errors import GraphError, InvalidInputError
from marginfold.graphs import GraphLike
from marginfold.linalg.decompositions import eigh, eigvalsh, product
from marginfold.linalg.tall import Array, by_columns
from marginfold.runtime.threads import threads_for
from marginfold.validation.parameters import shown

NEGATIVE_RESOLUTION = 1e-9
"""Negative eigenvalues of a scatter matrix above this share of the largest are not rounding."""

NO_SCATTER = 1e-20
"""A scatter whose trace is below this share of the total one is rounding."""

AGAINST_RIDGE = 0.02
"""What is added to the scatter of a penalty graph, as a share of its mean eigenvalue: the scatter
between classes has a rank below their number."""

RANK_RESOLUTION = 1e-13
"""Share of the total variance below which the rows do not vary in a dimension."""


@dataclass(frozen=True)
class Metric:
    """The spectrum of a scatter matrix in feature coordinates.

    Attributes
    ----------
    theta : array of shape (r,)
        Eigenvalues of ``M = Z'LZ``, not negative.
    Q : array of shape (r, r) or None
        Eigenvectors in columns; None means the identity.
    unit : float
        Mean of theta weighted by the data, ``tr(Z M Z') / tr(Z Z')``: dividing lam by it makes the
        graph weight free of units, of the number of rows and of the feature map.
    total : array of shape (r, r) or None
        The total scatter Z'Z.
    """

    theta: Array
    Q: Array | None
    unit: float
    total: Array | None = None

    @classmethod
    def euclidean(cls, n_coordinates: int) -> Self:
        """Return the metric without any graph (MMDA, plain support vector machines)."""
        return cls(theta=np.zeros(n_coordinates), Q=None, unit=1.0)

    @classmethod
    def of_scatter(cls, M: Array, total: Array, *, graph: object) -> Self:
        """Decompose ``M = Z'LZ``; ``total`` is Z'Z, ``graph`` is named in errors."""
        if not len(M):  # SciPy before 1.14 decomposes no empty matrix
            return cls(theta=np.zeros(0), Q=None, unit=0.0)
        with threads_for(len(M), len(M)):
            theta, Q = eigh(M)
        largest = max(abs(float(theta[0])), float(theta[-1]))
        if theta[0] < -NEGATIVE_RESOLUTION * largest:
            raise GraphError(
                f"The graph {graph!r} is not positive semi-definite on these rows (eigenvalue "
                f"{theta[0]:.3g} beside {theta[-1]:.3g}); its penalty would act as a reward."
            )
        size = float(np.trace(total))
        unit = float((M * (total / size)).sum()) if size > 0 else 0.0
        return cls(theta=np.maximum(theta, 0.0), Q=Q, unit=max(unit, 0.0), total=total)

    def mean(self) -> float:
        """Return the mean of theta over the dimensions in which the rows vary at all."""
        if self.total is None:
            return 0.0
        rank = rank_of(self.total)
        return float(self.theta.sum()) / rank if rank else 0.0

    def rotate_back(self, W: Array) -> Array:
        """Return directions (columns) in the coordinates of Z."""
        return W if self.Q is None else by_columns(self.Q, W)


@dataclass(frozen=True)
class Penalty:
    """What a method adds to the hinge loss: ``1/2 w'(a I + lam Z'LZ)w``.

    Attributes
    ----------
    graph : graph rule or None
        The rule for L; None leaves ``1/2 a |w|^2``.
    weight : float
        lam, or with ``normalize`` its dimensionless form.
    normalize : bool
        Whether ``weight`` is divided by the metric's unit.
    ridge : float or None
        None means a = 1 (000 eq. (2)); a number means ``a = ridge * tr(Z'LZ) / rank(Z)``.
    against : graph rule or None
        The penalty graph: Z'LZ is taken relative to its scatter, see `relative_scatter`.
    """

    graph: GraphLike | None
    weight: float = 1.0
    normalize: bool = False
    ridge: float | None = None
    against: GraphLike | None = None

    def metric(self, scatter: Array | None, total: Array) -> Metric:
        """Decompose the scatter Z'LZ of the graph (None without one); ``total`` is Z'Z."""
        if scatter is None:
            return Metric.euclidean(len(total))
        return Metric.of_scatter(scatter, total, graph=self.graph)

    def scale(self, metric: Metric) -> Array:
        """Return the diagonal of ``A^(-1/2)`` in the metric's eigenvectors."""
        a, lam = 1.0, self.weight
        if self.ridge is not None:
            a = self.ridge * metric.mean()
            if metric.total is None or has_no_scatter(metric.theta.sum(), metric.total):
                raise InvalidInputError(
                    f"The scatter of the graph {self.graph!r} is zero on these rows, so there is "
                    "no metric; every class may consist of copies of one row. Use MMDA instead."
                )
        elif self.normalize:
            lam = self.weight / metric.unit if metric.unit > 0 else 0.0
        return np.asarray(1.0 / np.sqrt(a + lam * metric.theta))  # 000 eq. (2), to the power -1/2


def relative_scatter(S: Array, against: Array, total: Array, *, graph: object) -> Array:
    """Return ``B^(-1/2) S B^(-1/2)``, B the scatter of a penalty graph with a small ridge.

    Its eigenvalues are the quotients ``w'S w / w'B w`` that graph embedding makes small (002 eqs.
    (5) and (6) with ``C = L^p``), so it is positive semi-definite if S is; ``graph`` is named in
    errors.  A scatter that is nothing beside the total one is rounding, and refused.

    Examples
    --------
    >>> import numpy as np
    >>> from marginfold.geometry.metric import relative_scatter
    >>> S, B = np.diag([2.0, 6.0]), np.diag([1.0, 3.0])
    >>> relative_scatter(S, B, total=B, graph="g").round(2)
    array([[1.92, 0.  ],
           [0.  , 1.97]])
    """
    if not len(S):
        return S
    values, Q = eigh(against)
    values = np.maximum(values, 0.0)
    if has_no_scatter(float(values.sum()), total):
        raise GraphError(
            f"The penalty graph {shown(graph)} has no scatter on these rows: it joins none that "
            "differ, or the means of all classes are equal. Use another one, such as 'total', or "
            "penalty_graph=None."
        )
    root = (Q / np.sqrt(values + AGAINST_RIDGE * values.mean())) @ Q.T
    M = root @ S @ root
    return np.asarray((M + M.T) / 2)


def rank_of(total: Array) -> int:
    """Return the number of dimensions in which rows with the total scatter Z'Z vary at all."""
    if not len(total):  # SciPy before 1.14 decomposes no empty matrix
        return 0
    variances = eigvalsh(total)
    return int(np.count_nonzero(variances > RANK_RESOLUTION * np.trace(total)))


def span_of(total: Array) -> Array | None:
    """Return an orthonormal basis of the dimensions in which rows vary, None if these are all."""
    rank = rank_of(total)
    if rank == len(total):
        return None
    return np.asarray(eigh(total)[1][:, len(total) - rank :])


def has_no_scatter(trace: float, total: Array) -> bool:
    """Return whether a scatter of this trace is nothing beside the total scatter."""
    return not trace > NO_SCATTER * float(np.trace(total))


@dataclass(frozen=True)
class TikhonovBasis:
    """Weights ``w = V v / unit`` for rows ``V'z / unit``, with the Tikhonov term ``|v|^2``.

    Attributes
    ----------
    V : array of shape (r, q) or None
        None is the identity.
    unit : float
    """

    V: Array | None
    unit: float

    def rows(self, Z: Array) -> Array:
        """Return rows in the new coordinates."""
        return np.asarray((Z if self.V is None else product(Z, self.V)) / self.unit)

    def weights(self, v: Array) -> Array:
        """Return weights (columns) in the coordinates of Z."""
        return np.asarray((v if self.V is None else self.V @ v) / self.unit)


def rkhs_basis(squares: float, size: float, normalize: bool) -> TikhonovBasis:
    """Return the coordinates for a term in the norm of w.

    Parameters
    ----------
    squares : float
        The weighted sum of the squared lengths of the rows.
    size : float
        The total weight of the rows.
    normalize : bool
        Whether rows get the mean square 1, so that they compare with the constant 1 of the offset
        in whatever units the features are.
    """
    unit = np.sqrt(squares / size) if normalize and squares > 0 else 1.0
    return TikhonovBasis(None, float(unit))


def dual_basis(total: Array, size: float, normalize: bool) -> TikhonovBasis:
    """Return the coordinates for a term in the norm of u with w = Z'u.

    The printed |u|^2 is w'(Z'Z)^+ w (003 eq. (35), errata E43): with Z'Z = Q S Q' and
    w = Q S^(1/2) v it is |v|^2.

    Parameters
    ----------
    total : array of shape (r, r)
        Z'Z, the weighted total scatter.
    size, normalize
        As in `rkhs_basis`.
    """
    rank = rank_of(total)
    if not rank:
        return rkhs_basis(float(np.trace(total)), size, normalize)
    S, Q = eigh(total)
    S, Q = S[-rank:], Q[:, -rank:]
    S_v = S / S[-1] if normalize else S
    unit = rkhs_basis(float(S @ S_v), size, normalize).unit
    return TikhonovBasis(Q * np.sqrt(S_v), unit)
