"""SVMPCA: principal components as a least-squares support vector problem (paper 004).

Their number may be chosen by cross-validation.  The error of a held-out row ``x - V V'x`` can only
fall when components are added, since the row itself says where in the subspace it is (Bro,
Kjeldahl, Smilde, Kiers: Cross-validation of component models: a critical look at current methods,
Analytical and Bioanalytical Chemistry 390, 2008).  So each entry of a held-out row is predicted by
its other entries.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, Self

import numpy as np

from marginfold.errors import ExhaustedWarning, InvalidParameterError, NoDirectionError, warn
from marginfold.estimators.inputs import Coordinates, coordinates
from marginfold.estimators.projection import Projection
from marginfold.feature_maps import ExactKernel, KernelLike, Linear, resolve_feature_map
from marginfold.geometry.moments import score_signs
from marginfold.graphs.neighbor_search import distinct_rows
from marginfold.linalg import leading_pairs
from marginfold.linalg.decompositions import interruptible
from marginfold.linalg.tall import Array, dense
from marginfold.planner.check import check_memory
from marginfold.runtime.progress import report
from marginfold.runtime.threads import threads_for
from marginfold.validation.parameters import (
    Choice,
    Constraint,
    Count,
    Either,
    Flag,
    atomic_fit,
    check_parameters,
    shown,
)
from marginfold.validation.rows import read_rows, refuse_lazy
from marginfold.validation.types import Labels, Reconstruct, Rows, Weights

NO_VARIANCE = 1e-13
"""Share of the total variance below which a component has none."""

BY_CROSS_VALIDATION = "cv"
"""The value of ``n_components`` that chooses their number by held-out entries."""

CONSTRAINTS: dict[str, Constraint] = {
    "n_components": Either(Choice(None, BY_CROSS_VALIDATION), Count(1)),
    "bias": Flag(),
    "solver": Choice("auto", "primal", "dual"),
}

FOLDS = 10
"""Parts of the rows that are held out in turn; fewer if there are fewer rows."""

SEED = 0
"""Deals the rows to the folds.  Equal rows are in one fold."""

ALONE = 1e-10
"""Without noise, the other entries say nothing of one that lies in the components but for this
share: the mean predicts it."""

TIE = 1e-9
"""Errors that differ by less, relative to the least, are equal: the fewest components win."""


@dataclass(frozen=True, eq=False)
class GramMatrix:
    """``Z Z'`` as products: many rows need no matrix of rows by rows."""

    rows: Array

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return len(self.rows), len(self.rows)

    def __matmul__(self, V: Array) -> Array:
        return np.asarray(self.rows @ (self.rows.T @ V))

    def __array__(self, dtype: Any = None, copy: Any = None) -> Array:
        return np.asarray(self.rows @ self.rows.T, dtype=dtype)


class SVMPCA(Projection):
    """Principal and kernel principal components, as a support vector machine of one class.

    The paper's problem, with scores e as errors about the target 0 (004 eqs. (15) and (30)), is

    ``gamma/2 sum_k e_k^2 - 1/2 |w|^2``,    ``e_k = w'z_k + b``

    Its stationary points are the eigenvectors ``Omega_c alpha = lambda alpha`` of the centred Gram
    (kernel) matrix, with ``lambda = 1 / gamma``, ``w = sum_k alpha_k z_k`` and ``b = -w'mean``
    (eqs. (18) to (20)); the bias is what centres.  Equivalently ``C w = lambda w`` (eq. (3)).

    Parameters
    ----------
    n_components : int, None or "cv", default=2
        Number of components; None keeps all that have variance.  "cv" (linear kernel) takes the
        number with the least squared error of held-out entries: each entry of the rows of one of
        ten folds is predicted by its other entries and the components of the other folds.  (The
        paper refers to cross-validation in section 3.  The error of whole held-out rows can only
        fall with more components.)  Of 3 components hidden in 10 columns of 100 rows it finds 3 in
        three to four of five draws, else mostly 4.  By one neighbor it errs 0.6 +- 0.6 points more
        than all components and 2.4 +- 1.6 less than those with 90 % of the variance (ten tables,
        five partitions).
    kernel : str, callable, feature map or transformer, default="linear"
        "linear", "rbf", "poly", "sigmoid", "cosine", "laplacian", "precomputed", a function of two
        matrices, an `ExactKernel` with its own parameters, or any scikit-learn transformer such as
        ``Nystroem``.
    bias : bool, default=True
        Whether scores have a bias term, which centres the rows; False is the problem (5), about
        the origin.  It decides over the ``center`` of a feature map that is given.
    solver : {"auto", "primal", "dual"}, default="auto"
        The eigenvectors of the covariance of the coordinates (features x features), or of the
        Gram matrix (rows x rows).  "auto" takes the smaller one.  A kernel function has the dual
        only; a transformer such as ``Nystroem`` has both.
    reconstruct : None, "linear", "kernel_ridge", "fixed_point" or regressor, default=None
        How `inverse_transform` and `denoise` find rows for scores.  None is the affine subspace of
        the linear kernel; "linear" the least-squares map ``x = V z + delta`` of eqs. (23) to (28),
        for any subset of components; "kernel_ridge" or any regressor of scikit-learn the map h of
        eqs. (39) and (40) (the paper used a small neural network: ``MLPRegressor``);
        "fixed_point" the pre-image under an rbf kernel.

    Attributes
    ----------
    eigenvalues_ : array of shape (n_components_,)
        Eigenvalues of the Gram matrix, largest first: the sum of the squared scores.
    alphas_ : array of shape (n_samples, n_components_)
        The paper's dual vectors, of unit norm; the sum of each is 0 with a bias.  (With sample
        weights: the weighted sums, also for the scores.)
    scores_ : array of shape (n_samples, n_components_)
        The scores of the training rows, ``sqrt(eigenvalues_) alphas_``.  (Neither of the two after
        a fit on a dask collection: `transform` gives its scores.)
    explained_variance_, explained_variance_ratio_ : arrays of shape (n_components_,)
        As in scikit-learn's PCA: ``eigenvalues_ / (n - 1)`` with n the sum of the weights (divided
        by n if that is 1 or less), and as a share of the whole.
    intercepts_ : array of shape (n_components_,)
        The bias b of eq. (18), for directions of unit norm.
    components_ : array of shape (n_components_, n_features)
        Orthonormal directions, in feature coordinates if the kernel is not linear.
    mean_ : array of shape (n_features,)
        Mean of the training rows, 0 without bias (linear kernel only).
    n_components_ : int
        Number of components that have variance.
    cv_errors_ : array
        The mean squared error of a held-out entry with 0, 1, 2, ... components (only with
        ``n_components="cv"``).
    feature_map_ : object
        The fitted feature map of the kernel.
    kernel_error_ : float
        Share of the kernel's variance that a `LowRankKernel` loses; 0 for all other kernels.
    directions_ : array of shape (n_coordinates, n_components_)
        The components in the coordinates of the feature map.

    Notes
    -----
    Scores belong to directions of unit norm, as in scikit-learn's PCA and KernelPCA: their sum of
    squares is lambda.  The paper's belong to ``|alpha| = 1``, so that ``|w|^2 = lambda`` and the
    sum of squares is ``lambda^2`` (eqs. (11) and (22)): they are ``sqrt(eigenvalues_)`` times ours.
    The largest score of each component is positive.

    The "max" of (5), (15) and (30) is a stationarity condition: the quadratic is unbounded for
    ``gamma lambda > 1``, and gamma selects which component is stationary; none of them is the
    maximum that is printed.

    References
    ----------
    Suykens, Van Gestel, Vandewalle, De Moor: A Support Vector Machine Formulation to PCA Analysis
    and its Kernel Version.

    Examples
    --------
    >>> import numpy as np
    >>> from marginfold import SVMPCA
    >>> angle = np.linspace(0, 2 * np.pi, 60)
    >>> circle = np.column_stack([np.cos(angle), np.sin(angle)])
    >>> noisy = circle + 0.1 * np.random.default_rng(0).normal(size=circle.shape)
    >>> model = SVMPCA(4, kernel="rbf", reconstruct="kernel_ridge").fit(noisy)
    >>> radius = np.linalg.norm(model.denoise(noisy), axis=1)
    >>> bool(radius.std() < np.linalg.norm(noisy, axis=1).std())
    True

    The number of components by cross-validation, of 4 that are hidden in 10 columns:

    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(100, 4)) @ rng.normal(size=(4, 10)) + 0.3 * rng.normal(size=(100, 10))
    >>> SVMPCA("cv").fit(X).n_components_
    4
    """

    def __init__(
        self,
        n_components: int | Literal["cv"] | None = 2,
        *,
        kernel: KernelLike = "linear",
        bias: bool = True,
        solver: Literal["auto", "primal", "dual"] = "auto",
        reconstruct: Reconstruct = None,
    ) -> None:
        self.n_components = n_components
        self.kernel = kernel
        self.bias = bias
        self.solver = solver
        self.reconstruct = reconstruct

    def fit(self, X: Rows, y: Labels | None = None, sample_weight: Weights | None = None) -> Self:
        """Find the components.

        Parameters
        ----------
        X : array, sparse matrix, data frame, dask array or dask data frame
            Rows and features, (n_samples, n_features).  A dask collection is fitted on the current
            client of ``distributed``, without gathering it.
        y : ignored
        sample_weight : array of shape (n_samples,), optional
            A weight of 2 counts like the row given twice, a weight of 0 like no row.

        Returns
        -------
        self
        """
        check_parameters(self, CONSTRAINTS)
        self._check_reconstruct()
        options = self._map_options()
        with atomic_fit(self):
            if self.solver == "dual":
                refuse_lazy(X, "SVMPCA(solver='dual')", "use solver='primal'")
            if self.n_components == BY_CROSS_VALIDATION:
                refuse_lazy(X, "SVMPCA(n_components='cv')", "choose the number on some of the rows")
            check_memory(self, X)
            X, weights = read_rows(self, X, sample_weight)
            c = coordinates(self.kernel, X, weights, **options)
            with threads_for(len(weights), len(c.total)):
                wanted = self._number(X, weights)
                self._store(c, *self._principal(c, wanted), wanted)
                self._learn_reconstruction(X, weights)
        return self

    def _number(self, X: Any, weights: Array) -> int | None:
        """Return how many components are wanted, None for all."""
        if self.n_components != BY_CROSS_VALIDATION:
            return None if self.n_components is None else int(self.n_components)
        self.cv_errors_ = entry_errors(dense(X), weights, centred=bool(self.bias))
        best = fewest_of_the_best(self.cv_errors_)
        if not best and len(self.cv_errors_) > 1:
            warn(
                "SVMPCA: no component predicts held-out entries better than "
                f"{'their mean' if self.bias else '0'}; one is kept. The columns may be unrelated.",
                ExhaustedWarning,
            )
        return max(best, 1)

    def _map_options(self) -> dict[str, Any]:
        """Return what the feature map is told: whether to centre, and how much will be used."""
        feature_map = resolve_feature_map(self.kernel)
        if self.n_components == BY_CROSS_VALIDATION and not isinstance(feature_map, Linear):
            raise InvalidParameterError(
                f"SVMPCA: n_components='cv' holds out entries of the rows, which a kernel does not "
                f"have; got kernel={shown(self.kernel)}. Use kernel='linear', or give a number."
            )
        if not isinstance(feature_map, ExactKernel):
            known = "center" in feature_map.get_params(deep=False)
            return {"center": bool(self.bias)} if known else {}
        if self.solver == "primal":
            raise InvalidParameterError(
                "SVMPCA: solver='primal' needs explicit features, which the kernel does not have; "
                "use solver='dual', or a transformer such as Nystroem as kernel."
            )
        number: Any = self.n_components
        wanted = [rank for rank in (number, feature_map.rank) if rank is not None]
        return {"center": bool(self.bias), "rank": min(wanted, default=None)}

    def _principal(self, c: Coordinates, number: int | None) -> tuple[Array, Array]:
        """Return eigenvalues and unit directions in coordinates, by the cheaper of two routes."""
        n, r = len(c.weights), len(c.total)
        wanted = r if number is None else min(number, r)
        if self.solver == "primal" or (self.solver == "auto" and r <= n) or c.Z is None:
            return leading_pairs(c.total, wanted)  # 004 eq. (3)
        rows = np.asarray(c.Z) * np.sqrt(c.weights)[:, None]
        values, alphas = leading_pairs(GramMatrix(rows), min(wanted, n))  # eqs. (9), (20)
        positive = values > NO_VARIANCE * np.trace(c.total)
        values, alphas = values[positive], alphas[:, positive]
        return values, np.asarray(rows.T @ alphas / np.sqrt(values))  # w = sum alpha z, unit norm

    def _store(self, c: Coordinates, values: Array, W: Array, number: int | None) -> None:
        size = float(c.weights.sum())
        whole = getattr(c.feature_map, "trace_", None)
        whole = 0.0 if whole is None else whole * size / (c.weights > 0).sum()
        whole = max(whole, float(np.trace(c.total)))  # an indefinite kernel loses its negative part
        kept = values > NO_VARIANCE * whole
        if not kept.any():
            raise NoDirectionError(
                "SVMPCA: all rows are equal (or zero, without bias): there is no component."
            )
        values, W = values[kept], W[:, kept]
        if number is not None and len(values) < number:
            warn(
                f"SVMPCA found {len(values)} of {number} components: the rows do not "
                "vary in any other direction.",
                ExhaustedWarning,
            )
        W = W * score_signs(c.blocks, W)
        self._store_directions(c.feature_map, W)
        self.eigenvalues_ = values
        if c.Z is not None:
            self.scores_ = c.Z @ W
            self.alphas_ = self.scores_ / np.sqrt(values)
        self.explained_variance_ = values / (size - 1.0 if size > 1 else size)
        self.explained_variance_ratio_ = values / whole
        self.intercepts_ = np.asarray(c.feature_map.offsets(W))


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
