"""Parameter constraints as data: a small table per estimator, checked once in ``fit``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, Protocol

import numpy as np

from marginfold.errors import InvalidParameterError

SHOWN_LENGTH = 80
"""Characters of a value that an error shows."""


class Constraint(Protocol):
    """Something that can tell whether a value is allowed and say what is."""

    def allows(self, value: Any) -> bool:
        """Return whether the value is in range."""

    def __str__(self) -> str:
        """Describe the allowed values."""


@dataclass(frozen=True)
class Number:
    """A finite real number above (or at) a lower bound, and below an upper one."""

    low: float = -np.inf
    high: float = np.inf
    inclusive: bool = True

    def allows(self, value: Any) -> bool:
        """Return whether the value is a finite number in range."""
        if isinstance(value, bool) or not isinstance(value, Real):
            return False
        number = float(value)
        above = number >= self.low if self.inclusive else number > self.low
        return bool(np.isfinite(number)) and above and number < self.high

    def __str__(self) -> str:
        if self.low == -np.inf:
            return "a finite number"
        relation = ">=" if self.inclusive else ">"
        above = f"a finite number {relation} {self.low:g}"
        return above if self.high == np.inf else f"{above} and < {self.high:g}"


@dataclass(frozen=True)
class Count:
    """A whole number at or above a lower bound."""

    low: int = 1

    def allows(self, value: Any) -> bool:
        """Return whether the value is a whole number in range."""
        if isinstance(value, bool) or not isinstance(value, Integral):
            return False
        return int(value) >= self.low

    def __str__(self) -> str:
        return f"a whole number >= {self.low}"


class Choice:
    """One of a few values."""

    def __init__(self, *options: Any) -> None:
        self.options = options

    def allows(self, value: Any) -> bool:
        """Return whether the value is one of the options, of its type."""
        kind = str if isinstance(value, str) else type(value)
        return any(kind is type(option) and value == option for option in self.options)

    def __str__(self) -> str:
        named = ", ".join(repr(option) for option in self.options)
        return named if len(self.options) == 1 else f"one of {named}"


class Either:
    """Whatever one of several constraints allows."""

    def __init__(self, *options: Constraint) -> None:
        self.options = options

    def allows(self, value: Any) -> bool:
        """Return whether one of the constraints allows the value."""
        return any(option.allows(value) for option in self.options)

    def __str__(self) -> str:
        return " or ".join(str(option) for option in self.options)


class Flag:
    """True or False."""

    def allows(self, value: Any) -> bool:
        """Return whether the value is a truth value."""
        return isinstance(value, (bool, np.bool_))

    def __str__(self) -> str:
        return "True or False"


LARGEST_FACTOR = 1e150
"""Factors below this can be squared, and multiplied by each other, without an overflow."""

FACTOR = Number(0.0, LARGEST_FACTOR)
"""A number that something is multiplied by: a weight of a graph."""

POSITIVE_FACTOR = Number(0.0, LARGEST_FACTOR, inclusive=False)
"""One that must not be 0: a cost, a ridge, a width, a coefficient of a kernel."""

TOLERANCE = Number(0.0, 1.0, inclusive=False)
"""A relative duality gap: 1 is that of any point at all, and certifies nothing."""


def check_parameters(owner: object, constraints: Mapping[str, Constraint]) -> None:
    """Raise `InvalidParameterError` for the first parameter that is out of range."""
    for name, constraint in constraints.items():
        value = getattr(owner, name)
        if not constraint.allows(value):
            raise InvalidParameterError(
                f"{type(owner).__name__}: {name} must be {constraint}; got {shown(value)}."
            )


def check_arguments(**arguments: tuple[Any, Constraint]) -> None:
    """Raise `InvalidParameterError` for the first argument of a function that is out of range."""
    for name, (value, constraint) in arguments.items():
        if not constraint.allows(value):
            raise InvalidParameterError(f"{name} must be {constraint}; got {shown(value)}.")


def shown(value: Any) -> str:
    """Return the representation of a value, cut if it is long."""
    text = " ".join(repr(value).split())
    return text if len(text) <= SHOWN_LENGTH else text[:SHOWN_LENGTH] + " ..."


@contextmanager
def atomic_fit(estimator: object) -> Iterator[None]:
    """Drop the attributes of an earlier fit, and restore them if the body raises."""
    before = dict(vars(estimator))
    for name in before:
        if name.endswith("_") and not name.startswith("_"):
            delattr(estimator, name)
    try:
        yield
    except BaseException:
        vars(estimator).clear()
        vars(estimator).update(before)
        raise
