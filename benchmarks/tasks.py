"""Five components of many classes: the papers' round robin beside splits, LDA and KDA.

Standardised rows, five stratified splits with at most 2000 rows to fit and 3000 to test; the
accuracy of five nearest neighbors in five dimensions, mean of the splits.  Kernels are rbf of rank
300 on both sides.  The splits were chosen among other bipartitions on the sets with a star; ours
run with their defaults beside that.

``python benchmarks/tasks.py`` takes the sets that are not bundled from the folder MARGINFOLD_DATA,
and leaves out those that are not there; ``--quick`` measures one split of the stars.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.datasets import load_digits, make_classification
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.impute import SimpleImputer
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from marginfold import KDA, LDA, LSVA, WSVDA, LowRankKernel
from marginfold.data.catalogue import folder
from marginfold.data.loading import load, read_arrays
from marginfold.errors import InvalidInputError

K, SPLITS = 5, 5
"""Components, and splits of the rows."""

MOST_ROWS, MOST_NEW = 2000, 3000
"""Rows to fit and to test, at most."""

FEWEST = 4
"""Rows of a class below which it is left out: a stratified split needs some on both sides."""

CHOSEN_ON = ("vowel", "digits", "soy", "satellite")
"""The sets on which the splits were chosen."""

SETS = (*CHOSEN_ON, "usps", "mnist", "glass", "ecoli", "synth26")

FILES = {"satellite": "satellite.csv.gz", "mnist": "mnist.npz"}
"""Sets that are not in the catalogue."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one split of the stars")
    quick = parser.parse_args().quick
    warnings.simplefilter("ignore")
    with threadpool_limits(1):
        for line in table(CHOSEN_ON if quick else SETS, 1 if quick else SPLITS):
            sys.stdout.write(line + "\n")
            sys.stdout.flush()


def table(names: tuple[str, ...], n_splits: int) -> Iterator[str]:
    """Yield the lines of a table, one for each set and the mean of all."""
    heads = list(methods())
    yield "| set | classes | " + " | ".join(heads) + " |"
    yield "|---|---|" + "---|" * len(heads)
    rows = []
    for name in names:
        try:
            X, y = rows_of(name)
        except (InvalidInputError, OSError) as error:
            yield f"{name} is left out: {error}"
            continue
        splits = [accuracies(X, y, seed) for seed in range(n_splits)]
        rows.append(np.mean(splits, axis=0))
        star = " *" if name in CHOSEN_ON else ""
        yield f"| {name}{star} | {len(np.unique(y))} | {_cells(rows[-1])}"
    yield f"| mean | | {_cells(np.mean(rows, axis=0))}"


def _cells(values: np.ndarray) -> str:
    return "".join(f"{value:.3f} | " for value in values).rstrip()


def methods() -> dict[str, Any]:
    kernel = LowRankKernel("rbf", rank=300)
    return {
        "LSVA round robin": LSVA(K, tasks="one_vs_rest"),
        "LSVA": LSVA(K),
        "LSVA C = 1": LSVA(K, C=1.0),
        "WSVDA round robin": WSVDA(K, tasks="one_vs_rest"),
        "WSVDA": WSVDA(K),
        "WSVDA C = 10": WSVDA(K, C=10.0),
        "LDA": LDA(K),
        "scikit-learn LDA": LinearDiscriminantAnalysis(),
        "LSVA rbf round robin": LSVA(K, kernel=kernel, tasks="one_vs_rest"),
        "LSVA rbf": LSVA(K, kernel=kernel),
        "LSVA rbf C = 1": LSVA(K, kernel=kernel, C=1.0),
        "LSVA rbf C = 10": LSVA(K, kernel=kernel, C=10.0),
        "KDA": KDA(K, kernel=kernel),
    }


def accuracies(X: np.ndarray, y: np.ndarray, seed: int) -> list[float]:
    """Return the accuracy of each method on one split."""
    size = min(0.7, MOST_ROWS / len(X))
    X, new, y, y_new = train_test_split(X, y, train_size=size, stratify=y, random_state=seed)
    scaler = make_pipeline(SimpleImputer(), StandardScaler()).fit(X)
    X, new, y_new = scaler.transform(X), scaler.transform(new[:MOST_NEW]), y_new[:MOST_NEW]
    return [_accuracy(model.fit(X, y), X, y, new, y_new) for model in methods().values()]


def _accuracy(model: Any, X: Any, y: Any, new: Any, y_new: Any) -> float:
    neighbors = KNeighborsClassifier(5).fit(model.transform(X)[:, :K], y)
    return float(neighbors.score(model.transform(new)[:, :K], y_new))


def rows_of(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows of a set without the classes that are too small to be split."""
    if name == "digits":
        X, y = load_digits(return_X_y=True)
    elif name == "synth26":
        X, y = make_classification(
            6000,
            16,
            n_informative=12,
            n_redundant=2,
            n_classes=26,
            class_sep=2.0,
            flip_y=0.0,
            random_state=0,
        )
    elif name in FILES:
        X, y = read_arrays(folder(None) / FILES[name])
    else:
        found = load(name)
        X, y = found.X, found.y
    if name == "mnist":
        drawn = np.random.default_rng(0).choice(len(X), 5000, replace=False)
        X, y = X[drawn], y[drawn]
    _, codes, counts = np.unique(y, return_inverse=True, return_counts=True)
    kept = counts[codes] >= FEWEST
    return np.asarray(X[kept], dtype=float), codes[kept]


if __name__ == "__main__":
    main()
