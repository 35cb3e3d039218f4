"""SubspaceSearchCV against GridSearchCV over the pipeline of the same estimator.

30 graph weights x 10 numbers of components x 5 folds, nearest neighbor, n = 1000, d = 30.  Single-
thread CPU seconds.  Both sides fit with the same solver, every fit certified to a relative duality
gap of 1e-8 (a fit that is not would end the run); the scores that both report are compared, and
must be equal.  GridSearchCV is measured once, on a part of the weights, and the line says on how
many: each weight costs it the same number of fits.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable

import numpy as np
from lines import REPEATS, Line, Times, cpu, repeat
from sklearn.datasets import make_classification
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline
from threadpoolctl import threadpool_limits

from marginfold import LSVA, SubspaceSearchCV
from marginfold.errors import UncertifiedWarning

WEIGHTS = np.logspace(-2, 2, 30)
N_COMPONENTS = 10
N_FOLDS = 5
NEEDED = ">= 50"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="GridSearchCV on one weight only")
    for line in lines(parser.parse_args().quick):
        sys.stdout.write(f"{line}\n")


def lines(quick: bool) -> list[Line]:
    """Return one line for each cost."""
    X, y = make_classification(
        1000, 30, n_informative=10, n_redundant=5, class_sep=0.6, flip_y=0.1, random_state=0
    )
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("error", UncertifiedWarning)
        return [
            _line(X, y, C, WEIGHTS[14:15] if quick else weights, quick)
            for C, weights in [(100.0, WEIGHTS[::5]), (1.0, WEIGHTS[::10])]
            if C > 1 or not quick
        ]


def _line(X: np.ndarray, y: np.ndarray, C: float, sample: np.ndarray, quick: bool) -> Line:
    search = SubspaceSearchCV(LSVA(N_COMPONENTS, C=C), graph_weight=WEIGHTS, cv=N_FOLDS)
    ours = repeat(_fitting(search, X, y), 2 if quick else REPEATS)
    grid = _grid_search(C, sample)
    spent = cpu(_fitting(grid, X, y)) * len(WEIGHTS) / len(sample)
    _check_equal(search, grid)
    whole = len(sample) == len(WEIGHTS)
    how = "all weights" if whole else f"{len(sample)} of {len(WEIGHTS)} weights, extrapolated"
    return Line(
        work=f"SubspaceSearchCV, 30 weights x 10 dimensions x 5 folds, n = 1000, d = 30, C = {C:g}",
        ours=ours,
        theirs=f"GridSearchCV, {how}: {Times((spent,))}",
        ratio=f"{spent / ours.median:.3g}x ({spent / max(ours.seconds):.3g} to "
        f"{spent / min(ours.seconds):.3g})",
        needed=NEEDED,
    )


def _fitting(search: object, X: np.ndarray, y: np.ndarray) -> Callable[[], object]:
    return lambda: search.fit(X, y)


def _grid_search(C: float, weights: np.ndarray) -> GridSearchCV:
    steps = [("subspace", LSVA(C=C)), ("classifier", KNeighborsClassifier(1))]
    grid = {
        "subspace__graph_weight": weights,
        "subspace__n_components": list(range(1, N_COMPONENTS + 1)),
    }
    return GridSearchCV(Pipeline(steps), grid, cv=N_FOLDS, refit=False)


def _check_equal(search: SubspaceSearchCV, grid: GridSearchCV) -> None:
    """Stop if a score that both sides measured differs in any digit."""
    tried = search.cv_results_["param_graph_weight"].data
    common = np.isin(tried, grid.cv_results_["param_subspace__graph_weight"].data.astype(float))
    for split in range(N_FOLDS):
        key = f"split{split}_test_score"
        if not np.array_equal(search.cv_results_[key][common], grid.cv_results_[key]):
            raise SystemExit(f"The scores differ in {key}.")


if __name__ == "__main__":
    main()
