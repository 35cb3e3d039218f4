"""Fitted estimators applied to dask collections: lazily, chunk by chunk."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn import get_config
from sklearn.utils.validation import validate_data

from marginfold.errors import InvalidInputError
from marginfold.linalg.tall import Array
from marginfold.on_dask.inputs import check_kind, feature_sample, is_frame


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
