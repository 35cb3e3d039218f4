# Each row is joined with its two nearest anchors (crosses), and
# with rows that share one.
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.collections import LineCollection
from sklearn.preprocessing import scale

from marginfold import AnchorGraph
from marginfold.data import load

wine = load("wine")
X, y = scale(wine.X[:, [6, 9]]), wine.y
laplacian = AnchorGraph(n_anchors=12, n_neighbors=2).build(X)
anchors = laplacian.anchors.points
row, anchor = laplacian.weights_to_anchors.nonzero()

figure, ax = plt.subplots(figsize=(4.5, 3.6), layout="constrained")
links = np.stack([X[row], anchors[anchor]], axis=1)
ax.add_collection(
    LineCollection(links, colors="gray", linewidths=0.5, zorder=0)
)
for label in np.unique(y):
    ax.plot(
        *X[y == label].T, "o", markersize=4, label=f"wine {label}"
    )
ax.plot(*anchors.T, "kX", markersize=9, label="anchor")
ax.set_title(f"{len(X)} rows, {len(anchors)} anchors")
ax.set(xlabel="flavanoids", ylabel="color intensity")
figure.legend(loc="outside lower center", ncols=4)
plt.show()
