"""SubspaceSearchCV against GridSearchCV over the pipeline of the same estimator.

A long grid (30 graph weights x 10 numbers of components x 5 folds, n = 1000, d = 30) and a short
one (6 x 8 x 5, n = 600, d = 20, 3 classes), nearest neighbor.  Single-thread CPU seconds.  Both
sides fit with the same solver, every fit certified to a relative duality gap of 1e-8 (a fit that is
not would end the run); the scores that both report are compared, and must be equal.  On the long
grid GridSearchCV is measured on one weight at a time, in turn with ours, and multiplied by their
number: each weight costs it the same number of fits.  The last lines are the nearest neighbors
alone, for all numbers of columns and of neighbors, against a search of scikit-learn for each.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from lines import REPEATS, Line, Times, cpu
from sklearn.datasets import make_classification
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import scale
from threadpoolctl import threadpool_limits

from marginfold import LSVA, SubspaceSearchCV
from marginfold.errors import ExhaustedWarning, UncertifiedWarning
from marginfold.model_selection.nested_knn import nested_votes

N_FOLDS = 5

TASKS = "one_vs_rest"
"""One fit serves all numbers of components; "auto" needs another below the number of classes."""


@dataclass(frozen=True)
class Case:
    """A grid on some rows; GridSearchCV takes the weights in parts, one after each run of ours."""

    X: np.ndarray
    y: np.ndarray
    weights: np.ndarray
    n_components: int
    C: float
    parts: list[np.ndarray]
    needed: str

    def __str__(self) -> str:
        n, d = self.X.shape
        grid = f"{len(self.weights)} weights x {self.n_components} dimensions x {N_FOLDS} folds"
        return f"SubspaceSearchCV, {grid}, n = {n}, d = {d}, C = {self.C:g}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer turns, one cost")
    for line in lines(parser.parse_args().quick):
        sys.stdout.write(f"{line}\n")


def lines(quick: bool) -> list[Line]:
    """Return one line for each case."""
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("error", UncertifiedWarning)
        warnings.simplefilter("ignore", ExhaustedWarning)
        return [*(_line(case) for case in _cases(quick)), *_neighbor_lines(quick)]


def _neighbor_lines(quick: bool) -> Iterator[Line]:
    """All numbers of columns and of neighbors at once, against a search for each of them."""
    n, m, d, counts = 8000, 4000, 16, (1, 5, 15)
    X, y = make_classification(
        n + m, d, n_informative=d, n_redundant=0, n_classes=26, random_state=0
    )
    for kind, rows in (("real numbers", scale(X)), ("whole numbers", scale(np.round(X)))):
        train, test, labels = rows[:n], rows[n:], y[:n]

        def ours(train: np.ndarray = train, test: np.ndarray = test, labels: np.ndarray = labels):
            nested_votes(train, labels, test, counts)

        def theirs(train: np.ndarray = train, test: np.ndarray = test, labels: np.ndarray = labels):
            for k in range(1, d + 1):
                for count in counts:
                    classifier = KNeighborsClassifier(count).fit(train[:, :k].copy(), labels)
                    classifier.predict(test[:, :k].copy())

        turns = [(cpu(ours), cpu(theirs)) for _ in range(1 if quick else REPEATS)]
        yield Line(
            work=f"nearest neighbors, {d} dimensions x {len(counts)} numbers of neighbors, "
            f"n = {n}, {m} new rows, {kind}",
            ours=Times(tuple(our for our, _ in turns)),
            theirs=Times(tuple(their for _, their in turns)),
            needed=">= 1",
        )


def _cases(quick: bool) -> Iterator[Case]:
    rows = make_classification(
        1000, 30, n_informative=10, n_redundant=5, class_sep=0.6, flip_y=0.1, random_state=0
    )
    weights = np.logspace(-2, 2, 30)
    sample = weights[14:15] if quick else weights[:: len(weights) // REPEATS]
    for C in (100.0,) if quick else (100.0, 1.0):
        yield Case(*rows, weights, 10, C, [sample[i : i + 1] for i in range(len(sample))], ">= 50")
    X, y = make_classification(600, 20, n_informative=8, n_classes=3, random_state=0)
    weights = np.logspace(-2, 3, 6)
    yield Case(scale(X), y, weights, 8, 1.0, [weights] * (1 if quick else REPEATS), ">= 25")


def _line(case: Case) -> Line:
    """Measure both sides in turn."""
    estimator = LSVA(case.n_components, C=case.C, tasks=TASKS)
    search = SubspaceSearchCV(estimator, graph_weight=case.weights, cv=N_FOLDS)
    search.fit(case.X, case.y)
    ours, theirs = [], []
    for part in case.parts:
        ours.append(cpu(_fitting(search, case)))
        grid = _grid_search(case, part)
        theirs.append(cpu(_fitting(grid, case)) * len(case.weights) / len(part))
        _check_equal(search, grid)
    mean, median = sum(theirs) / len(theirs), Times(tuple(ours)).median
    turns = [their / our for our, their in zip(ours, theirs, strict=True)]
    share = f"{len(case.parts[0])} of {len(case.weights)} weights in {len(theirs)} turns"
    return Line(
        work=str(case),
        ours=Times(tuple(ours)),
        theirs=f"GridSearchCV on {share}: {mean:.3g} s ({min(theirs):.3g} to {max(theirs):.3g})",
        ratio=f"{mean / median:.3g}x ({min(turns):.3g} to {max(turns):.3g})",
        needed=case.needed,
    )


def _fitting(search: object, case: Case) -> Callable[[], object]:
    return lambda: search.fit(case.X, case.y)


def _grid_search(case: Case, weights: np.ndarray) -> GridSearchCV:
    steps = [("subspace", LSVA(C=case.C, tasks=TASKS)), ("classifier", KNeighborsClassifier(1))]
    grid = {
        "subspace__graph_weight": list(weights),
        "subspace__n_components": list(range(1, case.n_components + 1)),
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
