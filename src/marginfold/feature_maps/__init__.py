"""Feature maps: ``fit(X).transform(X) -> Z``, coordinates in which every method is linear."""

from marginfold.feature_maps.exact_kernel import ExactKernel
from marginfold.feature_maps.linear import Linear
from marginfold.feature_maps.low_rank_kernel import LowRankKernel
from marginfold.feature_maps.resolve import is_linear, is_pairwise, resolve_feature_map
from marginfold.feature_maps.transformed import Transformed

__all__ = [
    "ExactKernel",
    "Linear",
    "LowRankKernel",
    "Transformed",
    "is_linear",
    "is_pairwise",
    "resolve_feature_map",
]
