"""Paper 003, manifold regularised proximal planes: Tables 1-5, Figures 5-6 and their controls."""

from __future__ import annotations

from marginfold.papers.mrgepsvm.figures import figures
from marginfold.papers.mrgepsvm.methods import STUDY
from marginfold.papers.mrgepsvm.runs import plan
from marginfold.papers.mrgepsvm.tables import tables

__all__ = ["STUDY", "figures", "plan", "tables"]
