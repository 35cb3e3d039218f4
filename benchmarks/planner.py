"""What `plan` foretells against what a fit takes: memory and time of whole fits, each in a process.

``python benchmarks/planner.py [--quick]`` prints a line for each case.  The memory is the largest
resident size during the fit less that before it (Linux only); times are CPU seconds on one thread.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lines import Line

MEMORY_NEEDED, TIME_NEEDED = 2.0, 4.0
"""Factors within which the foretold memory and time should be."""


@dataclass(frozen=True)
class Case:
    """A fit: an expression for the estimator, the shape of the rows, and the number of classes."""

    estimator: str
    n_rows: int
    n_columns: int
    n_classes: int = 3
    density: float = 1.0

    def __str__(self) -> str:
        sparse = f", {self.density:.0%} stored" if self.density < 1 else ""
        return f"{self.estimator}, {self.n_rows} x {self.n_columns}{sparse}"


QUICK = [
    Case("MMDA(5)", 200_000, 20),
    Case("LSVA(5)", 10_000, 20),
    Case("KDA()", 1500, 20),
    Case("SVMPCA(kernel='rbf')", 3000, 20),
    Case("GESVC(graph='within')", 300, 5000),
]
"""One case of each route."""

CASES = [
    *QUICK,
    Case("WSVDA(5)", 200_000, 20),
    Case("LSVA(5, graph='within')", 100_000, 50),
    Case("LSVA(5)", 40_000, 20),
    Case("LSVA(5)", 40_000, 5),
    Case("LSVA(5, graph='anchors')", 100_000, 20),
    Case("LSVA(5, kernel='rbf')", 1500, 20),
    Case("LSVA(5, graph='within', kernel=LowRankKernel('rbf', rank=200))", 50_000, 20),
    Case("LSVA(5, graph='within', kernel=Nystroem(n_components=300))", 20_000, 20),
    Case("KDA(kernel=LowRankKernel('rbf', rank=300))", 50_000, 20),
    Case("SVMPCA(10, kernel=LowRankKernel('rbf', rank=300))", 50_000, 20),
    Case("GESVC(graph='within')", 50_000, 50),
    Case("GESVC(graph='within')", 50_000, 20, 10),
    Case("LapSVC()", 10_000, 20),
    Case("SVMPCA()", 200_000, 50),
    Case("LDA()", 200_000, 50),
    Case("LPP()", 20_000, 20),
    Case("NPE()", 20_000, 20),
    Case("GraphEmbedding(intrinsic='within', penalty='between')", 100_000, 20),
    Case("LaplacianEigenmaps()", 20_000, 10),
    Case("LocallyLinearEmbedding()", 8000, 3),
    Case("GEPSVC()", 200_000, 20),
    Case("TwinSVC()", 50_000, 20),
    Case("MRGEPSVC()", 20_000, 20),
    Case("MarginMap()", 1500, 20),
    Case("MarginMap()", 10_000, 20),
    Case("LSVA(5, graph='within')", 20_000, 300, 3, 0.02),
    Case("MMDA(5)", 1_000_000, 20),
]
"""All cases: about five minutes."""


def lines(quick: bool) -> list[Line]:
    """Return a line for each case: foretold, measured, and their ratio."""
    return [_line(case, _measured(case)) for case in (QUICK if quick else CASES)]


def _line(case: Case, got: dict[str, float]) -> Line:
    memory = got["planned_bytes"] / got["bytes"]
    seconds = got["planned_seconds"] / got["seconds"]
    return Line(
        work=f"plan: {case}",
        ours=f"{got['planned_bytes'] / 1e6:.0f} MB, {got['planned_seconds']:.2g} s",
        theirs=f"{got['bytes'] / 1e6:.0f} MB, {got['seconds']:.2g} s measured once",
        ratio=f"{memory:.2f} memory, {seconds:.2f} time",
        needed=f"within {MEMORY_NEEDED:.0f}x and {TIME_NEEDED:.0f}x",
    )


def _measured(case: Case) -> dict[str, float]:
    """Run a case in a process of its own, so that nothing else counts."""
    place = CASES.index(case)
    environment = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    done = subprocess.run(
        [sys.executable, __file__, "--case", str(place)],
        capture_output=True,
        text=True,
        env=os.environ | environment,
        check=True,
    )
    found: dict[str, float] = json.loads(done.stdout)
    return found


def _run(case: Case) -> dict[str, float]:
    """Plan and fit a case in this process."""
    from sklearn.kernel_approximation import Nystroem

    import marginfold
    from marginfold.feature_maps import LowRankKernel
    from marginfold.planner import plan

    warnings.simplefilter("ignore")
    names = {"Nystroem": Nystroem, "LowRankKernel": LowRankKernel}
    names |= {name: getattr(marginfold, name) for name in marginfold.__all__}
    small = Case(case.estimator, 400, 10, case.n_classes)
    eval(case.estimator, names).fit(*_data(small))  # imports and first calls are not counted
    X, y = _data(case)
    estimator = eval(case.estimator, names)
    planned = plan(estimator, X, y)
    Path("/proc/self/clear_refs").write_text("5")  # the largest size starts again from here
    before, begun = _status("VmRSS"), time.process_time()
    estimator.fit(X, y)
    seconds, peak = time.process_time() - begun, _status("VmHWM")
    return {
        "planned_bytes": planned.memory_bytes,
        "planned_seconds": planned.seconds,
        "bytes": max(peak - before, 1),
        "seconds": seconds,
    }


def _data(case: Case) -> tuple[Any, Any]:
    """Return classes that overlap, shifted along one column each."""
    import numpy as np
    import scipy.sparse as sp

    rng = np.random.default_rng(0)
    y = rng.integers(0, case.n_classes, case.n_rows)
    shape = (case.n_rows, case.n_columns)
    if case.density < 1:
        return sp.random_array(shape, density=case.density, format="csr", rng=rng), y
    X = rng.normal(size=shape)
    shifted = min(case.n_columns, case.n_classes)
    X[:, :shifted] += 1.5 * (y[:, None] == np.arange(shifted))
    return X, y


def _status(name: str) -> int:
    found = re.search(rf"{name}:\s*(\d+) kB", Path("/proc/self/status").read_text())
    return int(found[1]) * 1024 if found else 0


if __name__ == "__main__":
    if "--case" in sys.argv:
        print(json.dumps(_run(CASES[int(sys.argv[-1])])))
    else:
        for line in lines("--quick" in sys.argv):
            print(line)
