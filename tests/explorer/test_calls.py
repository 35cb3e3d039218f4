from __future__ import annotations

import re

import pytest

from marginfold.compare.table import Size
from marginfold.errors import InvalidParameterError
from marginfold.explorer.calls import CALLS, checked
from marginfold.explorer.methods import METHODS, controls_of, estimator_of
from marginfold.explorer.session import Session


def test_every_call_of_the_registry_is_answered_by_the_session():
    assert all(callable(getattr(Session, f"_{name}")) for name in CALLS)


@pytest.mark.parametrize(
    ("name", "params", "said"),
    [
        ("nothing", {}, "there is no call 'nothing'"),
        ("__init__", {}, "there is no call"),
        ("close", {}, "there is no call"),
        ("fit", {"method": "LSVA", "evil": 1}, "takes no parameter 'evil'"),
        ("fit", {}, "lacks method"),
        ("fit", [], "takes an object"),
        ("rows", {"ids": [-1]}, "ids of rows must be"),
        ("rows", {"ids": [True]}, "ids of rows must be"),
        ("rows", {"ids": [1.5]}, "ids of rows must be"),
        ("rows", {"ids": "all"}, "ids of rows must be"),
        ("loadings", {"map": 1, "row": 0, "axes": [0]}, "axes of loadings"),
        ("regions", {"map": 1, "classifier": "eval"}, "classifier of regions"),
        ("regions", {"map": 1, "size": 10**6}, "size of regions"),
        ("choose", {"held_out": 1.5}, "held_out of choose"),
        ("choose", {"seed": -1}, "seed of choose"),
        ("fit", {"method": "LSVA", "params": {"C": [1]}}, "params of fit"),
        ("code", {"maps": [{"method": "LSVA", "path": "/"}]}, "maps of code"),
    ],
)
def test_what_is_not_in_the_registry_is_refused_with_what_is_allowed(name, params, said):
    with pytest.raises(InvalidParameterError, match=re.escape(said)):
        checked(name, params)


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("nope", {}),
        ("LSVA", {"kernel": "rbf"}),
        ("LSVA", {"C": -1.0}),
        ("LSVA", {"C": "1; import os"}),
        ("LSVA", {"neighbors": 2.5}),
        ("LSVA", {"n_components": 11}),
        ("LSVA", {"graph_weight": None}),
        ("KPCA", {"kernel": "__import__"}),
        ("PCA", {"n_components": True}),
    ],
)
def test_settings_outside_their_control_are_refused(method, params):
    with pytest.raises(InvalidParameterError):
        estimator_of(method, Size(150, 4, 3), params)


@pytest.mark.parametrize("method", METHODS)
def test_every_control_moves_a_parameter_of_the_estimator(method):
    size = Size(600, 20, 3)
    plain = repr(estimator_of(method, size, {}))
    for control in controls_of(method, size):
        if control.kind == "choice":
            other = next(value for value in control.choices if value != control.value)
        else:
            other = control.low if control.value != control.low else control.high
        assert repr(estimator_of(method, size, {control.name: other})) != plain
