"""Dask collections as rows: every method that needs sums over rows only, on any Dask cluster.

Nothing here is called by users: the estimators take this route when they are given a dask array or
data frame.  Work goes to the current ``distributed`` client; without one, to dask's own scheduler
in this process.
"""

from marginfold.runtime.extras import require

require("dask", "distributed")

from marginfold.on_dask.inputs import apply, read_labelled, read_rows  # noqa: E402

__all__ = ["apply", "read_labelled", "read_rows"]
