"""What answers say of a fitted map, in plain values."""

from __future__ import annotations

from typing import Any

import numpy as np

from marginfold.explorer import fits
from marginfold.explorer.methods import METHODS
from marginfold.linalg.tall import Array
from marginfold.protocols.statistics import Share

NOTHING: dict[str, Any] = {
    "name": "",
    "rows": 0,
    "shown": 0,
    "sampled": None,
    "target": None,
    "targets": [],
    "columns": [],
    "classes": [],
    "split": {"seed": 0, "share": 0.0, "training": 0, "held_out": 0},
    "notes": [],
    "methods": [],
    "edits": 0,
    "edited": None,
}
"""What is described where no table is open."""


def map_body(
    method: str, params: dict[str, Any], fitted: fits.Fitted, classes: Array
) -> dict[str, Any]:
    """Return what is told of a fitted map beside its coordinates."""
    estimator, k = fitted.estimator, fitted.coordinates.shape[1]
    known = METHODS.get(method)  # None for one that was fitted before
    return {
        "method": method,
        "params": params,
        "axes": [f"{method} {axis + 1}" for axis in range(k)],
        "gain": _listed(estimator, "gain_", "explained_variance_ratio_"),
        "new_gain": _listed(estimator, "new_gain_"),
        "errors": {
            **told_errors(fitted.drawn),
            "all": told_errors(fitted.whole),
            "neighbors": fits.NEIGHBORS,
        },
        "seconds": fitted.seconds,
        "gap": _largest(estimator, "gap_"),
        "notes": fitted.notes,
        "has": {
            "loadings": known is not None and hasattr(estimator, "loadings"),
            "preimage": known is not None and hasattr(estimator, "inverse_transform"),
            "path": known is not None and known.path,
            "control": known is not None and known.graph and params.get("graph_weight") != 0,
            "suspects": known is not None,
        },
        "anchors": _anchors(estimator, classes),
    }


def told_errors(errors: fits.Errors) -> dict[str, Any]:
    """Return both errors of a map."""
    return {"held_out": told(errors.held_out), "training": told(errors.training)}


def told(share: Share) -> dict[str, Any]:
    """Return an error with its interval and its sentence."""
    return {
        "value": share.value,
        "low": share.low,
        "high": share.high,
        "n": share.n,
        "text": str(share),
    }


def _listed(estimator: Any, *names: str) -> list[float] | None:
    """Return the first of these attributes that there is."""
    for name in names:
        if hasattr(estimator, name):
            return np.asarray(getattr(estimator, name), dtype=float).tolist()
    return None


def _largest(estimator: Any, name: str) -> float | None:
    values = _listed(estimator, name)
    return max(values) if values else None


def _anchors(estimator: Any, classes: Array) -> list[dict[str, Any]] | None:
    if not hasattr(estimator, "anchors_"):
        return None
    places = np.searchsorted(classes, estimator.classes_)
    return [
        {"class": int(place), "at": at.tolist()}
        for place, at in zip(places, estimator.anchors_, strict=True)
    ]
