"""Independent calls on local processes or on a cluster, retried when a process dies."""

from marginfold.executors.calls import run_calls
from marginfold.executors.processes import ProcessPool, serve_processes
from marginfold.executors.serialization import ATTEMPTS

__all__ = ["ATTEMPTS", "ProcessPool", "run_calls", "serve_processes"]
