"""Tikhonov regularisation of a plane: coordinates in which its term is the identity."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg

from marginfold.geometry.metric import rank_of
from marginfold.linalg.tall import Array


@dataclass(frozen=True)
class TikhonovBasis:
    """Weights ``w = V v / unit`` for rows ``V'z / unit``, with the Tikhonov term ``|v|^2``.

    Attributes
    ----------
    V : array of shape (r, q) or None
        None is the identity.
    unit : float
    rank : int
        Dimensions in which the rows vary.
    """

    V: Array | None
    unit: float
    rank: int

    def rows(self, Z: Array) -> Array:
        """Return rows in the new coordinates."""
        return np.asarray((Z if self.V is None else Z @ self.V) / self.unit)

    def weights(self, v: Array) -> Array:
        """Return weights (columns) in the coordinates of Z."""
        return np.asarray((v if self.V is None else self.V @ v) / self.unit)


def tikhonov_basis(total: Array, size: float, tikhonov: str, normalize: bool) -> TikhonovBasis:
    """Return the coordinates for a term in the norm of w ("rkhs") or of u with w = Z'u ("dual").

    The printed |u|^2 is w'(Z'Z)^+ w (003 eq. (35), errata E43): with Z'Z = Q S Q' and
    w = Q S^(1/2) v it is |v|^2.

    Parameters
    ----------
    total : array of shape (r, r)
        Z'Z, the weighted total scatter.
    size : float
        The total weight of the rows.
    tikhonov : {"rkhs", "dual"}
    normalize : bool
        Whether rows get the mean square 1, so that they compare with the constant 1 of the offset
        in whatever units the features are.
    """
    rank = rank_of(total)
    squares, V = float(np.trace(total)), None
    if tikhonov == "dual" and rank:
        S, Q = scipy.linalg.eigh(total, check_finite=False)
        S, Q = S[-rank:], Q[:, -rank:]
        S_v = S / S[-1] if normalize else S
        squares, V = float(S @ S_v), Q * np.sqrt(S_v)
    unit = np.sqrt(squares / size) if normalize and squares > 0 else 1.0
    return TikhonovBasis(V, float(unit), rank)
