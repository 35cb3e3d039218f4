"""A fitted pipeline together with the columns and the classes it was learnt from."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from marginfold.data.columns import Columns, arrange, encoder
from marginfold.data.csv_files import no_header_hint
from marginfold.data.reading import AS_FOUND, Reading
from marginfold.data.target import listed
from marginfold.data.written import Style
from marginfold.errors import InvalidInputError

if TYPE_CHECKING:
    import pandas as pd
    from sklearn.pipeline import Pipeline

    from marginfold.data.answers import Scores
    from marginfold.linalg.tall import Array


@dataclass(frozen=True)
class TableModel:
    """A method that takes tables: its columns by kind, the target, and the fitted pipeline.

    Parameters
    ----------
    pipeline : Pipeline
        The fitted steps "columns" and "method".
    numbers, levels : tuple of str
        The columns that are used.
    target : str
        The column that was learnt.
    classes : tuple of str or int
        The classes of the target.
    written : tuple of pairs
        How numbers and dates are written in columns that do not hold plain numbers.
    reading : Reading
        How the table was read; new ones are read alike.
    name : str
        The name of the method in commands; empty if it has none.
    calibration : CalibratedClassifierCV or None
        What gives the probabilities of a method that has margins only; the method itself answers.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from marginfold import MMDA
    >>> from marginfold.data import TableModel, inspect_columns
    >>> frame = pd.DataFrame({"size": [1.0, 2.0, 8.0, 9.0], "hue": ["red", "blue"] * 2})
    >>> labels = np.array(["small", "small", "big", "big"])
    >>> model = TableModel.fit(MMDA(1), frame, labels, "kind", inspect_columns(frame))
    >>> model.transform(frame).shape
    (4, 1)
    """

    pipeline: Pipeline
    numbers: tuple[str, ...]
    levels: tuple[str, ...]
    target: str
    classes: tuple[Any, ...]
    written: tuple[tuple[str, Style], ...] = ()
    reading: Reading = AS_FOUND
    name: str = ""
    calibration: Any = None

    @classmethod
    def fit(
        cls,
        method: Any,
        frame: pd.DataFrame,
        labels: Array,
        target: str,
        columns: Columns,
        *,
        scale: str = "standard",
        name: str = "",
        groups: Array | None = None,
    ) -> TableModel:
        """Fit a clone of a method to the features of a table.

        ``target`` is the name of the column that the labels come from, ``columns`` what
        `inspect_columns` found, ``scale`` one of `marginfold.data.columns.SCALES`, and ``name``
        what commands call the method.  ``groups`` says which rows belong together, where the
        method chooses parameters by folds that keep such rows together.
        """
        from sklearn.base import clone
        from sklearn.pipeline import Pipeline

        pipeline = Pipeline([("columns", encoder(columns, scale)), ("method", clone(method))])
        rows = arrange(frame, columns.numbers, columns.levels, columns.written)
        pipeline.fit(rows, labels, **({} if groups is None else {"method__groups": groups}))
        classes = tuple(sorted(set(labels.tolist())))
        return cls(
            *(pipeline, columns.numbers, columns.levels, target, classes),
            *(columns.written, columns.reading, name),
        )

    @property
    def method(self) -> Any:
        """The fitted transformer or classifier."""
        return self.pipeline["method"]

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that are used."""
        return self.numbers + self.levels

    @property
    def component_names(self) -> tuple[str, ...]:
        """The names of the components; none if the model has no components."""
        from marginfold.data.answers import embedding

        steps = embedding(self.method)
        names = steps[-1].get_feature_names_out().tolist() if steps else []
        return tuple(f"{self.name}{k}" if self.name else name for k, name in enumerate(names))

    def transform(self, frame: pd.DataFrame) -> Array:
        """Return the components of the rows of a table."""
        from marginfold.data.answers import components

        return components(self.method, self._encoded(frame))

    def scores(self, frame: pd.DataFrame) -> Scores:
        """Return margins, or distances to the nearest row of each class, of a table's rows."""
        from marginfold.data.answers import class_scores

        return class_scores(self.method, self._encoded(frame))

    @property
    def has_probabilities(self) -> bool:
        """Whether `probabilities` has an answer."""
        return self.calibration is not None or hasattr(self.method, "predict_proba")

    def probabilities(self, frame: pd.DataFrame) -> Array:
        """Return the probabilities of the classes, if the method has such or is calibrated."""
        source = self.method if self.calibration is None else self.calibration
        return source.predict_proba(self._encoded(frame))

    def with_calibration_beside(self) -> TableModel:
        """Return the model whose method answers by itself, its calibration gives probabilities.

        The method is a calibration of one classifier that was fitted to all rows.
        """
        from sklearn.pipeline import Pipeline

        (calibration,) = self.method.calibrated_classifiers_
        steps = [("columns", self.pipeline["columns"]), ("method", calibration.estimator)]
        return replace(self, pipeline=Pipeline(steps), calibration=self.method)

    def predict(self, frame: pd.DataFrame) -> Array:
        """Return the predicted classes of the rows of a table."""
        return self.pipeline.predict(self.arranged(frame))

    def _encoded(self, frame: pd.DataFrame) -> Array:
        return self.pipeline["columns"].transform(self.arranged(frame))

    def arranged(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return the columns of the model; refuse a table that lacks some."""
        present = set(frame.columns)
        missing = [name for name in self.columns if name not in present]
        if missing:
            hint = no_header_hint(list(frame.columns))
            raise InvalidInputError(
                f"the table lacks {len(missing)} of the model's {len(self.columns)} columns: "
                f"{listed(missing)}. Add them (missing values may stay empty).{hint}"
            )
        return arrange(frame, self.numbers, self.levels, self.written)
