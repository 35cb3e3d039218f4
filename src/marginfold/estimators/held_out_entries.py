"""The number of principal components by cross-validation: entries are held out, not only rows.

The error of a held-out row ``x - V V'x`` can only fall when components are added, since the row
itself says where in the subspace it is (Bro, Kjeldahl, Smilde, Kiers: Cross-validation of component
models: a critical look at current methods, Analytical and Bioanalytical Chemistry 390, 2008).  Here
each entry of a held-out row is predicted by its other entries.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from marginfold.graphs.neighbor_search import distinct_rows
from marginfold.linalg.decompositions import interruptible
from marginfold.linalg.tall import Array
from marginfold.runtime.progress import report

FOLDS = 10
"""Parts of the rows that are held out in turn; fewer if there are fewer rows."""

SEED = 0
"""Deals the rows to the folds.  Equal rows are in one fold."""

NO_VARIANCE = 1e-13
"""Share of the total variance below which a component has none."""

ALONE = 1e-10
"""Without noise, the other entries say nothing of one that lies in the components but for this
share: the mean predicts it."""

TIE = 1e-9
"""Errors that differ by less, relative to the least, are equal: the fewest components win."""


def entry_errors(X: Array, weights: Array, *, centred: bool) -> Array:
    """Return the mean squared error of held-out entries for 0, 1, 2, ... components.

    The other rows have the covariance ``S = V D V' + s (I - V V')`` with k components V, their
    variances D and the mean variance s of all other directions (probabilistic PCA).  Given the
    other entries, the error of the mean of ``x_j`` is ``(S^-1 x)_j / (S^-1)_jj``; x is the row
    without the mean of the other rows if ``centred``.

    Parameters
    ----------
    X : array of shape (n, d)
    weights : array of shape (n,)
        Weight 2 is the row twice, weight 0 the row absent.
    centred : bool

    Returns
    -------
    array of shape (most + 1,)
        ``most`` is the largest number of components that every part of the rows has, less than d.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> rows = rng.normal(size=(60, 2)) @ rng.normal(size=(2, 6)) + 0.1 * rng.normal(size=(60, 6))
    >>> int(entry_errors(rows, np.ones(60), centred=True).argmin())
    2
    """
    nodes = distinct_rows(X, weights)
    rows, mass = X[nodes.rows], nodes.mass
    n_folds = min(FOLDS, len(rows))
    folds = np.random.default_rng(SEED).permutation(len(rows)) % max(n_folds, 1)
    parts = []
    for fold in range(n_folds if n_folds > 1 else 0):
        report("folds", fold, n_folds)
        parts.append(_fold_errors(rows, mass, folds == fold, centred))
    most = min((len(part) for part in parts), default=1)
    total = np.sum([part[:most] for part in parts], axis=0) if parts else np.zeros(most)
    return np.asarray(total / (mass.sum() * X.shape[1]))


def _fold_errors(rows: Array, mass: Array, held: Array, centred: bool) -> Array:
    """Return the squared errors of the entries of the rows that are held out, summed."""
    known, n_columns = mass[~held], rows.shape[1]
    mean = known @ rows[~held] / known.sum() if centred else np.zeros(n_columns)
    A = (rows[~held] - mean) * np.sqrt(known)[:, None]
    _, sizes, loadings = interruptible(partial(np.linalg.svd, A, full_matrices=False))
    variances, x = sizes**2, rows[held] - mean
    varying = np.count_nonzero(variances > NO_VARIANCE * variances.sum())
    left, share = x.copy(), np.ones(n_columns)  # x - V V'x and 1 - (V V')_jj
    whitened, leverage = np.zeros_like(x), np.zeros(n_columns)  # V D^-1 V'x and (V D^-1 V')_jj
    errors = [mass[held] @ (x**2).sum(axis=1)]
    for k in range(min(varying, n_columns - 1)):
        v, score = loadings[k], x @ loadings[k]
        left -= np.outer(score, v)
        share -= v**2
        whitened += np.outer(score / variances[k], v)
        leverage += v**2 / variances[k]
        noise = variances[k + 1 :].sum() / (n_columns - k - 1)
        told = share + noise * leverage
        alone = told <= ALONE
        error = np.where(alone, x, (left + noise * whitened) / np.where(alone, 1.0, told))
        errors.append(mass[held] @ (error**2).sum(axis=1))
    return np.asarray(errors)


def fewest_of_the_best(errors: Array) -> int:
    """Return the least number whose error is the smallest, up to rounding."""
    return int(np.flatnonzero(errors <= (1.0 + TIE) * errors.min())[0])
