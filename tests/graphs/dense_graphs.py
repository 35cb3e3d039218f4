"""Every graph as a dense n x n Laplacian, written out with loops from its definition.

Rows of a list are taken one by one: copies keep all their edges, nothing is merged. A copy is never
a neighbor: neighbors are looked for among rows of other content.
"""

from __future__ import annotations

import numpy as np


def laplacian(W):
    return np.diag(W.sum(axis=1)) - W


def square(a, b):
    return sum((p - q) ** 2 for p, q in zip(a, b, strict=True))


def contents(X, groups=None):
    """Content of each row as a hashable: its numbers and its group."""
    groups = [0] * len(X) if groups is None else groups
    return [(*map(float, row), group) for row, group in zip(X + 0.0, groups, strict=True)]


def nearest_contents(keys, k):
    """For each content the list of the k nearest contents of its group."""
    nearest = {}
    for a in set(keys):
        others = [b for b in set(keys) if b != a and b[-1] == a[-1]]
        nearest[a] = sorted(others, key=lambda b: (square(a[:-1], b[:-1]), b))[:k]
    return nearest


def knn(X, k, *, weights="heat", width="auto", mode="union", groups=None):
    keys = contents(X, groups)
    nearest = nearest_contents(keys, k)
    n = len(keys)
    found = [[keys[j] in nearest[keys[i]] for j in range(n)] for i in range(n)]
    if width == "auto":
        width = np.mean(
            [square(X[i], X[j]) for i in range(n) for j in range(n) if found[i][j]] or [1.0]
        )
    W = np.zeros((n, n))
    for i in range(n):
        for j in range(n):
            either, both = found[i][j] or found[j][i], found[i][j] and found[j][i]
            if both if mode == "mutual" else either:
                W[i, j] = edge_weight(weights, square(X[i], X[j]), width)
    return laplacian(W)


def edge_weight(weights, squared, width):
    if weights == "binary":
        return 1.0
    return np.exp(-squared / width) if weights == "heat" else np.sqrt(width) / np.sqrt(squared)


def total(n):
    return laplacian(np.full((n, n), 1 / n))


def within(y, unlabeled=None):
    n = len(y)
    W = np.zeros((n, n))
    for i in range(n):
        for j in range(n):
            if y[i] == y[j] and y[i] != unlabeled:
                W[i, j] = 1 / sum(label == y[i] for label in y)
    return laplacian(W)


def between(y, unlabeled=None):
    n, n_labelled = len(y), sum(label != unlabeled for label in y)
    W = np.zeros((n, n))
    for i in range(n):
        for j in range(n):
            if y[i] != unlabeled and y[j] != unlabeled:
                W[i, j] = 1 / n_labelled
    return laplacian(W) - within(y, unlabeled)


def lle(X, k, reg=1e-3):
    keys = contents(X)
    nearest = nearest_contents(keys, k)
    n = len(keys)
    M = np.zeros((n, n))
    for i in range(n):
        around = nearest[keys[i]]
        if not around:
            M[i, i] = 1.0
            continue
        D = np.array([b[:-1] for b in around]) - X[i]
        G = D @ D.T
        G += reg * np.trace(G) * np.eye(len(around))
        w = np.linalg.solve(G, np.ones(len(around)))
        w /= w.sum()
        for j in range(n):
            if keys[j] in around:
                M[i, j] = w[around.index(keys[j])] / keys.count(keys[j])
    return (np.eye(n) - M).T @ (np.eye(n) - M)  # M + M' - M'M, the sign of E25


def anchor_weights(X, points, k, width):
    """Weights of sum 1 of each row on its k nearest anchors; width 0 means equal weights."""
    S = np.zeros((len(X), len(points)))
    for i, row in enumerate(X):
        near = sorted(range(len(points)), key=lambda a: (square(row, points[a]), a))[:k]
        first = square(row, points[near[0]])  # a common factor, so that not all are 0
        for a in near:
            S[i, a] = np.exp((first - square(row, points[a])) / width) if width else 1.0
        S[i] /= S[i].sum()
    return S


def anchors(X, points, k, width):
    S = anchor_weights(X, points, k, width)
    W = np.zeros((len(X), len(X)))
    for a in range(len(points)):
        if S[:, a].any():
            W += np.outer(S[:, a], S[:, a]) / S[:, a].sum()
    return laplacian(W)
