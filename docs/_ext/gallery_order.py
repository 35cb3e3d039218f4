"""The order of the gallery: from what everybody should know to what some need."""

from __future__ import annotations

ORDER = (
    "plot_map_that_fools",
    "plot_graph_test",
    "plot_more_directions",
    "plot_many_classes",
    "plot_few_rows",
    "plot_few_labels",
    "plot_planes_that_cross",
    "plot_denoising",
    "plot_loadings",
    "plot_million_rows",
    "plot_kernels_at_scale",
    "plot_search",
)
"""Scripts that come first, in this order; the others follow by their names."""


def place(filename: str) -> tuple[int, str]:
    """Return what a script is sorted by."""
    name = filename.removesuffix(".py")
    return (ORDER.index(name) if name in ORDER else len(ORDER), name)
