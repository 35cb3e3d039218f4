"""Feature maps: ``fit(X).transform(X) -> Z``, coordinates in which every method is linear."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import cast
from warnings import catch_warnings, filterwarnings

from sklearn.base import clone
from sklearn.utils import get_tags

from marginfold.errors import InvalidParameterError, MarginfoldWarning
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
    "rank_of_ours",
    "resolve_feature_map",
]


EXACT_ROWS = 5000
"""Rows up to which a kernel that is given by its name is exact, where all its coordinates or those
of a graph are needed.

Measured on one core, 26 classes: `GESVC` 2 s for 3000 rows, 6 s for 5000, 20 s for 8000; `LSVA(5)`,
`KDA` and `TwinSVC` 14, 15 and 9 s for 3000 rows and n^3 beyond, with a low rank 0.8, 0.5 and 1.5 s
for 1.7, -3.9 and 0.4 points of accuracy."""

LOW_RANK_ERROR, LEAST_LIMIT, LARGEST_LIMIT, ROWS_PER_RANK = 0.05, 1000, 2000, 10
"""Share of the kernel's variance that is given up for more rows, and the largest rank for that: one
for so many rows, between two limits.

Measured with `GESVC` and C = 10: on 15,000 rows of 26 classes rank 1000 leaves 15 % of the variance
and is level with the exact kernel; on 20,000 rows of mnist ranks of 1000, 2000 and 3000 leave 41,
32 and 26 % and are 1.5, 0.9 and 0.5 points behind it, in 21, 40 and 54 s; on 6508 rows of usps
neither 2000 nor 3000 is better than 1000."""

LOW_RANK_KERNELS = ("rbf", "poly", "laplacian", "cosine")
"""Kernels of rows that are positive semi-definite, as a low rank needs them."""


def resolve_feature_map(kernel: KernelLike, n_rows: int = 0) -> FeatureMap:
    """Return an unfitted feature map: for a shorthand its defaults, for an object a clone.

    A kernel that is given by its name has a low rank for more than `EXACT_ROWS` rows.
    """
    if isinstance(kernel, str):
        if kernel == "linear":
            return Linear()
        if kernel in LOW_RANK_KERNELS and n_rows > EXACT_ROWS:
            limit = min(max(n_rows // ROWS_PER_RANK, LEAST_LIMIT), LARGEST_LIMIT)
            return LowRankKernel(kernel, tol=LOW_RANK_ERROR, max_rank=limit)
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
    """Return what a classifier fits: an `ExactKernel` of all its coordinates, or another map.

    Without a graph no coordinates are needed, so that a kernel is exact for any number of rows.
    """
    feature_map = resolve_feature_map(kernel, n_rows if graph else 0)
    if isinstance(kernel, str) and isinstance(feature_map, LowRankKernel):
        return feature_map
    if not isinstance(feature_map, ExactKernel):
        return kernel
    check_parameters(feature_map, PARAMETERS)
    return feature_map if feature_map.rank is None else kernel


@contextmanager
def rank_of_ours() -> Iterator[None]:
    """Be silent about a rank that nobody asked for: ``kernel_error_`` says what it costs."""
    with catch_warnings():
        filterwarnings("ignore", "LowRankKernel reached", MarginfoldWarning)
        yield
