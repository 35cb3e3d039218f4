"""Paper 002, graph embedded support vector machines: Tables 4 and 5 and their controls."""

from __future__ import annotations

from marginfold.papers.gesvm.runs import STUDY, plan
from marginfold.papers.gesvm.tables import figures, tables

__all__ = ["STUDY", "figures", "plan", "tables"]
