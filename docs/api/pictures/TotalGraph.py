# All rows are joined alike.
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.collections import LineCollection
from sklearn.preprocessing import scale

from marginfold import TotalGraph
from marginfold.data import load

wine = load("wine")
X, y = scale(wine.X[::6, [6, 9]]), wine.y[::6]
laplacian = TotalGraph().build(X)
L = laplacian.scatter(np.eye(len(X)))  # Z'LZ with Z = I
edges = np.argwhere(np.triu(L, 1) < -1e-9)  # W = -L is positive

figure, ax = plt.subplots(figsize=(4.5, 3.6), layout="constrained")
lines = LineCollection(
    X[edges], color="gray", lw=0.6, alpha=0.5, zorder=0
)
ax.add_collection(lines)
for label in np.unique(y):
    ax.plot(*X[y == label].T, "o", label=f"wine {label}")
ax.set_title(f"{len(edges)} edges")
ax.set(xlabel="flavanoids", ylabel="color intensity")
figure.legend(loc="outside lower center", ncols=4)
plt.show()
