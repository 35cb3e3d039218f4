"""Paper 004, principal components as a support vector problem: Figures 2, 4 and 5."""

from __future__ import annotations

from marginfold.papers.svmpca.figures import figures
from marginfold.papers.svmpca.runs import STUDY, plan
from marginfold.papers.svmpca.tables import tables

__all__ = ["STUDY", "figures", "plan", "tables"]
