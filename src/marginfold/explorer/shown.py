"""Maps and paths that a session has computed, each with what it was fitted to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from marginfold.explorer import fits
from marginfold.explorer.bodies import map_body, told
from marginfold.explorer.frames import Answer, quantised
from marginfold.explorer.table import Table


@dataclass(frozen=True, eq=False)
class ShownMap:
    """A fitted map with what it was fitted to."""

    method: str
    params: dict[str, Any]
    fitted: fits.Fitted
    table: Table
    rows: fits.Rows

    def answer(self, number: int) -> Answer:
        """Return it as the answer to a fit."""
        body = map_body(self.method, self.params, self.fitted, self.table.classes)
        coordinates = self.fitted.coordinates.astype(np.float32)
        return {"map": number} | body, {"coordinates": coordinates}

    def errors(self, axes: Sequence[int]) -> fits.Errors:
        """Return the errors of neighbors on some axes (0.02 s at 5000 rows)."""
        return fits.count_errors(self.fitted.coordinates[:, sorted(set(axes))], self.rows)


@dataclass(frozen=True, eq=False)
class ShownPath:
    """A path with what it was fitted to."""

    method: str
    params: dict[str, Any]
    found: fits.Path
    table: Table
    rows: fits.Rows

    def answer(self, number: int, weight: float) -> Answer:
        """Return it as the answer to a call; the step nearest to the weight is the chosen one."""
        here = np.abs(np.array(self.found.weights) - weight).argmin()
        body = {
            "path": number,
            "weights": self.found.weights,
            "errors": [told(error) for error in self.found.errors],
            "chosen": int(here),
            "axes": [f"{self.method} 1", f"{self.method} 2"],
            "seconds": self.found.seconds,
        }
        return body, quantised(self.found.coordinates)

    def holds(self, shown: ShownMap) -> bool:
        """Return whether a map lies on the path."""
        same = self.method == shown.method and self.rows.labels is shown.rows.labels
        return same and _but_weight(self.params) == _but_weight(shown.params)


def _but_weight(params: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in params.items() if name != "graph_weight"}
