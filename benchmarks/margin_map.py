"""Measure two-dimensional maps of many classes: MarginMap, supervised UMAP, discriminant analysis.

``python benchmarks/margin_map.py`` prints a table of digits and synth20k, ``--quick`` of digits
only.  Supervised UMAP takes part where ``pip install umap-learn`` has been run.  CPU seconds of
one process, one thread; UMAP is warmed up on few and on many rows first, so that its compilation
is not counted.

digits: X / 16, 1257 / 540 rows.  synth20k: 5 classes, 50 features of which 10 are redundant,
standardised, 20000 / 5000 rows.  One stratified split each.  The rbf coefficient is 1 / median
squared distance, except in MarginMap(), which is as it comes; GESVC has C = 10 on Nystroem(500),
SVC has C = 10.  Train accuracy counts the row itself among its neighbors, for all methods alike.
`benchmarks/first_try.py` has MarginMap() on real tables.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.datasets import load_digits, make_classification
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.kernel_approximation import Nystroem
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

from marginfold import GESVC, MarginMap

MEDIAN_ROWS = 2000
"""Rows whose distances give the median."""

COLUMNS = (
    "data",
    "method",
    "1-NN test",
    "5-NN test",
    "5-NN train",
    "gap",
    "fit s",
    "transform s",
    "sharpness",
)


@dataclass(frozen=True)
class Data:
    name: str
    X: np.ndarray
    X_test: np.ndarray
    y: np.ndarray
    y_test: np.ndarray
    gamma: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="digits only")
    quick = parser.parse_args().quick
    warnings.simplefilter("ignore")
    print_row(COLUMNS)
    print_row(["---"] * len(COLUMNS))
    with threadpool_limits(1):
        for make in [digits] if quick else [digits, synth20k]:
            data = make()
            for name, method in methods(data):
                figures = method if isinstance(method, list) else measured(method, data)
                print_row([data.name, name, *figures])


def methods(data: Data) -> Iterator[tuple[str, Any]]:
    """Yield names with estimators, or with the reason why there is none."""
    landmarks = Nystroem(gamma=data.gamma, n_components=500, random_state=0)
    machine = GESVC(C=10.0, kernel=landmarks)
    svc = SVC(C=10.0, gamma=data.gamma)
    shrunk = LinearDiscriminantAnalysis(solver="eigen", shrinkage=1e-3, n_components=2)
    yield "LDA", LinearDiscriminantAnalysis(n_components=2)
    yield "Nystroem(500) + LDA", make_pipeline(landmarks, shrunk)
    yield "MarginMap()", MarginMap()
    yield "MarginMap(GESVC)", MarginMap(machine)
    yield "MarginMap(GESVC, sharpness=8)", MarginMap(machine, sharpness=8.0)
    yield "MarginMap(SVC)", MarginMap(svc)
    yield "MarginMap(SVC), five folds", MarginMap(svc, cv=5)
    yield "MarginMap(SVC, sharpness=4)", MarginMap(svc, sharpness=4.0)
    yield "supervised UMAP", supervised_umap()


def supervised_umap() -> Any:
    """Return UMAP, compiled, or a row that says why not."""
    try:
        import numba
        from umap import UMAP
    except ImportError as error:
        return [f"skipped: {error}; pip install umap-learn", *["-"] * (len(COLUMNS) - 3)]
    numba.set_num_threads(1)
    rng = np.random.default_rng(0)
    for n in (300, 5000):  # beyond 4096 rows UMAP takes another way
        X, y = rng.normal(size=(n, 5)), np.arange(n) % 3
        UMAP(random_state=0).fit(X, y).transform(X[: n // 2] + 1e-3)
    return UMAP(random_state=0)


def measured(method: Any, data: Data) -> list[str]:
    model = clone(method)
    fit = seconds(lambda: model.fit(data.X, data.y))
    Z = model.embedding_ if hasattr(model, "embedding_") else model.transform(data.X)
    images: list[np.ndarray] = []
    transform = seconds(lambda: images.append(model.transform(data.X_test)))
    one, five = (KNeighborsClassifier(k).fit(Z, data.y) for k in (1, 5))
    train, test = five.score(Z, data.y), five.score(images[0], data.y_test)
    return [
        f"{one.score(images[0], data.y_test):.4f}",
        f"{test:.4f}",
        f"{train:.4f}",
        f"{train - test:.4f}",
        f"{fit:.2f}",
        f"{transform:.2f}",
        f"{model.sharpness_:.3g}" if hasattr(model, "sharpness_") else "-",
    ]


def seconds(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def digits() -> Data:
    X, y = load_digits(return_X_y=True)
    return split("digits", X / 16, y, 540)


def synth20k() -> Data:
    X, y = make_classification(
        25_000,
        50,
        n_informative=15,
        n_redundant=10,
        n_classes=5,
        n_clusters_per_class=2,
        class_sep=1.5,
        flip_y=0.02,
        random_state=0,
    )
    return split("synth20k", StandardScaler().fit_transform(X), y, 5000)


def split(name: str, X: np.ndarray, y: np.ndarray, test_size: int) -> Data:
    parts = train_test_split(X, y, test_size=test_size, stratify=y, random_state=0)
    sample = np.random.default_rng(0).permutation(len(parts[0]))[:MEDIAN_ROWS]
    squared = euclidean_distances(parts[0][sample], squared=True)
    return Data(name, *parts, 1.0 / np.median(squared[np.triu_indices(len(squared), 1)]))


def print_row(cells: Any) -> None:
    print("| " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
