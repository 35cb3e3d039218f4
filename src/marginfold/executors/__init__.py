"""Independent calls on local processes or on a cluster; one that loses its process runs again."""

from marginfold.executors.calls import ATTEMPTS, run_calls

__all__ = ["ATTEMPTS", "run_calls"]
