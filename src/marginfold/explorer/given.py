"""A map that was fitted before the session."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from marginfold.errors import InvalidInputError


@dataclass(frozen=True, eq=False)
class Given:
    """A map that was fitted before the session, and the rows as it takes them.

    Attributes
    ----------
    name : str
        What it is called among the methods.
    estimator : estimator
        Fitted, with ``transform``.
    X : array
        All rows of the table, before its own treatment of columns.
    """

    name: str
    estimator: Any
    X: Any

    @classmethod
    def of(cls, estimator: Any, X: Any, held_out: Any = None) -> Given:
        """Return a fitted map with its rows, the held-out ones last."""
        if not hasattr(estimator, "transform"):
            raise InvalidInputError(
                f"{type(estimator).__name__} has no transform; a map places rows by it."
            )
        rows = np.asarray(X) if held_out is None else np.vstack([X, held_out[0]])
        return cls(f"{type(estimator).__name__} as fitted", estimator, rows)

    def listed(self) -> dict[str, Any]:
        """Return it as a page is told of methods."""
        title = f"{self.name}: it was fitted before, perhaps to some of these rows"
        plain = {"group": "map", "path": False, "graph": False, "controls": [], "why_not": None}
        return {"name": self.name, "title": title, "plan": "fitted already", **plain}
