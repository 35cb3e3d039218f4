"""Feature maps: ``fit(X).transform(X) -> Z``, coordinates in which every method is linear."""

from __future__ import annotations

from typing import cast

from sklearn.base import clone
from sklearn.utils import get_tags

from marginfold.errors import InvalidParameterError
from marginfold.feature_maps.exact_kernel import ExactKernel
from marginfold.feature_maps.feature_map import FeatureMap, KernelLike
from marginfold.feature_maps.kernel_map import PARAMETERS
from marginfold.feature_maps.kernel_values import KERNELS
from marginfold.feature_maps.linear import Linear
from marginfold.feature_maps.low_rank_kernel import LowRankKernel
from marginfold.feature_maps.transformed import Transformed
from marginfold.validation.parameters import check_parameters, shown

__all__ = [
    "ExactKernel",
    "FeatureMap",
    "KernelLike",
    "Linear",
    "LowRankKernel",
    "Transformed",
    "affordable_kernel",
    "is_linear",
    "is_pairwise",
    "resolve_feature_map",
]


EXACT_ROWS = 5000
"""Rows up to which a kernel that is given by its name is exact beside a graph.

Measured on one core, 26 classes: 2 s for 3000 rows, 6 s for 5000, 20 s for 8000."""

LOW_RANK_ERROR, LARGEST_RANK = 0.05, 1000
"""Share of the kernel's variance that is given up for more rows, and the largest rank for that.

Measured on 15,000 rows of 26 classes: rank 1000 leaves 12 % of the variance and loses nothing of
the accuracy of the exact kernel."""

LOW_RANK_KERNELS = ("rbf", "poly", "laplacian", "cosine")
"""Kernels of rows that are positive semi-definite, as a low rank needs them."""


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


def affordable_kernel(kernel: KernelLike, n_rows: int, *, graph: bool) -> KernelLike:
    """Return what to fit: an `ExactKernel` of all its coordinates, or another feature map.

    A kernel that is given by its name has a low rank if a graph joins more than `EXACT_ROWS` rows.
    """
    if graph and isinstance(kernel, str) and kernel in LOW_RANK_KERNELS and n_rows > EXACT_ROWS:
        return LowRankKernel(kernel, tol=LOW_RANK_ERROR, max_rank=LARGEST_RANK)
    feature_map = resolve_feature_map(kernel)
    if not isinstance(feature_map, ExactKernel):
        return kernel
    check_parameters(feature_map, PARAMETERS)
    return feature_map if feature_map.rank is None else kernel
