"""Compare the methods on scikit-learn's wine, breast cancer and digits; no network is needed.

Prints the 1-nearest-neighbor error (5-fold cross-validation, everything fitted on the training
part only) and draws the two-dimensional embeddings of rows that were not used to find them.
"""

from __future__ import annotations

import sys
import time
import warnings
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.kernel_approximation import Nystroem
from sklearn.model_selection import StratifiedKFold, train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import StandardScaler

from marginfold import GESVC, LSVA, MMDA, WSVDA, LapSVC
from marginfold.errors import ExhaustedWarning

OUTPUT = Path("demo")
DATA = {"wine": load_wine, "breast cancer": load_breast_cancer, "digits": load_digits}
HIDDEN_SHARE = 0.8
"""Share of training labels that LapSVC does not see."""


def transformers(n_components: int, n_features: int, n_classes: int) -> dict[str, Any]:
    """Return the compared embeddings with at most n_components dimensions."""
    k = min(n_components, n_features)
    lda = min(k, n_classes - 1)
    nystroem = Nystroem(gamma=0.5 / n_features, n_components=80, random_state=0)
    return {
        "PCA": PCA(k),
        "LDA": LinearDiscriminantAnalysis(n_components=lda),
        "MMDA": MMDA(k),
        "LSVA": LSVA(k),
        "LSVA splits": LSVA(k, tasks="splits"),
        "LSVA kernel": LSVA(k, C=10, kernel=nystroem, tasks="splits"),
        "WSVDA": WSVDA(k),
        "WSVDA splits": WSVDA(k, tasks="splits"),
    }


def main() -> None:
    warnings.simplefilter("ignore", ExhaustedWarning)
    started = time.perf_counter()
    say("1-NN error in %, mean of 5 folds (standard deviation); 2 and up to 10 dimensions")
    for name, load in DATA.items():
        X, y = load(return_X_y=True)
        say(f"\n{name}: {X.shape[0]} rows, {X.shape[1]} features, {len(set(y))} classes")
        say(f"  {'method':<34}{'2-D':>14}{'10-D':>14}{'seconds':>9}")
        for label, narrow, wide, seconds in compare(X, y):
            say(f"  {label:<34}{narrow:>14}{wide:>14}{seconds:>9.2f}")
    picture = draw()
    say(f"\nThe embeddings of held-out rows are in {picture}")
    say(f"Total: {time.perf_counter() - started:.0f} s")


def compare(X: Any, y: Any) -> list[tuple[str, str, str, float]]:
    """Return (method, error in 2-D, error in up to 10-D, seconds of fitting) per method."""
    folds = list(StratifiedKFold(5, shuffle=True, random_state=0).split(X, y))
    scaled = [(StandardScaler().fit(X[train]), train, test) for train, test in folds]
    parts = [(s.transform(X[a]), y[a], s.transform(X[b]), y[b]) for s, a, b in scaled]
    rows = [("all features", "", spread([error_1nn(*part) for part in parts]), 0.0)]
    for label, method in transformers(10, X.shape[1], len(set(y))).items():
        errors, seconds = [], 0.0
        for X_train, y_train, X_test, y_test in parts:
            start = time.perf_counter()
            fitted = clone(method).fit(X_train, y_train)
            seconds += time.perf_counter() - start
            Z_train, Z_test = fitted.transform(X_train), fitted.transform(X_test)
            errors.append(
                [error_1nn(Z_train[:, :k], y_train, Z_test[:, :k], y_test) for k in (2, 10)]
            )
        narrow, wide = np.transpose(errors)
        rows.append((label, spread(narrow), spread(wide), seconds))
    for label, classifier in classifiers().items():
        start = time.perf_counter()
        errors = [classification_error(classifier, *part) for part in parts]
        rows.append((label, "", spread(errors), time.perf_counter() - start))
    return rows


def classifiers() -> dict[str, Any]:
    return {
        "GESVC (classifier, all labels)": GESVC(),
        "LapSVC (classifier, 1 label in 5)": LapSVC(),
    }


def classification_error(
    classifier: Any, X_train: Any, y_train: Any, X_test: Any, y_test: Any
) -> float:
    if isinstance(classifier, LapSVC):
        hidden = np.random.default_rng(0).random(len(y_train)) < HIDDEN_SHARE
        y_train = np.where(hidden, classifier.unlabeled, y_train)
    return 1.0 - clone(classifier).fit(X_train, y_train).score(X_test, y_test)


def error_1nn(X_train: Any, y_train: Any, X_test: Any, y_test: Any) -> float:
    return 1.0 - KNeighborsClassifier(1).fit(X_train, y_train).score(X_test, y_test)


def spread(errors: Any) -> str:
    return f"{100 * np.mean(errors):.1f} ({100 * np.std(errors):.1f})"


def draw() -> Path:
    """Draw one row of pictures per data set, one column per method."""
    names = list(transformers(2, 10, 10))
    figure, axes = plt.subplots(
        len(DATA), len(names), figsize=(2.1 * len(names), 2.3 * len(DATA)), layout="constrained"
    )
    for row, (data, load) in enumerate(DATA.items()):
        X, y = load(return_X_y=True)
        X_train, X_test, y_train, y_test = train_test_split(
            X, y, test_size=0.5, stratify=y, random_state=0
        )
        scaler = StandardScaler().fit(X_train)
        X_train, X_test = scaler.transform(X_train), scaler.transform(X_test)
        methods = transformers(2, X.shape[1], len(set(y)))
        for column, (name, method) in enumerate(methods.items()):
            fitted = method.fit(X_train, y_train)
            Z_train, Z_test = fitted.transform(X_train), fitted.transform(X_test)
            error = error_1nn(Z_train, y_train, Z_test, y_test)
            panel(axes[row, column], Z_test, y_test, f"{100 * error:.1f} %")
            if row == 0:
                axes[row, column].set_title(name, fontsize=11)
        axes[row, 0].set_ylabel(data, fontsize=11)
    figure.suptitle("Held-out rows in two dimensions, with their 1-NN error", fontsize=13)
    OUTPUT.mkdir(exist_ok=True)
    path = OUTPUT / "embeddings.png"
    figure.savefig(path, dpi=110)
    plt.close(figure)
    return path


def panel(axis: Any, Z: Any, y: Any, caption: str) -> None:
    order = np.random.default_rng(0).permutation(len(Z))
    second = Z[:, 1] if Z.shape[1] > 1 else np.random.default_rng(0).uniform(-1, 1, len(Z))
    axis.scatter(Z[order, 0], second[order], c=y[order], cmap="tab10", vmin=0, vmax=9, s=5, lw=0)
    axis.set_xlabel(caption + ("" if Z.shape[1] > 1 else " (1-D, jittered)"), fontsize=9)
    axis.set_xticks([])
    axis.set_yticks([])


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
