"""Figures as pictures: values of `marginfold.protocols.results` drawn with matplotlib."""

from marginfold.protocols.results import scores_panel
from marginfold.runtime.extras import require

try:
    from marginfold.plotting.drawing import draw
    from marginfold.plotting.saving import png, svg
except ModuleNotFoundError:
    require("matplotlib", extra="plot")
    raise

__all__ = ["draw", "png", "scores_panel", "svg"]
