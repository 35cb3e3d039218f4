"""GEPSVC: proximal planes by generalised eigenvalues, the ancestor of MRGEPSVC."""

from __future__ import annotations

from typing import Any, ClassVar

from marginfold.estimators.mrgepsvm import MRGEPSVC
from marginfold.estimators.nearest_plane import NearestPlane
from marginfold.validation.parameters import Constraint


class GEPSVC(MRGEPSVC):
    """Proximal support vector classifier by generalised eigenvalues: `MRGEPSVC` without a graph.

    The plane of a class maximises ``v'Qv / v'(P + dT T)v`` over ``v = (w, b)``: far from all other
    rows (Q), close to its own (P) (003 eqs. (4) and (5), the second one corrected).

    Parameters
    ----------
    ridge, tikhonov, normalize, kernel, class_weight
        See `MRGEPSVC`.

    Attributes
    ----------
    planes_, normals_, offsets_, coef_, intercept_, eigenvalues_, classes_, feature_map_
        See `MRGEPSVC`.

    References
    ----------
    Mangasarian, Wild: Multisurface Proximal Support Vector Machine Classification via Generalized
    Eigenvalues, IEEE Transactions on Pattern Analysis and Machine Intelligence 28.

    Examples
    --------
    >>> import numpy as np
    >>> from marginfold import GEPSVC
    >>> t = np.linspace(-1, 1, 50)
    >>> X = np.vstack([np.column_stack([1 + t, t]), np.column_stack([1 + t, -t])])
    >>> y = np.repeat(["up", "down"], 50)
    >>> for plane in GEPSVC().fit(X, y).planes_:
    ...     print(plane)
    'down': +0.707 x0 +0.707 x1 -0.707 = 0
    'up': +0.707 x0 -0.707 x1 -0.707 = 0
    """

    CONSTRAINTS: ClassVar[dict[str, Constraint]] = NearestPlane.CONSTRAINTS

    graph_weight = 0.0
    graph = None
    manifold = "denominator"

    def __init__(
        self,
        *,
        ridge: float = 1e-2,
        tikhonov: str = "rkhs",
        normalize: bool = True,
        kernel: Any = "linear",
        class_weight: Any = None,
    ) -> None:
        self.ridge = ridge
        self.tikhonov = tikhonov
        self.normalize = normalize
        self.kernel = kernel
        self.class_weight = class_weight
