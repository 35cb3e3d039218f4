"""The kernel that a classifier fits: exact as long as that is cheap."""

from __future__ import annotations

from marginfold.feature_maps import KernelLike, resolve_feature_map
from marginfold.feature_maps.exact_kernel import ExactKernel
from marginfold.feature_maps.kernel_map import PARAMETERS
from marginfold.feature_maps.low_rank_kernel import LowRankKernel
from marginfold.validation.parameters import check_parameters

EXACT_ROWS = 5000
"""Rows up to which a kernel that is given by its name is exact beside a graph.

Measured on one core, 26 classes: 2 s for 3000 rows, 6 s for 5000, 20 s for 8000."""

LOW_RANK_ERROR, LARGEST_RANK = 0.05, 1000
"""Share of the kernel's variance that is given up for more rows, and the largest rank for that.

Measured on 15,000 rows of 26 classes: rank 1000 leaves 12 % of the variance and loses nothing of
the accuracy of the exact kernel."""

LOW_RANK_KERNELS = ("rbf", "poly", "laplacian", "cosine")
"""Kernels of rows that are positive semi-definite, as a low rank needs them."""


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
