"""Paper 004, principal components as a support vector problem: Figures 2, 4 and 5."""

from __future__ import annotations

from marginfold.protocols.papers.svmpca_figures import figures
from marginfold.protocols.papers.svmpca_runs import STUDY, plan
from marginfold.protocols.papers.svmpca_tables import tables

__all__ = ["STUDY", "figures", "plan", "tables"]
