"""Feature maps as nodes: the linear one, and kernels rbf, poly and linear, exact or of low rank."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse

from marginfold.errors import InvalidInputError
from marginfold.feature_maps import Linear, Transformed
from marginfold.feature_maps.kernel_expansion import KernelExpansion
from marginfold.feature_maps.kernel_map import KernelMap
from marginfold.linalg.tall import Array
from marginfold.onnx.nodes import Value
from marginfold.validation.parameters import shown

EXPORTED_KERNELS = ("linear", "rbf", "poly")
"""Kernels that have nodes."""


def check_map(feature_map: Any) -> None:
    """Refuse a feature map that has no nodes."""
    if isinstance(feature_map, Linear):
        return
    if isinstance(feature_map, Transformed):
        raise InvalidInputError(
            f"ONNX export of a transformer as kernel, {shown(feature_map.transformer)}, is not "
            "possible. Put it into the pipeline as the step before, and fit the method with "
            "kernel='linear'; or fit it with 'rbf', 'poly' or LowRankKernel."
        )
    if not isinstance(feature_map, KernelMap):
        raise InvalidInputError(
            f"ONNX export of the feature map {shown(feature_map)} is not possible; fit with "
            "kernel='linear', 'rbf', 'poly', ExactKernel or LowRankKernel."
        )
    kernel = feature_map.kernel
    if not isinstance(kernel, str) or kernel not in EXPORTED_KERNELS:
        raise InvalidInputError(
            f"ONNX export knows the kernels {', '.join(EXPORTED_KERNELS)}, exact or by "
            f"LowRankKernel; got {shown(kernel)}. Fit the method with one of them."
        )
    if scipy.sparse.issparse(feature_map.training_rows_):
        raise InvalidInputError(
            "ONNX export of a kernel that was fitted to sparse rows is not possible: the model "
            "would hold them as dense ones. Fit it to X.toarray(), or with kernel='linear'."
        )


def images(x: Value, feature_map: Any, W: Array) -> Value:
    """Return ``feature_map.images(X, W)``."""
    if isinstance(feature_map, Linear):
        return (x - feature_map.mean_) @ feature_map.in_input_units(W)
    return _centred(x, feature_map) @ feature_map._mixtures(W)


def coordinates(x: Value, feature_map: Any) -> Value:
    """Return ``feature_map.coordinates(X)``."""
    if isinstance(feature_map, Linear):
        centred = x - feature_map.mean_
        return centred if feature_map.basis_ is None else centred @ feature_map.basis_
    centred = _centred(x, feature_map)
    is_expansion = isinstance(feature_map, KernelExpansion)
    return centred if is_expansion else centred @ feature_map.dual_basis_


def _centred(x: Value, feature_map: KernelMap) -> Value:
    """Return the kernel with the training rows, less its means."""
    K = _kernel(x, feature_map)
    return K - feature_map.column_means_ if feature_map.center else K


def _kernel(x: Value, feature_map: KernelMap) -> Value:
    T, gamma = feature_map.training_rows_, feature_map.gamma_
    if feature_map.kernel == "linear":
        return x @ T.T
    if feature_map.kernel == "poly":
        return (x @ (gamma * T.T) + float(feature_map.coef0)) ** feature_map.degree
    moved = x - feature_map.origin_ if np.ndim(feature_map.origin_) else x
    sizes = gamma * np.einsum("ij,ij->i", T, T)
    exponents = moved @ (2.0 * gamma * T.T) - moved.squares() * gamma - sizes
    return x.graph.node("Min", exponents, 0.0).of("Exp")
