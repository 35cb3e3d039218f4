"""Time the whole of paper 000's Table I: 9 sets, 30 weights, 5 folds, all dimensions, 6 methods.

``python benchmarks/table_one.py`` prints the wall time on two processes and the CPU time of each
method.  One graph and one factorisation answer all weights of a fold, and one fit all dimensions:
the number of separate fits that this stands for is printed beside.  Sets that are not bundled
(australian) are read from MARGINFOLD_DATA or left out, and named.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections import defaultdict

from marginfold.papers.lsva import study_tasks
from marginfold.protocols.records import RecordStore
from marginfold.protocols.run import run_tasks
from marginfold.protocols.studies import StudySize

ONE_SEED = StudySize("full", 1, 30, 8, 12, controls=False)
"""The paper's grid, one partition of the rows."""

PRINTED = ("1-NN", "LLSVA", "PCA", "LDA", "LPP", "MMDA")
"""The columns of the table."""


def main() -> None:
    """Run the table and print the times."""
    tasks = [task for task in study_tasks(ONE_SEED, "I") if task.method in PRINTED]
    with tempfile.TemporaryDirectory() as folder, RecordStore(folder) as store:
        start = time.perf_counter()
        summary = run_tasks(tasks, store, n_jobs=2)
        wall = time.perf_counter() - start
        records = store.read()
    seconds: dict[str, dict[str, float]] = defaultdict(dict)
    rows: dict[str, int] = defaultdict(int)
    for record in records:
        seconds[record.method][record.task] = record.seconds
        rows[record.method] += record.value is not None
    print(f"{len(tasks)} tasks on 2 processes: {wall:.0f} s; {summary}")
    for method in PRINTED:
        spent = sum(seconds[method].values())
        print(f"{method:6} {spent:7.1f} s CPU, {rows[method]:6} errors by weight and dimension")
    for reason in sorted({r.reason for r in records if r.status != "done"}):
        print(reason, file=sys.stderr)


if __name__ == "__main__":
    main()
