"""Paper 001, within support vector discriminant analysis: Table 3, Figures 2-4, their controls."""

from __future__ import annotations

from marginfold.protocols.papers.wsvda_figures import figures
from marginfold.protocols.papers.wsvda_runs import STUDY, plan
from marginfold.protocols.papers.wsvda_tables import tables

__all__ = ["STUDY", "figures", "plan", "tables"]
