"""A client that type checkers accept; `reveal_type` says what it gets.  Nothing here is run."""

from __future__ import annotations

from pathlib import Path
from typing import reveal_type

import dask.array as da
import numpy as np
import pandas as pd
import polars as pl
import scipy.sparse as sp
from sklearn.datasets import load_wine
from sklearn.model_selection import StratifiedKFold
from sklearn.neighbors import KNeighborsTransformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import marginfold
from marginfold import (
    GESVC,
    KDA,
    LDA,
    LSVA,
    MMDA,
    MRGEPSVC,
    SVMPCA,
    WSVDA,
    AnchorGraph,
    EmbeddingDisplay,
    ExactKernel,
    GainDisplay,
    GraphEmbedding,
    InteriorPoint,
    LaplacianEigenmaps,
    LapSVC,
    LowRankKernel,
    MarginMap,
    NeighborGraph,
    PathDisplay,
    PathSearchCV,
    PlanesDisplay,
    PrecomputedGraph,
    SubspaceSearchCV,
    TwinSVC,
    WithinClassGraph,
    graph_permutation_test,
    load_model,
    path,
    plan,
    save_model,
)

rng = np.random.default_rng(0)
X = rng.standard_normal((60, 3))
y = rng.integers(0, 3, 60)
words = ["a", "b", "c"] * 20

# Rows and labels of every kind.
reveal_type(LSVA(2).fit(X, y))  # LSVA
reveal_type(LSVA(2).fit(X, y).transform(X))  # ndarray
reveal_type(LSVA(2).fit(X, y).decision_function(X))  # ndarray
reveal_type(LSVA(2).fit_transform(X, y))  # ndarray
reveal_type(LSVA(2).fit(X, y).inverse_transform(X[:, :2]))  # ndarray
reveal_type(LSVA(2).fit_path(X, y, [0.1, 1.0])[0])  # LSVA
reveal_type(LapSVC().fit(X, y))  # LapSVC
reveal_type(GESVC().fit(X, y).predict(X))  # ndarray
reveal_type(LaplacianEigenmaps().fit_transform(X))  # ndarray
reveal_type(path(WSVDA(), X, y, C=[1.0, 10.0])[0])  # WSVDA
reveal_type(SubspaceSearchCV(LSVA(2)).fit(X, y).predict(X))  # ndarray
reveal_type(MarginMap().fit(X, y).transform(X))  # ndarray
reveal_type(InteriorPoint().solve(X, np.sign(X[:, 0]), 1.0).gap)  # float
reveal_type(plan(LSVA(), (1000, 20)).seconds)  # float
reveal_type(NeighborGraph(5).build(X).scatter(X))  # ndarray
MMDA(2, C="auto").fit([[0.0, 1.0], [1.0, 2.0], [2.0, 0.0]], ["a", "b", "a"])
LDA().fit(sp.csr_array(X), words, sample_weight=np.ones(60))
LDA().fit(pd.DataFrame(X), pd.Series(y)).transform(pd.DataFrame(X))
LDA().fit(pl.DataFrame(X), pl.Series(y)).transform(pl.DataFrame(X))
LDA().fit(da.from_array(X), da.from_array(y)).transform(da.from_array(X))
rows, labels = load_wine(return_X_y=True)
LDA(2).fit(rows, labels)
make_pipeline(StandardScaler(), LSVA(2)).fit(rows, labels)

# Names, objects and numbers as parameters.
LSVA(2, kernel="rbf", graph="anchors", graph_weight=3, tasks="greedy", deflation="orthogonal")
LSVA(2, kernel=ExactKernel("poly", degree=2), graph=0.3 * NeighborGraph() + WithinClassGraph())
LSVA(2, kernel=lambda A, B: A @ B.T, solver=InteriorPoint(max_iter=50), class_weight={0: 2.0})
WSVDA(2, kernel=LowRankKernel("rbf", rank=20), graph=AnchorGraph(30), reconstruct="linear")
KDA(2, shrinkage="auto", unlabeled="?")
GraphEmbedding(2, intrinsic=None, penalty="total", scaling="unit")
SVMPCA(2, solver="dual", bias=False)
MRGEPSVC(manifold="numerator", multiclass="one_vs_rest", class_weight="balanced")
TwinSVC(C1=0.5, ridge="auto", loss="least_squares", graph=None)
NeighborGraph(5, search=KNeighborsTransformer(mode="distance"), width=2.0, mode="mutual")
PrecomputedGraph(sp.eye_array(60))
MarginMap(SVC(), sharpness=2.0, cv=StratifiedKFold(3), order=["a", "b", "c"])

# Searches, tests, pictures and files.
search = SubspaceSearchCV(LSVA(5), C=[0.1, 1], n_components=range(1, 4), cv=5, scoring="accuracy")
PathSearchCV(LapSVC(), graph_weight=[0.1, 1.0], cv=StratifiedKFold(3), error_score="raise").fit(
    X, y
)
graph_permutation_test(LSVA(2), X, y, cv=StratifiedKFold(3), n_permutations=5)
model = LSVA(2).fit(X, y)
EmbeddingDisplay.from_estimator(model, X, y, held_out=(X, y)).plot(seen=False)
GainDisplay.from_estimator(model)
PlanesDisplay.from_estimator(TwinSVC().fit(X[:, :2], y), X[:, :2], y)
PathDisplay.from_estimator(search.fit(X, y))
save_model(model, Path("model.skops"), overwrite=True)
load_model("model.skops").transform(X)
with marginfold.watch(lambda progress: None):
    model.fit(X, y)
