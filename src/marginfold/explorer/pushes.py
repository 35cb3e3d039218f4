"""Which columns of a table move a row on a map: of one row, and of all rows for a file."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from marginfold.explorer.methods import METHODS
from marginfold.explorer.one_file import FILE_DIGITS
from marginfold.explorer.state import ShownMap
from marginfold.linalg.tall import Array

MOST_PUSHES = 12
"""Columns that are named as moving a row."""

MOST_LEVELS = 1000
"""Words of a column whose pushes a file holds."""

ROUNDED = 1e-3
"""Share of the largest push that may be lost where a file computes it from its `FILE_DIGITS`."""

NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.IGNORECASE | re.ASCII)
"""Texts that a page reads as the number that they are here."""

NODES = 16
"""Points of the line from the centre to the row at which the derivative is taken.  For an rbf map
of the standardised wine data the pushes then sum to the move to 1e-14 of it."""


def largest_pushes(shown: ShownMap, row: int, axes: list[int]) -> list[dict[str, Any]]:
    """Return the columns that move a row from the mean along two axes, largest first."""
    table = shown.table
    centre = table.encoded[shown.rows.training].mean(axis=0)
    pushes = row_pushes(shown.fitted.estimator, table.encoded[row], centre)[axes]
    whole = {name: pushes[:, places].sum(axis=1) for name, places in _places(shown).items()}
    largest = sorted(whole, key=lambda name: -float(np.abs(whole[name]).sum()))[:MOST_PUSHES]
    values = table.row_values(row)
    return [{"name": name, "value": values[name], "push": whole[name].tolist()} for name in largest]


def column_pushes(shown: ShownMap) -> list[dict[str, Any]] | None:
    """Return how the cells of each column move rows on a linear map, for a file.

    A number moves a row by ``start + slope * number`` along each component, a word by what
    ``words`` says, an empty cell by ``words[""]``.  None where a map is not linear, or a column
    is neither of numbers nor of words.
    """
    method, estimator = METHODS.get(shown.method), shown.fitted.estimator
    if method is None or method.group != "linear" or not hasattr(estimator, "loadings"):
        return None
    table = shown.table
    centre = table.encoded[shown.rows.training].mean(axis=0)
    slopes = estimator.loadings(centre[None])[0]
    cells = np.array(table.cells(np.arange(len(table.labels)), FILE_DIGITS), dtype=object)
    names = [str(name) for name in table.opened.frame.columns]
    columns = []
    for name, places in _places(shown).items():
        moved = (table.encoded[:, places] - centre[places]) @ slopes[:, places].T
        column = _of_cells(cells[:, names.index(name)], moved)
        if column is None:
            return None
        columns.append({"name": name, **column})
    return columns


def _places(shown: ShownMap) -> dict[str, Array]:
    """Return where each column of the table stands among its numbers."""
    names = np.array(shown.table.feature_names, dtype=object)
    return {name: np.flatnonzero(names == name) for name in dict.fromkeys(names)}


def _of_cells(texts: Array, moved: Array) -> dict[str, Any] | None:
    """Return a rule from the texts of a column to how far they move a row."""
    numbers = np.array([NUMBER.fullmatch(text) is not None for text in texts])
    found: dict[str, Any] = {"words": {}}
    if numbers.any() and (numbers | (texts == "")).all():
        values, moves = texts[numbers].astype(float), moved[numbers]
        low, high = values.argmin(), values.argmax()
        range_ = values[high] - values[low]
        slope = (moves[high] - moves[low]) / range_ if range_ > 0 else np.zeros(moved.shape[1])
        start = moves[low] - slope * values[low]
        if np.abs(start + np.outer(values, slope) - moves).max() > ROUNDED * np.abs(moved).max():
            return None
        found |= {"slope": slope.tolist(), "start": start.tolist()}
        texts, moved = texts[~numbers], moved[~numbers]
    words, first, which = np.unique(texts.astype(str), return_index=True, return_inverse=True)
    if len(words) > MOST_LEVELS or (len(words) and not np.allclose(moved[first][which], moved)):
        return None
    found["words"] = dict(zip(words.tolist(), moved[first].tolist(), strict=True))
    return found


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
    >>> from marginfold.explorer.pushes import row_pushes
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
