"""Derivatives of kernel sums, ``x -> sum_i c_i k(x, t_i)``, in closed form."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.preprocessing import normalize

from marginfold.errors import InvalidInputError
from marginfold.feature_maps.kernel_values import KernelFunction
from marginfold.linalg.tall import Array, dense
from marginfold.validation.parameters import shown

Gradient = Callable[[KernelFunction, Array, Any, Array], Array]


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


def _linear(function: KernelFunction, X: Array, T: Any, C: Array) -> Array:
    directions = np.asarray(T.T @ C).T
    return np.broadcast_to(directions, (len(X), *directions.shape))


def _rbf(function: KernelFunction, X: Array, T: Any, C: Array) -> Array:
    """``dk/dx = 2 gamma k (t - x)``."""
    slopes = 2.0 * function.gamma * function(X, T)
    return _along_rows(slopes, T, C) - (slopes @ C)[:, :, None] * X[:, None, :]


def _poly(function: KernelFunction, X: Array, T: Any, C: Array) -> Array:
    """``dk/dx = degree gamma (gamma x't + coef0)^(degree - 1) t``."""
    inner = function.gamma * np.asarray(X @ T.T) + function.coef0
    slopes = function.degree * function.gamma * inner ** (function.degree - 1)
    return _along_rows(slopes, T, C)


def _sigmoid(function: KernelFunction, X: Array, T: Any, C: Array) -> Array:
    """``dk/dx = gamma (1 - k^2) t``."""
    return _along_rows(function.gamma * (1.0 - function(X, T) ** 2), T, C)


def _cosine(function: KernelFunction, X: Array, T: Any, C: Array) -> Array:
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


GRADIENTS: dict[str, Gradient] = {
    "linear": _linear,
    "rbf": _rbf,
    "poly": _poly,
    "sigmoid": _sigmoid,
    "cosine": _cosine,
}
"""The kernels with a derivative in closed form."""
