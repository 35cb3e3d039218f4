"""Compiled parts of scikit-learn models: search trees are built again, boosted trees are checked.

Their code follows numbers of rows and nodes without looking whether there are such rows and nodes,
so that a forged file could make it read anywhere.  A search tree is left out of a file and built
from the training rows when the file is loaded, which gives the same tree; the nodes of a boosted
tree are plain numbers, and every one of them is looked at before the model is given away.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.neighbors import BallTree, KDTree

from marginfold.errors import InvalidInputError
from marginfold.linalg.tall import Array

SEARCH_TREES = {"kd_tree": KDTree, "ball_tree": BallTree}
"""The compiled trees by the name of the search that uses them."""

BOOSTED = (HistGradientBoostingClassifier, HistGradientBoostingRegressor)
"""Models made of boosted trees."""

BOOSTED_TREE = "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor"
"""The type of one boosted tree, which scikit-learn keeps to itself."""

PLAIN = (str, bytes, bool, int, float, complex, type(None))
"""Values that have no parts."""


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
