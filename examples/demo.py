"""Compare the methods on scikit-learn's wine, breast cancer and digits; no network is needed.

Prints the 1-nearest-neighbor error (5-fold cross-validation, everything fitted on the training
part only) and the error of the classifiers, draws the two-dimensional embeddings of rows that were
not used to find them, and three pictures of geometry: crossing planes, a denoised curve and an
unrolled manifold with new rows.
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
from sklearn.datasets import load_breast_cancer, load_digits, load_wine, make_swiss_roll
from sklearn.kernel_approximation import Nystroem
from sklearn.model_selection import StratifiedKFold, train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from marginfold import (
    GEPSVC,
    GESVC,
    KDA,
    LDA,
    LPP,
    LSVA,
    MMDA,
    MRGEPSVC,
    NPE,
    SVMPCA,
    WSVDA,
    ExactKernel,
    LaplacianEigenmaps,
    LapSVC,
    LocallyLinearEmbedding,
    MarginMap,
    TwinSVC,
)
from marginfold.errors import ExhaustedWarning

OUTPUT = Path("demo")
DATA = {"wine": load_wine, "breast cancer": load_breast_cancer, "digits": load_digits}
DRAWN = (
    "SVMPCA",
    "LDA",
    "KDA (80 landmarks)",
    "LPP",
    "eigenmaps",
    "LSVA",
    "WSVDA",
    "MarginMap of SVC(C=10)",
)
EDGE = 1e-3
"""Room round a picture whose rows are all on a line."""

HIDDEN_SHARE = 0.8
"""Share of training labels that LapSVC does not see."""


def transformers(n_components: int, n_features: int, n_classes: int) -> dict[str, Any]:
    """Return the compared embeddings with at most n_components dimensions."""
    k = min(n_components, n_features)
    lda = min(k, n_classes - 1)
    nystroem = Nystroem(gamma=0.5 / n_features, n_components=80, random_state=0)
    return {
        "SVMPCA": SVMPCA(k),
        "LDA": LDA(lda),
        "KDA (80 landmarks)": KDA(lda, kernel=nystroem),
        "LPP": LPP(k),
        "NPE": NPE(k),
        "eigenmaps": LaplacianEigenmaps(k),
        "LLE": LocallyLinearEmbedding(k),
        "MMDA": MMDA(k),
        "LSVA": LSVA(k),
        "LSVA splits": LSVA(k, tasks="splits"),
        "WSVDA": WSVDA(k),
        "MarginMap of SVC(C=10)": MarginMap(SVC(C=10)),
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
    say(f"\nThe embeddings of held-out rows are in {draw()}")
    say(f"Crossing planes, a denoised curve and an unrolled manifold are in {draw_geometry()}")
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
        "GEPSVC (classifier, planes)": GEPSVC(),
        "MRGEPSVC (classifier, planes)": MRGEPSVC(),
        "TwinSVC (planes, least squares)": TwinSVC(),
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
    names = DRAWN
    figure, axes = plt.subplots(
        len(DATA), len(names), figsize=(1.8 * len(names), 2.1 * len(DATA)), layout="constrained"
    )
    for row, (data, load) in enumerate(DATA.items()):
        X, y = load(return_X_y=True)
        X_train, X_test, y_train, y_test = train_test_split(
            X, y, test_size=0.5, stratify=y, random_state=0
        )
        scaler = StandardScaler().fit(X_train)
        X_train, X_test = scaler.transform(X_train), scaler.transform(X_test)
        methods = transformers(2, X.shape[1], len(set(y)))
        for column, name in enumerate(names):
            fitted = methods[name].fit(X_train, y_train)
            Z_train, Z_test = fitted.transform(X_train), fitted.transform(X_test)
            error = error_1nn(Z_train, y_train, Z_test, y_test)
            panel(axes[row, column], Z_test, y_test, f"{100 * error:.1f} %")
            if row == 0:
                axes[row, column].set_title(name, fontsize=10)
        axes[row, 0].set_ylabel(data, fontsize=11)
    figure.suptitle("Held-out rows in two dimensions, with their 1-NN error", fontsize=13)
    return saved(figure, "embeddings.png")


def draw_geometry() -> Path:
    """Draw what planes, reconstructions and out-of-sample embeddings are for."""
    figure, axes = plt.subplots(1, 3, figsize=(13, 4.2), layout="constrained")
    draw_planes(axes[0])
    draw_denoising(axes[1])
    draw_unrolled(axes[2])
    return saved(figure, "geometry.png")


def draw_planes(axis: Any) -> None:
    rng = np.random.default_rng(0)
    t = rng.uniform(-1, 1, (2, 80))
    X = np.vstack([np.column_stack([t[0], t[0]]), np.column_stack([t[1], -t[1]])])
    X, y = X + 0.05 * rng.standard_normal(X.shape), np.repeat([0, 1], 80)
    model = MRGEPSVC().fit(X, y)
    axis.scatter(*X.T, c=y, cmap="tab10", vmin=0, vmax=9, s=12, lw=0)
    for plane, color in zip(model.planes_, ("C0", "C1"), strict=True):
        point = -plane.offset * plane.normal
        along = np.array([-plane.normal[1], plane.normal[0]])
        axis.axline(point, point + along, color=color, lw=1)
    axis.set_title(f"MRGEPSVC: crossing planes, {100 * model.score(X, y):.0f} % right")
    axis.set_aspect("equal")


def draw_denoising(axis: Any) -> None:
    t = np.linspace(-1, 1, 120)
    X = np.column_stack([3 * t, np.sin(np.pi * t)])
    X += 0.12 * np.random.default_rng(0).standard_normal(X.shape)
    kernel = ExactKernel("rbf", gamma=0.03)
    model = SVMPCA(1, kernel=kernel, reconstruct="kernel_ridge").fit(X)
    axis.scatter(*X.T, s=12, c="0.7", lw=0, label="noisy sine")
    axis.scatter(*model.denoise(X).T, s=12, c="C3", lw=0, label="rebuilt from one score")
    axis.legend(fontsize=8)
    axis.set_title("SVMPCA: denoising")


def draw_unrolled(axis: Any) -> None:
    X, t = make_swiss_roll(1500, random_state=0)
    model = LocallyLinearEmbedding(2).fit(X[:1000])
    old, new = model.transform(X[:1000]), model.transform(X[1000:])
    axis.scatter(*old.T, c=t[:1000], s=6, lw=0, cmap="viridis")
    axis.scatter(*new.T, c=t[1000:], s=14, lw=0.4, cmap="viridis", edgecolors="black")
    axis.set_title("Locally linear embedding; new rows have a rim")


def saved(figure: Any, name: str) -> Path:
    OUTPUT.mkdir(exist_ok=True)
    path = OUTPUT / name
    figure.savefig(path, dpi=110)
    plt.close(figure)
    return path


def panel(axis: Any, Z: Any, y: Any, caption: str) -> None:
    order = np.random.default_rng(0).permutation(len(Z))
    second = Z[:, 1] if Z.shape[1] > 1 else np.random.default_rng(0).uniform(-1, 1, len(Z))
    axis.scatter(Z[order, 0], second[order], c=y[order], cmap="tab10", vmin=0, vmax=9, s=5, lw=0)
    for limits, values in ((axis.set_xlim, Z[:, 0]), (axis.set_ylim, second)):
        low, high = np.quantile(values, [0.01, 0.99])  # a few far rows must not hide the others
        limits(low - 0.15 * (high - low) - EDGE, high + 0.15 * (high - low) + EDGE)
    axis.set_xlabel(caption + ("" if Z.shape[1] > 1 else " (1-D, jittered)"), fontsize=9)
    axis.set_xticks([])
    axis.set_yticks([])


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
