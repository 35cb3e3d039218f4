"""SubspaceSearchCV against GridSearchCV over the pipeline of the same estimator.

30 graph weights x 10 numbers of components x 5 folds, nearest neighbor, n = 1000, d = 30.  Single-
thread CPU seconds.  Both sides fit with the same solver, every fit certified to a relative duality
gap of 1e-8 (a fit that is not would end the run); the scores that both report are compared, and
must be equal.  GridSearchCV is measured on one weight at a time, in turn with ours, and multiplied
by their number: each weight costs it the same number of fits.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable

import numpy as np
from lines import REPEATS, Line, Times, cpu
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
        sample = WEIGHTS[14:15] if quick else WEIGHTS[:: len(WEIGHTS) // REPEATS]
        return [_line(X, y, C, sample) for C in (100.0, 1.0) if C > 1 or not quick]


def _line(X: np.ndarray, y: np.ndarray, C: float, sample: np.ndarray) -> Line:
    """Measure both sides in turn, GridSearchCV on one weight at a time."""
    search = SubspaceSearchCV(LSVA(N_COMPONENTS, C=C), graph_weight=WEIGHTS, cv=N_FOLDS)
    search.fit(X, y)
    ours, theirs = [], []
    for weight in sample:
        ours.append(cpu(_fitting(search, X, y)))
        grid = _grid_search(C, [weight])
        theirs.append(cpu(_fitting(grid, X, y)) * len(WEIGHTS))
        _check_equal(search, grid)
    mean, median = sum(theirs) / len(theirs), Times(tuple(ours)).median
    turns = [their / our for our, their in zip(ours, theirs, strict=True)]
    return Line(
        work=f"SubspaceSearchCV, 30 weights x 10 dimensions x 5 folds, n = 1000, d = 30, C = {C:g}",
        ours=Times(tuple(ours)),
        theirs=f"GridSearchCV on {len(sample)} weights in turn, each x 30: {mean:.3g} s "
        f"({min(theirs):.3g} to {max(theirs):.3g})",
        ratio=f"{mean / median:.3g}x ({min(turns):.3g} to {max(turns):.3g})",
        needed=NEEDED,
    )


def _fitting(search: object, X: np.ndarray, y: np.ndarray) -> Callable[[], object]:
    return lambda: search.fit(X, y)


def _grid_search(C: float, weights: list[float]) -> GridSearchCV:
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
