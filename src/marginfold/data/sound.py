"""Whether a model that was loaded is sound: its compiled parts, and its numbers.

The code of compiled parts follows numbers of rows and nodes without looking whether there are such
rows and nodes, so that a forged file could make it read anywhere.  A search tree is left out of a
file and built from the training rows when the file is loaded, which gives the same tree; the nodes
of a boosted tree are plain numbers, and every one of them is looked at before the model is given
away.

The checksums of a model file tell that it was not damaged by chance.  What somebody wrote into it
on purpose passes them; here it is tried on a row before anybody relies on it: numbers must be
finite, and of shapes that go together.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from copy import deepcopy
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, is_classifier
from sklearn.decomposition import PCA
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.neighbors import BallTree, KDTree
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler

from marginfold.data.table_model import TableModel
from marginfold.errors import InvalidInputError, MarginfoldError
from marginfold.linalg.tall import Array

ANSWERS = ("transform", "decision_function", "predict_proba", "predict")
"""What a fitted part says of a row, as far as it says that."""

NOT_LOOKED_AT = ("sklearn.ensemble._hist_gradient_boosting", "sklearn.metrics", "sklearn.tree")
"""Modules whose parts are no estimators, or that `restore` looks at."""

MISSING_BY_RIGHT = ("sklearn.impute", "sklearn.preprocessing")
"""Modules whose arrays hold NaN for a column without values, and for a missing category."""

NUMERIC = (MaxAbsScaler, MinMaxScaler, PCA, RobustScaler, StandardScaler)
"""Transformers of scikit-learn that take any row of numbers."""

ROW_BY_ROW = (("_rows", "_codes"), ("_fit_X", "_y"))
"""Attributes of neighbor classifiers that hold something for each training row."""

MAY_BE_MISSING = frozenset({"cv_results_", "gap_", "gain_", "new_gain_"})
"""Attributes in which NaN says that there is no number; no answer is computed from them."""

SEARCH_TREES = {"kd_tree": KDTree, "ball_tree": BallTree}
"""The compiled trees by the name of the search that uses them."""

BOOSTED = (HistGradientBoostingClassifier, HistGradientBoostingRegressor)
"""Models made of boosted trees."""

BOOSTED_TREE = "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor"
"""The type of one boosted tree, which scikit-learn keeps to itself."""

PLAIN = (str, bytes, bool, int, float, complex, type(None))
"""Values that have no parts."""


def unsound(model: Any) -> str:
    """Return what shows that the numbers of a model come from no fit; nothing of sound ones.

    Every array of its parts must be finite, and every fitted part that takes rows of numbers must
    have an answer for a row of zeros: what is of the wrong shape has none.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from marginfold import LDA
    >>> from marginfold.data.sound import unsound
    >>> model = LDA().fit(*load_iris(return_X_y=True))
    >>> unsound(model)
    ''
    >>> model.components_[0, 0] = float("nan")
    >>> unsound(model)
    'components_ of LDA has numbers that are not finite'
    """
    is_table = isinstance(model, TableModel)
    for part in _fitted_parts([model.pipeline, model.calibration] if is_table else model, set()):
        fault = _not_finite(part) or _without_answer(part)
        if fault:
            return fault
    return _not_encoded(model) if is_table else ""


def _fitted_parts(value: Any, seen: set[int]) -> Iterator[Any]:
    """Yield the estimators, and the values of marginfold, that a model is made of."""
    if id(value) in seen or isinstance(value, (str, bytes, type, np.ndarray)):
        return
    seen.add(id(value))
    if isinstance(value, Mapping):
        inner = list(value.values())
    elif isinstance(value, (list, tuple)):
        inner = list(value)
    elif _is_part(value):
        yield value
        inner = [content for _, content in _attributes(value)]
    else:
        return
    for content in inner:
        yield from _fitted_parts(content, seen)


def _is_part(value: Any) -> bool:
    module = type(value).__module__
    known = isinstance(value, BaseEstimator) or module.startswith(("marginfold.", "sklearn."))
    return known and not module.startswith(NOT_LOOKED_AT)


def _attributes(part: Any) -> list[tuple[str, Any]]:
    found = dict(getattr(part, "__dict__", {}))
    return [(name, content) for name, content in found.items() if name not in MAY_BE_MISSING]


def _not_finite(part: Any) -> str:
    if type(part).__module__.startswith(MISSING_BY_RIGHT):
        return ""
    for name, content in _attributes(part):
        if not all(map(_is_finite, content if isinstance(content, (list, tuple)) else [content])):
            return f"{name} of {type(part).__name__} has numbers that are not finite"
    return ""


def _is_finite(value: Any) -> bool:
    """Return False for an array with a number that is not finite, True for all else."""
    values = value.data if sp.issparse(value) else value
    is_float = isinstance(values, np.ndarray) and values.dtype.kind in "fc"
    return not is_float or bool(np.isfinite(values).all())


def _without_answer(part: Any) -> str:
    """Return which answer to a row of zeros fails, of a fitted part that takes numbers."""
    width = getattr(part, "n_features_in_", None)
    if width is None or not _takes_numbers(part):
        return ""
    for rows, labels in ROW_BY_ROW:
        known, codes = (getattr(part, name, None) for name in (rows, labels))
        if known is not None and codes is not None and known.shape[0] != codes.shape[0]:
            return f"{rows} and {labels} of {type(part).__name__} have different lengths"
    for name in ANSWERS:
        try:
            fault = _fault_of_answer(part, name, width)
        except MarginfoldError:  # a refusal in words: this method has no answer for such a row
            continue
        except Exception as error:
            fault = f"fails on a row of zeros ({type(error).__name__}: {error})"
        if fault:
            return f"{name} of {type(part).__name__} {fault}"
    return ""


def _takes_numbers(part: Any) -> bool:
    """Return whether a row of zeros is a row to a part: words may be needed before others."""
    if isinstance(part, Pipeline):
        return bool(part.steps) and _takes_numbers(part.steps[0][1])
    if any(hasattr(part, name) for name in ("estimator", "estimators")):
        return False
    ours = type(part).__module__.startswith("marginfold.")
    return ours or is_classifier(part) or isinstance(part, NUMERIC)


def _fault_of_answer(part: Any, name: str, width: int) -> str:
    if not hasattr(part, name):
        return ""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        answer = getattr(part, name)(np.zeros((1, width)))
    answer = answer.toarray() if sp.issparse(answer) else np.asarray(answer)
    if len(answer) != 1:
        return f"has {len(answer)} answers to one row"
    n_classes = len(getattr(part, "classes_", ()))
    if name == "predict_proba" and answer.shape[1] != n_classes:
        return f"has {answer.shape[1]} columns, and there are {n_classes} classes"
    if isinstance(part, NUMERIC):  # NaN is what a column without values becomes
        return ""
    if answer.dtype.kind == "f" and not np.isfinite(answer).all():
        return "is not finite for a row of zeros"
    return ""


def _not_encoded(model: TableModel) -> str:
    """Return what is wrong with the features that a row without values becomes."""
    import pandas

    empty = pandas.DataFrame({name: [np.nan] for name in model.columns})
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            features = model.pipeline["columns"].transform(model.arranged(empty))
    except Exception as error:
        return f"the columns fail on a row without values ({type(error).__name__}: {error})"
    width = getattr(model.method, "n_features_in_", features.shape[1])
    if features.shape != (1, width):
        return f"the columns make {features.shape[1]} features of a row, and the method has {width}"
    return (
        "" if _is_finite(np.asarray(features)) else "the columns make numbers that are not finite"
    )


def as_written(model: Any) -> Any:
    """Return what of a model is written to a file: a copy without search trees if it has some."""
    found = list(parts(model))
    _check_boosted(found)
    if not any(_search_tree(part) for part in found):
        return model
    copied = deepcopy(model)
    for part in parts(copied):
        if _search_tree(part):
            part._tree = None
    return copied


def restore(model: Any) -> None:
    """Build the search trees of a model that was loaded, and check its boosted trees."""
    found = list(parts(model))
    _check_boosted(found)
    for part in found:
        if _search_tree(part):
            part._tree = SEARCH_TREES[part._fit_method](
                part._fit_X,
                part.leaf_size,
                metric=part.effective_metric_,
                **part.effective_metric_params_,
            )


def _check_boosted(found: list[Any]) -> None:
    for part in found:
        if isinstance(part, BOOSTED) and hasattr(part, "_predictors"):
            check_boosted_trees(part)


def check_boosted_trees(model: Any) -> None:
    """Refuse boosted trees that leave their nodes or the columns, or that have categories.

    Each inner node must lead to two later nodes and ask for a column that there is: then every row
    ends in a leaf.  Categories are refused because they have tables of their own.
    """
    if getattr(model, "_preprocessor", None) is not None:
        raise InvalidInputError(
            f"this {type(model).__name__} has categorical features, which a model file cannot "
            "hold. Encode them before, such as with OneHotEncoder in a pipeline."
        )
    iterations = model._predictors
    if type(iterations) is not list or any(type(trees) is not list for trees in iterations):
        raise InvalidInputError("boosted trees must stand in lists of lists. Fit the model again.")
    for trees in iterations:
        for tree in trees:
            known = f"{type(tree).__module__}.{type(tree).__qualname__}" == BOOSTED_TREE
            if not known or not _stays_inside(tree.nodes, model.n_features_in_):
                raise InvalidInputError(
                    f"a tree of this {type(model).__name__} is damaged: it leads outside of its "
                    "nodes or columns, or asks for categories. Fit the model again."
                )


def parts(model: Any) -> Iterator[Any]:
    """Yield every object that a model is made of, itself included, each once."""
    seen: set[int] = set()
    waiting = [model]
    while waiting:
        part = waiting.pop()
        if id(part) in seen or isinstance(part, PLAIN):
            continue
        seen.add(id(part))
        yield part
        waiting.extend(_inner(part))


def _inner(part: Any) -> list[Any]:
    """Return what an object holds: items and attributes, whatever their type."""
    inner: list[Any] = []
    if isinstance(part, dict):
        inner += [*part.keys(), *part.values()]
    elif isinstance(part, (list, tuple, set, frozenset)):
        inner += part
    elif isinstance(part, np.ndarray) and part.dtype.hasobject:
        inner += np.asarray(part).ravel().tolist()
    if not isinstance(part, type) and hasattr(part, "__dict__"):
        inner += vars(part).values()
    return inner


def _search_tree(part: Any) -> bool:
    """Return whether an object searches neighbors by a compiled tree."""
    method = getattr(part, "_fit_method", None)
    return isinstance(part, BaseEstimator) and isinstance(method, str) and method in SEARCH_TREES


def _stays_inside(nodes: Array, n_columns: int) -> bool:
    if nodes.ndim != 1 or len(nodes) == 0:
        return False
    number = np.flatnonzero(nodes["is_leaf"] == 0)
    inner = nodes[number]
    later = all(
        np.all((number < inner[child]) & (inner[child] < len(nodes))) for child in ("left", "right")
    )
    known = np.all((inner["feature_idx"] >= 0) & (inner["feature_idx"] < n_columns))
    return bool(later and known and not inner["is_categorical"].any())
