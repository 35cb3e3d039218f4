"""Independent calls on local processes or on a cluster, retried when a process dies."""

from marginfold.executors.calls import ATTEMPTS, run_calls

__all__ = ["ATTEMPTS", "run_calls"]
