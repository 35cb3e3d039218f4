"""Paper 000, Laplacian support vector analysis: Tables I-IV, Figures 1-2 and their controls."""

from __future__ import annotations

from marginfold.papers.lsva.runs import STUDY, plan
from marginfold.papers.lsva.tables import figures, tables

__all__ = ["STUDY", "figures", "plan", "tables"]
