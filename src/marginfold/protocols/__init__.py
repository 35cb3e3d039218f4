"""Protocols: how results are measured, stored as records, and put beside the printed ones."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from marginfold.protocols.hidden_labels import HideLabels
    from marginfold.protocols.label_curves import LabelCurve, label_share_curve
    from marginfold.protocols.permutation import PermutationResult, graph_permutation_test
    from marginfold.protocols.records import Record, RecordStore
    from marginfold.protocols.statistics import Interval, Wins, paired_interval, wins

__all__ = [
    "HideLabels",
    "Interval",
    "LabelCurve",
    "PermutationResult",
    "Record",
    "RecordStore",
    "Wins",
    "graph_permutation_test",
    "label_share_curve",
    "paired_interval",
    "wins",
]

_NAMES = {
    "hidden_labels": ("HideLabels",),
    "label_curves": ("LabelCurve", "label_share_curve"),
    "permutation": ("PermutationResult", "graph_permutation_test"),
    "records": ("Record", "RecordStore"),
    "statistics": ("Interval", "Wins", "paired_interval", "wins"),
}
_HOME = {name: module for module, names in _NAMES.items() for name in names}
"""The module of each name: it is imported when the name is first used, so that processes which
only run tasks start quickly."""


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'marginfold.protocols' has no attribute {name!r}")
    return getattr(import_module(f"marginfold.protocols.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
