"""Paper 001, within support vector discriminant analysis: Table 3, Figures 2-4, their controls."""

from __future__ import annotations

from marginfold.papers.wsvda.figures import figures
from marginfold.papers.wsvda.runs import STUDY, plan
from marginfold.papers.wsvda.tables import tables

__all__ = ["STUDY", "figures", "plan", "tables"]
