"""Orthogonal or uncorrelated components: which deflation is the better default.

``python benchmarks/deflation.py`` measures all tables, ``--quick`` three of them; ``--only sonar
vowel`` some.  MMDA, LSVA and WSVDA as they come, and LSVA with the kernel rbf, with 2 and with 5
components.  Five stratified splits, 70 to 30, columns standardised by the training rows.

For every table: the accuracy of 1 and of 5 neighbors on the held-out rows for each deflation, the
size of the correlation between the first two scores of the training rows, and how many components
there are.  "margin" are the same components with ``scaling="margin"``, "filled" has
``on_exhausted="pca"``.  Three tables are measured with fewer training rows than columns as well.
At the end the means over tables, and on how many of them the uncorrelated
components are better or worse by more than half a point.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.model_selection import StratifiedShuffleSplit
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from marginfold import LSVA, MMDA, WSVDA
from marginfold.data import load
from marginfold.errors import MarginfoldError

SPLITS = 5
COMPONENTS = (2, 5)
NEIGHBORS = (1, 5)

NOTICED = 0.005
"""Accuracy that makes a difference."""

TWO_CLASSES = (
    "breast cancer",
    "breast9",
    "ionosphere",
    "sonar",
    "german",
    "diabetes",
    "heart",
    "australian",
    "liver",
    "transfusion",
)
MANY_CLASSES = (
    "wine",
    "iris",
    "glass",
    "vowel",
    "vehicle",
    "ecoli",
    "balance",
    "thyroid",
    "digits",
)
FEW_ROWS = {"usps, 60 rows": 60, "splice, 50 rows": 50, "sonar, 40 rows": 40}
"""Training rows of tables that have more columns than that."""

MOST_NEW = 500
"""Held-out rows of these, at most."""

BUNDLED = {"breast cancer": load_breast_cancer, "digits": load_digits}
"""Tables of scikit-learn."""

QUICK = ("sonar", "wine", "vowel")

METHODS: dict[str, Callable[[int], Any]] = {
    "MMDA": MMDA,
    "LSVA": LSVA,
    "WSVDA": WSVDA,
    "LSVA rbf": lambda k: LSVA(k, kernel="rbf"),
}

VARIANTS: dict[str, dict[str, str]] = {
    "orthogonal": {"deflation": "orthogonal"},
    "uncorrelated": {"deflation": "uncorrelated"},
    "orthogonal, margin": {"deflation": "orthogonal", "scaling": "margin"},
    "uncorrelated, margin": {"deflation": "uncorrelated", "scaling": "margin"},
    "uncorrelated, filled": {"deflation": "uncorrelated", "on_exhausted": "pca"},
}

Key = tuple[str, int, str]
"""Method, number of components, variant."""

Found = dict[Key, np.ndarray]
"""Accuracy of 1 and of 5 neighbors, correlation and number of components, means over splits."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="three tables")
    parser.add_argument("--only", nargs="*", help="these tables")
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    everything = (*TWO_CLASSES, *MANY_CLASSES, *FEW_ROWS)
    names = chosen.only or (QUICK if chosen.quick else everything)
    found: dict[str, Found] = {}
    write("| table | method | k | variant | 1-NN | 5-NN | correlation | components |")
    write("|---|---|---|---|---|---|---|---|")
    with threadpool_limits(1):
        for name in names:
            try:
                found[name] = measured(*rows_of(name), FEW_ROWS.get(name))
            except (OSError, MarginfoldError) as error:
                write(f"{name} is left out: {error}")
                continue
            for key, cells in found[name].items():
                write_row(name, key, cells)
    groups = {"two classes": TWO_CLASSES, "many classes": MANY_CLASSES, "few rows": FEW_ROWS}
    for title, group in groups.items():
        write_summary(title, {name: found[name] for name in group if name in found})


def rows_of(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return rows and labels of a table."""
    if name in BUNDLED:
        X, y = BUNDLED[name](return_X_y=True)
        return X, y
    data = load(name.partition(",")[0])
    return np.asarray(data.X, dtype=float), np.asarray(data.y)


def measured(X: np.ndarray, y: np.ndarray, n_train: int | None) -> Found:
    """Return the figures of every method and variant on one table."""
    cells = defaultdict(list)
    n_new = 0.3 if n_train is None else min(MOST_NEW, len(y) - n_train)
    splits = StratifiedShuffleSplit(SPLITS, test_size=n_new, train_size=n_train, random_state=0)
    for train, test in splits.split(X, y):
        scaler = StandardScaler().fit(X[train])
        rows, new = scaler.transform(X[train]), scaler.transform(X[test])
        for key, estimator in estimators():
            fitted = estimator.fit(rows, y[train])
            seen, held_out = fitted.transform(rows), fitted.transform(new)
            right = [
                KNeighborsClassifier(n).fit(seen, y[train]).score(held_out, y[test])
                for n in NEIGHBORS
            ]
            cells[key].append([*right, correlation(seen), fitted.n_components_])
    return {key: np.mean(rows, axis=0) for key, rows in cells.items()}


def estimators() -> Iterator[tuple[Key, Any]]:
    for method, make in METHODS.items():
        for k in COMPONENTS:
            for variant, parameters in VARIANTS.items():
                yield (method, k, variant), make(k).set_params(**parameters)


def correlation(scores: np.ndarray) -> float:
    """Return the size of the correlation of the first two scores, NaN if there is one only."""
    return abs(np.corrcoef(scores[:, :2].T)[0, 1]) if scores.shape[1] > 1 else np.nan


def write_row(table: str, key: Key, cells: Sequence[float]) -> None:
    method, k, variant = key
    one, five, correlated, n = cells
    write(
        f"| {table} | {method} | {k} | {variant} | {one:.3f} | {five:.3f} | {correlated:.3f} | "
        f"{n:.1f} |"
    )


def write_summary(title: str, found: dict[str, Found]) -> None:
    """Write the means over tables, and how often a variant is better or worse than orthogonal."""
    if not found:
        return
    write(f"\n{title}: {', '.join(found)}\n")
    write(
        "| method | k | variant | 1-NN | 5-NN | better / worse (5-NN) | correlation | components |"
    )
    write("|---|---|---|---|---|---|---|---|")
    for key in next(iter(found.values())):
        method, k, variant = key
        cells = np.array([results[key] for results in found.values()])
        usual = np.array([results[method, k, "orthogonal"][1] for results in found.values()])
        better = int((cells[:, 1] > usual + NOTICED).sum())
        worse = int((cells[:, 1] < usual - NOTICED).sum())
        one, five, correlated, n = np.nanmean(cells, axis=0)
        write(
            f"| {method} | {k} | {variant} | {one:.3f} | {five:.3f} | {better} / {worse} | "
            f"{correlated:.3f} | {n:.1f} |"
        )


def write(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
