"""Figures as pictures: results and fitted estimators drawn with matplotlib.

`draw`, `png` and `svg` draw values of `marginfold.protocols.results`; a Display draws a fitted
estimator or a result, as those of scikit-learn do.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from marginfold.runtime.extras import require

if TYPE_CHECKING:
    from marginfold.plotting.displays import (
        EmbeddingDisplay,
        GainDisplay,
        GraphTestDisplay,
        LoadingsDisplay,
        MarginMapDisplay,
        PathDisplay,
        PlanesDisplay,
    )
    from marginfold.plotting.drawing import draw, png, svg
    from marginfold.protocols.results import scores_panel

__all__ = [
    "EmbeddingDisplay",
    "GainDisplay",
    "GraphTestDisplay",
    "LoadingsDisplay",
    "MarginMapDisplay",
    "PathDisplay",
    "PlanesDisplay",
    "draw",
    "png",
    "scores_panel",
    "svg",
]

_HOME = {
    **dict.fromkeys((name for name in __all__ if name.endswith("Display")), "plotting.displays"),
    "draw": "plotting.drawing",
    "png": "plotting.drawing",
    "scores_panel": "protocols.results",
    "svg": "plotting.drawing",
}
"""The module of each name, imported when the name is first used: a Display is a value that can be
made without matplotlib."""

_DRAWING = ("draw", "png", "svg")
"""Names whose modules need matplotlib."""


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'marginfold.plotting' has no attribute {name!r}")
    if name in _DRAWING:
        require("matplotlib", extra="plot")
    value = getattr(import_module(f"marginfold.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
