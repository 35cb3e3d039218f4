"""Paper 003, manifold regularised proximal planes: Tables 1-5, Figures 5-6 and their controls."""

from __future__ import annotations

from marginfold.protocols.papers.mrgepsvm_figures import figures
from marginfold.protocols.papers.mrgepsvm_methods import STUDY
from marginfold.protocols.papers.mrgepsvm_runs import plan
from marginfold.protocols.papers.mrgepsvm_tables import tables

__all__ = ["STUDY", "figures", "plan", "tables"]
