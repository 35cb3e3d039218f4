"""Held-out scores: PathDisplay along a parameter, GraphTestDisplay among permuted graphs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils import column_or_1d

from marginfold.errors import InvalidInputError
from marginfold.linalg.tall import Array
from marginfold.plotting.displays.rows import images_of, marker_of, two_sides
from marginfold.protocols.cells import PERCENT
from marginfold.protocols.held_out import HEAD, errors_by_dimension
from marginfold.protocols.permutation import PermutationResult
from marginfold.protocols.results import Series
from marginfold.runtime.extras import require
from marginfold.validation.parameters import shown
from marginfold.validation.rows import is_unlabelled
from marginfold.validation.types import Estimator, HeldOut, Labels, Numbers, Rows

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ERROR, SCORE = "held-out error %", "held-out score"
"""What is drawn: errors, or the scores of a search that was told to look at something else."""

FEWEST_BINS, MOST_BINS = 7, 31
"""Bars of the distribution, an odd number, about the square root of that of the permutations."""


HALF_RANGE = 0.05
"""Of scores that are all equal."""


class PathDisplay:
    """The held-out error for each value of a parameter; the chosen one is marked.

    Parameters
    ----------
    values : array of shape (n_values,)
        Of the parameter, in any order.
    measured : array of shape (n_values,)
        Held-out errors in percent, or scores.
    spread : array of shape (n_values,), default=None
        Their standard deviations, drawn as a band.
    chosen : float, default=None
        The value that is marked.
    parameter : str, default="graph_weight"
        Its name, for the label.
    measure : str, default="held-out error %"
        What was measured, for the label.

    Attributes
    ----------
    ax_, figure_ : matplotlib axes and figure
        Once drawn.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import scale
    >>> from marginfold import LSVA, PathDisplay, SubspaceSearchCV
    >>> X, y = load_wine(return_X_y=True)
    >>> search = SubspaceSearchCV(LSVA(3), graph_weight=[0.01, 0.1, 1, 10]).fit(scale(X), y)
    >>> display = PathDisplay.from_estimator(search)
    >>> bool(display.chosen == search.best_params_["graph_weight"])
    True
    """

    def __init__(
        self,
        values: Numbers,
        measured: Numbers,
        *,
        spread: Numbers | None = None,
        chosen: float | None = None,
        parameter: str = "graph_weight",
        measure: str = "held-out error %",
    ) -> None:
        self.values = values
        self.measured = measured
        self.spread = spread
        self.chosen = chosen
        self.parameter = parameter
        self.measure = measure

    @classmethod
    def from_estimator(
        cls, search: Estimator, *, parameter: str = "graph_weight", ax: Axes | None = None
    ) -> Self:
        """Draw what a search has found for one parameter, with the others as it chose them.

        Parameters
        ----------
        search : fitted SubspaceSearchCV, PathSearchCV or GridSearchCV
            The measure is the error if it looked at the accuracy, otherwise its score; the band
            is the standard deviation over the folds.
        parameter : str, default="graph_weight"
            Of a pipeline, the step's name may be left out.
        ax
            As in `plot`.

        Returns
        -------
        PathDisplay
        """
        if not hasattr(search, "cv_results_") or not hasattr(search, "best_index_"):
            raise InvalidInputError(
                f"got {shown(search)}; it needs a fitted search, such as SubspaceSearchCV or "
                "PathSearchCV. Of fits without a search use PathDisplay.from_path."
            )
        results, best = search.cv_results_, int(search.best_index_)
        candidates = results["params"]
        name = _name_of(parameter, candidates[best])
        others = {key: value for key, value in candidates[best].items() if key != name}
        same = [
            i
            for i, candidate in enumerate(candidates)
            if all(candidate.get(key) == value for key, value in others.items())
        ]
        metric, scoring = _metric_of(search), getattr(search, "scoring", None)
        mean, deviation = (
            np.asarray(results[f"{part}_test_{metric}"])[same] for part in ("mean", "std")
        )
        plain = scoring is None and is_classifier(search)
        accuracy = plain or "accuracy" in (metric, scoring)
        return cls(
            [candidates[i][name] for i in same],
            PERCENT * (1.0 - mean) if accuracy else mean,
            spread=PERCENT * deviation if accuracy else deviation,
            chosen=candidates[best][name],
            parameter=parameter,
            measure=ERROR if accuracy else SCORE,
        ).plot(ax)

    @classmethod
    def from_path(
        cls,
        fits: Sequence[Estimator],
        X: Rows,
        y: Labels,
        *,
        held_out: HeldOut,
        parameter: str = "graph_weight",
        ax: Axes | None = None,
    ) -> Self:
        """Draw the error of fits that differ in one parameter, such as those of `path`.

        Parameters
        ----------
        fits : sequence of fitted estimators
            Of `path` or `LSVA.fit_path`.  A classifier predicts the held-out rows; of a
            transformer the nearest training row does, in all of its components.
        X, y : rows and labels
            Those that the fits have seen.
        held_out : pair (X, y)
            Rows that they have not seen, and their labels.
        parameter : str, default="graph_weight"
            Of fits that differ in others, too, those are drawn that have them as the best fit has.
        ax
            As in `plot`.

        Returns
        -------
        PathDisplay
            The smallest error is marked, the first of equal ones; the band is its standard error.
            An error that chose a value is no estimate of how it does on further rows.

        Examples
        --------
        >>> from sklearn.datasets import load_wine
        >>> from sklearn.preprocessing import scale
        >>> from marginfold import GESVC, PathDisplay, path
        >>> X, y = load_wine(return_X_y=True)
        >>> X = scale(X)
        >>> fits = path(GESVC(), X[::2], y[::2], graph_weight=[0.1, 1, 10])
        >>> display = PathDisplay.from_path(fits, X[::2], y[::2], held_out=(X[1::2], y[1::2]))
        >>> display.ax_.get_ylabel()
        'held-out error %'
        """
        sides = two_sides(X, y, held_out)
        if not len(fits) or len(sides) != 2 or y is None:
            raise InvalidInputError(
                "from_path needs at least one fitted estimator, y, and held_out=(X, y); got "
                f"{len(fits)} fits and held_out={shown(held_out)}."
            )
        errors = np.array([_error(fitted, *sides) for fitted in fits])
        points = [fitted.get_params() for fitted in fits]
        best = points[int(errors.argmin())]
        name = _name_of(parameter, best)
        varying = {"C", "graph_weight"} & set(best) - {name}
        same = [i for i, p in enumerate(points) if all(p[key] == best[key] for key in varying)]
        shares = errors[same]
        return cls(
            [points[i][name] for i in same],
            PERCENT * shares,
            spread=PERCENT * np.sqrt(shares * (1 - shares) / len(sides[1][1])),
            chosen=best[name],
            parameter=parameter,
        ).plot(ax)

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw the curve on axes of matplotlib, and return self."""
        require("matplotlib", extra="plot")
        from marginfold.plotting.displays import canvas
        from marginfold.plotting.drawing import draw_lines, style

        line = self._line()
        with canvas.canvas(ax) as axes:
            draw_lines(axes, [(line, style(0))])
            canvas.spread_weights(axes, line.x)
            canvas.label_axes(axes, self.parameter, self.measure)
            if self.measure == ERROR:
                axes.set_ylim(bottom=max(0.0, axes.get_ylim()[0]))
            if self.chosen is not None:
                at = float(line.y[line.x == float(self.chosen)][0])
                axes.plot([self.chosen], [at], "o", color=style(1).color, markersize=7, zorder=4)
                unit = " %" if self.measure == ERROR else ""
                key = (
                    f"chosen {float(self.chosen):.3g}: {at:.3g}{unit}",
                    canvas.point(style(1), True),
                )
                canvas.add_legend(axes, [key], own=ax is None)
        self.ax_, self.figure_ = axes, axes.figure
        return self

    def _line(self) -> Series:
        """Return the curve with its values in order."""
        given = [self.values, self.measured, *([] if self.spread is None else [self.spread])]
        try:
            arrays = [np.asarray(each, dtype=np.float64) for each in given]
        except (TypeError, ValueError) as error:
            raise InvalidInputError(
                f"{self.parameter} must have numbers along a path; got {shown(self.values)}."
            ) from error
        if len({array.shape for array in arrays}) != 1 or arrays[0].ndim != 1:
            raise InvalidInputError(
                "values, measured and spread must be as many; got the shapes "
                f"{', '.join(str(array.shape) for array in arrays)}."
            )
        if self.chosen is not None and float(self.chosen) not in arrays[0]:
            raise InvalidInputError(
                f"chosen must be one of the values {shown(self.values)}; got {shown(self.chosen)}."
            )
        x, y, *spread = (array[np.argsort(arrays[0], kind="stable")] for array in arrays)
        return Series("", x, y, spread[0] if spread else None)


def _name_of(parameter: str, params: dict[str, Any]) -> str:
    """Return the full name of a parameter among those that were tried."""
    for name in params:
        if name == parameter or name.endswith(f"__{parameter}"):
            return name
    raise InvalidInputError(
        f"{parameter} was not varied; choose one of {', '.join(params)} by parameter=."
    )


def _metric_of(search: Any) -> str:
    """Return the name of the scores by which a search has chosen."""
    if not getattr(search, "multimetric_", False):
        return "score"
    if not isinstance(search.refit, str):
        raise InvalidInputError(
            f"of several scores refit must name the one to draw; got refit={shown(search.refit)}."
        )
    return search.refit


def _error(fitted: Any, seen: tuple[Any, Any], new: tuple[Any, Any]) -> float:
    """Return the share of new rows that a fit, or the nearest seen row in its map, gets wrong."""
    labels = column_or_1d(new[1], warn=True)
    if is_classifier(fitted):
        return float(np.mean(np.asarray(fitted.predict(new[0])) != labels))
    own = column_or_1d(seen[1], warn=True)
    known = ~is_unlabelled(own, marker_of(fitted))
    rows, images = images_of(fitted, seen[0])[known], images_of(fitted, new[0])
    errors = errors_by_dimension([HEAD], rows, own[known], images, labels, [rows.shape[1]])
    return float(errors[HEAD][-1])


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
