"""Which columns move a row to where it stands in a map."""

from __future__ import annotations

from typing import Any

import numpy as np

from marginfold.linalg.tall import Array

NODES = 16
"""Points of the line from the centre to the row at which the derivative is taken.  For an rbf map
of the standardised wine data the pushes then sum to the move to 1e-14 of it."""


def row_pushes(estimator: Any, row: Array, centre: Array) -> Array:
    """Return how far each column moves a row from the image of a centre, along each component.

    With f the map, c the centre and ``x = c + d`` the row, column j pushes by

    ``d_j int_0^1 df/dx_j (c + t d) dt``,

    the derivative averaged over the line from c to x (Gauss-Legendre); pushes of all columns sum to
    ``f(x) - f(c)``.  For a linear map they are the components times ``x - c``, exactly.

    Parameters
    ----------
    estimator : fitted transformer
        With ``loadings``: any with the linear, rbf, polynomial, sigmoid or cosine kernel.
    row, centre : arrays of shape (n_features,)

    Returns
    -------
    array of shape (n_components, n_features)

    References
    ----------
    Sundararajan, Taly, Yan: Axiomatic Attribution for Deep Networks, ICML 2017, eq. (1).

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_iris
    >>> from marginfold import LSVA
    >>> from marginfold.estimators.pushes import row_pushes
    >>> X, y = load_iris(return_X_y=True)
    >>> lsva = LSVA(2).fit(X, y)
    >>> pushes = row_pushes(lsva, X[0], X.mean(axis=0))
    >>> bool(np.allclose(pushes.sum(axis=1), lsva.transform(X[:1])[0]))
    True
    """
    nodes, weights = np.polynomial.legendre.leggauss(NODES)
    line = centre + np.outer((nodes + 1) / 2, row - centre)
    slopes = np.tensordot(weights / 2, estimator.loadings(line), axes=1)
    return np.asarray(slopes * (row - centre))
