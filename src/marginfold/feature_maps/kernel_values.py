"""Kernels between rows: matrices of named kernels, of functions and given ones; their derivatives.

The derivatives are those of kernel sums, ``x -> sum_i c_i k(x, t_i)``, in closed form.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.metrics.pairwise import euclidean_distances, pairwise_kernels
from sklearn.preprocessing import normalize

from marginfold.errors import InvalidInputError, InvalidParameterError
from marginfold.graphs.neighbor_search import pair_distances, squared_norms
from marginfold.linalg.tall import Array, dense, row_blocks
from marginfold.validation.parameters import (
    POSITIVE_FACTOR,
    Choice,
    Either,
    shown,
)

KERNELS = ("linear", "rbf", "poly", "sigmoid", "cosine", "laplacian", "precomputed")
"""Kernel names that `ExactKernel` takes."""

GAMMA_KERNELS = ("rbf", "poly", "sigmoid", "laplacian")
"""Kernels with a parameter gamma."""

TRANSLATION_FREE = ("rbf", "laplacian")
"""Kernels of the difference between rows."""

ASYMMETRY = 1e-8
"""Largest asymmetry of a kernel of training rows, relative to its largest entry."""

GAMMA = Either(Choice("scale", "auto"), POSITIVE_FACTOR)

EPS = float(np.finfo(np.float64).eps)

LOST, VANISHED = 1e-9, -746.0
"""Rounding of an exponent that is too much, and an exponent whose power is 0."""

TILE_ROWS = 200
"""Rows of a symmetric kernel that are evaluated at a time."""


@dataclass(frozen=True)
class KernelFunction:
    """A kernel with its parameters: ``function(X, Y)`` is the matrix between their rows."""

    kernel: Any
    gamma: float
    degree: int
    coef0: float

    def __call__(self, X: Any, Y: Any) -> Array:
        """Return the kernel between the rows of X and those of Y."""
        if not (X.shape[0] and Y.shape[0]):
            return np.zeros((X.shape[0], Y.shape[0]))
        with np.errstate(over="ignore", invalid="ignore"):  # whoever uses the values looks at them
            return _called(self.kernel, X, Y) if callable(self.kernel) else self._named(X, Y)

    def _named(self, X: Any, Y: Any) -> Array:
        if self.kernel == "rbf":
            return _rbf(X, Y, self.gamma)
        parameters = {"gamma": self.gamma, "degree": self.degree, "coef0": self.coef0}
        return np.asarray(
            pairwise_kernels(X, Y, metric=self.kernel, filter_params=True, **parameters)
        )

    def symmetric(self, X: Any) -> Array:
        """Return the kernel among the rows of X, exactly symmetric, each pair evaluated once."""
        if callable(self.kernel):
            K = self(X, X)
            require_symmetry(K, f"The kernel function {shown_function(self.kernel)}")
            return symmetrised(K)
        n = X.shape[0]
        K = np.empty((n, n))
        for start in range(0, n, TILE_ROWS):
            tile = slice(start, start + TILE_ROWS)
            values = self(X[tile], X[start:])
            K[start:, tile] = values.T
            K[tile, start:] = values
        return K


def _rbf(X: Any, Y: Any, gamma: float) -> Array:
    """Return ``exp(-gamma |x - y|^2)``, by as many rows as stay in the cache."""
    sizes, others = (gamma * squared_norms(rows) for rows in (X, Y))
    if scipy.sparse.issparse(X) or scipy.sparse.issparse(Y):
        K = np.asarray(euclidean_distances(X, Y, squared=True))
        K *= -gamma
        _mend_near(K, X, Y, sizes, others, gamma)
        return np.asarray(np.exp(K, out=K))
    K = np.empty((len(X), len(Y)))
    twice = (2.0 * gamma) * Y.T
    for block in row_blocks(*K.shape):
        values = K[block]
        np.matmul(X[block], twice, out=values)
        values -= sizes[block, None]
        values -= others
        np.minimum(values, 0.0, out=values)
        _mend_near(values, X[block], Y, sizes[block], others, gamma)
        np.exp(values, out=values)
    return K


def _mend_near(exponents: Array, X: Any, Y: Any, sizes: Array, others: Array, gamma: float) -> None:
    """Compute again, from the differences, what |x|^2 - 2x'y + |y|^2 has lost between far rows."""
    share = EPS * (X.shape[1] + 2)
    if share * (sizes.max() + others.max()) <= LOST:
        return
    rounding = share * (sizes[:, None] + others)
    i, j = np.nonzero((rounding > LOST) & ~(exponents < VANISHED - rounding))
    exponents[i, j] = -gamma * pair_distances(Y, X, i, j)


def check_kernel(owner: Any) -> None:
    """Raise `InvalidParameterError` if the owner's kernel is neither a name nor a function."""
    if not callable(owner.kernel) and not Choice(*KERNELS).allows(owner.kernel):
        raise InvalidParameterError(
            f"{type(owner).__name__}: kernel must be one of {', '.join(KERNELS)}, or a function of "
            f"two matrices; got {shown(owner.kernel)}."
        )


def symmetrised(K: Array) -> Array:
    """Return the mean of a matrix and its mirror image; of a symmetric one, the matrix itself."""
    return K if np.array_equal(K, K.T) else 0.5 * (K + K.T)


def finite_peak(values: Array) -> float:
    """Return the largest size among kernel values, if all of them are finite."""
    largest = np.maximum(values.max(), -values.min())
    if not np.isfinite(largest):
        raise InvalidInputError(
            "The kernel of the training rows overflows or is not a number. Scale the rows, for "
            "example with StandardScaler, or choose a smaller gamma or degree."
        )
    return float(largest)


def resolve_gamma(gamma: Any, kernel: Any, X: Any, weights: Array) -> float:
    """Return the coefficient that a number, "scale" or "auto" stands for."""
    return known_gamma(gamma, kernel, X.shape[1], lambda: _variance(X, weights))


def known_gamma(gamma: Any, kernel: Any, n_features: int, variance: Callable[[], float]) -> float:
    """Return the coefficient for rows whose entries have a variance."""
    if not isinstance(gamma, str):
        return float(gamma)
    if gamma == "scale" and kernel in GAMMA_KERNELS:
        spread = variance()
        return 1.0 / (n_features * spread) if spread > 0 else 1.0
    return 1.0 / n_features


def square_kernel(K: Any) -> Array:
    """Return a precomputed kernel as an array, if it is square and symmetric."""
    K = dense(K)
    if K.shape[0] != K.shape[1]:
        raise InvalidInputError(
            f"A precomputed kernel must be square in fit; got shape {K.shape}. "
            "Give the kernel between all training rows."
        )
    require_symmetry(K, "A precomputed kernel")
    return K


def require_symmetry(K: Array, what: str) -> None:
    """Refuse a kernel among training rows that depends on the order of two rows."""
    difference = float(np.abs(K - K.T).max(initial=0.0))
    if difference > ASYMMETRY * float(np.abs(K).max(initial=0.0)):
        raise InvalidInputError(
            f"{what} must be symmetric in fit; entries differ by {difference:.3g} from their "
            "mirror images. Use (K + K.T) / 2 if that is what you mean."
        )


def shown_function(kernel: Any) -> str:
    """Return the name that a kernel has in code: its own, or a name to put there."""
    if isinstance(kernel, str):
        return repr(kernel)
    name = str(getattr(kernel, "__name__", ""))
    return name if name.isidentifier() else "your_kernel"


def _called(function: Any, X: Any, Y: Any) -> Array:
    try:
        K = np.asarray(function(X, Y))
    except Exception as error:
        raise InvalidInputError(
            f"The kernel function {shown_function(function)} failed on arguments of shape "
            f"{X.shape} and {Y.shape} with {type(error).__name__}: {error}. It must take two "
            "matrices and return one value for each pair of their rows."
        ) from error
    shape = (X.shape[0], Y.shape[0])
    if K.shape != shape or K.dtype.kind not in "biuf" or not np.isfinite(K).all():
        raise InvalidInputError(
            f"The kernel function returned {_kind(K)} of shape {K.shape} for {shape[0]} and "
            f"{shape[1]} rows; it must return one value per pair, a finite number."
        )
    return K.astype(np.float64)


def _kind(K: Array) -> str:
    """Say what kind of values an array holds."""
    if K.dtype.kind not in "biuf":
        return f"{K.dtype} values"
    return "numbers" if np.isfinite(K).all() else "NaN or infinite numbers"


def _variance(X: Any, weights: Array) -> float:
    """Return the weighted variance of all entries of X."""
    entries = weights.sum() * X.shape[1]
    mean = float(np.asarray(weights @ X).sum() / entries)
    if scipy.sparse.issparse(X):
        stored = X.copy()
        stored.data = np.ones_like(stored.data)
        zeros = entries - float(np.asarray(weights @ stored).sum())
        stored.data = (X.data - mean) ** 2
        return float(np.asarray(weights @ stored).sum() + zeros * mean**2) / entries
    return float((weights @ (X - mean) ** 2).sum() / entries)


def kernel_gradients(function: KernelFunction, X: Array, T: Any, C: Array) -> Array:
    """Return the derivatives of ``k(x, T) @ C`` at the rows x of X, shape (rows, k, features).

    Parameters
    ----------
    function : KernelFunction
        One that `require_gradient` lets pass.
    X : array of shape (rows, features)
    T : array or sparse matrix of shape (n, features)
    C : array of shape (n, k)
    """
    return GRADIENTS[function.kernel](function, X, T, C)


def require_gradient(kernel: Any) -> None:
    """Raise `InvalidInputError` for a kernel whose derivative is not known here."""
    if not (isinstance(kernel, str) and kernel in GRADIENTS):
        raise missing_gradient(f"The kernel {shown(kernel)}")


def missing_gradient(what: str) -> InvalidInputError:
    """Return the error that says which kernels have a derivative."""
    return InvalidInputError(
        f"{what} has no derivative in closed form at all rows; these kernels have one: "
        f"{', '.join(GRADIENTS)}. Use one of them."
    )


def _linear_gradient(function: KernelFunction, X: Array, T: Any, C: Array) -> Array:
    directions = np.asarray(T.T @ C).T
    return np.broadcast_to(directions, (len(X), *directions.shape))


def _rbf_gradient(function: KernelFunction, X: Array, T: Any, C: Array) -> Array:
    """``dk/dx = 2 gamma k (t - x)``."""
    slopes = 2.0 * function.gamma * function(X, T)
    return _along_rows(slopes, T, C) - (slopes @ C)[:, :, None] * X[:, None, :]


def _poly_gradient(function: KernelFunction, X: Array, T: Any, C: Array) -> Array:
    """``dk/dx = degree gamma (gamma x't + coef0)^(degree - 1) t``."""
    inner = function.gamma * np.asarray(X @ T.T) + function.coef0
    slopes = function.degree * function.gamma * inner ** (function.degree - 1)
    return _along_rows(slopes, T, C)


def _sigmoid_gradient(function: KernelFunction, X: Array, T: Any, C: Array) -> Array:
    """``dk/dx = gamma (1 - k^2) t``."""
    return _along_rows(function.gamma * (1.0 - function(X, T) ** 2), T, C)


def _cosine_gradient(function: KernelFunction, X: Array, T: Any, C: Array) -> Array:
    """``dk/dx = (t / |t| - k x / |x|) / |x|``."""
    sizes = np.linalg.norm(X, axis=1)
    if not sizes.all():
        raise InvalidInputError(
            f"Row {int(sizes.argmin())} is zero, where the cosine kernel has no derivative; leave "
            "such rows out."
        )
    toward = np.asarray(normalize(T).T @ C).T
    units = X / sizes[:, None]
    turned = toward - (function(X, T) @ C)[:, :, None] * units[:, None, :]
    return np.asarray(turned / sizes[:, None, None])


def _along_rows(slopes: Array, T: Any, C: Array) -> Array:
    """Return ``sum_i slopes_xi C_ij t_i``, one product for each column of C."""
    out = np.empty((len(slopes), C.shape[1], T.shape[1]))
    for j, c in enumerate(C.T):
        out[:, j] = dense((slopes * c) @ T)
    return out


Gradient = Callable[[KernelFunction, Array, Any, Array], Array]

GRADIENTS: dict[str, Gradient] = {
    "linear": _linear_gradient,
    "rbf": _rbf_gradient,
    "poly": _poly_gradient,
    "sigmoid": _sigmoid_gradient,
    "cosine": _cosine_gradient,
}
"""The kernels with a derivative in closed form."""
