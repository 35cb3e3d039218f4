"""The calls of a session: name, typed parameters, and nothing else is let in."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from numbers import Integral
from typing import Any

from marginfold.errors import InvalidInputError, InvalidParameterError
from marginfold.validation.parameters import Choice, Constraint, Number, shown

MOST_LETTERS = 10_000
"""Letters of a name of a column or a table."""

MOST_ROWS = 200_000
"""Rows that a session shows; of more a sample is drawn."""

MOST_BYTES = 200_000_000
"""Bytes of a table that is sent, also unpacked."""

MOST_IDS = 50_000
"""Numbers of rows in one call."""

CLASSIFIERS = ("GESVC", "GEPSVC", "TwinSVC", "SVC")
"""Classifiers whose regions can be drawn."""

EXPORTS = ("csv", "svg", "png", "skops", "html")
"""What a map can be exported as."""


@dataclass(frozen=True)
class Whole:
    """A whole number between two others."""

    low: int
    high: int

    def allows(self, value: Any) -> bool:
        """Return whether the value is a whole number in range."""
        is_whole = isinstance(value, Integral) and not isinstance(value, bool)
        return is_whole and self.low <= int(value) <= self.high

    def __str__(self) -> str:
        return f"a whole number from {self.low} to {self.high}"


@dataclass(frozen=True)
class Text:
    """A text, or none where that is allowed."""

    optional: bool = False

    def allows(self, value: Any) -> bool:
        """Return whether the value is a text that is not too long."""
        if value is None:
            return self.optional
        return isinstance(value, str) and len(value) <= MOST_LETTERS

    def __str__(self) -> str:
        return f"a text of {MOST_LETTERS} letters at most" + (" or null" if self.optional else "")


@dataclass(frozen=True)
class Each:
    """A list whose items all meet a constraint."""

    item: Constraint
    fewest: int = 0
    most: int = MOST_IDS

    def allows(self, value: Any) -> bool:
        """Return whether the value is such a list."""
        if not isinstance(value, list) or not self.fewest <= len(value) <= self.most:
            return False
        return all(map(self.item.allows, value))

    def __str__(self) -> str:
        return f"a list of {self.fewest} to {self.most} items, each {self.item}"


class Settings:
    """Settings of a method by name; the method's own registry checks their values."""

    def allows(self, value: Any) -> bool:
        """Return whether the value is a mapping of names to plain values."""
        plain = (str, int, float, bool, type(None))
        return isinstance(value, dict) and all(isinstance(v, plain) for v in value.values())

    def __str__(self) -> str:
        return "an object of names and plain values"


class Setup:
    """A method with its settings."""

    def allows(self, value: Any) -> bool:
        """Return whether the value names a method and its settings, and nothing else."""
        if not isinstance(value, dict) or set(value) - {"method", "params"}:
            return False
        return isinstance(value.get("method"), str) and Settings().allows(value.get("params", {}))

    def __str__(self) -> str:
        return "an object of method and params"


@dataclass(frozen=True)
class Call:
    """What a call takes.

    Attributes
    ----------
    parameters : mapping
        A constraint for each name.
    defaults : mapping
        Values of those that may be left out.
    """

    parameters: Mapping[str, Constraint] = field(default_factory=dict)
    defaults: Mapping[str, Any] = field(default_factory=dict)


ROW = Whole(0, 2**31)
AXES = Each(Whole(0, 99), 2, 2)
IDENTITY = Whole(0, 2**31)
METHOD: dict[str, Constraint] = {"method": Text(), "params": Settings()}

CALLS: dict[str, Call] = {
    "describe": Call(),
    "open_set": Call({"name": Text()}),
    "choose": Call(
        {
            "target": Text(optional=True),
            "ignored": Each(Text(), most=20_000),
            "seed": Whole(0, 2**31 - 1),
            "held_out": Number(0.05, 0.9),
        },
        {"target": None, "ignored": [], "seed": 0, "held_out": 0.3},
    ),
    "plan": Call(METHOD, {"params": {}}),
    "fit": Call(METHOD, {"params": {}}),
    "path": Call(METHOD, {"params": {}}),
    "path_map": Call({"path": IDENTITY, "index": Whole(0, 999)}),
    "errors": Call({"map": IDENTITY, "axes": AXES}),
    "control": Call({"map": IDENTITY}),
    "rows": Call({"ids": Each(ROW)}),
    "loadings": Call({"map": IDENTITY, "row": ROW, "axes": AXES}, {"axes": [0, 1]}),
    "preimage": Call(
        {"map": IDENTITY, "at": Each(Number(-1e12, 1e12), 1, 100), "axes": Each(Whole(0, 99))},
        {"axes": []},
    ),
    "suspects": Call({"map": IDENTITY}),
    "relabel": Call({"ids": Each(ROW, 1), "label": Whole(0, 65_534)}),
    "undo": Call(),
    "regions": Call(
        {
            "map": IDENTITY,
            "axes": AXES,
            "classifier": Choice(*CLASSIFIERS),
            "size": Whole(8, 512),
        },
        {"axes": [0, 1], "classifier": "SVC", "size": 128},
    ),
    "code": Call({"maps": Each(Setup(), 0, 8)}, {"maps": []}),
    "export": Call(
        {"map": IDENTITY, "kind": Choice(*EXPORTS), "axes": AXES, "maps": Each(IDENTITY, 0, 4)},
        {"axes": [0, 1], "maps": []},
    ),
}
"""Every call that a page can make."""


def checked(name: str, params: Any) -> dict[str, Any]:
    """Return the parameters of a call with its defaults; refuse whatever is not in the registry.

    Examples
    --------
    >>> from marginfold.explorer.calls import checked
    >>> checked("loadings", {"map": 1, "row": 0})
    {'axes': [0, 1], 'map': 1, 'row': 0}
    >>> checked("undo", {"all": True})
    Traceback (most recent call last):
    marginfold.errors.InvalidParameterError: undo takes no parameter 'all'; it takes none.
    """
    if not isinstance(name, str) or name not in CALLS:
        close = get_close_matches(str(name), CALLS, n=1)
        meant = f"did you mean {close[0]}? " if close else ""
        known = ", ".join(CALLS)
        raise InvalidParameterError(f"there is no call {shown(name)}; {meant}Known are {known}.")
    call = CALLS[name]
    if not isinstance(params, dict):
        raise InvalidParameterError(f"{name} takes an object of parameters; got {shown(params)}.")
    for given in params:
        if given not in call.parameters:
            takes = ", ".join(call.parameters) or "none"
            raise InvalidParameterError(
                f"{name} takes no parameter {shown(given)}; it takes {takes}."
            )
    whole = {**call.defaults, **params}
    for parameter, constraint in call.parameters.items():
        if parameter not in whole:
            raise InvalidParameterError(f"{name} lacks {parameter}, {constraint}.")
        if not constraint.allows(whole[parameter]):
            raise InvalidParameterError(
                f"{parameter} of {name} must be {constraint}; got {shown(whole[parameter])}."
            )
    return whole


def parsed(content: bytes) -> Any:
    """Return the parameters of a call that were sent as JSON; numbers that JSON has not are null.

    Examples
    --------
    >>> from marginfold.explorer.calls import parsed
    >>> parsed(b'{"map": 1, "at": [NaN]}')
    {'map': 1, 'at': [None]}
    """
    try:
        return json.loads(content or b"{}", parse_constant=lambda name: None)
    except (ValueError, RecursionError) as error:
        raise InvalidInputError(f"the parameters are no JSON ({error}).") from None
