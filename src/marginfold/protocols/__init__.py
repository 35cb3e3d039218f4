"""Protocols: how results are measured, stored as records, and put beside the printed ones."""

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
