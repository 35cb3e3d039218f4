"""Components: GainDisplay has what each adds, LoadingsDisplay the columns that move one most."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.utils.sparsefuncs import mean_variance_axis

from marginfold.errors import InvalidInputError
from marginfold.feature_maps import is_linear
from marginfold.linalg.tall import Array, dense, row_blocks
from marginfold.plotting.displays.rows import part_with, passed
from marginfold.protocols.results import Series
from marginfold.runtime.extras import require
from marginfold.validation.parameters import Count, check_arguments, shown
from marginfold.validation.types import Estimator, FittedMap, Numbers, Rows

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


class LoadingsDisplay:
    """The columns that weigh most in a component, with their signs.

    Parameters
    ----------
    loadings : array of shape (n_features,)
    names : sequence of str, default=None
        Of the columns; None is x0, x1, ...
    component : int, default=0
        Its number, for the label.
    per_deviation : bool, default=False
        Whether a loading is the change over one standard deviation of its column, not over 1.

    Attributes
    ----------
    ax_, figure_ : matplotlib axes and figure
        Once drawn.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from marginfold import LSVA, LoadingsDisplay
    >>> wine = load_wine()
    >>> model = make_pipeline(StandardScaler(), LSVA(2)).fit(wine.data, wine.target)
    >>> display = LoadingsDisplay.from_estimator(model, feature_names=wine.feature_names)
    >>> display.ax_.get_yticklabels()[0].get_text()
    'flavanoids'
    """

    def __init__(
        self,
        loadings: Numbers,
        names: Sequence[str] | None = None,
        *,
        component: int = 0,
        per_deviation: bool = False,
    ) -> None:
        self.loadings = loadings
        self.names = names
        self.component = component
        self.per_deviation = per_deviation

    @classmethod
    def from_estimator(
        cls,
        estimator: FittedMap,
        X: Rows | None = None,
        *,
        component: int = 0,
        feature_names: Sequence[str] | None = None,
        n_columns: int = 10,
        ax: Axes | None = None,
    ) -> Self:
        """Draw the loadings of a component of a fitted transformer.

        Parameters
        ----------
        estimator : fitted transformer
            With ``components_``, alone or as part of a pipeline or a search.  The columns are
            those that it is given, after the steps before it.
        X : rows, default=None
            As the pipeline takes them.  With them a loading is the change of the component over
            one standard deviation of the column, mean over the rows; without, over a change by 1,
            for the linear kernel only.
        component : int, default=0
        feature_names : sequence of str, default=None
            None takes those that were fitted.
        n_columns, ax
            As in `plot`.

        Returns
        -------
        LoadingsDisplay
        """
        steps, fitted = part_with(estimator, "components_")
        weights = np.asarray(fitted.components_)
        check_arguments(component=(component, Count(0)))
        if component >= len(weights):
            raise InvalidInputError(
                f"component must be 0 to {len(weights) - 1}; got {shown(component)}."
            )
        rows = None if X is None else passed(steps, X)
        loadings = _loadings(fitted, rows, int(component))
        if rows is not None:
            loadings = loadings * _deviations(rows)
        names = _names(estimator, steps, len(loadings)) if feature_names is None else feature_names
        display = cls(loadings, names, component=component, per_deviation=rows is not None)
        return display.plot(ax, n_columns=n_columns)

    def plot(self, ax: Axes | None = None, *, n_columns: int = 10) -> Self:
        """Draw the largest loadings as bars on axes of matplotlib, and return self.

        Parameters
        ----------
        ax : matplotlib axes, default=None
        n_columns : int, default=10
            Columns that are shown, at most.
        """
        require("matplotlib", extra="plot")
        check_arguments(n_columns=(n_columns, Count(1)))
        from marginfold.plotting.displays import canvas
        from marginfold.plotting.drawing import BARS_WIDTH, style

        loadings, names = self._read()
        order = np.argsort(-np.abs(loadings), kind="stable")[:n_columns]
        looks = [style(0) if loadings[j] >= 0 else style(1) for j in order]
        with canvas.canvas(ax) as axes:
            colors = [look.color for look in looks]
            axes.barh(np.arange(len(order)), loadings[order], BARS_WIDTH, color=colors, zorder=2)
            axes.axvline(0.0, color="black", linewidth=0.8, zorder=3)
            canvas.name_heights(axes, [names[j] for j in order])
            axes.invert_yaxis()
            change = " per std" if self.per_deviation else ""
            canvas.label_axes(axes, f"component {self.component + 1}{change}", "")
            if len(order) < len(loadings):
                note = f"the {len(order)} largest of {len(loadings)} columns"
                canvas.set_title(axes, [note], "right")
        self.ax_, self.figure_ = axes, axes.figure
        return self

    def _read(self) -> tuple[Array, list[str]]:
        loadings = np.asarray(self.loadings, dtype=np.float64)
        if loadings.ndim != 1:
            raise InvalidInputError(
                f"loadings must be one number for each column; got shape {loadings.shape}."
            )
        if self.names is None:
            return loadings, [f"x{j}" for j in range(len(loadings))]
        names = [str(name) for name in self.names]
        if len(names) != len(loadings):
            raise InvalidInputError(
                f"got {len(names)} names for {len(loadings)} columns; give one for each."
            )
        return loadings, names


def _loadings(fitted: Any, rows: Any, component: int) -> Array:
    """Return the mean change of a component with each column."""
    if not hasattr(fitted, "loadings"):  # a transformer of scikit-learn, which is linear
        return np.asarray(fitted.components_[component], dtype=np.float64)
    direction = fitted._scaled_directions()[:, [component]]
    slopes = fitted.feature_map_.derivatives
    if is_linear(fitted.kernel):
        return np.asarray(slopes(fitted.mean_[None], direction)[0, 0])
    if rows is None:
        raise InvalidInputError(
            f"{shown(fitted)} is not linear: its loadings differ from row to row. Give X, over "
            "whose rows they are averaged."
        )
    rows = sp.csr_array(rows) if sp.issparse(rows) else np.asarray(rows, dtype=np.float64)
    total = np.zeros(rows.shape[1])
    for block in row_blocks(*rows.shape):
        total += slopes(rows[block], direction)[:, 0].sum(axis=0)
    return total / rows.shape[0]


def _deviations(rows: Any) -> Array:
    """Return the standard deviation of each column."""
    if sp.issparse(rows):
        return np.sqrt(mean_variance_axis(sp.csr_matrix(rows, dtype=np.float64), axis=0)[1])
    return np.asarray(dense(rows), dtype=np.float64).std(axis=0)


def _names(estimator: Any, steps: list[Any], n_columns: int) -> list[str]:
    """Return the names of the columns that reach the transformer, as far as they are known."""
    names = getattr(estimator, "feature_names_in_", None)
    for step in steps:
        if not hasattr(step, "get_feature_names_out"):
            names = None
            break
        names = step.get_feature_names_out(names)
    if names is None or len(names) != n_columns:
        return [f"x{j}" for j in range(n_columns)]
    return [str(name) for name in names]
