"""Tables as nodes: an input for each column, and the rows that a model makes of them."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from marginfold.data.table_model import TableModel
from marginfold.linalg.tall import Array
from marginfold.onnx.nodes import Graph, Value
from marginfold.onnx.steps import Standardised

MISSING_WORD = ""
"""The word for a missing one: words of ONNX are never missing."""


class EncodedTable(BaseEstimator):
    """The encoder of a fitted `TableModel`, as the first step of a pipeline.

    ``dtype`` is the type of the rows: columns of words do not tell it.
    """

    def __init__(self, model: TableModel, dtype: np.dtype[Any]) -> None:
        self.model = model
        self.dtype = dtype

    @property
    def n_columns(self) -> int:
        """The number of columns of the rows."""
        return len(self.model.pipeline["columns"].get_feature_names_out())


def encoded(graph: Graph, variables: list[Any], table: EncodedTable) -> Value:
    """Return the rows of a table, whose columns are the inputs."""
    columns = [Value(graph, variable.full_name) for variable in variables]
    parts = table.model.pipeline["columns"].named_transformers_
    n_numbers = len(table.model.numbers)
    found = []
    if n_numbers:
        found.append(_numbers(graph.rows(variables[:n_numbers]), parts["numbers"]))
    if table.model.levels:
        found.append(_words(graph, columns[n_numbers:], parts["levels"]))
    return found[0] if len(found) == 1 else graph.node("Concat", *found, axis=1)


def _numbers(x: Value, part: Any) -> Value:
    """Return numbers, the missing ones filled with medians, on their scale."""
    imputer, *scalers = (step for _, step in part.steps)
    x = x.graph.node("Where", x.of("IsNaN"), imputer.statistics_, x)
    for scaler in scalers:
        if isinstance(scaler, StandardScaler):
            plain = Standardised.of(scaler)
            x = (x - plain.mean) / plain.scale
        elif isinstance(scaler, MinMaxScaler):
            x = x * scaler.scale_ + scaler.min_
    return x


def _words(graph: Graph, columns: list[Value], part: Any) -> Value:
    """Return what the encoder makes of words: that of the first ones, and what others change."""
    categories = part[-1].categories_
    first = np.array([[words[0] for words in categories]], dtype=object)
    base = _encode(part, first)
    rows = None
    for place, (column, words) in enumerate(zip(columns, categories, strict=True)):
        known = [word for word in words if isinstance(word, str)]
        tried = np.repeat(first, len(known) + 2, axis=0)
        tried[:, place] = [*known, np.nan, "".join(known) + "?"]  # a missing and an unknown one
        numbers = graph.numbered(column, [*known, MISSING_WORD])
        changes = graph.node("Gather", _encode(part, tried) - base, numbers, axis=0)
        change = changes.sum(1, keepdims=False)
        rows = change + base if rows is None else rows + change
    assert rows is not None
    return rows


def _encode(part: Any, words: Array) -> Array:
    import pandas

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Found unknown categories")
        frame = pandas.DataFrame(words, columns=part.feature_names_in_, dtype=object)
        return np.asarray(part.transform(frame), dtype=np.float64)
