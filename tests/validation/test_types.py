"""The names that annotations allow are those that a fit accepts."""

from __future__ import annotations

import re
from types import UnionType
from typing import Literal, Union, get_args, get_origin, get_type_hints

import numpy as np
import pytest
from estimator_families import EVERY_ESTIMATOR

import marginfold
from marginfold.errors import InvalidParameterError
from marginfold.estimators.inputs import SOLVERS
from marginfold.estimators.projection import NAMES
from marginfold.feature_maps.kernel_values import KERNELS
from marginfold.graphs import SHORTHANDS

RULES = [marginfold.AnchorGraph, marginfold.NeighborGraph, marginfold.ReconstructionGraph]
MAPS = [marginfold.ExactKernel, marginfold.LowRankKernel]
TABLES = {
    "kernel": set(KERNELS),
    "graph": set(SHORTHANDS),
    "intrinsic": set(SHORTHANDS),
    "penalty": {"degrees", *SHORTHANDS},
    "reconstruct": set(NAMES),
    "class_weight": {"balanced"},
    "search": {"auto", "exact", "faiss"},
}
"""Names that are written down elsewhere, or that the error does not list one by one."""

X = np.random.default_rng(0).standard_normal((40, 3))
Y = np.arange(40) % 3


def names_of(hint):
    """Return the strings that an annotation allows."""
    if get_origin(hint) is Literal:
        return {value for value in get_args(hint) if isinstance(value, str)}
    if get_origin(hint) in (Union, UnionType):
        return set().union(*map(names_of, get_args(hint)))
    return set()


def choices():
    for cls in [*EVERY_ESTIMATOR, *RULES, *MAPS]:
        for parameter, hint in get_type_hints(cls.__init__).items():
            if names_of(hint):
                yield pytest.param(cls, parameter, names_of(hint), id=f"{cls.__name__}-{parameter}")


def use(cls, parameter, value):
    owner = cls().set_params(**{parameter: value})
    return owner.build(X, Y) if cls in RULES else owner.fit(X, Y)


@pytest.mark.parametrize(("cls", "parameter", "names"), list(choices()))
def test_annotated_names_are_the_names_that_the_error_lists(cls, parameter, names):
    with pytest.raises(InvalidParameterError) as refused:
        use(cls, parameter, "no such name")
    if parameter == "solver" and cls is not marginfold.SVMPCA:
        assert names == set(SOLVERS)
    elif parameter in TABLES:
        assert names == TABLES[parameter]
    else:
        listed = re.findall(r"'(\w+)'", str(refused.value).partition("; got")[0])
        assert names == set(listed)


def test_every_parameter_with_fixed_names_is_annotated():
    found = {param.values[1] for param in choices()}
    assert found >= {"C", "tasks", "deflation", "scaling", "on_exhausted", "multiclass", "loss"}
    assert found >= {"measure", "manifold", "tikhonov", "shrinkage", "sharpness", "gamma", "mode"}
    assert found >= {*TABLES, "solver", "weights", "width", "n_anchors", "ridge"}
