"""Protocols: how results are measured, stored as records, and put beside the printed ones."""

from marginfold.protocols.hidden_labels import HideLabels
from marginfold.protocols.label_curves import LabelCurve, label_share_curve
from marginfold.protocols.permutation import PermutationResult, graph_permutation_test
from marginfold.protocols.records import Record, RecordStore

__all__ = [
    "HideLabels",
    "LabelCurve",
    "PermutationResult",
    "Record",
    "RecordStore",
    "graph_permutation_test",
    "label_share_curve",
]
