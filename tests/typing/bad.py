"""A client with a mistake on every marked line, which type checkers find.  Nothing here is run."""

from __future__ import annotations

import numpy as np

import marginfold
from marginfold import (
    GEPSVC,
    GESVC,
    KDA,
    LDA,
    LSVA,
    MRGEPSVC,
    SVMPCA,
    WSVDA,
    AnchorGraph,
    EmbeddingDisplay,
    ExactKernel,
    GraphEmbedding,
    InteriorPoint,
    LaplacianEigenmaps,
    LapSVC,
    LibSVM,
    LowRankKernel,
    MarginMap,
    NeighborGraph,
    PathSearchCV,
    PrecomputedGraph,
    SubspaceSearchCV,
    TwinSVC,
    graph_permutation_test,
    path,
    plan,
    save_model,
)

X = np.zeros((60, 3))
y = np.zeros(60)

# Names of parameters.
LSVA(2, grph_weight=1.0)  # wrong
WSVDA(2, graph_weight=1.0)  # wrong
LDA(n_component=2)  # wrong
GESVC(1.0)  # wrong
GEPSVC(graph="knn")  # wrong
NeighborGraph(neighbors=5)  # wrong
ExactKernel("rbf", sigma=1.0)  # wrong
InteriorPoint(tolerance=1e-6)  # wrong
InteriorPoint(compiled="no")  # wrong
LSVA().fit(X, y, weights=y)  # wrong
LSVA().fit_path(X, y, graph_weights=[1.0])  # wrong
SubspaceSearchCV(LSVA(), folds=5)  # wrong
path(LSVA(), X, y, graph_weights=[1.0])  # wrong
plan(LSVA(), X, rows=5)  # wrong

# Names of choices.
LSVA(tasks="gready")  # wrong
LSVA(deflation="uncorelated")  # wrong
LSVA(kernel="gaussian")  # wrong
LSVA(graph="kNN")  # wrong
LSVA(solver="smo")  # wrong
LSVA(C="automatic")  # wrong
LSVA(class_weight="balance")  # wrong
LSVA(reconstruct="ridge")  # wrong
WSVDA(on_exhausted="pad")  # wrong
KDA(shrinkage="ledoit")  # wrong
GraphEmbedding(scaling="length")  # wrong
SVMPCA(solver="gram")  # wrong
MRGEPSVC(manifold="top")  # wrong
TwinSVC(loss="squared")  # wrong
GESVC(multiclass="ovo")  # wrong
NeighborGraph(weights="heath")  # wrong
NeighborGraph(search="annoy")  # wrong
AnchorGraph(width="large")  # wrong
LowRankKernel("rbf", gamma="mean")  # wrong
LaplacianEigenmaps(graph="none")  # wrong
MarginMap(cv="third")  # wrong
PathSearchCV(GESVC(), error_score="ignore")  # wrong

# Types of values.
LSVA("2")  # wrong
LSVA(graph=NeighborGraph)  # wrong
LSVA(graph=5)  # wrong
LSVA(graph_weight="1.0")  # wrong
GESVC(C=[1.0, 10.0])  # wrong
LDA().fit("rows.csv", y)  # wrong
LDA().fit(X, "labels")  # wrong
LDA().fit(60, y)  # wrong
LSVA().fit(X, y).transform("new.csv")  # wrong
NeighborGraph(n_neighbors="5")  # wrong
PrecomputedGraph("knn")  # wrong
LibSVM(tol="small")  # wrong
path(LDA(), X, y)  # wrong (pyright)
PathSearchCV(LSVA())  # wrong (pyright)
SubspaceSearchCV(GESVC())  # wrong (pyright)
graph_permutation_test("lsva", X, y)  # wrong
EmbeddingDisplay.from_estimator(LSVA().fit(X, y), X, y, held_out=X)  # wrong
EmbeddingDisplay.from_estimator("lsva", X, y)  # wrong
save_model(LSVA(), 5)  # wrong
save_model("model.skops", LSVA())  # wrong
marginfold.watch(5)  # wrong
answer: int = LSVA().fit(X, y).transform(X)  # wrong
fitted: LSVA = LapSVC().fit(X, y)  # wrong (pyright)
