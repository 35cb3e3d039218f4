"""GainDisplay: what each component adds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Self

import numpy as np

from marginfold.errors import InvalidInputError
from marginfold.plotting.displays.rows import part_with
from marginfold.protocols.results import Series
from marginfold.runtime.extras import require
from marginfold.validation.types import Estimator, Numbers

if TYPE_CHECKING:
    from matplotlib.axes import Axes

GAIN, NEW_GAIN = "gain", "new gain"
"""Names in the legend."""


class GainDisplay:
    """The gain of each component, and what of it no earlier component has.

    The gain is relative to a constant, between 0 and 1.  Components that repeat earlier ones have
    one, but hardly a new one.

    Parameters
    ----------
    gain : array of shape (n_components,)
    new_gain : array of shape (n_components,), default=None

    Attributes
    ----------
    ax_, figure_ : matplotlib axes and figure
        Once drawn.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import scale
    >>> from marginfold import LSVA, GainDisplay
    >>> X, y = load_wine(return_X_y=True)
    >>> model = LSVA(4).fit(scale(X), y)
    >>> display = GainDisplay.from_estimator(model)
    >>> heights = [bar.get_height() for bar in display.ax_.patches[:4]]
    >>> bool((heights == model.gain_).all())
    True
    """

    def __init__(self, gain: Numbers, new_gain: Numbers | None = None) -> None:
        self.gain = gain
        self.new_gain = new_gain

    @classmethod
    def from_estimator(cls, estimator: Estimator, *, ax: Axes | None = None) -> Self:
        """Draw the gains of a fitted estimator.

        Parameters
        ----------
        estimator : fitted MMDA, LSVA, WSVDA, GESVC or LapSVC
            Or a pipeline or search with one; the machines of GESVC and LapSVC have no new gain.
        ax
            As in `plot`.

        Returns
        -------
        GainDisplay
        """
        _, fitted = part_with(estimator, "gain_")
        return cls(fitted.gain_, getattr(fitted, "new_gain_", None)).plot(ax)

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw the bars on axes of matplotlib, and return self."""
        require("matplotlib", extra="plot")
        from marginfold.plotting.displays import canvas
        from marginfold.plotting.drawing import draw_bars, style

        series = self._series()
        styled = [(bars, style(index)) for index, bars in enumerate(series)]
        with canvas.canvas(ax) as axes:
            draw_bars(axes, styled)
            canvas.label_axes(axes, "component" if len(series) > 1 else "machine", "gain")
            canvas.count_along(axes, len(series[0].x))
            axes.set_ylim(0.0, 1.0)
            keys = [(bars.name, canvas.patch(look.color)) for bars, look in styled]
            canvas.add_legend(axes, keys if len(keys) > 1 else [], own=ax is None)
        self.ax_, self.figure_ = axes, axes.figure
        return self

    def _series(self) -> Sequence[Series]:
        given = {GAIN: self.gain, NEW_GAIN: self.new_gain}
        heights = {k: np.asarray(v, dtype=np.float64) for k, v in given.items() if v is not None}
        shapes = {values.shape for values in heights.values()}
        if len(shapes) != 1 or len(next(iter(shapes))) != 1:
            raise InvalidInputError(
                "gain and new_gain must have one number for each component; got the shapes "
                f"{', '.join(map(str, sorted(shapes)))}."
            )
        places = np.arange(1.0, 1 + len(heights[GAIN]))
        return [Series(name, places, values, kind="bars") for name, values in heights.items()]
