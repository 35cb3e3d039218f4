"""What a fit will cost, before it is started: ``plan(estimator, X)``."""

from __future__ import annotations

from marginfold.planner.plan import Plan, Step, plan

__all__ = ["Plan", "Step", "plan"]
