"""Dask arrays and data frames, validated as scikit-learn validates arrays, without gathering them.

Labels and weights, one number per row, are gathered; the rows stay where they are.  Fitted
estimators are applied to them lazily, chunk by chunk.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import dask.array as da
import numpy as np
import scipy.sparse
from dask.delayed import Delayed
from sklearn import get_config
from sklearn.utils import assert_all_finite, column_or_1d
from sklearn.utils.validation import validate_data

from marginfold.errors import InvalidInputError, InvalidParameterError
from marginfold.feature_maps import FeatureMap, resolve_feature_map
from marginfold.linalg.tall import Array, dense
from marginfold.on_dask.blocks import computed, kept, tasks
from marginfold.on_dask.embedded_rows import (
    RemoteCoordinates,
    check_feature_map,
    check_graph,
    fitted_coordinates,
)
from marginfold.planner.workload import output_columns
from marginfold.svm import Automatic, InteriorPoint
from marginfold.validation.parameters import shown
from marginfold.validation.rows import LARGEST_ENTRY

BLOCK_BYTES = 64 << 20
"""Size of the blocks that smaller chunks are merged to, in features or in coordinates, whichever
are more: few large tasks cost little to schedule."""

LARGEST_CHUNK = 4 * BLOCK_BYTES
"""A chunk above this is cut, so that several workers share it and temporaries stay small."""


@dataclass(frozen=True, eq=False)
class DaskRows:
    """Validated rows of a dask collection.

    Attributes
    ----------
    parts : list of Delayed
        Arrays of float64, each with at least one row.  Their coordinates take their place: the
        list is empty after that, so that the cluster does not keep the rows twice.
    lengths : array of shape (n_parts,)
        Rows of each part.
    low, high : arrays of shape (n_features,)
        Smallest and largest value of each feature.
    """

    parts: list[Delayed]
    lengths: Array
    low: Array
    high: Array

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and features."""
        return int(self.lengths.sum()), len(self.low)

    def coordinates(
        self, feature_map: FeatureMap, weights: Array, codes: Array | None
    ) -> RemoteCoordinates:
        """Fit a feature map on the rows and apply it."""
        parts = list(self.parts)
        self.parts.clear()
        ranges = np.stack([self.low, self.high])
        return fitted_coordinates(feature_map, parts, self.lengths, ranges, weights, codes)


def read_labelled(
    estimator: Any, X: Any, y: Any, parts: Sequence[Any] = ()
) -> tuple[DaskRows, Array]:
    """Validate rows and labels; the labels are in the memory of this process."""
    _check_estimator(estimator, parts)
    check_kind(estimator, X)
    validate_data(estimator, feature_sample(X), y, skip_check_array=True)
    labels = column_or_1d(y, warn=True)
    assert_all_finite(labels, input_name="y")
    rows = _read(estimator, X)
    if len(labels) != rows.shape[0]:
        raise InvalidInputError(
            f"X has {rows.shape[0]} rows and y has {len(labels)}; give one label for each row."
        )
    return rows, labels


def read_rows(estimator: Any, X: Any, parts: Sequence[Any] = ()) -> DaskRows:
    """Validate rows."""
    _check_estimator(estimator, parts)
    check_kind(estimator, X)
    validate_data(estimator, feature_sample(X), skip_check_array=True)
    return _read(estimator, X)


def is_frame(X: Any) -> bool:
    """Return whether a dask collection is a data frame."""
    if isinstance(X, Delayed):  # it claims to have every attribute
        return False
    return hasattr(X, "map_partitions") and getattr(X, "ndim", 0) == 2 and hasattr(X, "columns")


def _check_estimator(estimator: Any, parts: Sequence[Any]) -> None:
    """Refuse what needs all rows at one place, before anything is read."""
    for part in parts:
        if hasattr(part, "solve_batch"):
            _check_solver(estimator, part)
        else:
            check_graph(part)
    check_feature_map(resolve_feature_map(estimator.kernel))
    if getattr(estimator, "reconstruct", None) is not None:
        raise InvalidInputError(
            f"{type(estimator).__name__} got a dask collection and "
            f"reconstruct={shown(estimator.reconstruct)}, which needs the rows in this process; "
            "use reconstruct=None, or X.compute() if the rows fit into memory."
        )


def _check_solver(estimator: Any, solver: Any) -> None:
    if not isinstance(solver, Automatic | InteriorPoint):
        raise InvalidParameterError(
            f"{type(estimator).__name__}: solver={shown(estimator.solver)} needs all rows in the "
            "memory of this process; use solver='interior_point' for a dask collection."
        )


def check_kind(estimator: Any, X: Any) -> None:
    """Refuse dask collections that are no rows of features."""
    if is_frame(X):
        _check_columns(estimator, X)
        return
    is_array = isinstance(X, da.Array)
    shape = X.shape if is_array else None
    if shape is None or len(shape) != 2:
        what = "a dask " + type(X).__name__ + (f" of shape {shape}" if is_array else "")
        raise InvalidInputError(
            f"{type(estimator).__name__} got {what}; it needs rows and features: a dask array of "
            "two dimensions or a dask DataFrame. Turn a Series into one with to_frame()."
        )
    if np.isnan(shape[1]):
        raise InvalidInputError(
            f"{type(estimator).__name__} got a dask array whose number of columns is unknown; "
            "call X.compute_chunk_sizes() first."
        )


def _check_columns(estimator: Any, X: Any) -> None:
    wrong = [name for name, kind in X.dtypes.items() if not _may_be_number(kind)]
    if wrong:
        raise InvalidInputError(
            f"{type(estimator).__name__} got a dask DataFrame whose column {wrong[0]!r} has the "
            f"type {X.dtypes[wrong[0]]}; it needs numbers. Encode such columns or drop them."
        )


def _may_be_number(kind: Any) -> bool:
    return kind.kind in "biuf" or isinstance(kind, np.dtypes.ObjectDType)


def feature_sample(X: Any) -> Any:
    """Return what tells scikit-learn the number and the names of the features."""
    return X._meta if is_frame(X) else np.empty((0, X.shape[1]))


def _read(estimator: Any, X: Any) -> DaskRows:
    n_features = len(X.columns) if is_frame(X) else X.shape[1]
    if not n_features:
        raise InvalidInputError(
            f"{type(estimator).__name__} got a dask {type(X).__name__} without columns; at least "
            "one feature is needed."
        )
    widest = max(n_features, output_columns(estimator.kernel, n_features))
    groups = [[part] for part in X.to_delayed()] if is_frame(X) else _grouped_chunks(X, 8 * widest)
    parts = _kept(tasks(groups, rows_of_chunks), X)
    surveys = computed(tasks(parts, survey), stage="survey of rows")
    _check_surveys(estimator, surveys, n_features)
    counted = [i for i, found in enumerate(surveys) if found.n_rows]
    if sum(surveys[i].n_rows for i in counted) < 2:
        raise InvalidInputError(
            f"{type(estimator).__name__} got {sum(found.n_rows for found in surveys)} rows; at "
            "least 2 are needed."
        )
    merged, lengths = _merged(
        [parts[i] for i in counted], [surveys[i].n_rows for i in counted], n_features, widest
    )
    return DaskRows(
        merged,
        np.array(lengths),
        np.min(np.stack([surveys[i].low for i in counted]), axis=0),
        np.max(np.stack([surveys[i].high for i in counted]), axis=0),
    )


def _kept(parts: Sequence[Delayed], X: Any) -> list[Delayed]:
    """Keep the rows that were read, if their number is known and they fit (a frame's is not)."""
    rows, columns = (len(X.columns), 0) if is_frame(X) else X.shape
    known = not is_frame(X) and not np.isnan(rows)
    return kept(parts, 8.0 * rows * columns if known else 0.0)


def _grouped_chunks(X: Any, row_bytes: int) -> list[list[Delayed]]:
    """Return the chunks of an array in groups that are worth a task, each with all columns."""
    lengths = X.chunks[0]
    known = not np.isnan(np.asarray(lengths, dtype=float)).any()
    if X.numblocks[1] > 1:
        X = X.rechunk({1: -1})
    if known and max(lengths, default=0) * row_bytes > LARGEST_CHUNK:
        X = X.rechunk({0: max(1, BLOCK_BYTES // row_bytes)})
        lengths = X.chunks[0]
    chunks = X.to_delayed()[:, 0]
    if not known:
        return [[chunk] for chunk in chunks]
    return [[chunks[i] for i in group] for group in _groups(lengths, row_bytes)]


def _groups(lengths: Sequence[int], row_bytes: int) -> list[list[int]]:
    """Return the numbers of consecutive parts that make up blocks of about `BLOCK_BYTES`."""
    groups: list[list[int]] = []
    size = np.inf
    for i, length in enumerate(lengths):
        if size + length * row_bytes > BLOCK_BYTES:
            groups.append([])
            size = 0.0
        groups[-1].append(i)
        size += length * row_bytes
    return groups


def _merged(
    parts: Sequence[Delayed], lengths: Sequence[int], n_features: int, widest: int
) -> tuple[list[Delayed], list[int]]:
    """Join small parts whose lengths were not known before."""
    groups = _groups(lengths, 8 * widest)
    if len(groups) == len(parts):
        return list(parts), list(lengths)
    lists = [[parts[i] for i in group] for group in groups]
    joined = kept(tasks(lists, joined_rows), 8.0 * n_features * sum(lengths))
    return joined, [sum(lengths[i] for i in group) for group in groups]


@dataclass(frozen=True)
class Survey:
    """What one part holds: rows, columns, and the range of each column (NaN if it has one)."""

    n_rows: int
    n_columns: int
    low: Array
    high: Array


def survey(X: Array) -> Survey:
    """Look at the rows of one part."""
    if not len(X):
        nothing = np.zeros(X.shape[1])
        return Survey(0, X.shape[1], nothing, nothing)
    return Survey(len(X), X.shape[1], X.min(axis=0), X.max(axis=0))


def rows_of_chunks(chunks: Sequence[Any]) -> Array:
    """Return chunks (arrays, sparse matrices or data frames) as one array of float64."""
    try:
        arrays = [dense(_values(chunk)) for chunk in chunks]
        rows = arrays[0] if len(arrays) == 1 else np.concatenate(arrays)
        if rows.dtype.kind == "c":
            raise TypeError("complex numbers")
        return np.ascontiguousarray(rows, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(f"X must be numbers ({error}); encode other columns.") from error


def joined_rows(parts: Sequence[Array]) -> Array:
    """Return several parts as one."""
    return np.concatenate(parts)


def _values(chunk: Any) -> Any:
    if scipy.sparse.issparse(chunk) or isinstance(chunk, np.ndarray):
        return chunk
    if hasattr(chunk, "to_numpy"):
        return chunk.to_numpy(dtype=np.float64, na_value=np.nan)
    return np.asarray(chunk)


def _check_surveys(estimator: Any, surveys: Sequence[Survey], n_features: int) -> None:
    name = type(estimator).__name__
    widths = {found.n_columns for found in surveys}
    if widths != {n_features}:
        raise InvalidInputError(
            f"{name} got chunks with {min(widths)} to {max(widths)} columns of a collection that "
            f"says it has {n_features}; all need the same."
        )
    low, high = (np.stack([getattr(found, end) for found in surveys]) for end in ("low", "high"))
    if np.isnan(low).any() or np.isnan(high).any():
        raise InvalidInputError(
            f"Input X contains NaN. {name} does not accept missing values: fill them first, for "
            "example X.fillna(0) of a dask DataFrame, or drop these rows."
        )
    if np.isinf(low).any() or np.isinf(high).any():
        raise InvalidInputError(f"Input X contains infinity. {name} needs finite numbers.")
    largest = float(max(high.max(initial=0.0), -low.min(initial=0.0)))
    if largest > LARGEST_ENTRY:
        raise InvalidInputError(
            f"X has entries of size {largest:.3g}, whose squares overflow; it needs entries up to "
            f"{LARGEST_ENTRY:g}. Scale the features."
        )


def apply(estimator: Any, method: str, X: Any) -> Any:
    """Return what a method of a fitted estimator gives for the rows of X, as a dask collection.

    The method maps rows one by one, as "transform" does.  Nothing is computed yet; the result for
    a data frame has its index.
    """
    if method == "transform":
        _check_output(estimator)
    check_kind(estimator, X)
    validate_data(estimator, feature_sample(X), reset=False, skip_check_array=True)
    like = _result_like(estimator, method, X)
    work = _Rows(estimator, method, like)
    if is_frame(X):
        return _apply_to_frame(work, X, like)
    columns = {"drop_axis": 1} if like.ndim == 1 else {"chunks": (X.chunks[0], like.shape[1:])}
    whole = X.rechunk({1: -1}) if X.numblocks[1] > 1 else X
    return whole.map_blocks(work, dtype=like.dtype, meta=like[:0], **columns)


class _Rows:
    """One method of a fitted estimator on the rows of a chunk, which may have none."""

    def __init__(self, estimator: Any, method: str, like: Array) -> None:
        self.estimator, self.method, self.like = estimator, method, like
        self.__name__ = f"marginfold-{method}".replace("_", "-")

    def __call__(self, rows: Any) -> Array:
        if not len(rows):
            return self.like[:0]
        return np.asarray(getattr(self.estimator, self.method)(rows))


def _check_output(estimator: Any) -> None:
    """Refuse to let scikit-learn put the images into a frame, which would gather them."""
    own = getattr(estimator, "_sklearn_output_config", {}).get("transform", "default")
    if own != "default" or get_config()["transform_output"] != "default":
        raise InvalidInputError(
            f"{type(estimator).__name__}: the images of a dask collection are a dask collection, "
            "and set_output would gather them; call set_output(transform='default') first."
        )


def _column_names(estimator: Any) -> list[Any]:
    """Return a name for each component of a transformer, or for each class of a classifier."""
    if hasattr(estimator, "get_feature_names_out"):
        return list(estimator.get_feature_names_out())
    return list(estimator.classes_)


def _result_like(estimator: Any, method: str, X: Any) -> Array:
    """Return the result for one row, which has the dimensions and the type of all."""
    names = X.columns if is_frame(X) else None
    row: Any = np.ones((1, len(names) if names is not None else X.shape[1]))
    if names is not None:
        import pandas as pd

        row = pd.DataFrame(row, columns=names)
    return np.asarray(getattr(estimator, method)(row))


def _apply_to_frame(work: _Rows, X: Any, like: Any) -> Any:
    import pandas as pd

    if like.ndim == 1:
        meta: Any = pd.Series(like)[:0]
    else:
        meta = pd.DataFrame(like, columns=_column_names(work.estimator))[:0]
    meta.index = X._meta.index[:0]
    return X.map_partitions(_framed, work, meta, meta=meta)


def _framed(frame: Any, work: _Rows, meta: Any) -> Any:
    """Return the result for one partition, with its index."""
    if not len(frame):
        return meta
    columns = {"columns": meta.columns} if meta.ndim == 2 else {}
    return type(meta)(work(frame), index=frame.index, **columns)
