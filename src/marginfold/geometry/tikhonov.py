"""Tikhonov regularisation of a plane: coordinates in which its term is the identity."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from marginfold.geometry.metric import rank_of
from marginfold.linalg.decompositions import eigh, product
from marginfold.linalg.tall import Array


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
