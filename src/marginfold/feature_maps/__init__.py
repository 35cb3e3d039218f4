"""Feature maps: ``fit(X).transform(X) -> Z``, coordinates in which every method is linear."""

from __future__ import annotations

from typing import cast

from sklearn.base import clone
from sklearn.utils import get_tags

from marginfold.errors import InvalidParameterError
from marginfold.feature_maps.exact_kernel import ExactKernel
from marginfold.feature_maps.feature_map import FeatureMap, KernelLike
from marginfold.feature_maps.kernel_values import KERNELS
from marginfold.feature_maps.linear import Linear
from marginfold.feature_maps.low_rank_kernel import LowRankKernel
from marginfold.feature_maps.transformed import Transformed
from marginfold.validation.parameters import shown

__all__ = [
    "ExactKernel",
    "FeatureMap",
    "KernelLike",
    "Linear",
    "LowRankKernel",
    "Transformed",
    "is_linear",
    "is_pairwise",
    "resolve_feature_map",
]


def resolve_feature_map(kernel: KernelLike) -> FeatureMap:
    """Return an unfitted feature map: for a shorthand its defaults, for an object a clone."""
    if isinstance(kernel, str):
        if kernel == "linear":
            return Linear()
        if kernel in KERNELS:
            return ExactKernel(kernel)
    elif hasattr(kernel, "fit") and hasattr(kernel, "transform") and not isinstance(kernel, type):
        known = hasattr(kernel, "fit_coordinates")
        return cast(FeatureMap, clone(kernel)) if known else Transformed(kernel)
    elif callable(kernel) and not isinstance(kernel, type):
        return ExactKernel(kernel)
    raise InvalidParameterError(
        f"kernel must be one of {', '.join(KERNELS)}, a function of two matrices, a feature map "
        "such as ExactKernel('rbf', gamma=0.1), or a scikit-learn transformer; got "
        f"{shown(kernel)}."
    )


def is_linear(kernel: KernelLike) -> bool:
    """Return whether directions can be expressed in input features."""
    return isinstance(kernel, Linear) or (isinstance(kernel, str) and kernel == "linear")


def is_pairwise(kernel: KernelLike) -> bool:
    """Return whether X is a kernel matrix instead of features."""
    if isinstance(kernel, str):
        return kernel == "precomputed"
    if hasattr(kernel, "__sklearn_tags__") and not isinstance(kernel, type):
        return bool(get_tags(kernel).input_tags.pairwise)
    return False
