# The edges of a neighbor graph, between other rows.
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.collections import LineCollection
from sklearn.preprocessing import scale

from marginfold import NeighborGraph, PermutedGraph
from marginfold.data import load

wine = load("wine")
X, y = scale(wine.X[::3, [6, 9]]), wine.y[::3]
laplacian = PermutedGraph(NeighborGraph(4)).build(X)
L = laplacian.scatter(np.eye(len(X)))  # Z'LZ with Z = I
edges = np.argwhere(np.triu(L, 1) < -1e-9)  # W = -L is positive

figure, ax = plt.subplots(figsize=(4.5, 3.6), layout="constrained")
lines = LineCollection(X[edges], color="gray", lw=0.6, zorder=0)
ax.add_collection(lines)
for label in np.unique(y):
    ax.plot(*X[y == label].T, "o", label=f"wine {label}")
ax.set_title(f"{len(edges)} edges")
ax.set(xlabel="flavanoids", ylabel="color intensity")
figure.legend(loc="outside lower center", ncols=4)
plt.show()
