"""GraphTestDisplay: a graph among its permutations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from marginfold.linalg.tall import Array
from marginfold.protocols.permutation import PermutationResult
from marginfold.runtime.extras import require

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FEWEST_BINS, MOST_BINS = 7, 31
"""Bars of the distribution, an odd number, about the square root of that of the permutations."""


HALF_RANGE = 0.05
"""Of scores that are all equal."""


class GraphTestDisplay:
    """Scores with permuted graphs, and those with the real graph and without one as lines.

    The sentence above the picture is the verdict of the test.

    Parameters
    ----------
    result : PermutationResult
        Of `graph_permutation_test`.

    Attributes
    ----------
    ax_, figure_ : matplotlib axes and figure
        Once drawn.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import scale
    >>> from marginfold import LPP, GraphTestDisplay, graph_permutation_test
    >>> X, y = load_wine(return_X_y=True)
    >>> result = graph_permutation_test(LPP(1), scale(X), y, cv=3, n_permutations=19)
    >>> display = GraphTestDisplay.from_result(result)
    >>> int(sum(bar.get_height() for bar in display.ax_.patches))
    19
    """

    def __init__(self, result: PermutationResult) -> None:
        self.result = result

    @classmethod
    def from_result(cls, result: PermutationResult, *, ax: Axes | None = None) -> Self:
        """Draw what a permutation test has found.

        Parameters
        ----------
        result : PermutationResult
        ax
            As in `plot`.

        Returns
        -------
        GraphTestDisplay
        """
        return cls(result).plot(ax)

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw the distribution and the lines on axes of matplotlib, and return self."""
        require("matplotlib", extra="plot")
        from marginfold.plotting.displays import canvas
        from marginfold.plotting.drawing import style

        result = self.result
        permuted = np.asarray(result.permuted_scores, dtype=np.float64)
        n_bins = int(np.clip(2 * (np.sqrt(len(permuted)) // 2) + 1, FEWEST_BINS, MOST_BINS))
        with canvas.canvas(ax) as axes:
            axes.hist(
                permuted, bins=n_bins, range=_range(permuted), color=canvas.NO_LABEL.color, zorder=2
            )
            keys: list[tuple[str, Any]] = [("permuted graphs", canvas.patch(canvas.NO_LABEL.color))]
            lines = [
                ("this graph", result.score, style(0)),
                ("no graph", result.without_graph, style(1)),
            ]
            for name, value, look in lines:
                if value is not None:
                    axes.axvline(value, color=look.color, linestyle=look.dash, zorder=3)
                    keys.append((name, canvas.line(look)))
            canvas.label_axes(axes, "held-out score", "permuted graphs")
            canvas.whole_heights(axes)
            canvas.set_title(axes, [result.verdict])
            canvas.add_legend(axes, keys, own=ax is None)
        self.ax_, self.figure_ = axes, axes.figure
        return self


def _range(values: Array) -> tuple[float, float]:
    """Return the range of values; equal ones are in the middle of theirs."""
    low, high = float(values.min()), float(values.max())
    return (low, high) if high > low else (low - HALF_RANGE, high + HALF_RANGE)
