"""Figures as pictures: values of `marginfold.protocols.results` drawn with matplotlib."""

try:
    import matplotlib as _  # noqa: F401 - asked for here so that its absence is explained once
except ImportError as error:
    raise ImportError(
        "marginfold.plotting needs matplotlib; install it with: pip install 'marginfold[plot]'"
    ) from error

from marginfold.plotting.drawing import draw
from marginfold.plotting.saving import png, svg

__all__ = ["draw", "png", "svg"]
