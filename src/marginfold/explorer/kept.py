"""The latest values of a session, by number."""

from __future__ import annotations

from collections import OrderedDict
from typing import Generic, TypeVar

from marginfold.errors import InvalidInputError

KEPT = 32
"""Maps and paths that a session keeps; older ones are fitted again where they are wanted."""

K = TypeVar("K")


class Kept(Generic[K]):
    """The latest values by number.

    Examples
    --------
    >>> from marginfold.explorer.kept import Kept
    >>> maps = Kept[str]("map")
    >>> maps.get(maps.add("first"))
    'first'
    """

    def __init__(self, what: str) -> None:
        self._what = what
        self._values: OrderedDict[int, K] = OrderedDict()
        self._number = 0

    def add(self, value: K) -> int:
        """Keep a value and return its number; forget the oldest of too many."""
        self._number += 1
        self._values[self._number] = value
        while len(self._values) > KEPT:
            self._values.popitem(last=False)
        return self._number

    def get(self, number: int) -> K:
        """Return a value that is still there."""
        if number not in self._values:
            raise InvalidInputError(
                f"there is no {self._what} {number} (any more); fit it again on this table."
            )
        return self._values[number]

    def items(self) -> list[tuple[int, K]]:
        """Return what is kept with its numbers, latest first."""
        return list(reversed(self._values.items()))

    def clear(self) -> None:
        """Forget all values; numbers go on."""
        self._values.clear()
